"""A prompt as arrays: every source position with what stands before it, and the history so far."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ctxbench.bench.elementary import log2
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.lexer import IDENTIFIERS, Token, TokenClass, words
from ctxbench.harness.generators.incontext.source import PromptRegion, PromptSource

_LINE_KIND = {
    **dict.fromkeys(("import", "from", "package"), 1),
    **dict.fromkeys(("def", "async", "public", "private", "protected", "static", "abstract"), 2),
    **dict.fromkeys(("class", "interface", "enum"), 3),
    **dict.fromkeys(("return", "yield", "raise", "throw"), 4),
    **dict.fromkeys(("if", "elif", "else", "while", "for", "with", "try", "except", "}", "assert", "catch"), 5),
    **dict.fromkeys(("@",), 6),
}
LINE_KINDS = 9
OPENERS = {"(": 1, "[": 2, "{": 3}


class Bracket(NamedTuple):
    """One open bracket."""

    opener: str
    callee: str
    """The token before the bracket, empty if it is none that can be called."""
    slot: int
    """Commas since it was opened."""
    tokens: tuple[str, ...]
    """The tokens since it was opened that stand directly in it."""
    indent: str
    """Indentation of the line that opened it."""


class Frame(NamedTuple):
    """The state before a token; `advance` gives the state after it."""

    stack: tuple[Bracket, ...] = ()
    line: tuple[str, ...] = ()
    """Texts of the tokens of this physical line so far, indentation left out."""
    indent: str = ""
    """Indentation of this line."""
    ended: str = ""
    """Last token of the line before."""
    began: str = ""
    """First token of the line before."""
    above: str = ""
    """Indentation of the line before."""
    last: str = ""
    function: int = 0
    """The number of functions begun before."""

    @property
    def opener(self) -> str:
        """The innermost open bracket, empty if none."""
        return self.stack[-1].opener if self.stack else ""

    @property
    def callee(self) -> str:
        """The callee of the innermost open bracket, empty if none."""
        return self.stack[-1].callee if self.stack else ""

    @property
    def line_kind(self) -> int:
        """The kind of line by its first token: 0 a plain one, `LINE_KINDS` - 1 its beginning."""
        return _LINE_KIND.get(self.line[0], 0) if self.line else LINE_KINDS - 1


def advance(frame: Frame, token: Token) -> Frame:
    """Return the state after `token`."""
    text, kind = token.text, token.kind
    if kind is TokenClass.NEWLINE:
        if not frame.line:
            return frame._replace(last=text)
        return frame._replace(line=(), ended=frame.last, began=frame.line[0], above=frame.indent, last=text)
    if kind is TokenClass.INDENT:
        return frame._replace(indent=text, last=text)
    stack = frame.stack
    if kind is TokenClass.OPEN:
        callable_before = frame.last.isidentifier() or frame.last in (")", "]")
        # Depth is bounded for the same reason as the tokens below.
        stack = (*stack[-60:], Bracket(text, frame.last if callable_before else "", 0, (), frame.indent))
    elif kind is TokenClass.CLOSE:
        stack = stack[:-1]
    elif stack:
        top = stack[-1]
        # The list of tokens is bounded: a huge literal must not cost quadratic time.
        tokens = (*top.tokens[-40:], text)
        stack = (*stack[:-1], top._replace(slot=top.slot + (kind is TokenClass.COMMA), tokens=tokens))
    begins = text in ("def", "class") or (not frame.line and text in ("public", "private", "protected"))
    return frame._replace(stack=stack, line=(*frame.line[-60:], text), last=text, function=frame.function + begins)


EXPECTED = 0.97
"""Probability of the expected whitespace; the rest is spread over all other strings."""

_TIGHT_BEFORE = frozenset([",", ";", ":", ")", "]", "}", "."])
_TIGHT_AFTER = frozenset(["(", "[", "{", ".", "@", "~", "!"])
_UNARY = frozenset(["-", "+", "*", "**", "&", "++", "--"])
_VALUE_WORDS = frozenset(["True", "False", "None", "this", "super", "true", "false", "null"])


def space_before(
    before: Token | None, earlier: Token | None, text: str, kind: TokenClass, frame: Frame, language: Language
) -> str:
    """Return the whitespace to expect before a token.

    The rule looks at the tokens to the left only, never at the prompt, so whitespace costs the same after every one.

    Args:
        before: the token before it, None at the beginning.
        earlier: the one before that.
        text: the token's text.
        kind: its class.
        frame: where the token stands.
        language: whose habits to follow.
    """
    if before is None or kind in (TokenClass.NEWLINE, TokenClass.INDENT):
        return ""
    if before.kind in (TokenClass.INDENT, TokenClass.NEWLINE) or before.text in _TIGHT_AFTER:
        return " " if not language.indented and before.text == "{" else ""
    if kind is TokenClass.COMMENT:
        return "  " if language.indented else " "
    if not language.indented:
        return _java(before, earlier, text, kind)
    return _python(before, earlier, text, frame)


def _is_value(token: Token | None) -> bool:
    """Whether a token can end an operand, so that an operator after it is binary."""
    if token is None:
        return False
    if token.kind is TokenClass.KEYWORD:
        return token.text in _VALUE_WORDS
    return token.kind in IDENTIFIERS or token.kind in (TokenClass.NUMBER, TokenClass.STRING, TokenClass.CLOSE)


def _python(before: Token, earlier: Token | None, text: str, frame: Frame) -> str:
    if text in _TIGHT_BEFORE:
        return ""
    if frame.opener == "(" and "=" in (text, before.text):
        return " " if _annotated(frame.stack[-1].tokens) else ""
    if text in "([":
        return "" if _is_value(before) else " "
    if before.text in _UNARY and not _is_value(earlier):
        return ""
    if before.text == ":" and frame.opener == "[":
        return ""
    return " "


def _annotated(tokens: Sequence[str]) -> bool:
    """Whether the argument being written has an annotation, so that its default is spaced out."""
    for text in reversed(tokens):
        if text in (",", ":"):
            return text == ":"
    return False


def _java(before: Token, earlier: Token | None, text: str, kind: TokenClass) -> str:
    generic = earlier is not None and earlier.kind is TokenClass.TYPE
    if text in (",", ";", ")", "]", ".", "::", "...") or before.text == "::":
        return ""
    if (text == ">" and before.kind in (TokenClass.TYPE, TokenClass.CLOSE)) or text == ">" == before.text:
        return ""
    if text in "([":
        return "" if _is_value(before) or before.text == ">" else " "
    if text == "<" and before.kind is TokenClass.TYPE:
        return ""
    if before.text == "<" and (generic or kind is TokenClass.TYPE or text in ("?", ">")):
        return ""
    if text in ("++", "--") and _is_value(before):
        return ""
    if before.text in _UNARY and not _is_value(earlier):
        return ""
    return " "


def space_cost(space: str, expected: str) -> float:
    """Return the bits to code the whitespace `space` where another is expected."""
    if space == expected:
        return -log2(EXPECTED)
    # Any other string: its length by coin tosses, its characters almost surely blanks.
    bits = -log2(1 - EXPECTED) + len(space) + 1
    return bits + sum(-log2(0.9 if char == " " else 0.05) for char in space)


Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

UNKNOWN = -1
"""Id of a token that the vocabulary lacks; equal to no id."""
MATCH_LIMIT = 40


@dataclass(frozen=True, slots=True)
class TokenPoint:
    """A place to predict at: the history, and the length to which each source position agrees with it."""

    frame: Frame
    recent: tuple[Token, ...]
    """The last four tokens at most, the newest last."""
    exact: Ints
    """Length of the matching suffix, per source position."""
    loose: Ints
    """The same with names, numbers and strings matched by class only."""
    used: tuple[int, ...]
    """Ids on the current line."""
    written: tuple[str, ...] = ()
    """Entries of the names, numbers and strings after the cursor, which no source position holds."""


class TokenContext:
    """The arrays of one prompt. Position `j` is the candidate to copy token `j` next."""

    def __init__(self, source: PromptSource, static: Mapping[str, int], language: Language) -> None:
        """Lay out the source.

        Args:
            source: the stretches of the prompt.
            static: ids of the prior's tokens; 0 is the edge.
            language: the language of the code.
        """
        self.language = language
        self.static_size = len(static)
        self.ids: dict[str, int] = dict(static)
        self.texts: list[str] = list(static)
        tokens: list[Token] = []
        frames: list[Frame] = []
        regions: list[int] = []
        for stretch in source.stretches:
            frame = Frame()
            for token in (Token("", "", TokenClass.EDGE), *stretch.tokens):
                tokens.append(token)
                frames.append(frame)
                regions.append(stretch.region)
                if token.kind is not TokenClass.EDGE:
                    frame = advance(frame, token)
        self.tokens = tokens
        self.end = frame
        self._lay_out(tokens, frames, regions)
        self.point = self._start(source.infile)

    def _lay_out(self, tokens: list[Token], frames: list[Frame], regions: list[int]) -> None:
        for token in tokens:
            if token.entry not in self.ids:
                self.ids[token.entry] = len(self.texts)
                self.texts.append(token.entry)
        self.size = len(self.texts)
        self.id = np.array([self.ids[token.entry] for token in tokens], np.int32)
        self.kind = np.array([token.kind for token in tokens], np.int32)
        self.region = np.array(regions, np.int32)
        self.before = [_shift(self.id, step) for step in range(4)]
        self.kind_before = _shift(self.kind, 1)
        self.abstract = np.where(np.isin(self.kind, _ABSTRACT), -self.kind - 2, self.id)
        self.next = np.concatenate([self.id[1:], np.zeros(1, np.int32)])
        self.next_kind = np.concatenate([self.kind[1:], np.zeros(1, np.int32)])
        self.depth = np.array([len(frame.stack) for frame in frames], np.int32)
        self.opener = np.array([OPENERS.get(frame.opener, 0) for frame in frames], np.int32)
        self.callee = np.array([self.number(frame.callee) for frame in frames], np.int32)
        self.slot = np.array([frame.stack[-1].slot if frame.stack else 0 for frame in frames], np.int32)
        self.column = np.array([len(frame.line) for frame in frames], np.int32)
        self.first = np.array([self.number(frame.line[0]) if frame.line else 0 for frame in frames], np.int32)
        self.line_kind = np.array([frame.line_kind for frame in frames], np.int32)
        self.function = np.array([frame.function for frame in frames], np.int32)
        infile = np.bincount(self.id[self.region == PromptRegion.INFILE], minlength=self.size)
        self.infile_count = np.minimum(infile, 2).astype(np.int32)[self.id]
        self.count = np.bincount(self.id, minlength=self.size)[self.id].astype(np.int32)
        last = np.zeros(self.size, np.int32)
        last[self.id] = np.arange(len(tokens))
        self.latest = last[self.id] == np.arange(len(tokens))
        self.distance = np.arange(len(tokens), 0, -1, dtype=np.int32)
        self.width = np.array([len(token.text) for token in tokens], np.int32)
        self._shares: dict[str, Bools] = {}
        self.rows: dict[Hashable, Ints] = {}
        """What `features.indices` computed for these positions, since many points have most of it in common."""

    def _start(self, infile: list[Token]) -> TokenPoint:
        n = len(self.id)
        exact, loose = np.zeros(n, np.int32), np.zeros(n, np.int32)
        history = self.id[n - len(infile) :], self.abstract[n - len(infile) :]
        for lengths, array, past in ((exact, self.id, history[0]), (loose, self.abstract, history[1])):
            alive = np.ones(n, bool)
            for step in range(1, min(len(past), MATCH_LIMIT) + 1):
                # Shifted-in zeros are the edge, which no token of the history equals.
                alive &= _shift(array, step) == past[-step]
                if not alive.any():
                    break
                np.add(lengths, alive, out=lengths)
        used = tuple(self.number(text) for text in self.end.line)
        return TokenPoint(self.end, tuple(infile[-4:]), exact, loose, used)

    def number(self, text: str) -> int:
        """Return the id of a token, `UNKNOWN` if it is nowhere in prompt and prior; 0 if empty."""
        return self.ids.get(text, UNKNOWN) if text else 0

    def after(self, point: TokenPoint, token: Token | None) -> TokenPoint:
        """Return the point itself, or that after one more token."""
        return point if token is None else self.extend(point, token)

    def extend(self, point: TokenPoint, token: Token) -> TokenPoint:
        """Return the point after one more token."""
        number = self.number(token.entry)
        shape = -int(token.kind) - 2 if token.kind in _ABSTRACT else number
        used = () if token.kind is TokenClass.NEWLINE else (*point.used, number)
        return TokenPoint(
            advance(point.frame, token),
            (*point.recent[-3:], token),
            np.where(self.before[1] == number, np.minimum(_shift(point.exact, 1) + 1, MATCH_LIMIT), 0),
            np.where(self.abstract_before == shape, np.minimum(_shift(point.loose, 1) + 1, MATCH_LIMIT), 0),
            used,
            (*point.written[-20:], token.entry) if token.kind in _CONTENT else point.written,
        )

    @cached_property
    def abstract_before(self) -> Ints:
        """The abstracted token before each position."""
        return _shift(self.abstract, 1)

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        table: dict[str, list[int]] = {}
        for number, text in enumerate(self.texts):
            for word in _content_words(text):
                table.setdefault(word, []).append(number)
        return table

    def shares(self, text: str) -> Bools:
        """Return, for each id, whether it shares a sub-word of two letters or more with `text`."""
        if text not in self._shares:
            flags = np.zeros(self.size, bool)
            for word in _content_words(text):
                flags[self._by_word.get(word, [])] = True
            self._shares[text] = flags
        return self._shares[text]


_ABSTRACT = [
    *IDENTIFIERS,
    TokenClass.NUMBER,
    TokenClass.STRING,
    TokenClass.INDENT,
]
_CONTENT = frozenset({*IDENTIFIERS, TokenClass.NUMBER, TokenClass.STRING})


def _content_words(text: str) -> set[str]:
    if not (text[:1].isalpha() or text[:1] in "_\"'"):
        return set()
    return {word.lower().rstrip("s") or "s" for word in words(text[:80]) if len(word) > 1 and word.isalpha()}


def _shift(array: npt.NDArray[np.int32], step: int) -> npt.NDArray[np.int32]:
    if step == 0:
        return array
    out = np.zeros_like(array)
    if step < len(array):
        out[step:] = array[:-step]
    return out
