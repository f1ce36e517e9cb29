"""Files in the shapes of benchmarks, samples and predictions, in and out: one module a benchmark.

A format is a `BenchmarkFormat` that a module registers (`register`); modules are found through the entry-point group
``ctxbench.formats``, ours and anyone's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.formats.types import BenchmarkFormat, PredictionFiles, SampleFiles
from ctxbench.bench.registry import Registry, origin_of
from ctxbench.bench.types import Reference, Sample

_REGISTRY: Registry[BenchmarkFormat] = Registry(
    "format", group="ctxbench.formats", command="ctxbench samples import --help"
)


def register(form: BenchmarkFormat) -> BenchmarkFormat:
    """Register a format under its name.

    Raises:
        InputFault: if the name is taken, or the format has neither samples nor predictions.
    """
    files = form.samples or form.predictions
    if files is None:
        raise InputFault("it has neither samples nor predictions", where=f"format {form.name}", cure="give one of them")
    return _REGISTRY.add(form.name, form, origin=origin_of(files.read))


def names() -> tuple[str, ...]:
    """Return the names of all installed formats, sorted; imports none."""
    return _REGISTRY.names()


def sample_names() -> tuple[str, ...]:
    """Return the names of the formats of samples, sorted; those that cannot be imported are left out."""
    return tuple(name for name in names() if (form := _importable(name)) and form.samples)


def prediction_names() -> tuple[str, ...]:
    """Return the names of the formats of predictions, sorted; those that cannot be imported are left out."""
    return tuple(name for name in names() if (form := _importable(name)) and form.predictions)


def samples(name: str) -> SampleFiles:
    """Return the format of samples called `name`.

    Raises:
        UnknownName: if there is none.
        InputFault: if its plug-in cannot be imported.
    """
    files = _REGISTRY.get(name).samples
    if files is None:
        raise UnknownName("format of samples", name, sample_names(), command="ctxbench samples import --help")
    return files


def predictions(name: str) -> PredictionFiles:
    """Return the format of predictions called `name`.

    Raises:
        UnknownName: if there is none.
        InputFault: if its plug-in cannot be imported.
    """
    files = _REGISTRY.get(name).predictions
    if files is None:
        raise UnknownName("format of predictions", name, prediction_names(), command="ctxbench results import --help")
    return files


def tasks(
    form: PredictionFiles, of: Sequence[Sample], references: Mapping[str, Reference]
) -> dict[str, dict[str, Any]]:
    """Return sample id -> the record of its task, which predictions refer to; empty if they use the set's ids.

    Raises:
        InputFault: if the tasks' format has no place for one of the samples.
    """
    if form.tasks is None:
        return {}
    records = samples(form.tasks(of)).records(of, references)
    return {sample.id: record for sample, record in zip(of, records, strict=True)}


def _importable(name: str) -> BenchmarkFormat | None:
    try:
        return _REGISTRY.get(name)
    except InputFault:
        return None
