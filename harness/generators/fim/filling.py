"""Prompts that show the text after the cursor. Pure.

A strategy's prompt stays unchanged in the place of the text before the cursor; the lines after the answer follow it.
Strategies and their drafts see none of these. The first `MOST` tokens are shown (512, as in CrossCodeEval's programs),
and at most a quarter of a small window; both are cut at a line's end.

Tokens of the model's own mark the texts. A text of the repository that spells such a mark is shown with a blank after
its first character, and the prompt is flagged: no text may pass for a mark.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from ctxbench.bench import code_tokens
from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE, Kind, Place, Sample
from ctxbench.harness.generators.base import Generator, Request
from ctxbench.harness.generators.fim.families import Template
from ctxbench.harness.generators.fitting import Windowed, fit
from ctxbench.strategies.api import FAILED, TRIMMED, Block, BlockKind, Prompt

MOST = 512
"""The most tokens, counted by ctxbench, that are shown after the cursor."""
SHARE = 4
"""They have at most one part in so many of the window's room."""
PARTED = "fim_marks_parted"
"""Flag of a prompt in which a text spelled a mark of the model."""
REMARK = f"The model was shown what follows the cursor (fill in the middle, up to {MOST} tokens); strategies were not."
_WHOLE_SUFFIX = "crosscodeeval"
"""The benchmark whose suffixes begin right after the answer; those of all others begin with the next line."""
_OURS = (BlockKind.MARK, BlockKind.AFTER)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@runtime_checkable
class Infilling(Protocol):
    """A generator whose model may have been trained to fill in the middle."""

    def infilling(self) -> Template:
        """Return the template for text after the cursor.

        Raises:
            InputFault: if the model was not trained for that, judging by its vocabulary or name.
        """
        ...


def unmarked(prompt: Prompt) -> Prompt:
    """Return a strategy's own prompt: without marks and without the text after the cursor."""
    blocks = tuple(block for block in prompt.blocks if block.kind not in _OURS)
    return prompt if len(blocks) == len(prompt.blocks) else replace(prompt, blocks=blocks)


def of_strategy(prompt: Prompt) -> Prompt:
    """Return a strategy's prompt; blocks of kinds that only the harness may use become plain text."""
    if not any(block.kind in _OURS for block in prompt.blocks):
        return prompt
    blocks = (replace(block, kind=BlockKind.TEXT) if block.kind in _OURS else block for block in prompt.blocks)
    return replace(prompt, blocks=tuple(blocks))


def after(sample: Sample) -> Block:
    """Return the text after the answer of a line sample, `MOST` tokens at most.

    Raises:
        InputFault: if it is no line, or its file after the cursor is unknown.
    """
    if sample.kind is not Kind.LINE:
        what = f"{sample.id} is a function, whose prompts show what follows by themselves"
        raise InputFault(what, where="--fim", cure="leave --fim out")
    if sample.suffix is None:
        what = f"nobody recorded what follows {sample.id}"
        raise InputFault(what, where="--fim", cure="leave --fim out, or import the set with its repositories")
    text = sample.suffix if sample.benchmark == _WHOLE_SUFFIX else "\n" + _blanked(sample)
    block = Block(kind=BlockKind.AFTER, text=text)
    block = trimmed(block, lambda shorter: code_tokens.count(shorter.text) <= MOST)
    if sample.subkind not in (SINGLE_LINE, NEXT_LINE):
        # The number of the answer's lines must not show.
        return block
    start = sample.cursor.line + 1
    return replace(block, places=(Place(path=sample.path, start=start, end=start + block.text.count("\n")),))


def _blanked(sample: Sample) -> str:
    """Return the lines after the answer, with masked ones empty."""
    text, start = sample.suffix or "", sample.cursor.line + 1
    if not any(end > start for _, end in sample.masked):
        return text
    lines = enumerate(text.split("\n"), start)
    return "\n".join("" if any(a <= at < b for a, b in sample.masked) else line for at, line in lines)


def trimmed(block: Block, fits: Callable[[Block], bool]) -> Block:
    """Return a block cut at its end until it fits, by whole lines; a first line that is too long, by tokens."""
    if fits(block):
        return block

    def shortened(parts: list[str]) -> Block:
        def beginning(count: int) -> Block:
            return replace(block, text="".join(parts[:count]), cut=True)

        return beginning(bisect_right(range(1, len(parts)), False, key=lambda count: not fits(beginning(count))))

    lines = shortened(_LINE.findall(block.text))
    return lines if lines.text else shortened(code_tokens.pieces(block.text))


def template_of(generator: Generator) -> Template:
    """Return the template by which a generator's model sees the text after the cursor.

    Raises:
        InputFault: if there is none.
    """
    if not isinstance(generator, Infilling):
        cure = "leave --fim out, or take hf, vllm or openai with a model that was trained for it"
        raise InputFault("this generator cannot fill in the middle", where="--fim", cure=cure)
    return generator.infilling()


def filled(generator: Generator, request: Request, after: Block) -> Request:
    """Return a request whose prompt also shows the text after the cursor, all of it cut to the model's window.

    Args:
        generator: the model.
        request: with the strategy's own prompt.
        after: the text after the cursor, see `after`.

    Raises:
        InputFault: if the generator cannot fill in the middle.
    """
    template = template_of(generator)
    prompt, after = _parted(template, request.prompt, after)
    if not isinstance(generator, Windowed) or not generator.window:
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
    """Return both with a blank in every text that spells a mark."""
    marks = [mark.strip() for mark in template.marks]

    def parted(block: Block) -> Block:
        text = block.text
        for mark in marks:
            text = text.replace(mark, f"{mark[0]} {mark[1:]}")
        return block if text == block.text else replace(block, text=text)

    blocks, behind = tuple(map(parted, prompt.blocks)), parted(after)
    if blocks == prompt.blocks and behind is after:
        return prompt, after
    flags = tuple(dict.fromkeys((*prompt.flags, PARTED)))
    return replace(prompt, blocks=blocks, flags=flags), behind
