"""Names in code: those of the text after a cursor, by the lexical syntax of a language, and those of published scorers.

`read` is a scanner, not a parser: completions are often incomplete, and its answer must not depend on how a
grammar recovers from errors. Names inside strings do not count; names in the replacement fields of
f-strings do. A string opened with one quote ends at the end of its line at the latest, so that one stray
quote costs one line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxbench.bench.languages.base import Language

_IN_STRING = re.compile(r"[^\\{}\"'\n\r]++|\\(?:\r\n|.)|\{\{|\}\}|\"\"\"|'''|\r\n|.", re.S)
_LINE_ENDS = frozenset(("\n", "\r", "\r\n"))
_CONVERSION = re.compile(r"![rsa](?=[}:])")
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

# Fixed lists: the official Python list is the running interpreter's, which would make scores depend on it.
_PYTHON = (
    "None and as assert async await break class continue def del elif else except finally for from global "
    "if import in is lambda nonlocal not or pass raise return try while with yield"
)
_JAVA = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum "
    "extends final finally float for goto if implements import instanceof int interface long native new "
    "package private protected public return short static strictfp super switch synchronized this throw "
    "throws transient try var void volatile while"
)
_KEYWORDS = {"python": frozenset(_PYTHON.split()), "java": frozenset(_JAVA.split())}

# A backslash escapes any character but a newline. Possessive, because its alternatives cannot overlap.
_STRING = re.compile(r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'""")
_WORD = re.compile(r"\w+")
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")


class _Frame(NamedTuple):
    """One level of what the scanner is inside of; an empty stack is plain code."""

    kind: str
    """``string``, ``field`` or ``spec`` (of an f-string), ``block`` or ``comment``."""
    quote: str = ""
    formatted: bool = False
    depth: int = 0
    """Brackets open in a field."""


@dataclass(frozen=True, slots=True)
class LexedText:
    """A text after a cursor, read by syntax."""

    code: str
    """The text without its comments."""
    names: tuple[str, ...]
    """Identifiers outside strings and comments, in order; one cut by the cursor counts by its part after it."""


def read(language: str, before: str, text: str) -> LexedText:
    """Read `text` as it continues `before`, which starts where a file starts, or in plain code.

    If the cursor is inside a string or block comment that an earlier line opened, `text` is read as code
    all the same: in a prompt that was cut at its beginning the inside and the outside of such strings
    cannot be told apart, and inside, the words of both texts are then compared like names.
    """
    scan = _Scan(language, _before(language, before))
    scan.keep = True
    scan.run(text)
    return LexedText("".join(scan.code), tuple(scan.names))


@functools.lru_cache(2)
def _before(language: str, text: str) -> tuple[_Frame, ...]:
    """Return what a cursor is inside of, for `read`: once for the two texts that are compared behind it."""
    scan = _Scan(language)
    scan.run(text)
    line_start = max(text.rfind("\n"), text.rfind("\r")) + 1
    if len(scan.frames) == 1 and scan.frames[0].kind in ("string", "block") and scan.opened < line_start:
        return ()
    return tuple(scan.frames)


