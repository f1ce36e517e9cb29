"""Presets: a name for each row of the papers' tables, which stands for a strategy with its parameters.

A preset may be given wherever a strategy is: ``icl-t1-rag``, ``icl-t1-rag(encoder=minilm)``,
``ic-t4-projbench-py-uer+releaseB``.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.retrieval.retrieval import LEXICAL
from ctxbench.bench.spec import Spec, Value
from ctxbench.harness.papers.tables import PaperRow, rows

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
