"""Rates of models and the prices that follow from them, in US dollars. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from ctxbench.bench.errors import InputFault

_MILLION = 1_000_000
_HOUR = 3600.0
_TIER = "service_tier"
"""The field of a request that asks for a cheaper or a faster service."""


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
        model, url = _model(generator)
        named = any(fnmatchcase(name, pattern) for pattern in self.match for name in (model, generator) if name)
        return named and (not self.url or _same_service(url, self.url))

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


def _model(generator: str) -> tuple[str, str]:
    """Return a generator's model and the address that it is asked at; empty where its spec has none.

    A model in another tier of a service has no name of its own here, for it has another price: only a pattern for the
    whole spec can fit it.
    """
    # Not at the top: `Prices` is read where no generator is made.
    from ctxbench.harness.generators import registry  # noqa: PLC0415
    from ctxbench.harness.generators.openai.settings import OFFICIAL  # noqa: PLC0415

    try:
        parsed = registry.read(generator)
    except InputFault:
        # Labels of imported runs need not be specs.
        return "", ""
    default = OFFICIAL if parsed.name == "openai" else ""
    model = "" if _TIER in str(parsed.arguments.get("extra", "")) else str(parsed.arguments.get("model", ""))
    return model, str(parsed.arguments.get("url", default))


def _same_service(url: str, service: str) -> bool:
    try:
        asked_url, service_url = urlsplit(url), urlsplit(service)
    except ValueError:
        return False
    same_host = (asked_url.scheme, asked_url.netloc) == (service_url.scheme, service_url.netloc)
    return same_host and asked_url.path.startswith(service_url.path)
