"""API records as units of retrieval: found by usage example or by summary, shown as a signature.

Every function is one: private ones, tests, inner functions and methods without a body too (InferCom paper, section
on the API base, and its released code).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Literal

from ctxbench.bench.apis.rendering import api_text, constructor_text
from ctxbench.bench.apis.usages import constructor_usages, usages
from ctxbench.bench.languages.outline import Function, Outline, Type, outline
from ctxbench.bench.retrieval.types import Unit
from ctxbench.bench.types import Language, Place

By = Literal["usage", "summary"]

_ABSTRACT = re.compile(r"\babstract\b[\w\s]*\bclass\b")


def units(
    path: str,
    text: str,
    language: Language,
    *,
    by: By,
    quirks: bool = False,
    constructors: bool = False,
    blank_decorator_line: bool = True,
) -> tuple[Unit, ...]:
    """Return the API records of one file, in the order of lines.

    Args:
        path: POSIX, relative to the repository.
        text: the file, or what a view shows of it.
        language: its language.
        by: ``usage``: a unit's keys are its usage examples; ``summary``: its code is the function's source too,
            dedented, to be summarised; the usage examples are there for what gets no summary.
        quirks: as the released code makes usage examples; in Java it knows classes only.
        constructors: whether a class that declares no constructor is a record too.
        blank_decorator_line: see `bench.apis.rendering.api_text`.
    """
    file_outline, lines = outline(text, language), text.split("\n")

    def unit(span: tuple[int, int], name: str, api_entry: str, keys: tuple[str, ...]) -> Unit:
        place = Place(path=path, start=span[0], end=span[1])
        if by == "usage":
            return Unit(place=place, text=api_entry, keys=keys, name=name)
        return Unit(
            place=place, text=api_entry, keys=keys, name=name, code=textwrap.dedent("\n".join(lines[span[0] : span[1]]))
        )

    records = [
        unit(
            function.lines,
            function.qualified,
            api_text(function, language, blank_decorator_line=blank_decorator_line),
            usages(function, path, language, quirks=quirks),
        )
        for function in _records(file_outline, language, quirks)
    ]
    for types, span in _without_constructor(file_outline, language) if constructors else ():
        outer = types[-2] if len(types) > 1 else None
        keys = constructor_usages(types[-1], outer, language, quirks=quirks)
        records.append(unit(span, _constructor_name(types, language), constructor_text(types, language), keys))
    return tuple(sorted(records, key=lambda record: record.place))


def _records(file_outline: Outline, language: Language, quirks: bool) -> Iterator[Function]:
    for function in file_outline.functions:
        if language is Language.PYTHON or function.types:
            takes_any_kind = not quirks or language is Language.PYTHON
            if takes_any_kind or all(kind.kind == "class" for kind in function.types[-2:]):
                yield function


def _constructor_name(types: tuple[Type, ...], language: Language) -> str:
    last = "__init__" if language is Language.PYTHON else types[-1].name
    return ".".join([*(kind.name for kind in types), last])


def _without_constructor(
    file_outline: Outline, language: Language
) -> Iterator[tuple[tuple[Type, ...], tuple[int, int]]]:
    """Yield classes that declare no constructor, with those around them, and the lines up to the header's end."""
    constructed = {function.types[-1] for function in file_outline.functions if function.constructor}
    for place, kind in enumerate(file_outline.types):
        if kind.kind != "class" or kind in constructed or (language is Language.JAVA and _ABSTRACT.search(kind.header)):
            continue
        around = [outer for outer in file_outline.types[:place] if outer.lines[1] >= kind.lines[1]]
        yield (*around, kind), (kind.lines[0], kind.head + kind.header.count("\n") + 1)
