"""Converts a run's completions into the records of prediction files that benchmarks' own scorers read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from sqlalchemy import select

from ctxbench.bench import formats
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import PredictionFiles, RecordedAnswer, RecordedSample
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.results import Origin
from ctxbench.harness.store import notes
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.runs import StoredRun, find_run
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import read_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A run with the texts of its completions."""

    run: StoredRun
    kinds: Mapping[str, str]
    texts: Mapping[str, tuple[RecordedAnswer, ...]]
    """Completions of each sample, by sample id and in the order of their index; without missing samples."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Ids of the planned samples without completions."""
        return tuple(sample for sample in self.kinds if sample not in self.texts)


def completed(store: Store, run_id: str) -> Completed:
    """Return the completions of a run, given its name, its id or the beginning of its id.

    Raises:
        InputFault: if several ids begin with `run_id`, or the run was stored without texts.
        UnknownName: if no run matches.
    """
    run = find_run(store, run_id)
    p, s, c, j, v = t.PLANNED_FACT.c, t.SAMPLE.c, t.COMPLETION_FACT.c, t.JUDGED_FACT.c, t.VERDICT.c
    planned = t.PLANNED_FACT.join(t.SAMPLE, p.sample == s.number)
    judged = (
        planned.join(t.COMPLETION_FACT, c.key == p.key)
        .outerjoin(t.JUDGED_FACT, (c.key == j.key) & (c.idx == j.idx))
        .outerjoin(t.VERDICT, j.verdict_key == v.key)
    )
    texts: dict[str, list[RecordedAnswer]] = {}
    with store.reading() as connection:
        source = notes.imports(connection, [run.id]).get(run.id)
        if source is not None and source.origin is Origin.REFERENCE:
            raise InputFault(
                f"the run {run.id} is a reference result, which has scores but no texts",
                cure="run its strategy yourself, and give that run",
            )
        kinds = select(s.id, s.kind).select_from(planned).where(p.run == t.run_number(run.id)).order_by(p.ordinal)
        ordered: dict[str, str] = dict(connection.execute(kinds).all())
        query = select(s.id, c.text, v.verdict, v.reason, v.flags).select_from(judged)
        query = query.where(p.run == t.run_number(run.id))
        for sample, text, verdict, reason, flags in connection.execute(query.order_by(p.ordinal, c.idx)):
            answer = RecordedAnswer(
                text=text,
                verdict=None if verdict is None else Verdict(verdict),
                reason=reason or "",
                reached=read_flags(flags),
            )
            texts.setdefault(sample, []).append(answer)
    return Completed(
        run=run,
        kinds=ordered,
        texts={sample: tuple(sample_texts) for sample, sample_texts in texts.items()},
    )


def rows(
    run: Completed, shape: str, sample_set: SampleSet | None = None, *, repeat: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield the prediction records of a run, in the order of its samples, without missing samples.

    Args:
        shape: name of a prediction format in `bench.formats.prediction_names`.
        sample_set: samples of the run; required if `needs_samples(shape)`.
        repeat: number of answers that the scorer expects per task. If the run has fewer, they are repeated.

    Raises:
        InputFault: if the format does not support the run; see `check`.
    """
    check(run, shape)
    form = formats.predictions(shape)
    tasks = formats.tasks(form, sample_set.samples, sample_set.references) if sample_set is not None else {}
    for sample_id in tasks or run.texts:
        if sample_id not in run.texts:
            continue
        answers = run.texts[sample_id]
        answers = tuple(islice(cycle(answers), max(repeat, len(answers))))
        recorded = RecordedSample(
            where="", task=sample_id, answers=answers, strategy=run.run.strategy, generator=run.run.generator
        )
        yield from form.write(recorded, tasks.get(sample_id, {}))


def needs_samples(shape: str) -> bool:
    """Return whether a format's records need the samples themselves, not only their ids."""
    form = formats.predictions(shape)
    return form.tasks is not None


def check(run: Completed, shape: str) -> None:
    """Check that a prediction format supports a run's samples and completions.

    Raises:
        InputFault: if the run has no completions, or its kind of samples or number of completions is unsupported.
    """
    form = formats.predictions(shape)
    odd = next((sample for sample, kind in run.kinds.items() if form.kind not in (None, kind)), None)
    if odd is not None:
        raise InputFault(
            f"{odd!r} is a {run.kinds[odd]} sample, but the format {shape} is for {form.kind} samples",
            cure="choose another --format; the format ctxbench accepts both kinds",
        )
    if not run.run.n:
        raise InputFault(
            f"the run {run.run.id} has no completions, because no model was asked",
            cure="choose --format inspect or every-eval-ever",
        )
    if form.single and run.run.n > 1:
        others = (name for name in formats.prediction_names() if _takes_several(formats.predictions(name), form.kind))
        raise InputFault(
            f"the run {run.run.id} has {run.run.n} completions per sample, but the format {shape} allows only one",
            cure=f"choose --format {' or '.join(others)}",
        )


def _takes_several(form: PredictionFiles, kind: Kind | None) -> bool:
    return not form.single and form.kind in (None, kind)
