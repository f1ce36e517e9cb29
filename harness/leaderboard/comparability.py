"""Warnings that runs differ in more than their strategy: in decoding, versions, load or samples. Pure text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ctxbench.bench.code_tokens import P50K_BASE
from ctxbench.harness.leaderboard.rows import Group
from ctxbench.harness.results import RunInfo

_MADE_BY = ("generator", "coder", "tokenizer", "ctxbench")
"""Whose versions rows should share; that of a strategy is its own."""
_OF_GENERATOR = ("generator", "coder")
_LONGEST = 40
"""Characters of a version that are shown: enough of a digest."""
_ALWAYS = ("completions", "temperature")


def group_warnings(group: Group) -> list[str]:
    """Say where rows were decoded or timed differently, were made by different versions, or have other samples."""
    runs = [row.run for row in group.rows]
    return [*run_warnings(runs), *_loads(runs), *_samples(group)]


def run_warnings(runs: Sequence[RunInfo]) -> list[str]:
    """Say where runs were decoded differently or were made by different versions; of a strategy too if it is one."""
    return [*_decoding(runs), *_versions(runs)]


def load_of(runs: Sequence[RunInfo]) -> str:
    """Say under which load the seconds of runs were measured, if it is one, or that nobody knows; empty if neither."""
    loads = {load for run in _timed(runs) for load in run.loads}
    if len(loads) != 1:
        return ""
    [load] = loads
    if load is None:
        return "Nobody noted how much was done at once when these seconds were measured."
    return f"Seconds were measured with {load}; what else the machines did meanwhile is not known."


def coders_of(runs: Sequence[RunInfo]) -> list[str]:
    """Return who measured the bits of runs: those of two models are two units, and are not compared."""
    return sorted({run.versions.get("coder", "") for run in runs})


def bits_apart(runs: Sequence[RunInfo]) -> list[str]:
    """Say why a comparison leaves out what is measured in bits, if it does."""
    model_versions = list(filter(None, coders_of(runs)))
    if len(model_versions) < 2:
        return []
    return [
        "Bits are left out, because different models measured them, and theirs are two units: "
        f"{', '.join(model_versions)}."
    ]


def _decoding(runs: Sequence[RunInfo]) -> list[str]:
    decodings = [(run.strategy, _decoded(run)) for run in runs if run.sampling]
    differ = _differing([decoded for _, decoded in decodings])
    if any(run.repetitions for run in runs):
        # With several seeds a row, which ones is chance, and part of the interval.
        differ = [name for name in differ if name != "seed"]
    if not differ:
        return []
    how = "; ".join(f"{strategy} {_how(decoded, differ)}" for strategy, decoded in decodings)
    return [f"Runs were decoded in different ways, which their differences include: {how}."]


def _decoded(run: RunInfo) -> dict[str, Any]:
    return {"completions": run.completions, "temperature": 0.0, **json.loads(run.sampling)}


def _how(decoded: dict[str, Any], differ: list[str]) -> str:
    more = [f", {name} {json.dumps(decoded.get(name))}" for name in differ if name not in _ALWAYS]
    return f"{decoded['completions']} a sample at temperature {decoded['temperature']:g}{''.join(more)}"


def _versions(runs: Sequence[RunInfo]) -> list[str]:
    names: tuple[str, ...] = (*_MADE_BY, "strategy") if len({run.strategy for run in runs}) == 1 else _MADE_BY
    if len({run.generator for run in runs}) > 1:
        names = tuple(name for name in names if name not in _OF_GENERATOR)
    if any(run.versions.get("tokenizer") == P50K_BASE for run in runs):
        # A user's choice, which the generators' labels tell.
        names = tuple(name for name in names if name != "tokenizer")
    versions = [{name: run.versions[name][:_LONGEST] for name in names if name in run.versions} for run in runs]
    differ = [
        name for name in names if len({run_versions[name] for run_versions in versions if name in run_versions}) > 1
    ]
    if not differ:
        return []
    descriptions = [
        f"{run.strategy} ({', '.join(f'{name} {run_versions[name]}' for name in differ if name in run_versions)})"
        for run, run_versions in zip(runs, versions, strict=True)
        if run_versions.keys() & set(differ)
    ]
    return [
        f"Runs were made by different versions, which their differences include: {'; '.join(descriptions)}. "
        "Cure: run the older ones again."
    ]


def _timed(runs: Sequence[RunInfo]) -> list[RunInfo]:
    return [run for run in runs if run.loads and not run.control]


def _loads(runs: Sequence[RunInfo]) -> list[str]:
    timed = _timed(runs)
    if len({load for run in timed for load in run.loads}) < 2:
        return []
    how = "; ".join(
        f"{run.strategy} {', then '.join('nobody noted which' if load is None else str(load) for load in run.loads)}"
        for run in timed
    )
    return [f"Seconds were measured under different loads, and cannot be compared: {how}."]


def _samples(group: Group) -> list[str]:
    counts = {row.run.id: row.metrics[group.metric].n for row in group.rows if group.metric in row.metrics}
    ranked = [row for row in group.rows if row.rank_low is not None and row.run.id in counts]
    # Equally many are the same ones if the pairs with the baseline have as many.
    common = {row.difference[group.metric].n_common for row in ranked if group.metric in row.difference}
    if len({counts[row.run.id] for row in ranked} | common) < 2:
        return []
    sample_counts = ", ".join(f"{row.run.strategy} {counts[row.run.id]}" for row in ranked)
    pairs = "; differences, p and ranks are over the samples that both of a pair have" if group.family.pairs else ""
    return [
        f"Not every row has {group.metric} at the same samples, and means are over a row's own ({sample_counts})"
        f"{pairs}."
    ]


def _differing(settings: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [name for name in names if len({json.dumps(setting.get(name)) for setting in settings}) > 1]
