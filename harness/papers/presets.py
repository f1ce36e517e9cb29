"""Presets: names such as ``icl-t1-rag`` for rows of papers' tables. A preset selects a strategy with its parameters.

Commands that run or show strategies accept presets. ``fidelity.toml`` lists how strategies differ from what the
papers ran.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.retrieval.retrieval import LEXICAL
from ctxbench.bench.spec import Spec
from ctxbench.harness.paper_tables import PaperRow, rows

_OF_ITS_ENCODER = ("query_tokens",)
"""Parameters that depend on the encoder. With another encoder, the strategy's default applies."""
_FAMILIES = ("icl-t", "ic-t", "ic-s")


@functools.cache
def presets() -> Mapping[str, PaperRow]:
    """Return the rows of papers' tables by preset, in the papers' order."""
    return {row.preset: row for row in rows()}


def spec_of(text: str) -> str:
    """Return the strategy spec of a preset, or `text` itself if it does not name a preset.

    Raises:
        UnknownName: if the name looks like a preset but is unknown.
        InputFault: if the row has no strategy, or the parameters of a preset are not valid syntax.
    """
    name = text.strip().partition("(")[0].strip()
    row = presets().get(name)
    if row is None:
        if name.startswith(_FAMILIES):
            raise UnknownName("preset", name, presets(), command="ctxbench strategy list --presets")
        return text
    if not row.strategy:
        raise InputFault(
            f"{name} is an external row, whose numbers the paper quotes; ctxbench has no strategy for it",
            cure="see the row with `ctxbench reproduce`, or run another preset",
        )
    strategy = specs.parse(row.strategy)
    arguments = specs.parse(text).arguments
    if "encoder" in arguments:
        strategy = with_encoder(strategy, str(arguments["encoder"]))
    return str(Spec(strategy.name, {**strategy.arguments, **arguments}))


def with_encoder(spec: Spec, encoder: str, *, keep: Collection[str] = ()) -> Spec:
    """Replace all encoders in a spec, also in wrapped strategies, by `encoder`, except those in `keep`."""
    arguments = dict(spec.arguments)
    if "inner" in arguments:
        arguments["inner"] = str(with_encoder(specs.parse(str(arguments["inner"])), encoder, keep=keep))
    if "encoder" in arguments and arguments["encoder"] not in (encoder, *keep):
        arguments = {key: value for key, value in arguments.items() if key not in _OF_ITS_ENCODER}
        arguments["encoder"] = encoder
    return Spec(spec.name, arguments)


def encoders_of(spec: Spec) -> tuple[str, ...]:
    """Return the encoders of a spec and of the specs it wraps, without lexical rankers."""
    own = [str(spec.arguments["encoder"])] if "encoder" in spec.arguments else []
    inner = encoders_of(specs.parse(str(spec.arguments["inner"]))) if "inner" in spec.arguments else ()
    return tuple(dict.fromkeys(encoder for encoder in (*own, *inner) if specs.parse(encoder).name not in LEXICAL))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDifference:
    """A difference between a strategy of ctxbench and its paper."""

    what: str
    switch: str = ""
    """Parameter or option that removes the difference; may be empty."""
    comes_to: tuple[str, ...] = ()
    """Measured effects of the difference on real sample sets; may be empty."""

    def __str__(self) -> str:
        return f"{self.what} ({self.switch})" if self.switch else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """A comparison of a strategy of ctxbench, or a family of strategies, with its paper."""

    name: str
    """Name of the strategy, or prefix of the family (``icl.``)."""
    also: tuple[str, ...] = ()
    paper: str
    program: str
    """Released program, possibly with files and lines; empty if none was released."""
    equal: str
    differs: tuple[PaperDifference, ...]
    measured: tuple[str, ...] = ()
    """Measured effects of following the paper, on a real sample set; may be empty."""

    @property
    def title(self) -> str:
        """Name of the strategy, or of the family with an asterisk."""
        return f"{self.name}*" if self.name.endswith(".") else self.name

    def covers(self, strategy: str) -> bool:
        """Return whether the comparison covers the strategy with this name."""
        return strategy in (self.name, *self.also) or (self.name.endswith(".") and strategy.startswith(self.name))


@functools.cache
def methods() -> tuple[Fidelity, ...]:
    """Return all comparisons of strategies with their papers, families before their members."""
    text = files("ctxbench.harness.papers").joinpath("fidelity.toml").read_text(encoding="utf-8")
    return tuple(_method(name, entry) for name, entry in tomllib.loads(text).items())


def _method(name: str, entry: Mapping[str, Any]) -> Fidelity:
    differs = tuple(PaperDifference(**_frozen(difference)) for difference in entry["differs"])
    return Fidelity(name=name, **{**_frozen(entry), "differs": differs})


def _frozen(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def names_in(spec: str) -> tuple[str, ...]:
    """Return the names of a spec's strategy and the strategies it wraps; empty for an empty spec."""
    if not spec:
        return ()
    parsed = specs.parse(spec)
    return (parsed.name, *names_in(str(parsed.arguments.get("inner", ""))))


def differences(strategies: Iterable[str]) -> list[Fidelity]:
    """Return the comparisons that cover any of the strategies, given by their specs."""
    names = {name for spec in strategies for name in names_in(spec)}
    return [method for method in methods() if any(method.covers(name) for name in names)]
