"""Rates of models and the prices that follow from them, in US dollars, and the files that they are read from.

A file is TOML with a table ``[[rate]]`` for each; every fault of a file is reported at once.

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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ctxbench.bench.home import Home
from ctxbench.harness.generators import registry

_MILLION = 1_000_000
_HOUR = 3600.0
_TIER = "service_tier"
"""The field of a request that asks for a cheaper or a faster service."""
FILE = "prices.toml"
"""The user's own rates, in the home folder."""
_BUILTIN = Path(__file__).parent / "prices.toml"
_NUMBERS = ("input", "cached", "output", "per_hour")
_TEXTS = ("url", "source")
_KEYS = ("match", "seen", *_NUMBERS, "at_once", *_TEXTS)
_CURE = "a table is [[rate]] with match = 'gpt-4o*', input = 2.5, output = 10.0 and seen = 2026-11-21"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of the models that match: by the token, by the hour of the machine, or both."""

    match: tuple[str, ...]
    """Shell patterns (``*``, ``?``) of which one must fit the model's name or the generator's whole spec."""
    url: str = ""
    """The service that asks these prices; empty for whoever serves the model."""
    input: float = 0.0
    """Dollars a million tokens of prompts."""
    cached: float = 0.0
    """Dollars a million of those that the service had at hand."""
    output: float = 0.0
    """Dollars a million tokens of answers."""
    per_hour: float = 0.0
    """Dollars an hour of the machine that answers."""
    at_once: int = 1
    """How many answers that machine works at side by side, each of which pays its share."""
    looked_up: date
    """The date on which it was looked up."""
    source: str = ""
    """The place where it was looked up."""

    def fits(self, generator: str) -> bool:
        """Return whether it is the rate of a generator, given as its canonical spec."""
        settings = registry.settings_of(generator)
        # A model in another tier of a service has another price: only a pattern for the whole spec can fit it.
        model = "" if _TIER in settings.get("extra", "") else settings.get("model", "")
        is_named = registry.fits(self.match, model, generator)
        return is_named and (not self.url or _same_service(settings.get("url", ""), self.url))

    def price(self, *, tokens_in: float, tokens_out: float, cached: float, seconds: float) -> float:
        """Return dollars; of `tokens_in`, `cached` were at hand. Linear: the price of a sum is the sum of prices."""
        tokens = (tokens_in - cached) * self.input + cached * self.cached + tokens_out * self.output
        return tokens / _MILLION + seconds / _HOUR * self.per_hour / self.at_once


@dataclass(frozen=True, slots=True)
class Prices:
    """Rates; of several that fit a generator the first holds."""

    rates: tuple[Rate, ...] = ()

    def rate(self, generator: str) -> Rate | None:
        """Return the rate of a generator, given as its canonical spec; None if there is none."""
        return next((rate for rate in self.rates if rate.fits(generator)), None)

    def price(
        self, generator: str, *, tokens_in: float, tokens_out: float, cached: float, seconds: float
    ) -> float | None:
        """Return the price of a generator's answers in dollars; None if its rate is unknown."""
        rate = self.rate(generator)
        if rate is None:
            return None
        return rate.price(tokens_in=tokens_in, tokens_out=tokens_out, cached=cached, seconds=seconds)

    def before(self, others: Sequence[Rate]) -> Prices:
        """Return these rates with others behind them, which hold where none of these does."""
        return Prices((*self.rates, *others))


def _same_service(url: str, service: str) -> bool:
    try:
        asked_url, service_url = urlsplit(url), urlsplit(service)
    except ValueError:
        return False
    same_host = (asked_url.scheme, asked_url.netloc) == (service_url.scheme, service_url.netloc)
    return same_host and asked_url.path.startswith(service_url.path)


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
    return Prices(tuple(map(_rate, registry.read_tables(path, "rate", _faults, cure=_CURE))))


def _faults(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of one table."""
    yield from registry.unknown_keys(table, _KEYS)
    if not registry.is_day(table.get("seen")):
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


def _rate(table: Mapping[str, Any]) -> Rate:
    numbers = {key: float(table[key]) for key in _NUMBERS if key in table}
    numbers.setdefault("cached", numbers.get("input", 0.0))
    return Rate(
        match=registry.patterns(table),
        looked_up=table["seen"],
        at_once=table.get("at_once", 1),
        url=table.get("url", ""),
        source=table.get("source", ""),
        **numbers,
    )
