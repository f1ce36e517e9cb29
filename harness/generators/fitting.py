"""Truncates prompts to a model's window, counted in the model's own tokens, and splits long texts for measuring.

The least useful text is removed first:

- Functions: retrieved blocks are dropped, the lowest score first. Then the current file is truncated at its top, by
  whole lines, and may even be dropped. Instruction, steps and target section stay.
- Lines: the file is truncated at its top by whole lines, but keeps half of the space, as in the papers' prompts. Then
  retrieved blocks are dropped, then more of the file, finally the beginning of its last line.

A prompt that still exceeds the window is flagged as failed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ctxbench.bench import code_tokens
from ctxbench.bench.types import Kind, Place
from ctxbench.harness.generators.base import Generator, Request
from ctxbench.strategies.api import FAILED, TRIMMED, Block, BlockKind, Dropped, Prompt
from ctxbench.strategies.layout import TITLE, drop_block, is_retrieved

Count = Callable[[Prompt], int]
WINDOW = "window"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def fitted(generator: Generator, request: Request) -> Request:
    """Truncate a request's prompt to the model's window, if the generator knows the window; see `fit`."""
    if not generator.capabilities.counts or not generator.window:
        return request

    def count(shorter: Prompt) -> int:
        return generator.count(replace(request, prompt=shorter))

    prompt = fit(request.prompt, count, generator.window, request.sampling.max_tokens, request.kind)
    return request if prompt is request.prompt else replace(request, prompt=prompt)


def fit(prompt: Prompt, count: Count, window: int, new_tokens: int, kind: Kind) -> Prompt:
    """Truncate a prompt to the part of the window that is not reserved for the answer. A window of 0 means no limit.

    At most half of the window is reserved for the answer's `new_tokens`. A truncated prompt has the flag
    ``overflow_trimmed``, and ``overflow_failed`` if it still does not fit. Dropped blocks have the reason ``window``.
    """
    cut = _Cut(list(prompt.blocks), [], prompt, count, window - min(new_tokens, window // 2))
    if not window or cut.fits(prompt.blocks):
        return prompt
    file = cut.file(kind)
    if kind is Kind.LINE and file is not None:
        cut.shorten_file(file, keep=cut.room // 2)
    cut.drop_retrieved(kind)
    file = cut.file(kind)
    if file is not None:
        cut.shorten_file(file)
        if kind is Kind.LINE:
            cut.shorten_line(file)
        elif is_retrieved(cut.blocks[file]) and not cut.fits(cut.blocks):
            cut.drop(file)
    flags = (*prompt.flags, TRIMMED) if cut.fits(cut.blocks) else (*prompt.flags, TRIMMED, FAILED)
    return replace(
        prompt,
        blocks=tuple(cut.blocks),
        dropped=(*prompt.dropped, *cut.dropped),
        flags=tuple(dict.fromkeys(flags)),
    )


@dataclass(slots=True)
class _Cut:
    blocks: list[Block]
    dropped: list[Dropped]
    prompt: Prompt
    count: Count
    room: int

    def fits(self, blocks: Sequence[Block]) -> bool:
        return self.tokens(blocks) <= self.room

    def tokens(self, blocks: Sequence[Block]) -> int:
        return self.count(replace(self.prompt, blocks=tuple(blocks)))

    def file(self, kind: Kind) -> int | None:
        """Return the index of the block with the current file or its target section; None without such a block."""
        blocks = self.blocks
        if not blocks:
            return None
        titled = any(block.kind is BlockKind.TEXT and block.text.startswith(TITLE) for block in blocks)
        if blocks[-1].kind is BlockKind.INFILE and not titled:
            return len(blocks) - 1
        if kind is Kind.LINE:
            return None
        own = (at for at, block in enumerate(blocks) if is_retrieved(block) and block.score is None)
        return max(own, default=None)

    def drop_retrieved(self, kind: Kind) -> None:
        if self.fits(self.blocks):
            return
        before, states = len(self.dropped), [self.blocks]
        while len(places := self.retrieved(kind)) > 1:
            self.drop(places[0])
            states.append(self.blocks)
        # Counting takes time proportional to the prompt, so bisect instead of counting after each dropped block.
        gone = min(bisect_left(states, True, key=self.fits), len(states) - 1)
        self.blocks = states[gone]
        del self.dropped[before + gone :]
        places = self.retrieved(kind)
        if self.fits(self.blocks) or not places:
            return
        self.shorten_end(places[0])
        if not self.fits(self.blocks) or not self.blocks[places[0]].text.strip():
            self.drop(places[0])

    def retrieved(self, kind: Kind) -> list[int]:
        file = self.file(kind)
        places = [at for at, block in enumerate(self.blocks) if is_retrieved(block) and at != file]
        # Of blocks with equal scores, or without a score, the later block is dropped first.
        return sorted(places, key=lambda at: (_score(self.blocks[at]), -at))

    def drop(self, at: int) -> None:
        self.dropped.append(Dropped.of(self.blocks[at], WINDOW))
        self.blocks = drop_block(self.blocks, at)

    def shorten_end(self, at: int) -> None:
        lines = _LINE.findall(self.blocks[at].text)
        self._cut(at, lambda gone: "".join(lines[: len(lines) - gone]), len(lines) - 1)

    def shorten_file(self, at: int, keep: int = 0) -> None:
        """Remove as few lines as necessary from the file's top. The last line and at least `keep` tokens remain."""
        lines = _LINE.findall(self.blocks[at].text)

        def without(gone: int) -> str:
            return "".join(lines[gone:])

        def is_less(gone: int) -> bool:
            return self.tokens([replace(self.blocks[at], text=without(gone))]) < keep

        most = bisect_left(range(1, len(lines)), True, key=is_less)
        self._cut(at, without, most)

    def shorten_line(self, at: int) -> None:
        tokens = code_tokens.tokenize(self.blocks[at].text)
        self._cut(at, lambda gone: "".join(tokens[gone:]), len(tokens))

    def _cut(self, at: int, without: Callable[[int], str], most: int) -> None:
        """Apply as few of `most` steps as necessary; all steps if the prompt never fits."""
        if most < 1 or self.fits(self.blocks):
            return

        def cut(gone: int) -> list[Block]:
            block = self.blocks[at]
            text = without(gone)
            shorter = replace(block, text=text, cut=True, places=_places(block, text))
            return [*self.blocks[:at], shorter, *self.blocks[at + 1 :]]

        steps = bisect_left(range(1, most), True, key=lambda gone: self.fits(cut(gone))) + 1
        self.blocks = cut(steps)


