"""Token and machine prices of models, from a built-in TOML file and the user's `prices.toml`.

A file has one table ``[[rate]]`` per price:

==============  =======================================================================================
``match``       pattern, or list of patterns, of the model's name or of the generator's spec; required
``seen``        day on which the rate was looked up; required
``input``       US dollars per million tokens of prompts; requires ``output``
``output``      US dollars per million tokens of answers; requires ``input``
``cached``      US dollars per million cached tokens of prompts; ``input`` by default
``per_hour``    US dollars per hour of a rented machine
``at_once``     answers that the machine computes at once; 1 by default
``url``         base URL of the only service with this rate; any service by default
``source``      where the rate was found
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
from ctxbench.harness.generators import base

_MILLION = 1_000_000
_HOUR = 3600.0
_TIER = "service_tier"
"""Request field that selects a service tier with other prices."""
FILE = "prices.toml"
_BUILTIN = Path(__file__).parent / "prices.toml"
_NUMBERS = ("input", "cached", "output", "per_hour")
_TEXTS = ("url", "source")
_KEYS = ("match", "seen", *_NUMBERS, "at_once", *_TEXTS)
_CURE = "write each table as [[rate]] with match = 'gpt-4o*', input = 2.5, output = 10.0 and seen = 2026-11-21"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of matching models: per token, per machine hour, or both."""

    match: tuple[str, ...]
    """Shell patterns (``*``, ``?``). One must match the model's name or the whole generator spec."""
    url: str = ""
    """Base URL of the only service with this price; empty for any service."""
    input: float = 0.0
    """US dollars per million prompt tokens; `cached` is for cached prompt tokens, `output` for tokens of answers."""
    cached: float = 0.0
    output: float = 0.0
    per_hour: float = 0.0
    at_once: int = 1
    """Number of answers that the machine computes in parallel. Each answer pays an equal share of `per_hour`."""
    looked_up: date
    source: str = ""

    def fits(self, generator: str) -> bool:
        """Return whether the rate applies to a generator, given its canonical spec."""
        settings = base.settings_of(generator)
        # Other service tiers have other prices, so only a pattern for the whole spec can match them.
        model = "" if _TIER in settings.get("extra", "") else settings.get("model", "")
        is_named = base.fits(self.match, model, generator)
        return is_named and (not self.url or _same_service(settings.get("url", ""), self.url))

    def price(self, *, tokens_in: float, tokens_out: float, cached: float, seconds: float) -> float:
        """Return the price of answers in US dollars. `tokens_in` includes the `cached` tokens."""
        tokens = (tokens_in - cached) * self.input + cached * self.cached + tokens_out * self.output
        return tokens / _MILLION + seconds / _HOUR * self.per_hour / self.at_once


@dataclass(frozen=True, slots=True)
class Prices:
    """A list of rates. The first that matches a generator applies."""

    rates: tuple[Rate, ...] = ()

    def rate(self, generator: str) -> Rate | None:
        """Return the rate of a generator, given its canonical spec; None if unknown."""
        return next((rate for rate in self.rates if rate.fits(generator)), None)

    def price(
        self, generator: str, *, tokens_in: float, tokens_out: float, cached: float, seconds: float
    ) -> float | None:
        """Return the price of a generator's answers in US dollars; None if its rate is unknown."""
        rate = self.rate(generator)
        if rate is None:
            return None
        return rate.price(tokens_in=tokens_in, tokens_out=tokens_out, cached=cached, seconds=seconds)

    def before(self, others: Sequence[Rate]) -> Prices:
        """Return these rates followed by `others`, which apply only if none of these matches."""
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
    """Return the rates that ship with ctxbench."""
    return _read(_BUILTIN)


def of_home(home: Home) -> Prices:
    """Return the rates in the home folder's ``prices.toml``, if it exists, followed by the built-in rates.

    Raises:
        InputFault: if the file cannot be read or is invalid.
    """
    path = home.root / FILE
    return load(path) if path.exists() else builtin()


def load(path: Path) -> Prices:
    """Return the rates in a file, followed by the built-in rates.

    Raises:
        InputFault: if the file cannot be read or is invalid; the message lists every fault.
    """
    return _read(path).before(builtin().rates)


def _read(path: Path) -> Prices:
    return Prices(tuple(map(_rate, base.read_tables(path, "rate", _faults, cure=_CURE))))


def _faults(table: Mapping[str, Any]) -> Iterator[str]:
    yield from base.unknown_keys(table, _KEYS)
    if not base.is_day(table.get("seen")):
        yield "seen must be a date such as 2026-11-21, without quotes"
    for key in _NUMBERS:
        if key in table and not _amount(table[key]):
            yield f"{key} must be a number of US dollars, 0 or more"
    at_once = table.get("at_once", 1)
    if not isinstance(at_once, int) or isinstance(at_once, bool) or at_once < 1:
        yield "at_once must be a whole number, 1 or more"
    for key in _TEXTS:
        if not isinstance(table.get(key, ""), str):
            yield f"{key} must be a string"
    yield from _apart(table.keys())


def _apart(keys: Collection[str]) -> Iterator[str]:
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
        match=base.patterns(table),
        looked_up=table["seen"],
        at_once=table.get("at_once", 1),
        url=table.get("url", ""),
        source=table.get("source", ""),
        **numbers,
    )
