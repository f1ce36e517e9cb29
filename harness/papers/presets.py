"""Presets: a name for each row of the papers' tables, which stands for a strategy with its parameters.

A preset may be given wherever a strategy is: ``icl-t1-rag``, ``icl-t1-rag(encoder=minilm)``,
``ic-t4-projbench-py-uer+releaseB``.

What the strategies have in common with what the papers ran, and what stays different, is written down in
``fidelity.toml``; `ctxbench reproduce` states the differences above a table.
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
from ctxbench.bench.spec import Spec, Value
from ctxbench.harness.paper_tables import PaperRow, rows

RELEASE_B: Mapping[str, Value] = {"ue_quirks": True, "q2_lines": "first", "q2_partial": "drop"}
"""The parameters of the twin ``+releaseB``: the oddities of InferCom's later code, as far as a view allows them.

That code also takes functions behind the cursor for candidates and skips long prompts; no view shows what stands
behind the cursor, and no sample is ever skipped, so neither can be switched on.
"""
_OF_ITS_ENCODER = ("query_tokens",)
"""Parameters that follow from what an encoder reads; another encoder gets the strategy's default."""
_FAMILIES = ("icl-t", "ic-t", "ic-s")


@functools.cache
def presets() -> Mapping[str, PaperRow]:
    """Return preset -> its row, in the papers' order."""
    return {row.preset: row for row in rows()}


def spec_of(text: str) -> str:
    """Return the strategy's spec that `text` stands for: a preset's, or `text` itself if it names none.

    Raises:
        UnknownName: if it begins as presets do and is none.
        InputFault: if its row has no strategy, it has no such twin, or a parameter is not readable.
    """
    name = text.strip().partition("(")[0].strip()
    base, _, twin = name.partition("+")
    row = presets().get(base)
    if row is None:
        if name.startswith(_FAMILIES):
            raise UnknownName("preset", name, presets(), command="ctxbench strategy list --presets")
        return text
    if not row.strategy:
        raise InputFault(
            f"{name} is an external row: the paper quotes its numbers, and no strategy here computes them",
            cure="see it with `ctxbench reproduce`, run another preset",
        )
    strategy = specs.parse(row.strategy)
    if twin:
        strategy = _twin(strategy, name, twin)
    arguments = specs.parse(text).arguments
    if "encoder" in arguments:
        strategy = with_encoder(strategy, str(arguments["encoder"]))
    return str(Spec(strategy.name, {**strategy.arguments, **arguments}))


def with_encoder(spec: Spec, encoder: str, *, keep: Collection[str] = ()) -> Spec:
    """Return a spec in which every encoder, those of wrapped strategies too, is `encoder`, unless it is in `keep`."""
    arguments = dict(spec.arguments)
    if "inner" in arguments:
        arguments["inner"] = str(with_encoder(specs.parse(str(arguments["inner"])), encoder, keep=keep))
    if "encoder" in arguments and arguments["encoder"] not in (encoder, *keep):
        arguments = {key: value for key, value in arguments.items() if key not in _OF_ITS_ENCODER}
        arguments["encoder"] = encoder
    return Spec(spec.name, arguments)


def encoders_of(spec: Spec) -> tuple[str, ...]:
    """Return the encoders that a spec and those it wraps name, without lexical rankers."""
    own = [str(spec.arguments["encoder"])] if "encoder" in spec.arguments else []
    inner = encoders_of(specs.parse(str(spec.arguments["inner"]))) if "inner" in spec.arguments else ()
    return tuple(dict.fromkeys(encoder for encoder in (*own, *inner) if specs.parse(encoder).name not in LEXICAL))


def _twin(spec: Spec, name: str, twin: str) -> Spec:
    if twin == "leaky":
        raise InputFault(
            f"{name}: whether copies of the answer can be retrieved is no matter of the strategy but of the samples",
            cure=f"run {name.partition('+')[0]} on samples that were imported with --hygiene off",
        )
    changed = _released(spec) if twin == "releaseB" else spec
    if changed == spec:
        raise InputFault(f"{name}: {spec.name} has no twin +{twin}", cure=f"run {name.partition('+')[0]}")
    return changed


def _released(spec: Spec) -> Spec:
    """Switch on what the strategy has of `RELEASE_B`, in a wrapped one too."""
    from ctxbench.strategies import registry  # noqa: PLC0415 - it imports the strategy, and a list of presets needs none

    parameter_names = {parameter.name for parameter in registry.get(spec.name).parameters}
    arguments = {**spec.arguments, **{key: value for key, value in RELEASE_B.items() if key in parameter_names}}
    if "inner" in arguments:
        arguments["inner"] = str(_released(specs.parse(str(arguments["inner"]))))
    return Spec(spec.name, arguments)


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
    return (parsed.name, *names_in(str(parsed.arguments.get("inner", ""))))


def differences(strategies: Iterable[str]) -> list[Fidelity]:
    """Return what is about any of the strategies, given by their specs."""
    names = {name for spec in strategies for name in names_in(spec)}
    return [method for method in methods() if any(method.covers(name) for name in names)]
