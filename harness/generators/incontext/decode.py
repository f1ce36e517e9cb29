"""Completes a line or a function's body by beam search over the copy model.

Of the finished lines, the line with the least expected loss is chosen (minimum Bayes risk; Kumar and Byrne 2004). The
loss combines edit similarity and identifier F1. Of the finished bodies, the likeliest that parses is chosen; in Java,
the likeliest of all.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from rapidfuzz import fuzz

from ctxbench.bench.elementary import exp, log
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.context import TokenContext, TokenPoint
from ctxbench.harness.generators.incontext.lexer import INDENT_MARK, Token, TokenClass, classify
from ctxbench.harness.generators.incontext.model import CopyModel, PromptReading

WIDTH = 8
SHARPNESS = 8.0
"""A finished line's probability is proportional to exp(SHARPNESS * mean log-probability per token). Of values from 0.5
to 20, this value had the best sum of identifier F1 and edit similarity on the tuning packages."""
ENOUGH = 12
MOST_LINES = 4
MOST_TOKENS = 60
"""Maximum number of tokens of a line completion, even if the requested limit is higher."""

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class LineCompletion:
    """A completed line or function body; `ended` is false for an unfinished one."""

    text: str
    tokens: int
    ended: bool


@dataclass(frozen=True, slots=True)
class _Path:
    before: TokenPoint
    token: Token | None
    """The path's last token, which follows the point `before`; None at the cursor."""
    text: str
    score: float
    tokens: int
    open: int
    lines: int
    ended: bool

    @property
    def worth(self) -> float:
        return self.score / max(1, self.tokens)

    @property
    def rank(self) -> tuple[float, str]:
        """Key that sorts the best path first. Rounding and breaking ties by text fix the order on every machine."""
        return -round(self.worth, 9), self.text


def complete(model: CopyModel, reading: PromptReading, max_tokens: int) -> LineCompletion:
    """Return the completion of the line at the cursor with the least expected loss."""
    best = choose(finished(model, reading, max_tokens))
    return LineCompletion(best.text, best.tokens, best.ended)


def finished(model: CopyModel, reading: PromptReading, max_tokens: int) -> list[_Path]:
    """Return the beam's finished lines, best first, or its best unfinished line."""
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
    """Return the path with the highest expected similarity to the reference."""
    names = [frozenset(_NAME.findall(path.text)) for path in paths]
    top = paths[0].worth
    chances = [exp(SHARPNESS * (path.worth - top)) for path in paths]

    def expected(at: int) -> float:
        likeness = 0.0
        for other, chance in enumerate(chances):
            f1 = 2 * len(names[at] & names[other]) / max(1, len(names[at]) + len(names[other]))
            likeness += chance * (f1 + fuzz.ratio(paths[at].text, paths[other].text) / 100)
        return likeness

    # Paths are sorted by rank, and `max` returns the first of equal paths.
    return paths[max(range(len(paths)), key=lambda at: round(expected(at), 9))]


def _grow(model: CopyModel, reading: PromptReading, path: _Path) -> list[_Path]:
    # Compute the point only here, because most new paths leave the beam before they need it.
    point = reading.context.after(path.before, path.token)
    chances = model.next(reading.context, point).chances
    best = np.argsort(-chances, kind="stable")[: WIDTH + 1]
    grown = [_step(model, reading, path, point, int(n), float(chances[n])) for n in best if chances[n] > 0]
    # The reference is never an empty line.
    return [longer for longer in grown if longer.text.strip() or longer.lines == path.lines]


def _step(
    model: CopyModel, reading: PromptReading, path: _Path, point: TokenPoint, number: int, chance: float
) -> _Path:
    token = next_token(model, reading.context, point, number)
    newline = token.kind is TokenClass.NEWLINE
    # A Java line that opens a block ends there. A line that ends inside brackets continues.
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
    """Return the token with the id `number`, with the whitespace that is expected before it at `point`."""
    entry = context.texts[number]
    kind = classify(entry, context.language)
    if kind is TokenClass.INDENT:
        return Token("", entry.removeprefix(INDENT_MARK), kind)
    return Token(model.space(point, entry, kind), entry, kind)


_OPENERS = frozenset(
    ["if", "elif", "else", "for", "while", "with", "try", "except", "finally", "def", "class", "async", "match", "case"]
)
"""First words of lines that may end with a colon."""
_BOUND = _OPENERS - {"match", "case"}
"""First words of lines that must have a colon. ``match`` and ``case`` are missing, because they can also be names."""
_LOOP = re.compile(r"(?=[^\n]*?[\w\]])([^\s][^\n]{1,15}?)\1{3}\Z")
_LONGEST = 4


