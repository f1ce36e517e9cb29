"""Completion: a beam over the copy model, ended at a line's end with balanced brackets.

Lines are ranked by their mean log-probability a token: on packages held out from the fit, that gave
better exact match, edit similarity and identifier F1 than their sum, which prefers short lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.generators.incontext.context import Context, Point
from harness.generators.incontext.lexer import INDENT_MARK, Token, TokenClass, classify
from harness.generators.incontext.model import Model, Reading

WIDTH = 4
ENOUGH = 6
"""Finished lines after which the beam may stop."""
MOST_LINES = 4
"""Lines after which a completion ends even inside a bracket."""
MOST_TOKENS = 60
"""Tokens after which a completion is given up as unfinished, whatever the limit asked for."""


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
        return -round(self.score / max(1, self.tokens), 9), self.text


def complete(model: Model, reading: Reading, max_tokens: int) -> Completion:
    """Return the most promising completion of the line at the cursor."""
    alive = [_Path(reading.context.point, "", 0.0, 0, 0, 1, False)]
    done: list[_Path] = []
    for _ in range(min(max_tokens, MOST_TOKENS)):
        grown = [path for old in alive for path in _grow(model, reading, old)]
        grown.sort(key=lambda path: path.rank)
        done.extend(path for path in grown[: WIDTH + 1] if path.ended)
        alive = [path for path in grown if not path.ended][:WIDTH]
        done.sort(key=lambda path: path.rank)
        if not alive or (len(done) >= ENOUGH and done[0].rank <= alive[0].rank):
            break
    best = done[0] if done else alive[0]
    return Completion(best.text, best.tokens, best.ended)


def _grow(model: Model, reading: Reading, path: _Path) -> list[_Path]:
    context = reading.context
    known = model.next(context, path.point).known
    best = np.argsort(-known, kind="stable")[: WIDTH + 1]
    grown = [_step(model, reading, path, int(number), float(known[number])) for number in best if known[number] > 0]
    # An empty line is never what is wanted at a cursor.
    return [longer for longer in grown if longer.text.strip() or longer.lines == path.lines]


def _step(model: Model, reading: Reading, path: _Path, number: int, chance: float) -> _Path:
    token = _token(model, reading.context, path, number)
    newline = token.kind is TokenClass.NEWLINE
    opened = path.open + (token.kind is TokenClass.OPEN) - (token.kind is TokenClass.CLOSE)
    ended = newline and (opened <= 0 or path.lines >= MOST_LINES)
    space = "" if not path.text and reading.space else token.space
    return _Path(
        reading.context.extend(path.point, token),
        path.text if ended else path.text + space + token.text,
        path.score + math.log(chance),
        path.tokens + 1,
        opened,
        path.lines + newline,
        ended,
    )


def _token(model: Model, context: Context, path: _Path, number: int) -> Token:
    entry = context.texts[number]
    kind = classify(entry, context.language)
    if kind is TokenClass.INDENT:
        return Token("", entry.removeprefix(INDENT_MARK), kind)
    return Token(model.space(path.point, entry, kind), entry, kind)
