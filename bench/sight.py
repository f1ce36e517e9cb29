"""Lines whose answer is in sight: the same tokens stand in another place, however that place lays them out.

Compared are a line's words in a row and the punctuation between them. Layout does not count: blanks, line ends, the
marks of comments, prompts and Javadoc (``#``, ``//``, ``*``, ``>>>``, ``...``), the kind of quotes, a comma before a
closing bracket, HTML entities, and the escapes of a string that holds code. A line of few words recurs by chance inside
longer code, so that it is in sight only where a statement, a string or a tag begins and ends with it; one of `CERTAIN`
words is anywhere.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

CERTAIN = 8
"""So many words in a row recur by no chance."""
_NO_WORD = bytes(b if b >= 128 or chr(b).isalnum() or chr(b) == "_" else 32 for b in range(256))
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d+|#x[0-9a-fA-F]+);")
_LINE_MARK = re.compile(rb"[\n\v][ \t]*(?:#+:?|//+!?|/?\*+/?|>>>|\.\.\.)?[ \t]*")
_BREAK = re.compile(rb"[\n\v]")
_COMMA = re.compile(rb",(?=[)\]}])")
_BLANKS = re.compile(rb"[ \t\r\f]+")
_OPENS = (b"", b":", b";", b"{", b"}", b'"', b"`", b">", b"#", b"/", b"*")
"""What may stand before a whole statement on its line."""
_CLOSES = (b"", b";", b"}", b'"', b"`", b"<", b"#", b"/", b"\\", b"*")
"""What may stand behind one."""


@dataclass(frozen=True, slots=True)
class SoughtLine:
    """A line that is looked for, and where it stands itself."""

    path: str
    """Empty if its own place is in no text that is looked through."""
    number: int
    """From 0."""
    code: str
    """Without its comment."""


def in_sight(wanted: Sequence[SoughtLine], texts: Mapping[str, str]) -> list[bool]:
    """Say of each line whether its tokens stand in a second place of some texts, path -> text."""
    files = [_File(path, text) for path, text in texts.items()]
    count = Counter[bytes]()
    for file in files:
        count.update(file.words)
    targets = [_Target(line) for line in wanted]
    places: defaultdict[bytes, list[tuple[_File, int]]] = defaultdict(list)
    anchors = [target.rarest(count) for target in targets]
    needed = {anchor for anchor in anchors if anchor}
    for file in files:
        for at, word in enumerate(file.words):
            if word in needed:
                places[word].append((file, at))
    return [_again(target, places.get(anchor, ())) for target, anchor in zip(targets, anchors, strict=True)]


def _again(target: _Target, places: Sequence[tuple[_File, int]]) -> bool:
    words, offset = target.words, target.offset
    for file, at in places:
        start = at - offset
        if start >= 0 and file.words[start : start + len(words)] == words and file.holds(target, start):
            return True
    return False


@dataclass(slots=True)
class _Target:
    line: SoughtLine
    words: list[bytes] = field(init=False)
    gaps: list[bytes] = field(init=False)
    end: bytes = field(init=False)
    offset: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        raw = _plain(self.line.code.strip())
        spans = [match.span() for match in _WORD.finditer(raw)]
        self.words = [raw[start:end] for start, end in spans]
        self.gaps = [_gap(raw[a[1] : b[0]]) for a, b in pairwise(spans)]
        self.end = _gap(raw[spans[-1][1] :]).rstrip(b",;:{\\") if spans else b""

    def rarest(self, count: Mapping[bytes, int]) -> bytes:
        """Return the word by which it is looked up, empty if it has none."""
        if not self.words:
            return b""
        self.offset = min(range(len(self.words)), key=lambda at: count[self.words[at]])
        return self.words[self.offset]


class _File:
    """One text: its words, and where they stand if that is asked for."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.raw = _plain(text)
        self.words = self.raw.translate(_NO_WORD).split()

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(self.raw)]

    def holds(self, target: _Target, start: int) -> bool:
        """Say whether the words from one on are the target, and are not at the target's own place."""
        spans = self.spans[start : start + len(target.words)]
        if self.path == target.line.path and self.raw.count(b"\n", 0, spans[0][0]) == target.line.number:
            return False
        between = [self.raw[a[1] : b[0]] for a, b in pairwise(spans)]
        # A star at a line's start is a mark in Javadoc, and part of the code in a call.
        if any(gap not in (_gap(raw), _gap(raw, marks=False)) for gap, raw in zip(target.gaps, between, strict=True)):
            return False
        return len(target.words) >= CERTAIN or (self._opens(start) and self._closes(target, start))

    def _opens(self, start: int) -> bool:
        before = self.raw[self.spans[start - 1][1] if start else 0 : self.spans[start][0]]
        on_line = _BREAK.split(before)[-1]
        if not start or len(on_line) < len(before):
            return True
        return _gap(on_line).rstrip(b"(")[-1:] in _OPENS[1:]

    def _closes(self, target: _Target, start: int) -> bool:
        last = start + len(target.words) - 1
        after = self.raw[self.spans[last][1] : self.spans[last + 1][0] if last + 1 < len(self.spans) else None]
        ended = _BREAK.search(after) is not None or last + 1 == len(self.spans)
        if not any(gap.startswith(target.end) for gap in (_gap(after), _gap(after, marks=False))):
            return False
        rest = _gap(_BREAK.split(after)[0])[len(target.end) :].lstrip(b",)")
        if target.end[-1:] in (b"(", b"[", b"{", b"="):
            return ended and not rest
        return rest[:1] in _CLOSES[1:] or (ended and rest in (b"", b":", b"{"))


def _plain(text: str) -> bytes:
    """Return a text as it is compared, with as many lines."""
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]).replace("\n", " "), text)
    raw = text.encode("utf-8", "replace")
    if b"\\" in raw:
        raw = raw.replace(b"\\n", b" \v").replace(b"\\t", b"  ").replace(b'\\"', b' "').replace(b"\\'", b" '")
    return raw


def _gap(raw: bytes, *, marks: bool = True) -> bytes:
    """Return the punctuation between two words, without layout."""
    if raw in (b" ", b".", b"(", b", ", b" = "):
        return raw.strip()
    raw = _LINE_MARK.sub(b"", raw) if marks else _BREAK.sub(b"", raw)
    return _COMMA.sub(b"", _BLANKS.sub(b"", raw).replace(b"'", b'"'))
