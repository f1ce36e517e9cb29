"""Fill-in-the-middle prompts, which show the model the text after the cursor too.

The part before the cursor is the strategy's prompt. The part after it has at most `MOST` tokens (512, as in
CrossCodeEval's programs), and at most a quarter of the window. Strategies for lines never see it. The model's special
tokens separate the parts. If a part contains such a token, a blank splits the token, and the prompt is flagged.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from ctxbench.bench import code_tokens
from ctxbench.bench.errors import InputFault
from ctxbench.bench.leakage import masked_after
from ctxbench.bench.masking import blanked
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE, Kind, Place, Sample
from ctxbench.harness.generators.base import Generator, Request
from ctxbench.harness.generators.fitting import fit
from ctxbench.strategies.api import FAILED, TRIMMED, Block, BlockKind, Prompt

AUTO = "auto"
_ENDS = (
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<|file_separator|>",
    "<|endoftext|>",
    "<fim_pad>",
    "<file_sep>",
    "<repo_name>",
    "<fim-pad>",
    "<|EOT|>",
    "<EOT>",
)
"""Tokens that models write after a filled-in middle. Some tokenizers decode them as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The special tokens of a model family for fill in the middle, and their order."""

    name: str
    before: str
    """Special token in front of the text before the cursor, spelled as in a prompt for a server."""
    after: str
    """Special token in front of the text after the cursor."""
    middle: str = ""
    """Special token in front of the answer; empty if the answer follows the text before the cursor."""
    after_first: bool = False
    models: str
    """Regular expression that matches the model names of the family."""
    spelled: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The spelling in the vocabulary, by special token; only tokens that are spelled differently there."""

    @property
    def marks(self) -> tuple[str, ...]:
        """All special tokens of the template."""
        return tuple(mark for mark in (self.before, self.after, self.middle) if mark)

    def token(self, mark: str) -> str:
        """Return the vocabulary's spelling of a special token."""
        return self.spelled.get(mark, mark)

    def around(self, prompt: Prompt, after: Block) -> Prompt:
        """Return the prompt with special tokens and the text after the cursor, in the template's order."""
        before = (_mark(self.before), *prompt.blocks)
        suffix = (_mark(self.after), after)
        parts = (*suffix, *before) if self.after_first else (*before, *suffix)
        return replace(prompt, blocks=(*parts, *([_mark(self.middle)] if self.middle else [])))


_PIPES = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
FAMILIES = (
    Template(name="qwen", before=_PIPES[0], after=_PIPES[1], middle=_PIPES[2], models=r"qwen[\d.]*-?coder"),
    Template(name="codegemma", before=_PIPES[0], after=_PIPES[1], middle=_PIPES[2], models="codegemma"),
    Template(
        name="starcoder",
        before="<fim_prefix>",
        after="<fim_suffix>",
        middle="<fim_middle>",
        models=r"starcoder|codeqwen|stable-?code|granite-[\d.]+b-code",
    ),
    Template(
        name="santacoder", before="<fim-prefix>", after="<fim-suffix>", middle="<fim-middle>", models="santacoder"
    ),
    Template(
        name="deepseek",
        before="<｜fim▁begin｜>",
        after="<｜fim▁hole｜>",
        middle="<｜fim▁end｜>",
        models="deepseek-coder",
    ),
    Template(
        name="codellama",
        before="<PRE> ",
        after=" <SUF>",
        middle=" <MID>",
        models=r"code-?llama",
        spelled={"<PRE> ": "▁<PRE>", " <SUF>": "▁<SUF>", " <MID>": "▁<MID>"},
    ),
    Template(name="codestral", before="[PREFIX]", after="[SUFFIX]", after_first=True, models="codestral"),
)
_ENDS_SPELLED = (*_ENDS, "▁<EOT>")


