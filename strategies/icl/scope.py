"""The scope of a function: its file with every other function taken out (ICL-strategies paper, RAG-S, Figure 3). Pure.

Whole lines are taken out, so that a block's header may be left without a body, as in the figure.
"""

from __future__ import annotations

from collections.abc import Collection

from ctxbench.bench.languages.base import Function, Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.strategies.icl.file_lines import FileLines
from ctxbench.strategies.icl.source import SourceFile

_MARKS = {PYTHON: ("#",), JAVA: ("//",)}


def scope(file: SourceFile, names: Collection[str], *, strip_license: bool = True) -> FileLines:
    """Return the file with only the functions of these names; runs of blank lines become one.

    Kept are imports, constants, block headers, class headers with docstring and attributes, top-level statements,
    and all functions of the names: in Java overloads, and constructors by their class's name.

    Args:
        file: the file, without the target function.
        names: bare names.
        strip_license: take out the comment at the top too.
    """
    dropped = {
        number
        for function in file.functions
        if function.name not in names and not (file.language == JAVA and _holds_type(function))
        for number in range(*function.lines)
    }
    if strip_license:
        dropped |= set(range(_license_end(file.lines.lines, file.language)))
    return file.lines.without({file.lines.numbers[at] for at in dropped}).stripped()


def _holds_type(function: Function) -> bool:
    """Return whether its class begins or ends on its lines, as where braces stand on one line."""
    start, end = function.lines
    return any(start <= type_outline.lines[0] or type_outline.lines[1] <= end for type_outline in function.types)


def _license_end(lines: tuple[str, ...], language: Language) -> int:
    """Return the line after the comment at the top; 0 if there is none, or if it belongs to what follows.

    A comment in several parts is taken whole but for a last part that stands right above code.
    """
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
    """Return how many lines the comment that begins there has; 0 if none does."""
    if language == JAVA and lines[start].lstrip().startswith("/*"):
        end = next((at for at in range(start, len(lines)) if "*/" in lines[at]), len(lines) - 1)
        return end - start + 1
    end = start
    while end < len(lines) and lines[end].lstrip().startswith(_MARKS[language]):
        end += 1
    return end - start
