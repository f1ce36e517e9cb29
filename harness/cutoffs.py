"""Training cutoffs of models, from a built-in TOML file and the user's `cutoffs.toml`.

The user's entries are searched first. A cutoff in a generator's spec overrides both.

A file has one table ``[[cutoff]]`` per entry:

==============  =======================================================================================
``match``       pattern, or list of patterns, of the model's name or of the generator's spec; required
``day``         last day of the model's training data; required
``source``      where the model's maker states the day
==============  =======================================================================================
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ctxbench.bench.home import Home
from ctxbench.harness.generators import base
from ctxbench.harness.results import spec_of_label

FILE = "cutoffs.toml"
_BUILTIN = Path(__file__).parent / "cutoffs.toml"
_KEYS = ("match", "day", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoff:
    """The last day of training data for all matching models."""

    match: tuple[str, ...]
    """Shell patterns of model names or generator specs; see `harness.generators.base.fits`."""
    day: date
    source: str = ""
    """Publication in which the model's maker states the day; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """A list of cutoffs. The first that matches a generator applies."""

    entries: tuple[Cutoff, ...] = ()

    def day(self, generator: str) -> date | None:
        """Return the last training day of a generator, given its leaderboard label; None if unknown."""
        spec = spec_of_label(generator)
        model = base.settings_of(spec).get("model", "")
        return next((entry.day for entry in self.entries if base.fits(entry.match, model, spec)), None)


NO_CUTOFFS = Cutoffs()


def advice(generator: str) -> str:
    """Return a sentence on how to state a generator's cutoff in `cutoffs.toml`, given its leaderboard label."""
    spec = spec_of_label(generator)
    match = json.dumps(base.settings_of(spec).get("model") or spec)
    lines = f"match = {match} and day = 2024-06-01, with the model's own day"
    return f"State the day in {FILE} in the home folder, in three lines: [[cutoff]], {lines}."


@functools.cache
def builtin() -> Cutoffs:
    """Return the cutoffs that ship with ctxbench."""
    return _read(_BUILTIN)


def of_home(home: Home) -> Cutoffs:
    """Return the cutoffs in a home's `cutoffs.toml`, if any, followed by the built-in cutoffs.

    Raises:
        InputFault: if the file cannot be read or is invalid; the message names every fault.
    """
    path = home.root / FILE
    return Cutoffs((*_read(path).entries, *builtin().entries)) if path.exists() else builtin()


def _read(path: Path) -> Cutoffs:
    tables = base.read_tables(
        path, "cutoff", _faults, cure="write each table as [[cutoff]] with match = 'gpt-4o*' and day = 2023-10-01"
    )
    return Cutoffs(
        tuple(Cutoff(match=base.patterns(table), day=table["day"], source=table.get("source", "")) for table in tables)
    )


def _faults(table: Mapping[str, Any]) -> Iterator[str]:
    yield from base.unknown_keys(table, _KEYS)
    if not base.is_day(table.get("day")):
        yield "day must be a date such as 2024-06-01, without quotes"
    if not isinstance(table.get("source", ""), str):
        yield "source must be a string"
