"""What is known of models, as TOML tables that users may override: read with all faults at once, found by patterns.

A table is about the models that its ``match`` fits: a shell pattern (``*``, ``?``), or a list of them, of which one
must fit the model's name or the generator's whole spec.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text


def settings_of(generator: str) -> dict[str, str]:
    """Return the parameters of a generator, given as its canonical spec; empty if it is none.

    A hosted model has its service's address under ``url``, also where the spec leaves it out.
    """
    # Not at the top: facts are read where no generator is made.
    from ctxbench.harness.generators import registry  # noqa: PLC0415
    from ctxbench.harness.generators.openai.settings import OFFICIAL  # noqa: PLC0415

    try:
        parsed = registry.read(generator)
    except InputFault:
        # Labels of imported runs need not be specs.
        return {}
    default = {"url": OFFICIAL} if parsed.name == "openai" else {}
    return default | {name: str(value) for name, value in parsed.arguments.items()}


def fits(match: Sequence[str], *names: str) -> bool:
    """Return whether a pattern fits one of the names; an empty name is none."""
    return any(fnmatchcase(name, pattern) for pattern in match for name in names if name)


def patterns(table: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the patterns of a table."""
    value = table.get("match")
    return tuple(value) if isinstance(value, list) else (value,)


def read_tables(
    path: Path, name: str, faults: Callable[[Mapping[str, Any]], Iterator[str]], *, cure: str
) -> list[Mapping[str, Any]]:
    """Return the tables ``[[name]]`` of a file.

    Args:
        path: the file.
        name: what its tables are called.
        faults: yields what is wrong with a table besides its ``match``.
        cure: the end of the message.

    Raises:
        InputFault: if it cannot be read or is wrong; it names every fault.
    """
    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # no TOML, a number of thousands of digits, lists in lists
        raise InputFault(f"is not TOML: {error}", where=str(path), cure=cure) from None
    tables = data.get(name, [])
    lines = [f"there is no key {key!r} at the top, only tables [[{name}]]" for key in sorted(data.keys() - {name})]
    if isinstance(tables, list) and all(isinstance(table, dict) for table in tables):
        lines += [
            f"{name} {number}: {fault}"
            for number, table in enumerate(tables, 1)
            for fault in (*_pattern_faults(table), *faults(table))
        ]
    else:
        lines.append(f"{name} is no list of tables")
    if lines:
        raise InputFault("; ".join(lines), where=str(path), cure=cure)
    return list(tables)


def _pattern_faults(table: Mapping[str, Any]) -> Iterator[str]:
    of_table = patterns(table)
    if not of_table or not all(isinstance(pattern, str) and pattern.strip() for pattern in of_table):
        yield "match must be a pattern or a list of them"


def unknown_keys(table: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Yield a fault for each key that such a table does not have."""
    for key in sorted(table.keys() - set(keys)):
        yield f"there is no key {key!r}"


def is_day(value: object) -> bool:
    """Return whether a value of a table is a date without a time."""
    return isinstance(value, date) and not isinstance(value, datetime)
