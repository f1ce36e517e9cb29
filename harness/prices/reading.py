"""Read files of rates: TOML with a table ``[[rate]]`` for each; every fault of a file is reported at once.

==============  =======================================================================================
``match``       pattern, or list of patterns, of the model's name or of the generator's spec; needed
``seen``        the date on which it was looked up; needed
``input``       US dollars a million tokens of prompts; with ``output``
``output``      US dollars a million tokens of answers; with ``input``
``cached``      US dollars a million tokens of prompts that the service had at hand; as ``input`` if left out
``per_hour``    US dollars an hour of a rented machine
``at_once``     how many answers that machine works at side by side; 1 if left out
``url``         only for this service
``source``      where it was looked up
==============  =======================================================================================
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text
from ctxbench.bench.home import Home
from ctxbench.harness.prices.rates import Prices, Rate

FILE = "prices.toml"
"""The user's own rates, in the home folder."""
_BUILTIN = Path(__file__).parent / "builtin.toml"
_NUMBERS = ("input", "cached", "output", "per_hour")
_TEXTS = ("url", "source")
_KEYS = ("match", "seen", *_NUMBERS, "at_once", *_TEXTS)
_CURE = "see docs/costs.md"


@functools.cache
def builtin() -> Prices:
    """Return the rates that come with ctxbench: a few, each with its date."""
    return _read(_BUILTIN)


def of_home(home: Home) -> Prices:
    """Return the rates of a home: its own file's, if there is one, before the built-in ones.

    Raises:
        InputFault: if the file cannot be read or is wrong.
    """
    path = home.root / FILE
    return load(path) if path.exists() else builtin()


def load(path: Path) -> Prices:
    """Return the rates of a file before the built-in ones.

    Raises:
        InputFault: if it cannot be read or is wrong; it names every fault.
    """
    return _read(path).before(builtin().rates)


def _read(path: Path) -> Prices:
    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # no TOML, a number of thousands of digits, lists in lists
        raise InputFault(f"is not TOML: {error}", where=str(path), cure=_CURE) from None
    rates = data.get("rate", [])
    faults = [f"there is no key {key!r} at the top, only tables [[rate]]" for key in sorted(data.keys() - {"rate"})]
    if isinstance(rates, list) and all(isinstance(table, dict) for table in rates):
        faults += [f"rate {number}: {fault}" for number, table in enumerate(rates, 1) for fault in _faults(table)]
    else:
        faults.append("rate is no list of tables")
    if faults:
        raise InputFault("; ".join(faults), where=str(path), cure=_CURE)
    return Prices(tuple(map(_rate, rates)))


def _faults(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of one table."""
    for key in sorted(table.keys() - set(_KEYS)):
        yield f"there is no key {key!r}"
    patterns = _patterns(table.get("match"))
    if not patterns or not all(isinstance(pattern, str) and pattern.strip() for pattern in patterns):
        yield "match must be a pattern or a list of them"
    looked_up = table.get("seen")
    if not isinstance(looked_up, date) or isinstance(looked_up, datetime):
        yield "seen must be a date such as 2026-11-21, without quotes"
    for key in _NUMBERS:
        if key in table and not _amount(table[key]):
            yield f"{key} must be a number of US dollars, 0 or more"
    at_once = table.get("at_once", 1)
    if not isinstance(at_once, int) or isinstance(at_once, bool) or at_once < 1:
        yield "at_once must be a whole number, 1 or more"
    for key in _TEXTS:
        if not isinstance(table.get(key, ""), str):
            yield f"{key} must be a text"
    yield from _apart(table.keys())


def _apart(keys: Collection[str]) -> Iterator[str]:
    """Yield a fault for each key that is given without the keys that it needs."""
    if ("input" in keys) != ("output" in keys):
        yield "input and output must be given together"
    elif "input" not in keys and "per_hour" not in keys:
        yield "neither input and output nor per_hour is given"
    if "cached" in keys and "input" not in keys:
        yield "cached is given without input"
    if "at_once" in keys and "per_hour" not in keys:
        yield "at_once is given without per_hour"


def _amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _patterns(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _rate(table: Mapping[str, Any]) -> Rate:
    numbers = {key: float(table[key]) for key in _NUMBERS if key in table}
    numbers.setdefault("cached", numbers.get("input", 0.0))
    return Rate(
        match=tuple(_patterns(table["match"])),
        looked_up=table["seen"],
        at_once=table.get("at_once", 1),
        url=table.get("url", ""),
        source=table.get("source", ""),
        **numbers,
    )
