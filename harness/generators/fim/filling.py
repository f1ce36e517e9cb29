"""Prompts that show the text after the cursor. Pure.

A strategy's prompt stays as it is, and stands where the text before the cursor stands; behind it come the lines after
the answer. Strategies and their drafts see none of these. The first `MOST` tokens are shown [decision; CrossCodeEval's
programs show 512], of a small window a quarter at most; both cut at a line's end.

What tells the texts apart are tokens of the model's own. Text of the repository that spells one is shown with a blank
after its first character, and the prompt is flagged: no text may pass for a mark.
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
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.icl.overflow import FAILED, TRIMMED

MOST = 512
"""Tokens of ctxbench's that follow the cursor at most."""
SHARE = 4
"""Part of the window's room that they have at most: one in so many."""
PARTED = "fim_marks_parted"
"""Flag of a prompt whose texts spelled a mark of the model."""
REMARK = f"The model was shown what follows the cursor (fill in the middle, up to {MOST} tokens); strategies were not."
_WHOLE_SUFFIX = "crosscodeeval"
"""The benchmark whose suffixes begin right behind the answer; all others' begin with the next line."""
_OURS = (BlockKind.MARK, BlockKind.AFTER)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@runtime_checkable
class Infilling(Protocol):
    """A generator whose model may have been trained to fill in the middle."""

    def infilling(self) -> Template:
        """Return how its model is shown what follows the cursor.

        Raises:
            InputFault: if it was not trained for that, as far as its vocabulary or its name says.
        """
        ...


def unmarked(prompt: Prompt) -> Prompt:
    """Return a prompt without marks and without what follows the cursor: what a strategy made."""
    blocks = tuple(block for block in prompt.blocks if block.kind not in _OURS)
    return prompt if len(blocks) == len(prompt.blocks) else replace(prompt, blocks=blocks)


def of_strategy(prompt: Prompt) -> Prompt:
    """Return a strategy's prompt; what it gives as a kind that only the harness may use becomes plain text."""
    if not any(block.kind in _OURS for block in prompt.blocks):
        return prompt
    blocks = (replace(block, kind=BlockKind.TEXT) if block.kind in _OURS else block for block in prompt.blocks)
    return replace(prompt, blocks=tuple(blocks))


def after(sample: Sample) -> Block:
    """Return what follows the answer of a line sample, `MOST` tokens at most.

    Raises:
        InputFault: if it is no line, or its file is not known behind the cursor.
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
        # How many lines the answer has is no business of ours.
        return block
    start = sample.cursor.line + 1
    return replace(block, places=(Place(path=sample.path, start=start, end=start + block.text.count("\n")),))


def _blanked(sample: Sample) -> str:
    """Return the lines after the answer, those empty that are masked."""
    text, start = sample.suffix or "", sample.cursor.line + 1
    if not any(end > start for _, end in sample.masked):
        return text
    lines = enumerate(text.split("\n"), start)
    return "\n".join("" if any(a <= at < b for a, b in sample.masked) else line for at, line in lines)


def trimmed(block: Block, fits: Callable[[Block], bool]) -> Block:
    """Return a block cut at its end, by whole lines, to what fits; of its first line as many tokens as do."""
    if fits(block):
        return block

    def shortened(parts: list[str]) -> Block:
        def beginning(count: int) -> Block:
            return replace(block, text="".join(parts[:count]), cut=True)

        return beginning(bisect_right(range(1, len(parts)), False, key=lambda count: not fits(beginning(count))))

    lines = shortened(_LINE.findall(block.text))
    return lines if lines.text else shortened(code_tokens.pieces(block.text))


def template_of(generator: Generator) -> Template:
    """Return how a generator's model is shown what follows the cursor.

    Raises:
        InputFault: if it cannot be.
    """
    if not isinstance(generator, Infilling):
        cure = "leave --fim out, or take hf, vllm or openai with a model that was trained for it"
        raise InputFault("this generator cannot fill in the middle", where="--fim", cure=cure)
    return generator.infilling()


def filled(generator: Generator, request: Request, after: Block) -> Request:
    """Return a request whose prompt also shows what follows the cursor, all of it cut to the model's window.

    Args:
        generator: who is asked.
        request: with the prompt as a strategy made it.
        after: what follows the cursor, see `after`.

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
