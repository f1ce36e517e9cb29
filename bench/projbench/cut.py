"""The place of the cursor and the choice of candidates: all by seed, nothing by chance.

Every draw is seeded by the seed and the place it is for, so it depends neither on the number of
samples asked for, nor on the other files, nor on which process does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ctxbench.bench.formats.hygiene import VerbatimIndex
from ctxbench.bench.projbench.candidates import LineCandidate
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE

_LEAST_TOKENS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A candidate with its cursor."""

    candidate: LineCandidate
    subkind: str
    column: int
    target: str
    """What follows the cursor, without the newline and trailing white space."""


def cut(candidate: LineCandidate, *, repo: str, seed: int) -> Cut:
    """Place the cursor: by a fair coin before a whole line, or inside it.

    Inside, it stands right before a random token that is the line's first internal name or left of it.
    """
    draw = _draw(seed, repo, candidate.path, candidate.line)
    if draw.random() < 0.5:
        return Cut(candidate=candidate, subkind=NEXT_LINE, column=0, target=candidate.text)
    column = draw.choice([start for start, _ in candidate.tokens if start <= candidate.column])
    return Cut(candidate=candidate, subkind=SINGLE_LINE, column=column, target=candidate.text[column:])


def _draw(*key: str | int) -> Random:
    return Random("\0".join(map(str, key)))  # noqa: S311 - a sample, not a secret


def fault(line_cut: Cut, index: VerbatimIndex) -> str:
    """Return why a cut is no sample: ``verbatim`` (its line stands elsewhere too), ``near_empty``, or nothing."""
    text, tokens = line_cut.candidate.text, line_cut.candidate.tokens
    if index.repeated(text):
        return "verbatim"
    target_tokens = [text[start:end] for start, end in tokens if start >= line_cut.column]
    if len(target_tokens) < _LEAST_TOKENS or not any(any(map(_is_word, token)) for token in target_tokens):
        return "near_empty"
    return ""


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def ordered(cuts: Sequence[Cut], *, repo: str, seed: int) -> list[Cut]:
    """Return the cuts in the order of choice; a smaller set is always a beginning of a larger one.

    Files take turns, in a random order that stays; within a file the order is random too. So a large
    file does not crowd out the others.
    """
    files: dict[str, list[Cut]] = {}
    for line_cut in cuts:
        files.setdefault(line_cut.candidate.path, []).append(line_cut)
    names = sorted(files)
    _draw(seed, repo).shuffle(names)
    for name in names:
        files[name].sort(key=lambda line_cut: line_cut.candidate.line)
        _draw(seed, repo, name).shuffle(files[name])
    rounds = max((len(file_cuts) for file_cuts in files.values()), default=0)
    return [files[name][turn] for turn in range(rounds) for name in names if turn < len(files[name])]
