"""Writes a run's completions as prediction files that official benchmark scorers read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from ctxbench.bench import formats
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import PredictionFiles, RecordedAnswer, RecordedSample
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.store.runs import Completed, Text


def rows(
    run: Completed, shape: str, sample_set: SampleSet | None = None, *, repeat: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield one prediction record per sample, in the plan's order, without missing samples.

    Args:
        shape: name of a prediction format in `bench.formats.prediction_names`.
        sample_set: samples of the run; required if `needs_samples(shape)`.
        repeat: answers that the scorer expects per task. If the run has fewer, they are repeated.

    Raises:
        InputFault: if the format does not support the samples' kind, or several completions per sample.
    """
    check(run, shape)
    form = formats.predictions(shape)
    tasks = formats.tasks(form, sample_set.samples, sample_set.references) if sample_set is not None else {}
    for sample_id in tasks or run.texts:
        if sample_id not in run.texts:
            continue
        answers = [_answer(text) for text in run.texts[sample_id]]
        answers = list(islice(cycle(answers), max(repeat, len(answers))))
        recorded = RecordedSample(
            where="", task=sample_id, answers=tuple(answers), strategy=run.run.strategy, generator=run.run.generator
        )
        yield from form.write(recorded, tasks.get(sample_id, {}))


def needs_samples(shape: str) -> bool:
    """Return whether a format's records need the samples themselves, not only their ids."""
    form = formats.predictions(shape)
    return form.tasks is not None


def check(run: Completed, shape: str) -> None:
    """Check that a prediction format supports a run's samples and completions.

    Raises:
        InputFault: if the format is for another kind of sample, or for one completion per sample.
    """
    form = formats.predictions(shape)
    odd = next((sample for sample, kind in run.kinds.items() if form.kind not in (None, kind)), None)
    if odd is not None:
        raise InputFault(
            f"{odd!r} is a {run.kinds[odd]} sample, but the format {shape} is for {form.kind} samples",
            cure="choose another --format; ctxbench accepts every run",
        )
    if not run.run.n:
        raise InputFault(
            f"the run {run.run.id} has no completions, as no model was asked",
            cure="choose --format inspect, parquet or every-eval-ever",
        )
    if form.single and run.run.n > 1:
        others = (name for name in formats.prediction_names() if _takes_several(formats.predictions(name), form.kind))
        raise InputFault(
            f"the run {run.run.id} has {run.run.n} completions per sample, but the format {shape} allows only one",
            cure=f"choose --format {' or '.join(others)}",
        )


def _takes_several(form: PredictionFiles, kind: Kind | None) -> bool:
    return not form.single and form.kind in (None, kind)


def _answer(text: Text) -> RecordedAnswer:
    return RecordedAnswer(
        text=text.text,
        verdict=None if text.verdict is None else Verdict(text.verdict),
        reason=text.reason,
        reached=text.flags,
    )
