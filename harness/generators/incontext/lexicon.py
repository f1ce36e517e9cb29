"""`Lexicon`: what a process remembers of the tokens and lines that it has met, the same for every prompt with them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ctxbench.harness.generators.incontext.frame import LINE_KINDS, OPENERS, Frame, advance, frame_of
from ctxbench.harness.generators.incontext.lexer import INDENT_MARK, CodeLine, TokenClass, words

Ints = npt.NDArray[np.int64]
MOST_ENTRIES, MOST_LINES = 1 << 17, 1 << 16
"""Beyond these a lexicon is left for a new one, so that a long run does not fill the memory."""
(NUMBER, KIND, DEPTH, OPENER, CALLEE, SLOT, COLUMN, FIRST, LINE_KIND, FUNCTION, WIDTH) = range(11)
"""Rows of a layout, a column a token: its number and class, and the frame that it stands in."""
_ROWS = 11
_EDGE: Ints = np.zeros((_ROWS, 1), np.int64)
_EDGE[LINE_KIND] = LINE_KINDS - 1


@dataclass(frozen=True, slots=True)
class CodeLayout:
    """Stretches of code laid out as rows, and the frame behind the last token."""

    rows: Ints
    end: Frame
    lengths: Sequence[int]
    """Tokens of each stretch, the edge before it among them."""


class Lexicon:
    """The tokens of one language, numbered as they come; the prior's first.

    Used by one thread at a time: by that which holds `lock`.
    """

    def __init__(self, static: Mapping[str, int]) -> None:
        """Begin with the prior's tokens."""
        self.lock = threading.Lock()
        self.numbers: dict[str, int] = {}
        self.entries: list[str] = []
        self.subwords: list[tuple[str, ...]] = []
        """Of each token the words that the spelling of unseen tokens may repeat; none of blanks."""
        self.numbers_by_word: dict[str, list[int]] = {}
        """Word of two letters or more -> the tokens that have it, in any case and number."""
        self._lines: dict[tuple[int, CodeLine], tuple[Ints, int, int]] = {}
        self._frames: dict[Frame, int] = {Frame(): 0}
        self._states: list[Frame] = [Frame()]
        for entry in static:
            self.number(entry)

    @property
    def full(self) -> bool:
        """Whether it is to be left for a new one."""
        return len(self.entries) > MOST_ENTRIES or len(self._lines) > MOST_LINES

    def number(self, entry: str) -> int:
        """Return the number of a token, which it gets now if it is new."""
        number = self.numbers.get(entry)
        if number is None:
            number = self.numbers[entry] = len(self.entries)
            self.entries.append(entry)
            blank = entry == "\n" or entry.startswith(INDENT_MARK)
            self.subwords.append(() if blank else tuple(words(entry)))
            for word in content_words(entry):
                self.numbers_by_word.setdefault(word, []).append(number)
        return number

    def lay_out(self, stretches: Sequence[Sequence[CodeLine]]) -> CodeLayout:
        """Return the tokens of stretches of code, an edge before each."""
        parts: list[Ints] = []
        functions: list[int] = []
        lengths: list[int] = []
        state = function = 0
        for lines in stretches:
            state = function = 0
            length = 1
            parts.append(_EDGE)
            functions.append(0)
            for line in lines:
                laid = self._lines.get((state, line))
                if laid is None:
                    laid = self._lines[state, line] = self._lay_line(state, line)
                parts.append(laid[0])
                functions.append(function)
                state, function = laid[1], function + laid[2]
                length += laid[0].shape[1]
            lengths.append(length)
        rows = np.concatenate(parts, axis=1)
        rows[FUNCTION] += np.repeat(functions, [part.shape[1] for part in parts])
        return CodeLayout(rows, self._states[state]._replace(function=function), lengths)

    def _lay_line(self, state: int, line: CodeLine) -> tuple[Ints, int, int]:
        """Return a line's rows after a state, the state behind it, and how many functions it begins."""
        columns: list[int] = []
        frame, numbers = self._states[state], self.numbers
        for token in line.tokens:
            stack, before = frame.stack, frame.line
            entry = token.entry if token.kind is TokenClass.INDENT else token.text
            number = numbers.get(entry)
            columns += (
                self.number(entry) if number is None else number,
                token.kind,
                len(stack),
                OPENERS.get(stack[-1].opener, 0) if stack else 0,
                numbers[stack[-1].callee] if stack else 0,
                stack[-1].slot if stack else 0,
                len(before),
                numbers[before[0]] if before else 0,
                frame.line_kind,
                frame.function,
                len(token.text),
            )
            frame = advance(frame, token)
        begun, frame = frame.function, frame_of((*frame[:-1], 0))
        after = self._frames.get(frame)
        if after is None:
            after = self._frames[frame] = len(self._states)
            self._states.append(frame)
        return np.array(columns, np.int64).reshape(-1, _ROWS).T, after, begun


@functools.lru_cache(1 << 14)
def content_words(text: str) -> frozenset[str]:
    """Return the sub-words of two letters or more of a name or a string, in lower case and without a plural's s."""
    if not (text[:1].isalpha() or text[:1] in "_\"'"):
        return frozenset()
    return frozenset(word.lower().rstrip("s") or "s" for word in words(text[:80]) if len(word) > 1 and word.isalpha())
