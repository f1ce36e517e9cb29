"""Profile `ctxbench`: the default metrics, which correct known faults of published scorers.

- Lines: for a one-line target, the prediction's first line, or its first non-blank line if the cursor's line is blank
  before the cursor. For a longer target, as many non-blank lines as it has. If text precedes the cursor on its line,
  the rest of that line counts as a line in both texts, even if it is empty.
- Comments are removed by syntax, so ``a // b`` and ``"#fff"`` stay whole. If a target has only comments, both texts
  keep theirs.
- ES is always the indel ratio: 1 - (insertions + deletions) / sum of lengths.
- Identifiers are found by syntax, outside strings and comments, and in replacement fields of f-strings. If neither
  text has any, all identifier metrics are 1.

`read` is a scanner, not a parser, because completions are often incomplete. An unclosed string ends with its line.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz.distance import Indel

from ctxbench.bench.languages.base import Language
from ctxbench.harness.metrics import Profile, Values, profile, share

_SOURCE = "ctxbench"
_LINE_END = re.compile(r"\r\n|\n|\r")
_IN_STRING = re.compile(r"[^\\{}\"'\n\r]++|\\(?:\r\n|.)|\{\{|\}\}|\"\"\"|'''|\r\n|.", re.S)
_LINE_ENDS = frozenset(("\n", "\r", "\r\n"))
_CONVERSION = re.compile(r"![rsa](?=[}:])")
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def score(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em``, ``es`` and ``id_*`` of the compared part of a prediction, from 0 to 1."""
    return compare(language, prompt, unit(prompt, prediction, ground_truth), ground_truth)


def compare(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return the values of `score` for the whole prediction, without truncation."""
    predicted = read(language, prompt, prediction)
    target = read(language, prompt, ground_truth)
    predicted_code, target_code = _tidy(predicted.code), _tidy(target.code)
    if not target_code:
        predicted_code, target_code = _tidy(prediction), _tidy(ground_truth)
    return {
        "em": float(predicted_code == target_code),
        "es": Indel.normalized_similarity(predicted_code, target_code),
        **_names(predicted, target),
    }


def unit(prompt: str, prediction: str, ground_truth: str) -> str:
    """Return the first lines of the prediction: as many as the target has, and at least one.

    Blank lines are dropped and not counted, except the rest of the cursor's line if text precedes the cursor on it.
    """
    cursor_line_counts = bool(prompt[max(prompt.rfind("\n"), prompt.rfind("\r")) + 1 :].strip())

    def counting(text: str) -> Iterator[str]:
        for number, line in enumerate(_LINE_END.split(text)):
            if line.strip() or (number == 0 and cursor_line_counts):
                yield line

    line_count = max(1, sum(1 for _ in counting(ground_truth)))
    return "\n".join(itertools.islice(counting(prediction), line_count))


def _tidy(text: str) -> str:
    lines = (line.rstrip() for line in _LINE_END.split(text))
    return "\n".join(line for line in lines if line).strip()


def _names(predicted: LexedText, target: LexedText) -> dict[str, float]:
    names = match_identifiers(predicted.names, target.names)
    return names if predicted.names or target.names else dict.fromkeys(names, 1.0)


class _Frame(NamedTuple):
    """An open string, f-string part or comment around the scanner's position."""

    kind: str
    quote: str = ""
    formatted: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class LexedText:
    """The code and the identifiers in a text that follows a cursor."""

    code: str
    names: tuple[str, ...]
    """Identifiers outside strings and comments, in order. Of an identifier that the cursor splits, the second part."""


def read(language: str, before: str, text: str) -> LexedText:
    """Read `text` as the continuation of `before`, which begins at the start of a file or in plain code.

    If an earlier line opened a string or block comment around the cursor, `text` is read as code, because a prompt
    truncated at its beginning may start inside a string.
    """
    scan = _Scan(language, _before(language, before))
    scan.keep = True
    scan.run(text)
    return LexedText("".join(scan.code), tuple(scan.names))


@functools.lru_cache(2)
def _before(language: str, text: str) -> tuple[_Frame, ...]:
    """Return the constructs around the cursor, for `read`. Cached for the two texts that follow it."""
    scan = _Scan(language)
    scan.run(text)
    line_start = max(text.rfind("\n"), text.rfind("\r")) + 1
    if len(scan.frames) == 1 and scan.frames[0].kind in ("string", "block") and scan.opened < line_start:
        return ()
    return tuple(scan.frames)


class _Scan:
    """A push-down scanner. `run` continues where the previous text ended."""

    def __init__(self, language: str, frames: Sequence[_Frame] = ()) -> None:
        self.language = Language(language)
        self.frames = list(frames)
        self.opened = 0
        self.keep = False
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
        for index, frame in enumerate(self.frames):
            if frame.kind == "string" and len(frame.quote) == 1:
                del self.frames[index:]
                return

    def _block(self, text: str, at: int) -> int:
        end = text.find("*/", at)
        if end < 0:
            return len(text)
        self.frames.pop()
        # A comment separates words like a space.
        if self.code and self.code[-1][-1:].isalnum() and text[end + 2 : end + 3].isalnum():
            self._emit(" ")
        return end + 2

    def _comment(self, text: str, at: int) -> int:
        self.frames.pop()
        ends = [end for char in "\n\r" if (end := text.find(char, at)) >= 0]
        return min(ends, default=len(text))


def match_identifiers(predicted: Sequence[str], target: Sequence[str]) -> dict[str, float]:
    """Return identifier metrics. ``id_em`` compares lists, with order and repeats; the others compare sets.

    A ratio with denominator 0 is 0.
    """
    predicted_names, target_names = set(predicted), set(target)
    hits = len(predicted_names & target_names)
    return {
        "id_em": float(list(predicted) == list(target)),
        "id_precision": hits / len(predicted_names) if predicted_names else 0.0,
        "id_recall": hits / len(target_names) if target_names else 0.0,
        "id_f1": 2 * hits / (len(predicted_names) + len(target_names)) if hits else 0.0,
    }


profile(
    Profile(
        name="ctxbench",
        summary="first line, comments and identifiers by syntax, indel similarity; the default",
        metrics=(
            share(
                "em",
                "Exact match of the line, or of a function's body, comments removed.",
                source=_SOURCE,
            ),
            share(
                "es",
                "Edit similarity of the line or body, comments removed: 1 - (insertions + deletions) / sum of lengths.",
                source=_SOURCE,
            ),
            share("id_em", "Whether the identifiers equal those of the reference, in the same order.", source=_SOURCE),
            share("id_precision", "Share of the predicted identifiers that the reference has.", source=_SOURCE),
            share("id_recall", "Share of the reference's identifiers that were predicted.", source=_SOURCE),
            share(
                "id_f1", "Harmonic mean of identifier precision and recall; 1 if neither text has any.", source=_SOURCE
            ),
        ),
        score=score,
    )
)