def family(name: str, *, where: str) -> Template:
    """Return the template called `name`.

    Raises:
        InputFault: if no template has this name.
    """
    for template in FAMILIES:
        if template.name == name:
            return template
    names = ", ".join(template.name for template in FAMILIES)
    raise InputFault(f"fim={name} is unknown", where=where, cure=f"use {names}")


def of_name(model: str, *, family_name: str = AUTO, chat: bool = False, where: str) -> Template:
    """Return the template called `family_name`, or, for `AUTO`, the template that fits the model's name.

    Raises:
        InputFault: if no template fits, or the model is used as a `chat` model, which cannot fill in the middle.
    """
    _refuse_chat(chat, where, "set endpoint=completions, and use a model trained to fill in the middle")
    if family_name != AUTO:
        return family(family_name, where=where)
    for template in FAMILIES:
        if re.search(template.models, model, re.I):
            return template
    names = ", ".join(template.name for template in FAMILIES)
    raise InputFault(
        "the model's fill-in-the-middle tokens are unknown", where=where, cure=f"set fim= to one of {names}"
    )


def of_vocabulary(vocabulary: Collection[str], *, chat: bool = False, where: str) -> Template:
    """Return the first template whose special tokens are all in a vocabulary.

    Raises:
        InputFault: if no template fits, or the model is used as a chat model.
    """
    _refuse_chat(chat, where, "set chat=off, and use a model trained to fill in the middle")
    for template in FAMILIES:
        if all(template.token(mark) in vocabulary for mark in template.marks):
            return template
    cure = "leave --fim out, or use a model with such tokens, for example Qwen2.5-Coder"
    raise InputFault("the model's vocabulary has no fill-in-the-middle tokens", where=where, cure=cure)


def _refuse_chat(chat: bool, where: str, cure: str) -> None:
    if chat:
        raise InputFault("the model is used as a chat model, which cannot fill in the middle", where=where, cure=cure)


def ends(vocabulary: Collection[str], template: Template) -> tuple[str, ...]:
    """Return the tokens in a vocabulary that end a filled-in middle, in addition to the model's usual end tokens."""
    candidates = (*(template.token(mark) for mark in template.marks), *_ENDS_SPELLED)
    return tuple(dict.fromkeys(token for token in candidates if token in vocabulary))


def cut(text: str) -> str:
    """Truncate an answer at the first end token that a server decoded as text."""
    return text[: min((at for end in _ENDS if (at := text.find(end)) >= 0), default=len(text))]


def _mark(text: str) -> Block:
    return Block(kind=BlockKind.MARK, text=text)


MOST = 512
"""Maximum tokens of the text after the cursor, in ctxbench's count."""
SHARE = 4
PARTED = "fim_marks_parted"
"""Flag of a prompt whose text contained one of the model's special tokens."""
REMARK = f"The model saw up to {MOST} tokens after the cursor (fill in the middle); strategies did not."
_WHOLE_SUFFIX = "crosscodeeval"
"""Benchmark whose suffixes begin directly after the answer. Other benchmarks' suffixes begin with the next line."""
_OURS = (BlockKind.MARK, BlockKind.AFTER)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def strategy_prompt(prompt: Prompt) -> Prompt:
    """Return the strategy's own prompt, without special tokens and the text after the cursor."""
    blocks = tuple(block for block in prompt.blocks if block.kind not in _OURS)
    return prompt if len(blocks) == len(prompt.blocks) else replace(prompt, blocks=blocks)


def of_strategy(prompt: Prompt) -> Prompt:
    """Return a strategy's prompt. Its blocks of kinds that only the harness may use become plain text blocks."""
    if not any(block.kind in _OURS for block in prompt.blocks):
        return prompt
    blocks = (replace(block, kind=BlockKind.TEXT) if block.kind in _OURS else block for block in prompt.blocks)
    return replace(prompt, blocks=tuple(blocks))