def _score(block: Block) -> float:
    return float("-inf") if block.score is None else block.score


def _places(block: Block, text: str) -> tuple[Place, ...]:
    if block.kind is not BlockKind.INFILE or len(block.places) != 1:
        return block.places
    [place] = block.places
    gone = block.text.count("\n") - text.count("\n")
    return (replace(place, start=min(place.start + gone, place.end)),)


def encode_pair(prompt: str, text: str, read: Callable[[str], list[int]], begin: int) -> tuple[list[int], int]:
    """Tokenize prompt, text and a newline together. Return the tokens, and how many belong to the text.

    A token that starts in the prompt and ends in the text belongs to the text. All prompts of a sample end equally, so
    this does not change a context gain. A prompt without tokens gets the start token `begin`.
    """
    whole, before = read(f"{prompt}{text}\n"), read(prompt)
    shared = next(
        (at for at, (ours, theirs) in enumerate(zip(whole, before, strict=False)) if ours != theirs), len(before)
    )
    shared = min(shared, len(whole) - 1)
    return (whole, len(whole) - shared) if shared else ([begin, *whole], len(whole))


def rolling_windows(ids: Sequence[int], targets: int, window: int) -> Iterator[tuple[list[int], int]]:
    """Yield the windows that a model reads to measure a text, as (tokens, number of tokens to measure at the end).

    If prompt and text exceed the window, the beginning of the prompt is dropped, and a text longer than half the window
    is measured half a window at a time.

    Args:
        ids: tokens of prompt and text.
        targets: number of last tokens that belong to the text, fewer than all.
        window: maximum tokens that the model reads at once; 0 for no limit.
    """
    most = targets if not window or len(ids) <= window else max(1, window // 2)
    for start in range(len(ids) - targets, len(ids), most):
        end = min(start + most, len(ids))
        yield list(ids[max(0, end - window) if window else 0 : end]), end - start
