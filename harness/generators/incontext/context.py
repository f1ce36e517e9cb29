"""A prompt as arrays: the positions to copy tokens from, the tokens before them, and the text before the cursor."""

from __future__ import annotations

import functools
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.lexer import (
    IDENTIFIERS,
    INDENT_MARK,
    LINE_KINDS,
    OPENERS,
    CodeLine,
    Frame,
    Token,
    TokenClass,
    advance,
    frame_of,
    words,
)
from ctxbench.harness.generators.incontext.source import PromptRegion, PromptSource

Ints = npt.NDArray[np.int64]
MOST_ENTRIES, MOST_LINES = 1 << 17, 1 << 16
"""Maximum sizes of a lexicon. A full lexicon is replaced by a new one, which limits the memory of a long run."""
(NUMBER, KIND, DEPTH, OPENER, CALLEE, SLOT, COLUMN, FIRST, LINE_KIND, FUNCTION, WIDTH) = range(11)
"""Rows of a layout. Each row contains one property of every token, such as number, class or surrounding bracket."""
_ROWS = 11
_EDGE: Ints = np.zeros((_ROWS, 1), np.int64)
_EDGE[LINE_KIND] = LINE_KINDS - 1


@dataclass(frozen=True, slots=True)
class CodeLayout:
    """Code sections as arrays with one column per token, and the state after the last token."""

    rows: Ints
    end: Frame
    lengths: Sequence[int]
    """Number of tokens in each section, including the edge token before the section."""


class Lexicon:
    """Numbers of a language's tokens: those of `Prior` first, then others as they appear. Hold `lock` to add tokens."""

    def __init__(self, static: Mapping[str, int]) -> None:
        self.lock = threading.Lock()
        self.numbers: dict[str, int] = {}
        self.entries: list[str] = []
        self.subwords: list[tuple[str, ...]] = []
        """Words in each token, which the spelling of unseen tokens may repeat; whitespace has none."""
        self.numbers_by_word: dict[str, list[int]] = {}
        """Word of at least two letters -> numbers of the tokens that contain the word, ignoring case and plural."""
        self._lines: dict[tuple[int, CodeLine], tuple[Ints, int, int]] = {}
        self._frames: dict[Frame, int] = {Frame(): 0}
        self._states: list[Frame] = [Frame()]
        for entry in static:
            self.number(entry)

    @property
    def full(self) -> bool:
        """Whether the lexicon is full and should be replaced."""
        return len(self.entries) > MOST_ENTRIES or len(self._lines) > MOST_LINES

    def number(self, entry: str) -> int:
        """Return the number of a token. A new token gets the next number."""
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
        """Return the layout of code sections, with an edge token before each section."""
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
        """Return a line's rows after `state`, the state after the line, and the number of functions in the line."""
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
    """Return a name's or string's sub-words of two or more letters, in lower case and without final ``s``."""
    if not (text[:1].isalpha() or text[:1] in "_\"'"):
        return frozenset()
    return frozenset(word.lower().rstrip("s") or "s" for word in words(text[:80]) if len(word) > 1 and word.isalpha())


Bools = npt.NDArray[np.bool_]

UNKNOWN = -1
"""Id of every token outside the vocabulary. It equals no other id."""
MATCH_LIMIT = 40


@dataclass(frozen=True, slots=True)
class TokenPoint:
    """A position at which to predict a token: the text before it, and which source positions follow equal tokens."""

    frame: Frame
    recent: tuple[Token, ...]
    exact: Ints
    """Number of tokens (up to `MATCH_LIMIT`) before each source position that equal the last ones before this point."""
    loose: Ints
    """Like `exact`, but names, numbers, strings and indentations are compared only by class."""
    used: tuple[int, ...]
    written: tuple[str, ...] = ()
    """The latest names, numbers and strings generated after the cursor, which have no source position."""