@dataclass(frozen=True, slots=True)
class BodyShape:
    """The open blocks and the current line of a Python body, which limit the next lines."""

    widths: tuple[int, ...] = ()
    """Indentation in columns of each open block, outermost first."""
    opens: bool = False
    """Whether the last line ended with a colon, so a block must follow."""
    first: str = ""
    last: str = ""
    colon: bool = False
    """Whether the current line has a colon outside brackets."""

    def indents(self, width: int, base: int) -> bool:
        """Return whether the next line may be indented `width` columns. At `base` columns or fewer, the body ends."""
        if self.opens:
            return width > self.widths[-1]
        return not self.widths or width <= base or width in self.widths

    def ends_line(self) -> bool:
        """Return whether the current line may end here, outside brackets."""
        if self.last == ":" and self.first not in _OPENERS:
            return False
        return self.colon or self.first not in _BOUND

    def indented(self, width: int) -> BodyShape:
        """Return the shape after a line is indented by `width` columns."""
        return replace(self, widths=(*(outer for outer in self.widths if outer < width), width), opens=False)

    def grown(self, text: str, *, bracketed: bool) -> BodyShape:
        """Return the shape after one more token of the line."""
        colon = self.colon or (text == ":" and not bracketed)
        return replace(self, first=self.first or text, last=text, colon=colon)

    def ended(self) -> BodyShape:
        """Return the shape after the end of a line, outside brackets."""
        return replace(self, opens=self.last == ":", first="", last="", colon=False)


def circles(text: str) -> bool:
    """Return whether a text ends in a repetition, of whole lines or within the last line."""
    if text.endswith("\n"):
        lines = text[:-1].split("\n")
        return any(lines[-size:] == lines[-2 * size : -size] for size in range(1, _LONGEST + 1))
    return _LOOP.search(text[-80:]) is not None


BODY_WIDTH = 3
MOST_BODY_LINES = 12
MOST_BODY_TOKENS = 120
"""Maximum numbers of lines and tokens of a body. An unfinished body is truncated after its last whole line."""
_DECLARES = frozenset({"def", "class", "async", "@"})


@dataclass(frozen=True, slots=True)
class _Body:
    before: TokenPoint
    token: Token | None
    text: str
    score: float
    tokens: int
    lines: int
    brackets: int
    braces: int
    """Number of open braces in Java, without the brace of the function itself."""
    fresh: bool
    """Whether the next token is the indentation of a line."""
    ended: bool
    shape: BodyShape

    @property
    def rank(self) -> tuple[float, str]:
        return -round(self.score / max(1, self.tokens), 9), self.text


def complete_body(model: CopyModel, reading: PromptReading, max_tokens: int) -> LineCompletion:
    """Return a body for the function at the end of the prompt."""
    language = reading.context.language
    base = _indentation(reading.context.tokens)
    shape = BodyShape() if reading.line_start else BodyShape().indented(_cursor_width(reading.context.tokens))
    alive = [_Body(reading.context.point, None, "", 0.0, 0, 1, 0, 0, reading.line_start, False, shape)]
    ended: list[_Body] = []
    for _ in range(min(max_tokens, MOST_BODY_TOKENS)):
        grown = sorted(
            (new for old in alive for new in _grow_body(model, reading, old, base)), key=lambda body: body.rank
        )
        ended += [body for body in grown[:BODY_WIDTH] if body.ended]
        going_on = [body for body in grown if not body.ended and body.lines <= MOST_BODY_LINES][:BODY_WIDTH]
        if not going_on or len(ended) >= BODY_WIDTH:
            break
        alive = going_on
    bodies = sorted(ended, key=lambda body: body.rank) + [_closed(body, language) for body in alive]
    for body in bodies:
        if _parses(body.text, language):
            return LineCompletion(body.text, body.tokens, body.ended)
    for body in bodies:
        if text := _beginning(body.text, language):
            return LineCompletion(text, body.tokens, False)
    return LineCompletion(_nothing(language, base, reading), 0, False)


def _nothing(language: Language, base: int, reading: PromptReading) -> str:
    if not language.indented:
        return "}\n"
    return f"{' ' * (base + 4) if reading.line_start else ''}pass\n"


def _indentation(tokens: Sequence[Token]) -> int:
    for at in range(len(tokens) - 1, 0, -1):
        if tokens[at].text == "def":
            before = tokens[at - 1 - (tokens[at - 1].text == "async")]
            return len(before.text.expandtabs(4)) if before.kind is TokenClass.INDENT else 0
    return 0


