"""Completion: a beam over the copy model, ended at a line's end with balanced brackets.

Of the beam's finished lines, the one is taken that is expected to be most like the truth, if each of
them is the truth with the chance that the model gives it (minimum Bayes risk; Kumar and Byrne 2004):
the scores of interest are edit similarity and identifier F1, not whether a line is exactly right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz

from ctxbench.bench.elementary import exp, log
from ctxbench.harness.generators.incontext.context import TokenContext, TokenPoint
from ctxbench.harness.generators.incontext.lexer import INDENT_MARK, Token, TokenClass, classify
from ctxbench.harness.generators.incontext.model import CopyModel, PromptReading

WIDTH = 8
SHARPNESS = 8.0
"""A finished line's chance is in proportion to exp(SHARPNESS * mean log-probability a token).

Of 0.5 to 20, the value with the best sum of identifier F1 and edit similarity on the packages for tuning, over
all kinds of prompts alike. Chances by the sum, or by the sum over the root of the length, were worse there:
they prefer short lines.
"""
ENOUGH = 12
"""Finished lines after which the beam may stop."""
MOST_LINES = 4
"""Lines after which a completion ends even inside a bracket."""
MOST_TOKENS = 60
"""Tokens after which a completion is unfinished for good, whatever limit was asked for."""

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class LineCompletion:
    """A finished or unfinished completion."""

    text: str
    tokens: int
    ended: bool


@dataclass(frozen=True, slots=True)
class _Path:
    before: TokenPoint
    token: Token | None
    """The last one, which comes after `before`; None at the cursor."""
    text: str
    score: float
    tokens: int
    open: int
    lines: int
    ended: bool

    @property
    def worth(self) -> float:
        """Mean log-probability a token."""
        return self.score / max(1, self.tokens)

    @property
    def rank(self) -> tuple[float, str]:
        """Sort key, best first; ties by text, so that the order never depends on the machine."""
        return -round(self.worth, 9), self.text


def complete(model: CopyModel, reading: PromptReading, max_tokens: int) -> LineCompletion:
    """Return the most promising completion of the line at the cursor."""
    best = choose(finished(model, reading, max_tokens))
    return LineCompletion(best.text, best.tokens, best.ended)


def finished(model: CopyModel, reading: PromptReading, max_tokens: int) -> list[_Path]:
    """Return the beam's finished lines, the best first; one that is not finished if there is none."""
    alive = [_Path(reading.context.point, None, "", 0.0, 0, 0, 1, False)]
    ended: list[_Path] = []
    for _ in range(min(max_tokens, MOST_TOKENS)):
        grown = [path for old in alive for path in _grow(model, reading, old)]
        grown.sort(key=lambda path: path.rank)
        ended.extend(path for path in grown[: WIDTH + 1] if path.ended)
        alive = [path for path in grown if not path.ended][:WIDTH]
        ended.sort(key=lambda path: path.rank)
        if not alive or (len(ended) >= ENOUGH and ended[0].rank <= alive[0].rank):
            break
    return ended or alive[:1]


def choose(paths: list[_Path]) -> _Path:
    """Return the path with the highest expected likeness to the truth."""
    names = [frozenset(_NAME.findall(path.text)) for path in paths]
    top = paths[0].worth
    chances = [exp(SHARPNESS * (path.worth - top)) for path in paths]

    def expected(at: int) -> float:
        likeness = 0.0
        for other, chance in enumerate(chances):
            f1 = 2 * len(names[at] & names[other]) / max(1, len(names[at]) + len(names[other]))
            likeness += chance * (f1 + fuzz.ratio(paths[at].text, paths[other].text) / 100)
        return likeness

    # The paths are in order of rank, and the first of equals is taken.
    return paths[max(range(len(paths)), key=lambda at: round(expected(at), 9))]


def _grow(model: CopyModel, reading: PromptReading, path: _Path) -> list[_Path]:
    # Of the many paths that are begun, only those that the beam keeps come here and need their point.
    point = reading.context.after(path.before, path.token)
    chances = model.next(reading.context, point).chances
    best = np.argsort(-chances, kind="stable")[: WIDTH + 1]
    grown = [_step(model, reading, path, point, int(n), float(chances[n])) for n in best if chances[n] > 0]
    # A cursor never stands before an empty line.
    return [longer for longer in grown if longer.text.strip() or longer.lines == path.lines]


def _step(
    model: CopyModel, reading: PromptReading, path: _Path, point: TokenPoint, number: int, chance: float
) -> _Path:
    token = next_token(model, reading.context, point, number)
    newline = token.kind is TokenClass.NEWLINE
    # A Java line that opens a block is a line; one that ends inside brackets goes on.
    bracket = reading.context.language.indented or token.text not in "{}"
    opened = path.open + bracket * ((token.kind is TokenClass.OPEN) - (token.kind is TokenClass.CLOSE))
    ended = newline and (opened <= 0 or path.lines >= MOST_LINES)
    space = "" if not path.text and reading.space else token.space
    return _Path(
        point,
        token,
        path.text if ended else path.text + space + token.text,
        path.score + log(chance),
        path.tokens + 1,
        opened,
        path.lines + newline,
        ended,
    )


def next_token(model: CopyModel, context: TokenContext, point: TokenPoint, number: int) -> Token:
    """Return the token with that id as it would be written at a point, the expected whitespace before it."""
    entry = context.texts[number]
    kind = classify(entry, context.language)
    if kind is TokenClass.INDENT:
        return Token("", entry.removeprefix(INDENT_MARK), kind)
    return Token(model.space(point, entry, kind), entry, kind)