def suffix_block(sample: Sample) -> Block:
    """Return the text after the reference of a line sample, truncated to `MOST` tokens.

    Raises:
        InputFault: if the sample is a function, or its text after the cursor is unknown.
    """
    if sample.kind is not Kind.LINE:
        what = f"{sample.id} is a function, but fill in the middle needs line samples"
        raise InputFault(what, where="--fim", cure="leave --fim out")
    if sample.suffix is None:
        what = f"the text after {sample.id} was not recorded"
        raise InputFault(what, where="--fim", cure="leave --fim out, or import the set with its repositories")
    text = sample.suffix if sample.benchmark == _WHOLE_SUFFIX else "\n" + _blanked(sample)
    block = Block(kind=BlockKind.AFTER, text=text)
    block = trimmed(block, lambda shorter: code_tokens.count(shorter.text) <= MOST)
    if sample.subkind not in (SINGLE_LINE, NEXT_LINE):
        # The block has no place, which would reveal how many lines the answer has.
        return block
    start = sample.cursor.line + 1
    return replace(block, places=(Place(path=sample.path, start=start, end=start + block.text.count("\n")),))


def _blanked(sample: Sample) -> str:
    text, start = sample.suffix or "", sample.cursor.line + 1
    if not sample.masked:
        return text
    return "\n".join(blanked(masked_after(text, sample.uses).split("\n"), sample.masked, start))


def trimmed(block: Block, fits: Callable[[Block], bool]) -> Block:
    """Truncate a block at its end until it fits: by whole lines, or by tokens if the first line is too long."""
    if fits(block):
        return block

    def shortened(parts: list[str]) -> Block:
        def beginning(count: int) -> Block:
            return replace(block, text="".join(parts[:count]), cut=True)

        return beginning(bisect_right(range(1, len(parts)), False, key=lambda count: not fits(beginning(count))))

    lines = shortened(_LINE.findall(block.text))
    return lines if lines.text else shortened(code_tokens.tokenize(block.text))


def template_of(generator: Generator) -> Template:
    """Return the fill-in-the-middle template of a generator's model.

    Raises:
        InputFault: if the model cannot fill in the middle.
    """
    if not generator.capabilities.fills:
        cure = "leave --fim out, or use hf, vllm, serve or openai with a model trained for it"
        raise InputFault("this generator cannot fill in the middle", where="--fim", cure=cure)
    return generator.infilling()


def filled(generator: Generator, request: Request, after: Block) -> Request:
    """Return a request whose prompt, truncated to the model's window, also contains `after`, the text after the cursor.

    Raises:
        InputFault: if the model cannot fill in the middle.
    """
    template = template_of(generator)
    prompt, after = _parted(template, request.prompt, after)
    if not generator.capabilities.counts or not generator.window:
        return replace(request, prompt=template.around(prompt, after))
    window = generator.window

    def count(prompt: Prompt) -> int:
        return generator.count(replace(request, prompt=prompt))

    room = window - min(request.sampling.max_tokens, window // 2)
    after = trimmed(after, lambda block: count(Prompt(blocks=(block,))) <= room // SHARE)
    after_tokens = count(template.around(Prompt(blocks=()), after))
    prompt = fit(prompt, count, max(1, window - after_tokens), request.sampling.max_tokens, request.kind)
    marked = template.around(prompt, after)
    if count(marked) > room:
        marked = replace(marked, flags=tuple(dict.fromkeys((*marked.flags, TRIMMED, FAILED))))
    return replace(request, prompt=marked)


def _parted(template: Template, prompt: Prompt, after: Block) -> tuple[Prompt, Block]:
    marks = [mark.strip() for mark in template.marks]

    def parted(block: Block) -> Block:
        text = block.text
        for mark in marks:
            text = text.replace(mark, f"{mark[0]} {mark[1:]}")
        return block if text == block.text else replace(block, text=text)

    blocks, suffix = tuple(map(parted, prompt.blocks)), parted(after)
    if blocks == prompt.blocks and suffix is after:
        return prompt, after
    flags = tuple(dict.fromkeys((*prompt.flags, PARTED)))
    return replace(prompt, blocks=blocks, flags=flags), suffix
