"""Generators by name: the decorator, the entry points and the check of their parameters.

A generator is registered by a factory function whose keyword-only parameters a spec may set:
``openai(model=…, url=…)``. A factory is cheap: it checks its parameters and knows its version; weights, processes and
connections wait for the first request, so that a finished run starts nothing. Parameters that only decide how fast
answers come (``concurrency``, ``workers``) are declared as such and are no part of the canonical spelling: a run that
goes on with fewer workers is the same run. Neither is ``cutoff``, which every spec may give: it says something of the
model and changes none of its answers.

What is known of models besides (prices, cutoffs) are TOML tables that users may override, read with all faults at once.
A table is about the models that its ``match`` fits: a shell pattern (``*``, ``?``), or a list of them, of which one
must fit the model's name or the generator's whole spec.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text
from ctxbench.bench.parameters import Parameter
from ctxbench.bench.registry import Factories
from ctxbench.bench.spec import Shorthand, spelled
from ctxbench.harness.generators.base import Generator

Factory = Callable[..., Generator]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench generator list"
CUTOFF = Parameter(name="cutoff", kind=str, is_day=True, optional=True)
_REGISTRY: Factories[Generator] = Factories("generator", group="ctxbench.generators", command=COMMAND, facts=(CUTOFF,))


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorCard:
    """The description of a registered generator, without making one."""

    name: str
    summary: str
    """The first line of its docstring."""
    parameters: tuple[tuple[str, str], ...]
    """Name and default as a spec spells it; an empty default means that the parameter must be given."""


def generator(
    name: str,
    *,
    machine: Sequence[str] = (),
    shorthand: Shorthand | None = None,
) -> Callable[[F], F]:
    """Register a factory function as the generator `name`.

    Args:
        name: how specs call it.
        machine: the parameters that do not affect the content of answers.
        shorthand: a short spelling, such as ``name:MODEL``.

    Raises:
        InputFault: if the name is taken, the factory has parameters that are not keyword-only, or it lacks one of
            `machine` or of the short spelling's.
    """
    return lambda factory: _REGISTRY.register(name, factory, machine=machine, shorthand=shorthand)


names = _REGISTRY.names
"""The names of all installed generators, sorted; imports none."""
read = _REGISTRY.read
"""Read a generator's spec, short spellings too."""
canonical = _REGISTRY.canonical
"""The spelling under which a generator's results are kept.

Parameters that do not affect answers are left out, so `resolve` takes the user's own spelling."""


def cutoff(spec: str) -> str | None:
    """Return the last day of what a generator was trained on, as its spec says: ``YYYY-MM-DD``; None if it says none.

    Raises:
        InputFault: as `resolve`, for the spec's own faults.
    """
    day = _REGISTRY.facts(spec).get(CUTOFF.name)
    return None if day is None else str(day)


def resolve(spec: str) -> Generator:
    """Make the generator that a spec spells.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, a parameter is unknown, missing or of the wrong
            type, or the factory returns something else.
    """
    model: object = _REGISTRY.make(spec)
    if not isinstance(model, Generator):
        what = f"the factory returned {type(model).__name__}, which is no Generator"
        cure = "write class …(Generator), imported from ctxbench.harness.generators"
        raise InputFault(what, where=f"generator {read(spec).name}", cure=cure)
    return model


def card(name: str) -> GeneratorCard:
    """Describe a generator.

    Raises:
        InputFault: if there is none of that name, or its plugin cannot be imported.
    """
    parameters = _REGISTRY.parameters(name)
    return GeneratorCard(
        name=name,
        summary=_REGISTRY.summary(name),
        parameters=tuple((p.name, "" if p.required else spelled(p.default)) for p in parameters),
    )


def settings_of(generator: str) -> dict[str, str]:
    """Return the parameters of a generator, given as its canonical spec; empty if it is none.

    A hosted model has its service's address under ``url``, also where the spec leaves it out.
    """
    # Not at the top: `openai` imports this module.
    from ctxbench.harness.generators.openai.settings import OFFICIAL  # noqa: PLC0415

    try:
        parsed = read(generator)
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