class _Scan:
    """A push-down scanner; `run` goes on where the previous text ended."""

    def __init__(self, language: str, frames: Sequence[_Frame] = ()) -> None:
        self.language = Language(language)
        self.frames = list(frames)
        self.opened = 0
        """Where the outermost frame was opened."""
        self.keep = False
        """Whether code and names are collected."""
        self.code: list[str] = []
        self.names: list[str] = []

    def run(self, text: str) -> None:
        steps = {
            "string": self._string,
            "field": self._field,
            "spec": self._spec,
            "block": self._block,
            "comment": self._comment,
        }
        at = 0
        while at < len(text):
            if self.frames:
                at = steps[self.frames[-1].kind](text, at)
            elif not self.keep and (plain := self.language.lexing.plain.match(text, at)):
                at = plain.end()
            else:
                self.opened = at
                at = self._token(text, at)

    def _emit(self, text: str) -> None:
        if self.keep:
            self.code.append(text)

    def _token(self, text: str, at: int) -> int:
        """Step over one token of code."""
        token = self.language.lexing.token.match(text, at)
        if token is None:  # the pattern ends in "any character"
            return at + 1
        groups = token.groupdict()
        if groups["comment"] is not None:
            if token.end() == len(text):
                self.frames.append(_Frame("comment"))
            return token.end()
        if groups.get("block"):
            self.frames.append(_Frame("block"))
            return token.end()
        if groups["quote"]:
            formatted = groups["prefix"].lower().strip("r") in ("f", "t")
            self.frames.append(_Frame("string", groups["quote"], formatted))
        elif self.keep and groups["name"] and groups["name"] not in self.language.reserved:
            self.names.append(groups["name"])
        self._emit(token.group())
        return token.end()

    def _string(self, text: str, at: int) -> int:
        frame = self.frames[-1]
        if text.startswith(frame.quote, at):
            self.frames.pop()
            self._emit(frame.quote)
            return at + len(frame.quote)
        piece = _IN_STRING.match(text, at)
        end = piece.end() if piece else at + 1
        part = text[at:end]
        if part in _LINE_ENDS:
            self._end_of_line()
        elif part == "{" and frame.formatted:
            self.frames.append(_Frame("field"))
        self._emit(part)
        return end

    def _field(self, text: str, at: int) -> int:
        """Step through the expression of an f-string's ``{…}``."""
        frame, char = self.frames[-1], text[at]
        if frame.depth == 0 and char in "}:":
            self._emit(char)
            if char == "}":
                self.frames.pop()
            else:
                self.frames[-1] = frame._replace(kind="spec")
            return at + 1
        if frame.depth == 0 and (conversion := _CONVERSION.match(text, at)):
            self._emit(conversion.group())
            return conversion.end()
        if char in _LINE_ENDS:
            self._end_of_line()
            self._emit(char)
            return at + 1
        self.frames[-1] = frame._replace(depth=max(0, frame.depth + _DEPTH.get(char, 0)))
        return self._token(text, at)

    def _spec(self, text: str, at: int) -> int:
        """Step through the format behind the colon of an f-string's ``{…:…}``."""
        char = text[at]
        string = self.frames[-2]
        if char == "}":
            self.frames.pop()
        elif char == "{":
            self.frames.append(_Frame("field"))
        elif char in _LINE_ENDS:
            self._end_of_line()
        elif text.startswith(string.quote, at):
            self.frames.pop()
            return at
        self._emit(char)
        return at + 1

    def _end_of_line(self) -> None:
        """Leave every string of one line, with what is open inside it."""
        for index, frame in enumerate(self.frames):
            if frame.kind == "string" and len(frame.quote) == 1:
                del self.frames[index:]
                return

    def _block(self, text: str, at: int) -> int:
        end = text.find("*/", at)
        if end < 0:
            return len(text)
        self.frames.pop()
        # A comment separates words as a space does.
        if self.code and self.code[-1][-1:].isalnum() and text[end + 2 : end + 3].isalnum():
            self._emit(" ")
        return end + 2

    def _comment(self, text: str, at: int) -> int:
        self.frames.pop()
        ends = [end for char in "\n\r" if (end := text.find(char, at)) >= 0]
        return min(ends, default=len(text))


def identifiers(language: str, text: str) -> list[str]:
    """Return the identifiers of `text` in order, with repeats, as CrossCodeEval and InferCom read them.

    By pattern, not by syntax: string literals are deleted, then words that start with an ASCII letter or ``_`` are
    kept unless they are keywords. The prefix of ``f"…"`` stays behind as an identifier, as in the official code.
    """
    keywords = _KEYWORDS[language] if language in _KEYWORDS else Language(language).reserved
    return [word for word in _WORD.findall(_STRING.sub("", text)) if word[0] in _FIRST and word not in keywords]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifierMatch:
    """How the identifiers of a prediction match the target's; precision, recall and F1 on sets."""

    em: float
    """1 if the lists are equal, in order and with repeats."""
    precision: float
    recall: float
    f1: float


def match_identifiers(predicted: Sequence[str], target: Sequence[str]) -> IdentifierMatch:
    """Compare two identifier lists; a ratio with denominator 0 is 0."""
    predicted_names, target_names = set(predicted), set(target)
    hits = len(predicted_names & target_names)
    return IdentifierMatch(
        em=float(list(predicted) == list(target)),
        precision=hits / len(predicted_names) if predicted_names else 0.0,
        recall=hits / len(target_names) if target_names else 0.0,
        f1=2 * hits / (len(predicted_names) + len(target_names)) if hits else 0.0,
    )
