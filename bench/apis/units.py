"""API records as units of retrieval: found by usage example or by summary, shown as a signature.

Every function is one: private ones, tests, inner functions and methods without a body too (InferCom paper, section
on the API base, and its released code).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Literal

from ctxbench.bench.languages.base import ApiStyle, Language
from ctxbench.bench.languages.outline import Outline, Type
from ctxbench.bench.retrieval.units import Unit
from ctxbench.bench.types import Place

By = Literal["usage", "summary"]


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
        quirks: as the released code makes usage examples.
        constructors: whether a class that declares no constructor is a record too.
        blank_decorator_line: whether a Python method without decorators gets a line of four blanks where they would
            stand, as the released code prints it.
    """
    file_outline, lines = language.outline(text), text.split("\n")

    def unit(span: tuple[int, int], name: str, api_entry: str, keys: tuple[str, ...]) -> Unit:
        place = Place(path=path, start=span[0], end=span[1])
        if by == "usage":
            return Unit(place=place, text=api_entry, keys=keys, name=name)
        return Unit(
            place=place, text=api_entry, keys=keys, name=name, code=textwrap.dedent("\n".join(lines[span[0] : span[1]]))
        )

    style = language.apis
    if style is None:
        return ()
    records = [
        unit(
            function.lines,
            function.qualified,
            style.text(function, blank_decorator_line=blank_decorator_line),
            tuple(dict.fromkeys(style.usages(function, path, quirks=quirks))),
        )
        for function in file_outline.functions
        if style.takes(function, quirks=quirks)
    ]
    for types, span in _without_constructor(file_outline, style) if constructors else ():
        outer = types[-2] if len(types) > 1 else None
        keys = style.constructor_usages(types[-1], outer, quirks=quirks)
        name = ".".join([*(kind.name for kind in types), style.constructor_name(types)])
        records.append(unit(span, name, style.constructor_text(types), keys))
    return tuple(sorted(records, key=lambda record: record.place))


def _without_constructor(file_outline: Outline, style: ApiStyle) -> Iterator[tuple[tuple[Type, ...], tuple[int, int]]]:
    """Yield classes that declare no constructor, with those around them, and the lines up to the header's end."""
    constructed = {function.types[-1] for function in file_outline.functions if function.constructor}
    for place, kind in enumerate(file_outline.types):
        if kind.kind == "class" and kind not in constructed:
            types = (*(outer for outer in file_outline.types[:place] if outer.lines[1] >= kind.lines[1]), kind)
            if style.constructor_name(types):
                yield types, (kind.lines[0], kind.head + kind.header.count("\n") + 1)
