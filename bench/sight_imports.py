"""Masked imports that stay in sight: other lines of the file that say what a blanked import statement said.

An import says a path: ``shop.store.Cart``. It is in sight where another statement, bound to whatever name, says the
same path, the module, package or class that it lies in, or all of that by a wildcard; where a string
in quotes says one of them, as for `importlib`; and where the whole path is spelled. Another name of the same module is
not what was masked: ``from shop.store import Shelf`` leaves ``Cart`` to be guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxbench.bench.languages.outline import Span
    from ctxbench.bench.types import Use

_FROM = re.compile(r"\s*from\s+(\.*)\s*([\w.]*)\s+import\s+(.*)", re.DOTALL)
_IMPORT = re.compile(r"\s*import\s+(?:static\s+)?(.*)", re.DOTALL)
_ITEM = re.compile(r"([\w.$]+(?:\*)?|\*)(?:\s+as\s+(\w+))?")
_COMMENT = re.compile(r"(?:#|//)[^\n]*")
_QUOTED = re.compile(r"""["'](\.*[\w.]+)["']""")
_LOADED = re.compile(r"\b(?:import_module|__import__|import_string|resolve_name|forName|loadClass)\s*\(")
_NAMED = re.compile(r"import|forName|loadClass|resolve_name")
_WORD = re.compile(r"\w+")
_ROOTS = ("src", "lib")
"""Folders that are no part of a module's name."""
_OPEN = {"(": 1, ")": -1}


@dataclass(frozen=True, slots=True)
class _Said:
    path: str
    """Dotted; of a wildcard the module that it opens."""
    name: str
    """What it binds; ``*`` for a wildcard."""
    whole: bool
    """Whether all that lies in the path can be reached: a wildcard, or a module itself."""


class FileImports:
    """The import statements of one file, for asking which masked ones the rest of it still says."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        """Read a file; relative imports start at its path."""
        self._path = path
        self._lines = lines
        self._statements = {(start, end): "\n".join(lines[start:end]) for start, end in _spans(lines)}

    def in_sight(self, line: int, masked: Sequence[Span], names: Collection[str], uses: Sequence[Use]) -> bool:
        """Say whether other lines still say what the masked statements of the cursor at a line said.

        Args:
            line: of the cursor; it is not looked at.
            masked: the statements that are blanked.
            names: what they bind that is hidden.
            uses: what the line uses, for `masked_after`.
        """
        statements = ("\n".join(self._lines[start:end]) for start, end in masked)
        hidden = [said for text in statements for said in _said(text, self._path) if _binds(said, names)]
        paths = {f"{said.path}.{name}" for said in hidden if said.name == "*" for name in names}
        paths |= {said.path for said in hidden if said.name != "*"}
        paths |= {rest for one in paths for first, _, rest in (one.partition("."),) if first in _ROOTS}
        if not paths:
            return False
        around = {parent for one in paths if (parent := one.rpartition(".")[0])}
        spans, words = [*masked, (line, line + 1)], _words(uses)
        spans += [span for span, text in self._statements.items() if span[0] > line and _brings(text, words)]
        dark = {number for start, end in spans for number in range(start, end)}
        shown = (text for (start, _), text in self._statements.items() if start not in dark)
        return any(self._says(text, paths | around) for text in shown) or self._spells(paths, dark)

    def _says(self, statement: str, paths: Collection[str]) -> bool:
        if _LOADED.search(statement):
            return any(_among(_absolute(quoted, self._path), paths) for quoted in _QUOTED.findall(statement))
        return any(_among(said.path, paths) for said in _said(statement, self._path))

    def _spells(self, paths: Collection[str], dark: Collection[int]) -> bool:
        """Say whether a line that is shown has one of some paths whole."""
        for one in paths:
            spelled = re.compile(rf"(?<![\w.]){re.escape(one)}(?!\w)")
            places = (number for number, text in enumerate(self._lines) if one in text) if "." in one else ()
            if any(number not in dark and spelled.search(self._lines[number]) for number in places):
                return True
        return False


def masked_after(text: str, uses: Sequence[Use]) -> str:
    """Return the text behind a cursor with the import statements empty that bring in what is used at it."""
    words, lines = _words(uses), text.split("\n")
    for start, end in list(_spans(lines)):
        if _brings("\n".join(lines[start:end]), words):
            lines[start:end] = [""] * (end - start)
    return "\n".join(lines)


def _words(uses: Sequence[Use]) -> frozenset[str]:
    """Return words of which one stands in every statement that brings in what is used, by the same name or not."""
    return frozenset(word for use in uses for word in (use.name.split(".")[0], use.module.split(".")[-1]))


def _brings(statement: str, words: frozenset[str]) -> bool:
    return not words.isdisjoint(_WORD.findall(statement))


def _binds(said: _Said, names: Collection[str]) -> bool:
    return said.name in names or said.name == "*" or said.path.split(".")[0] in names


def _among(path: str, paths: Collection[str]) -> bool:
    """Say whether a path is one of some; where sources begin is unknown, so that one may go on in front."""
    return any(path == one or path.endswith(f".{one}") or one.endswith(f".{path}") for one in paths)


def _said(statement: str, path: str) -> Iterator[_Said]:
    text = _COMMENT.sub("", statement)
    if found := _FROM.match(text):
        module = _absolute(found[1] + found[2], path)
        for item in _ITEM.finditer(found[3]):
            wild = item[1] == "*"
            full = module if wild else f"{module}.{item[1]}".lstrip(".")
            yield _Said(full, item[2] or item[1], wild)
    elif found := _IMPORT.match(text):
        for item in _ITEM.finditer(found[1]):
            wild = item[1].endswith("*")
            full = item[1].removesuffix(".*")
            yield _Said(full, "*" if wild else item[2] or full.rpartition(".")[2], wild)


def _absolute(module: str, path: str) -> str:
    dots = len(module) - len(module.lstrip("."))
    if not dots:
        return module
    folders = path.split("/")[:-dots]
    return ".".join([*folders, *filter(None, [module[dots:]])])


def _spans(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Return where import statements stand, and lines that load a module by its name in a string."""
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