def _cursor_width(tokens: Sequence[Token]) -> int:
    last = next((token for token in reversed(tokens) if token.kind is TokenClass.INDENT), None)
    return len(last.text.expandtabs(4)) if last is not None else 0


def _grow_body(model: CopyModel, reading: PromptReading, body: _Body, base: int) -> list[_Body]:
    context = reading.context
    point = context.after(body.before, body.token)
    chances = model.next(context, point).chances
    grown: list[_Body] = []
    for number in np.argsort(-chances, kind="stable").tolist():
        if chances[number] <= 0 or len(grown) == BODY_WIDTH:
            break
        entry = context.texts[number]
        kind = classify(entry, context.language)
        if (kind is TokenClass.INDENT) is body.fresh and _allowed(context, point, body, entry, kind, base):
            token = next_token(model, context, point, number)
            step = _step_body(reading, body, point, token, float(chances[number]), base)
            if step.ended or not circles(step.text):
                grown.append(step)
    return grown


def _allowed(context: TokenContext, point: TokenPoint, body: _Body, entry: str, kind: TokenClass, base: int) -> bool:
    if entry in ('"""', "'''"):
        return False  # this token stands for a docstring whose text was removed
    python, whole = context.language.indented, body.brackets <= 0
    if kind is TokenClass.CLOSE and whole and (python or entry != "}"):
        return False
    if kind is TokenClass.NEWLINE:
        return bool(point.frame.line) and (not python or not whole or body.shape.ends_line())
    if not python:
        return True
    if body.fresh:
        # Inside brackets, a line may have any indentation.
        return (bool(body.text) or _width(entry) > base) and (not whole or body.shape.indents(_width(entry), base))
    # A copied first line that begins with these words belongs to the next function in its source.
    return bool(body.text.strip()) or entry not in _DECLARES


def _width(entry: str) -> int:
    return len(entry.removeprefix(INDENT_MARK).expandtabs(4))


def _step_body(reading: PromptReading, body: _Body, point: TokenPoint, token: Token, chance: float, base: int) -> _Body:
    python = reading.context.language.indented
    brace = 0 if python or token.text not in "{}" else 1 if token.text == "{" else -1
    bracket = 0 if brace else (token.kind is TokenClass.OPEN) - (token.kind is TokenClass.CLOSE)
    leaves = python and body.fresh and body.brackets <= 0 and bool(body.text) and _width(token.text) <= base
    ended = leaves or body.braces + brace < 0
    space = "" if not body.text and reading.space else token.space
    newline = token.kind is TokenClass.NEWLINE
    return _Body(
        point,
        token,
        body.text if leaves else body.text + space + token.text,
        body.score + log(chance),
        body.tokens + 1,
        body.lines + newline,
        body.brackets + bracket,
        body.braces + brace,
        newline,
        ended,
        _shaped(body, token),
    )


def _shaped(body: _Body, token: Token) -> BodyShape:
    bracketed = body.brackets > 0
    if token.kind is TokenClass.NEWLINE:
        return body.shape if bracketed else body.shape.ended()
    if token.kind is TokenClass.INDENT:
        return body.shape if bracketed else body.shape.indented(_width(token.entry))
    return body.shape.grown(token.text, bracketed=bracketed)


def _closed(body: _Body, language: Language) -> _Body:
    whole = body.text[: body.text.rfind("\n") + 1]
    if not language.indented and whole.strip():
        # Braces inside strings count too, so a body with such strings remains invalid.
        whole += "}" * max(0, whole.count("{") - whole.count("}") + 1) + "\n"
    return replace(body, text=whole, braces=0, brackets=0, fresh=True, ended=False)


def _beginning(text: str, language: Language) -> str:
    lines = text.split("\n")
    shorter = ("\n".join(lines[:end]) + "\n" for end in range(len(lines) - 1, 0, -1))
    return next((beginning for beginning in shorter if beginning.strip() and _parses(beginning, language)), "")


def _parses(text: str, language: Language) -> bool:
    if not language.indented:
        return bool(text.strip())
    # The first line's indentation may be before the cursor.
    first, _, other_lines = text.partition("\n")
    indent = next((line[: len(line) - len(line.lstrip())] for line in other_lines.split("\n") if line.strip()), "")
    body = textwrap.dedent(f"{indent}{first.lstrip()}\n{other_lines}")
    return language.parses("def function():\n" + textwrap.indent(body, "    "))
