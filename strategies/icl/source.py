"""A source file without the target function, and the outline of its other definitions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ctxbench.bench.languages.base import Function, Language, Outline
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.icl.file_lines import FileLines


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file, the target function taken out of it."""

    path: str
    language: Language
    lines: FileLines
    outline: Outline
    """Its lines are positions in `lines`, not numbers of the file."""
    exact: bool = True
    """Whether the target function's lines come from the parser; else they were guessed from its name."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """Its functions and methods that stand in no other function."""
        return tuple(function for function in self.outline.functions if not function.inside)

    def numbers(self, function: Function) -> range:
        """Return the lines of a function, by the numbers of the file."""
        line_numbers = self.lines.numbers[function.lines[0] : function.lines[1]]
        return range(line_numbers[0], line_numbers[-1] + 1) if line_numbers else range(0)


def read_file(repo: Repository, path: str, query: Query) -> SourceFile:
    """Return a file of the repository; of the target file what the Infile strategies show (paper: Infile)."""
    text = repo.read(path)
    if path != query.path:
        return SourceFile(path, repo.language, FileLines.whole(text), repo.language.outline(text))
    return without_target(text, query)


def without_target(text: str, query: Query) -> SourceFile:
    """Return the target file without the target function: signature, docstring, decorators, attached comments.

    What the view shows of it has no body, so it is completed before it is parsed.

    Args:
        text: the file's text in the view.
        query: the sample's query.
    """
    if query.name is None:
        return SourceFile(query.path, query.language, FileLines.whole(text), query.language.outline(text))
    after = query.suffix or ""
    before = text[: len(text) - len(after)] if after and text.endswith(after) else text
    after = text[len(before) :]
    name = bare(query.name)
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


def bare(name: str) -> str:
    """Return a function's name without its classes and parameter types."""
    return name.partition("(")[0].rpartition(".")[2]


def _stubs(before: str, language: Language, name: str) -> Iterator[str]:
    """Give texts that may make a function of its head."""
    yield ""
    if language == JAVA:
        yield "}\n"
        return
    line = split_lines(before)[_declaration(before, name)] if before else ""
    indent = line[: len(line) - len(line.lstrip())]
    step = "\t" if indent.startswith("\t") else "    "
    yield f"{indent}{step}pass\n"
    yield " pass\n"


def _span_of_target(parsed: Outline, name: str, before: str, stub: str) -> tuple[int, int] | None:
    """Return the lines of the target function in the text without the stub."""
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
    """Return the last line that may declare the name."""
    word = re.compile(rf"\b{re.escape(name)}\s*\(")
    lines = split_lines(before) if before else [""]
    return next((at for at in range(len(lines) - 1, -1, -1) if word.search(lines[at])), len(lines) - 1)


def _guessed(before: str, name: str) -> tuple[int, int]:
    """Return the lines from the declaration to the cursor, those of decorators and comments right above too."""
    lines = split_lines(before) if before else []
    start = _declaration(before, name) if lines else 0
    while start and lines[start - 1].lstrip().startswith(("@", "#", "//", "*", "/*")):
        start -= 1
    return start, len(lines)
