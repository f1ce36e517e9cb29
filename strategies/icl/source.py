"""Source files without the target function."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.outline import Function, Outline
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.layout import bare_name, stretches


@dataclass(frozen=True, slots=True)
class FileLines:
    """Some lines of a file, in order."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    """Line numbers in the file as the strategy sees it, 0-based, ascending."""

    @classmethod
    def whole(cls, text: str) -> FileLines:
        """Return all lines of a text."""
        lines = split_lines(text) if text else []
        return cls(tuple(lines), tuple(range(len(lines))))

    @property
    def text(self) -> str:
        """The lines, joined, without a final newline."""
        return "\n".join(self.lines)

    @property
    def blank(self) -> bool:
        """Whether all lines are blank."""
        return not any(line.strip() for line in self.lines)

    def places(self, path: str) -> tuple[Place, ...]:
        """Return the lines as places, one per run of consecutive lines."""
        return stretches(path, self.numbers)

    def without(self, numbers: Collection[int]) -> FileLines:
        """Return the lines except those with these numbers."""
        return self._at([at for at, number in enumerate(self.numbers) if number not in numbers])

    def stripped(self) -> FileLines:
        """Reduce runs of blank lines to one, and remove blank lines at both ends."""
        positions: list[int] = []
        for at, line in enumerate(self.lines):
            if line.strip() or (positions and self.lines[positions[-1]].strip()):
                positions.append(at)
        if positions and not self.lines[positions[-1]].strip():
            positions.pop()
        return self._at(positions)

    def dedented(self) -> FileLines:
        """Dedent all lines by the first nonblank line's indentation, as far as each line has it."""
        first = next((line for line in self.lines if line.strip()), "")
        margin = len(first) - len(first.lstrip())
        moved = (line[min(margin, len(line) - len(line.lstrip())) :] for line in self.lines)
        return FileLines(tuple(moved), self.numbers)

    def _at(self, positions: list[int]) -> FileLines:
        return FileLines(tuple(self.lines[at] for at in positions), tuple(self.numbers[at] for at in positions))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file without the target function."""

    path: str
    language: Language
    lines: FileLines
    outline: Outline
    """Outline of `lines`. Its line numbers are indexes into `lines`, not file line numbers."""
    exact: bool = True
    """False if the parser did not find the target function, so its lines were guessed from its name."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """Functions and methods, without nested functions."""
        return tuple(function for function in self.outline.functions if not function.inside)

    def numbers(self, function: Function) -> range:
        """Return a function's line numbers in the file."""
        line_numbers = self.lines.numbers[function.lines[0] : function.lines[1]]
        return range(line_numbers[0], line_numbers[-1] + 1) if line_numbers else range(0)


def read_file(repo: Repository, path: str, query: Query) -> SourceFile:
    """Return a file of the repository. The target file lacks the target function."""
    text = repo.read(path)
    if path != query.path:
        return SourceFile(path, repo.language, FileLines.whole(text), repo.language.outline(text))
    return without_target(text, query)


def without_target(text: str, query: Query) -> SourceFile:
    """Return the target file without the target function and its signature, docstring, decorators and comments."""
    if query.name is None:
        return SourceFile(query.path, query.language, FileLines.whole(text), query.language.outline(text))
    after = query.suffix or ""
    before = text[: len(text) - len(after)] if after and text.endswith(after) else text
    after = text[len(before) :]
    name = bare_name(query.name)
    span, exact = None, True
    for broken in (False, True):
        for stub in _stubs(before, query.language, name):
            parsed = query.language.outline(f"{before}{stub}{after}")
            span = span or _span_of_target(parsed, name, before, stub) if parsed.broken is broken else span
        if span is not None:
            break
    if span is None:
        span, exact = _guessed(before, name), False
    lines = FileLines.whole(text).without(range(*span))
    return SourceFile(query.path, query.language, lines, query.language.outline(lines.text), exact)


def _stubs(before: str, language: Language, name: str) -> Iterator[str]:
    yield ""
    if not language.indented:
        yield "}\n"
        return
    line = split_lines(before)[_declaration(before, name)] if before else ""
    indent = line[: len(line) - len(line.lstrip())]
    step = "\t" if indent.startswith("\t") else "    "
    yield f"{indent}{step}pass\n"
    yield " pass\n"


def _span_of_target(parsed: Outline, name: str, before: str, stub: str) -> tuple[int, int] | None:
    cursor = before.count("\n")
    if before and not before.endswith("\n"):
        cursor += 1
    namesakes = (function for function in parsed.functions if function.name == name)
    near = [function for function in namesakes if function.head < cursor <= function.lines[1]]
    if not near:
        return None
    start, end = near[-1].lines
    return start, max(cursor, end - stub.count("\n"))


def _declaration(before: str, name: str) -> int:
    word = re.compile(rf"\b{re.escape(name)}\s*\(")
    lines = split_lines(before) if before else [""]
    return next((at for at in range(len(lines) - 1, -1, -1) if word.search(lines[at])), len(lines) - 1)


def _guessed(before: str, name: str) -> tuple[int, int]:
    lines = split_lines(before) if before else []
    start = _declaration(before, name) if lines else 0
    while start and lines[start - 1].lstrip().startswith(("@", "#", "//", "*", "/*")):
        start -= 1
    return start, len(lines)


def scope(file: SourceFile, names: Collection[str]) -> FileLines:
    """Return the file without functions whose bare names are not in `names` (ICL-strategies paper, Figure 3: RAG-S).

    Imports, constants, classes' headers, docstrings and attributes, and top-level statements remain. The file's licence
    comment is removed. Only whole lines are removed, so a block's header may lose its body.
    """
    dropped = {
        number
        for function in file.functions
        if function.name not in names and not (not file.language.indented and _holds_type(function))
        for number in range(*function.lines)
    }
    dropped |= set(range(_license_end(file.lines.lines, file.language)))
    return file.lines.without({file.lines.numbers[at] for at in dropped}).stripped()


def _holds_type(function: Function) -> bool:
    start, end = function.lines
    return any(start <= type_outline.lines[0] or type_outline.lines[1] <= end for type_outline in function.types)


def _license_end(lines: tuple[str, ...], language: Language) -> int:
    end = 0
    parts: list[int] = []
    while end < len(lines) and (length := _comment(lines, end, language)):
        end += length
        parts.append(end)
        while end < len(lines) and not lines[end].strip():
            end += 1
    if not parts:
        return 0
    if parts[-1] == end and end < len(lines):
        first = lines[0].lstrip()
        attached = len(parts) > 1 or (first.startswith("/**") and not lines[end].startswith(("package", "import")))
        if attached:
            parts.pop()
    return parts[-1] if parts else 0


def _comment(lines: tuple[str, ...], start: int, language: Language) -> int:
    if not language.indented and lines[start].lstrip().startswith("/*"):
        end = next((at for at in range(start, len(lines)) if "*/" in lines[at]), len(lines) - 1)
        return end - start + 1
    end = start
    while end < len(lines) and lines[end].lstrip().startswith(language.comment):
        end += 1
    return end - start
