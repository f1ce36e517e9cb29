"""Completion: a beam over the copy model, ended at a line's end with balanced brackets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.generators.incontext.context import Context, Point
from harness.generators.incontext.lexer import INDENT_MARK, Token, TokenClass, classify
from harness.generators.incontext.model import Model, Reading

WIDTH = 4
MOST_LINES = 4
"""Lines after which a completion ends even inside a bracket."""
LENGTH_POWER = 0.5
"""Log-probability is divided by length to this power: 0 prefers short lines, 1 long ones."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished or unfinished completion."""

    text: str
    tokens: int
    ended: bool


@dataclass(frozen=True, slots=True)
class _Path:
    point: Point
    text: str
    score: float
    tokens: int
    open: int
    lines: int
    ended: bool

    @property
    def rank(self) -> tuple[float, str]:
        """Sort key, best first; ties by text, so that the order never depends on the machine."""
        return -round(self.score / max(1, self.tokens) ** LENGTH_POWER, 9), self.text


def complete(model: Model, reading: Reading, max_tokens: int) -> Completion:
    """Return the most likely completion of the line at the cursor."""
    alive = [_Path(reading.context.point, "", 0.0, 0, 0, 1, False)]
    done: list[_Path] = []
    for _ in range(max_tokens):
        grown = [path for old in alive for path in _grow(model, reading, old)]
        grown.sort(key=lambda path: path.rank)
        done.extend(path for path in grown[:WIDTH] if path.ended)
        alive = [path for path in grown if not path.ended][:WIDTH]
        done.sort(key=lambda path: path.rank)
        if not alive or (len(done) >= WIDTH and done[0].rank <= alive[0].rank):
            break
    best = min(done or alive, key=lambda path: path.rank)
    return Completion(best.text, best.tokens, best.ended)


def _grow(model: Model, reading: Reading, path: _Path) -> list[_Path]:
    context = reading.context
    known = model.next(context, path.point).known
    best = np.argsort(-known, kind="stable")[: WIDTH + 1]
    grown = []
    for number in best:
        chance = float(known[number])
        if chance > 0:
            grown.append(_step(model, reading, path, _token(model, context, path, int(number)), math.log(chance)))
    return grown


def _token(model: Model, context: Context, path: _Path, number: int) -> Token:
    entry = context.texts[number]
    kind = classify(entry, context.language)
    if kind is TokenClass.INDENT:
        return Token("", entry.removeprefix(INDENT_MARK), kind)
    return Token(model.space(path.point, entry, kind), entry, kind)


def _step(model: Model, reading: Reading, path: _Path, token: Token, score: float) -> _Path:  # noqa: ARG001
    opened = path.open + (token.kind is TokenClass.OPEN) - (token.kind is TokenClass.CLOSE)
    lines = path.lines + (token.kind is TokenClass.NEWLINE)
    ended = token.kind is TokenClass.NEWLINE and (opened <= 0 or lines > MOST_LINES)
    space = "" if not path.text and reading.space else token.space
    return _Path(
        reading.context.extend(path.point, token),
        path.text if ended else path.text + space + token.text,
        path.score + score,
        path.tokens + 1,
        opened,
        lines,
        ended,
    )