class TokenContext:
    """The arrays of one prompt. Position `j` is the candidate to copy token `j` next."""

    def __init__(self, source: PromptSource, lexicon: Lexicon, static_size: int, language: Language) -> None:
        """Lay out the source. The caller must hold the lexicon's lock.

        The first `static_size` tokens of the lexicon are the prior's. Their ids are their numbers; 0 is the edge.
        """
        self.language, self.source, self.static_size = language, source, static_size
        self._lexicon = lexicon
        layout = lexicon.lay_out([stretch.lines for stretch in source.stretches])
        self.region: Ints = np.repeat([int(stretch.region) for stretch in source.stretches], layout.lengths)
        self.end = layout.end
        self._number(layout.rows[NUMBER])
        self._lay_out(layout.rows)
        self.point = self._start(source.stretches[-1].tokens)

    @cached_property
    def tokens(self) -> list[Token]:
        """The prompt's tokens, with an edge token before each section."""
        edge = Token("", "", TokenClass.EDGE)
        return [token for stretch in self.source.stretches for token in (edge, *stretch.tokens)]

    def _number(self, numbers: Ints) -> None:
        own, first = np.unique(numbers[numbers >= self.static_size], return_index=True)
        self._own: Ints = own[np.argsort(first)]
        self.size = self.static_size + len(own)
        self._ids = np.full(len(self._lexicon.entries), UNKNOWN, np.int32)
        self._ids[: self.static_size] = np.arange(self.static_size)
        self._ids[self._own] = np.arange(self.static_size, self.size)

    def _lay_out(self, layout: Ints) -> None:
        self.id: Ints = self._ids[layout[NUMBER]].astype(np.int64)
        self.kind = layout[KIND]
        self.before = [_shift(self.id, step) for step in range(4)]
        self.kind_before = _shift(self.kind, 1)
        self.abstract: Ints = np.where(_IS_ABSTRACT[self.kind], -self.kind - 2, self.id)
        self.abstract_before = _shift(self.abstract, 1)
        self.next = np.concatenate([self.id[1:], np.zeros(1, np.int64)])
        self.next_kind = np.concatenate([self.kind[1:], np.zeros(1, np.int64)])
        self.depth, self.opener = layout[DEPTH], layout[OPENER]
        self.callee: Ints = self._ids[layout[CALLEE]].astype(np.int64)
        self.slot, self.column = layout[SLOT], layout[COLUMN]
        self.first: Ints = self._ids[layout[FIRST]].astype(np.int64)
        self.line_kind, self.function, self.width = (
            layout[LINE_KIND],
            layout[FUNCTION],
            layout[WIDTH],
        )
        infile = np.bincount(self.id[self.region == PromptRegion.INFILE], minlength=self.size)
        self.infile_count: Ints = np.minimum(infile, 2)[self.id]
        self.counts: Ints = np.bincount(self.id, minlength=self.size)
        self.count = self.counts[self.id]
        last = np.zeros(self.size, np.int64)
        last[self.id] = np.arange(len(self.id))
        self.latest: Bools = last[self.id] == np.arange(len(self.id))
        self.distance: Ints = np.arange(len(self.id), 0, -1)
        self._sharing: dict[str, Ints] = {}
        self.parts: dict[Hashable, Ints] = {}
        """Cache of values computed for these positions. Many points share most of the values."""

    def _start(self, infile: list[Token]) -> TokenPoint:
        n = len(self.id)
        lengths: list[Ints] = []
        for array in (self.id, self.abstract):
            length, past = np.zeros(n, np.int64), array[n - len(infile) :].tolist()
            # The first position is an edge, which differs from every preceding token.
            at = np.flatnonzero(array[:-1] == past[-1]) + 1 if past else np.zeros(0, np.int64)
            step = 1
            while len(at):
                length[at] = step
                step += 1
                if step > min(len(past), MATCH_LIMIT):
                    break
                at = at[at >= step]
                at = at[array[at - step] == past[-step]]
            lengths.append(length)
        used = tuple(self.number(text) for text in self.end.line)
        return TokenPoint(self.end, tuple(infile[-4:]), lengths[0], lengths[1], used)

    def number(self, text: str) -> int:
        """Return the id of a token: 0 for an empty text, `UNKNOWN` for a token in neither the prompt nor the prior."""
        number = self._lexicon.numbers.get(text, len(self._ids)) if text else 0
        # Tokens that were added to the lexicon later are not in this prompt.
        return int(self._ids[number]) if number < len(self._ids) else UNKNOWN

    @cached_property
    def texts(self) -> list[str]:
        """Vocabulary entries of the prior's and the prompt's tokens, indexed by token id."""
        entries = self._lexicon.entries
        return [*entries[: self.static_size], *(entries[number] for number in self._own.tolist())]

    @property
    def subwords(self) -> list[tuple[str, ...]]:
        """The sub-words of each distinct token of the prompt."""
        present = np.flatnonzero(self.counts)
        inside = present[present < self.static_size].tolist()
        return [self._lexicon.subwords[number] for number in (*inside, *self._own.tolist())]

    def after(self, point: TokenPoint, token: Token | None) -> TokenPoint:
        """Return the point after one more token, or the point itself if `token` is None."""
        return point if token is None else self.extend(point, token)

    def extend(self, point: TokenPoint, token: Token) -> TokenPoint:
        """Return the point after one more token."""
        number = self.number(token.entry)
        shape = -int(token.kind) - 2 if token.kind in _ABSTRACT else number
        used = () if token.kind is TokenClass.NEWLINE else (*point.used, number)
        return TokenPoint(
            advance(point.frame, token),
            (*point.recent[-3:], token),
            _longer(point.exact, self.before[1] == number),
            _longer(point.loose, self.abstract_before == shape),
            used,
            (*point.written[-20:], token.entry) if token.kind in _CONTENT else point.written,
        )

    def sharing(self, text: str) -> Ints:
        """Return the ids of the tokens that share a sub-word of at least two letters with `text`."""
        if text not in self._sharing:
            by_word = self._lexicon.numbers_by_word
            numbers = {number for word in content_words(text) for number in tuple(by_word.get(word, ()))}
            ids = self._ids[[number for number in numbers if number < len(self._ids)]].astype(np.int64)
            self._sharing[text] = ids[ids != UNKNOWN]
        return self._sharing[text]

    def shares(self, text: str) -> Bools:
        """Return, for each token id, whether the token shares a sub-word of at least two letters with `text`."""
        flags = np.zeros(self.size, bool)
        flags[self.sharing(text)] = True
        return flags

    @cached_property
    def _places(self) -> tuple[Ints, list[int]]:
        order: Ints = np.argsort(self.id.astype(np.uint16) if self.size < 1 << 16 else self.id, kind="stable")
        return order, [0, *np.cumsum(self.counts).tolist()]

    def positions(self, number: int) -> Ints:
        """Return the positions of the token with the id `number`, in order; empty for `UNKNOWN`."""
        order, starts = self._places
        return order[:0] if number == UNKNOWN else order[starts[number] : starts[number + 1]]

    def positions_of(self, numbers: list[int]) -> Ints:
        """Return the positions of several distinct token ids, in any order. `UNKNOWN` has none."""
        order, starts = self._places
        parts = [order[starts[number] : starts[number + 1]] for number in numbers if number != UNKNOWN]
        return np.concatenate(parts) if parts else order[:0]


_ABSTRACT = [
    *IDENTIFIERS,
    TokenClass.NUMBER,
    TokenClass.STRING,
    TokenClass.INDENT,
]
_IS_ABSTRACT: Bools = np.isin(np.arange(len(TokenClass)), _ABSTRACT)
_CONTENT = frozenset({*IDENTIFIERS, TokenClass.NUMBER, TokenClass.STRING})


def _longer(lengths: Ints, matches: Bools) -> Ints:
    longer = np.zeros_like(lengths)
    at = np.flatnonzero(matches)
    longer[at] = np.minimum(np.where(at > 0, lengths[at - 1], 0) + 1, MATCH_LIMIT)
    return longer


def _shift(array: Ints, step: int) -> Ints:
    if step == 0:
        return array
    out = np.zeros_like(array)
    if step < len(array):
        out[step:] = array[:-step]
    return out
