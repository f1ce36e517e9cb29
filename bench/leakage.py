"""Finds answers and masked imports that are visible elsewhere although a sample hides them."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxbench.bench.languages.outline import Span
    from ctxbench.bench.types import Use

CERTAIN = 8
"""Minimum number of words in a sequence that is unlikely to recur by chance."""
_NO_WORD = bytes(b if b >= 128 or chr(b).isalnum() or chr(b) == "_" else 32 for b in range(256))
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d+|#x[0-9a-fA-F]+);")
_LINE_MARK = re.compile(rb"[\n\v][ \t]*(?:#+:?|//+!?|/?\*+/?|>>>|\.\.\.)?[ \t]*")
_BREAK = re.compile(rb"[\n\v]")
_COMMA = re.compile(rb",(?=[)\]}])")
_BLANKS = re.compile(rb"[ \t\r\f]+")
_OPENS = (b"", b":", b";", b"{", b"}", b'"', b"`", b">", b"#", b"/", b"*")
_CLOSES = (b"", b";", b"}", b'"', b"`", b"<", b"#", b"/", b"\\", b"*")


@dataclass(frozen=True, slots=True)
class SoughtLine:
    """A line to search for."""

    path: str
    """File of the line, whose own place is not a match; empty if the searched texts do not contain the line itself."""
    number: int
    code: str


def in_sight(wanted: Sequence[SoughtLine], texts: Mapping[str, str]) -> list[bool]:
    """Return, for each line, whether its tokens occur at another place in `texts`, which are given by path.

    Layout, comment marks and the kind of quotes are ignored. A line of fewer than `CERTAIN` words may recur by chance.
    It counts only if a statement, string or tag begins and ends with it.
    """
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
        if not self.words:
            return b""
        self.offset = min(range(len(self.words)), key=lambda at: count[self.words[at]])
        return self.words[self.offset]


class _File:
    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.raw = _plain(text)
        self.words = self.raw.translate(_NO_WORD).split()

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(self.raw)]

    def holds(self, target: _Target, start: int) -> bool:
        spans = self.spans[start : start + len(target.words)]
        if self.path == target.line.path and self.raw.count(b"\n", 0, spans[0][0]) == target.line.number:
            return False
        between = [self.raw[a[1] : b[0]] for a, b in pairwise(spans)]
        # A star at the start of a line is a mark in Javadoc, but code in a call.
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
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]).replace("\n", " "), text)
    raw = text.encode("utf-8", "replace")
    if b"\\" in raw:
        raw = raw.replace(b"\\n", b" \v").replace(b"\\t", b"  ").replace(b'\\"', b' "').replace(b"\\'", b" '")
    return raw


def _gap(raw: bytes, *, marks: bool = True) -> bytes:
    if raw in (b" ", b".", b"(", b", ", b" = "):
        return raw.strip()
    raw = _LINE_MARK.sub(b"", raw) if marks else _BREAK.sub(b"", raw)
    return _COMMA.sub(b"", _BLANKS.sub(b"", raw).replace(b"'", b'"'))


_FROM = re.compile(r"\s*from\s+(\.*)\s*([\w.]*)\s+import\s+(.*)", re.DOTALL)
_IMPORT = re.compile(r"\s*import\s+(?:static\s+)?(.*)", re.DOTALL)
_ITEM = re.compile(r"([\w.$]+(?:\*)?|\*)(?:\s+as\s+(\w+))?")
_COMMENT = re.compile(r"(?:#|//)[^\n]*")
_QUOTED = re.compile(r"""["'](\.*[\w.]+)["']""")
_LOADED = re.compile(r"\b(?:import_module|__import__|import_string|resolve_name|forName|loadClass)\s*\(")
_NAMED = re.compile(r"import|forName|loadClass|resolve_name")
_NAME_PART = re.compile(r"\w+")
_ROOTS = ("src", "lib")
_OPEN = {"(": 1, ")": -1}


@dataclass(frozen=True, slots=True)
class _Imported:
    path: str
    """Dotted path; for a wildcard, the path of the module."""
    name: str
    whole: bool
    """Whether everything in the path is reachable: a wildcard, or the module itself."""


class FileImports:
    """The import statements in a file. Visible statements may reveal masked ones."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        """Find the import statements in a file. Relative imports are resolved from `path`."""
        self._path = path
        self._lines = lines
        self._statements = {(start, end): "\n".join(lines[start:end]) for start, end in _spans(lines)}

    def in_sight(self, line: int, masked: Sequence[Span], names: Collection[str], uses: Sequence[Use]) -> bool:
        """Return whether other lines of the file reveal a sample's masked import statements.

        Args:
            line: cursor line, which is not searched.
            masked: lines of the masked statements.
            names: names that the masked statements bind.
            uses: names that the line uses. Later imports of these names are not searched (see `masked_after`).
        """
        statements = ("\n".join(self._lines[start:end]) for start, end in masked)
        hidden = [name for text in statements for name in _imported(text, self._path) if _binds(name, names)]
        paths = {f"{star.path}.{name}" for star in hidden if star.name == "*" for name in names}
        paths |= {name.path for name in hidden if name.name != "*"}
        paths |= {inner for path in paths for first, _, inner in (path.partition("."),) if first in _ROOTS}
        if not paths:
            return False
        around = {parent for path in paths if (parent := path.rpartition(".")[0])}
        spans, words = [*masked, (line, line + 1)], _words(uses)
        spans += [span for span, text in self._statements.items() if span[0] > line and _brings(text, words)]
        dark = {number for start, end in spans for number in range(start, end)}
        visible = (text for (start, _), text in self._statements.items() if start not in dark)
        return any(self._says(text, paths | around) for text in visible) or self._spells(paths, dark)

    def _says(self, statement: str, paths: Collection[str]) -> bool:
        if _LOADED.search(statement):
            return any(_among(_absolute(quoted, self._path), paths) for quoted in _QUOTED.findall(statement))
        return any(_among(name.path, paths) for name in _imported(statement, self._path))

    def _spells(self, paths: Collection[str], dark: Collection[int]) -> bool:
        for path in paths:
            spelled = re.compile(rf"(?<![\w.]){re.escape(path)}(?!\w)")
            places = (number for number, text in enumerate(self._lines) if path in text) if "." in path else ()
            if any(number not in dark and spelled.search(self._lines[number]) for number in places):
                return True
        return False


def masked_after(text: str, uses: Sequence[Use]) -> str:
    """In the text after the cursor, blank the imports of names that the line at the cursor uses."""
    words, lines = _words(uses), text.split("\n")
    for start, end in list(_spans(lines)):
        if _brings("\n".join(lines[start:end]), words):
            lines[start:end] = [""] * (end - start)
    return "\n".join(lines)


def _words(uses: Sequence[Use]) -> frozenset[str]:
    """Return words to look for. Every import of a used name contains one of these words, even under an alias."""
    return frozenset(word for use in uses for word in (use.name.split(".")[0], use.module.split(".")[-1]))


def _brings(statement: str, words: frozenset[str]) -> bool:
    return not words.isdisjoint(_NAME_PART.findall(statement))


def _binds(imported: _Imported, names: Collection[str]) -> bool:
    return imported.name in names or imported.name == "*" or imported.path.split(".")[0] in names


def _among(path: str, paths: Collection[str]) -> bool:
    """Return whether a path equals one of the paths, or either ends with the other (the source root is unknown)."""
    return any(path == other or path.endswith(f".{other}") or other.endswith(f".{path}") for other in paths)


def _imported(statement: str, path: str) -> Iterator[_Imported]:
    text = _COMMENT.sub("", statement)
    if match := _FROM.match(text):
        module = _absolute(match[1] + match[2], path)
        for item in _ITEM.finditer(match[3]):
            wild = item[1] == "*"
            full = module if wild else f"{module}.{item[1]}".lstrip(".")
            yield _Imported(full, item[2] or item[1], wild)
    elif match := _IMPORT.match(text):
        for item in _ITEM.finditer(match[1]):
            wild = item[1].endswith("*")
            full = item[1].removesuffix(".*")
            yield _Imported(full, "*" if wild else item[2] or full.rpartition(".")[2], wild)


def _absolute(module: str, path: str) -> str:
    dots = len(module) - len(module.lstrip("."))
    if not dots:
        return module
    folders = path.split("/")[:-dots]
    return ".".join([*folders, *filter(None, [module[dots:]])])


def _spans(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(lines):
        line = lines[at]
        start, at = at, at + 1
        if not _NAMED.search(line):
            continue
        if _FROM.match(line) or _IMPORT.match(line) or (line.lstrip().startswith("from ") and " import" in line):
            depth = _depth(line)
            while at < len(lines) and (depth > 0 or lines[at - 1].endswith("\\")):
                depth += _depth(lines[at])
                at += 1
            yield start, at
        elif _LOADED.search(line):
            yield start, at


def _depth(line: str) -> int:
    return sum(_OPEN.get(char, 0) for char in _COMMENT.sub("", line))
