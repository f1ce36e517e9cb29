"""Finds the function of a task in the file that its record holds. Pure."""

from __future__ import annotations

from ctxbench.bench.codereval.functions import Placed, functions
from ctxbench.bench.codereval.locate import bare, has_code, has_line, lacks, placed
from ctxbench.bench.codereval.records import EXACT, Located, Missed, Record
from ctxbench.bench.functions.python.definitions import parse
from ctxbench.bench.types import Language


def within(record: Record, path: str, text: str, language: Language) -> Located | Missed:
    """Find a task's function in its own file: by name on the recorded line, or else near it, which is told.

    Off the line the function must be the only one that has the recorded code, or the recorded docstring, or lies
    nearest.

    Args:
        record: what the benchmark says of the task; its path is not looked at.
        path: of the file.
        text: of the file.
        language: of the file.
    """
    named = [each for each in functions(text, language) if each.leaf == record.name]
    if not named:
        unread = language is Language.PYTHON and parse(text) is None
        return Missed("no_function", f"the file {lacks(record.name, unread=unread)}")
    chosen = _chosen(record, text, named, language)
    if len(chosen) > 1:
        places = ", ".join(str(each.start + 1) for each in chosen[:5])
        return Missed("ambiguous", f"{len(chosen)} functions {record.name} fit, on lines {places}")
    return placed(record, path, text, chosen[0], EXACT)


def _chosen(record: Record, text: str, named: list[Placed], language: Language) -> list[Placed]:
    docstring = bare(record.docstring, language)
    rules = (
        [each for each in named if has_line(record, each)],
        [each for each in named if has_code(record, text, each)],
        [each for each in named if bare(each.docstring, language) == docstring],
    )
    for fitting in rules:
        if len(fitting) == 1:
            return fitting
    if record.lineno is None:
        return named
    wanted = record.lineno - 1
    nearest = min(abs(each.start - wanted) for each in named)
    return [each for each in named if abs(each.start - wanted) == nearest]
