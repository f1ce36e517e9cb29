"""What the strategies of the papers' tables have in common with what the papers ran, and what stays different.

Written down in ``fidelity.toml``; `ctxbench reproduce` states the differences above a table.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ctxbench.bench import spec as specs

TOKENIZER_OPTION = "--tokenizer"
"""The switch of the difference that a run with budgets in p50k_base has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDifference:
    """What a strategy does otherwise than its paper."""

    what: str
    switch: str = ""
    """The parameter or option that takes it away; empty if none does."""
    comes_to: tuple[str, ...] = ()
    """What that changes, on a real sample set."""

    def __str__(self) -> str:
        return f"{self.what} ({self.switch})" if self.switch else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """One strategy beside its paper, or a family of them."""

    name: str
    """A strategy's, or the beginning of the names of a family (``icl.``)."""
    also: tuple[str, ...] = ()
    """Other strategies of which all of it holds."""
    paper: str
    """Its section, table or figure."""
    program: str
    """What was released of it, with files and lines; empty if nothing was."""
    equal: str
    differs: tuple[PaperDifference, ...]
    measured: tuple[str, ...] = ()
    """What comes of a choice that is as in the paper, on a real sample set."""

    @property
    def title(self) -> str:
        """What it is about: a strategy's name, or a family's with an asterisk."""
        return f"{self.name}*" if self.name.endswith(".") else self.name

    def covers(self, strategy: str) -> bool:
        """Say whether it is about a strategy, given by its name."""
        return strategy in (self.name, *self.also) or (self.name.endswith(".") and strategy.startswith(self.name))


@functools.cache
def methods() -> tuple[Fidelity, ...]:
    """Return all, families before their members."""
    text = files("ctxbench.harness.papers").joinpath("fidelity.toml").read_text(encoding="utf-8")
    return tuple(_method(name, entry) for name, entry in tomllib.loads(text).items())


def _method(name: str, entry: Mapping[str, Any]) -> Fidelity:
    differs = tuple(PaperDifference(**_frozen(difference)) for difference in entry["differs"])
    return Fidelity(name=name, **{**_frozen(entry), "differs": differs})


def _frozen(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def names_in(spec: str) -> tuple[str, ...]:
    """Return the names of a spec's strategy and of those it wraps; none of an empty one."""
    if not spec:
        return ()
    parsed = specs.parse(spec)
    inner = parsed.arguments.get("inner")
    return (parsed.name, *(names_in(str(inner)) if inner is not None else ()))


def differences(strategies: Iterable[str]) -> list[Fidelity]:
    """Return what is about any of the strategies, given by their specs."""
    names = {name for spec in strategies for name in names_in(spec)}
    return [method for method in methods() if any(method.covers(name) for name in names)]
