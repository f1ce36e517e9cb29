"""Queries on stored runs. The number of SQL statements does not depend on the number of samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, func, select

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import project_of
from ctxbench.harness.metrics import BLOCK_GAIN, DEFAULT
from ctxbench.harness.prices import Prices
from ctxbench.harness.results import (
    ACCESS,
    ALWAYS,
    PRICE,
    SUMMARY_COSTS,
    Load,
    Origin,
    RunInfo,
    RunTable,
    drop_incomplete_columns,
    left_out,
)
from ctxbench.harness.store import notes
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.database import garbage_collection_paused
from ctxbench.harness.store.notes import names
from ctxbench.harness.store.samples import PlannedSamples, Values, measures, planned_samples, stored_scores
from ctxbench.harness.store.scores import (
    Costs,
    Counts,
    EngineCosts,
    costs_of,
    engine_costs,
    mean_gains,
    pass_columns,
    verdict_counts,
)
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.work import JUDGING, loads_of
from ctxbench.harness.store.write import spec_of
from ctxbench.strategies.registry import is_control

SET_BACK = "restore the set as it was at the time of the run"
_GIVE_SET = "name the run's own set with --samples; if that set has changed, restore it"
"""Advice for a changed sample set, for commands with --samples. `SET_BACK` is the advice for commands without it."""
_FIELDS = ("context_tokens", "calls")
_TOKENS = ("tokens_in", "tokens_out", "tokens_cached")
CONTEXT = "context"
"""Profile of context gain, bits and diagnostics. Every table contains its metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A stored run's id and the choices that define it."""

    id: str
    samples: str
    samples_digest: str
    strategy: str
    generator: str
    label: str
    coder: str
    n: int


def _stored_run(row: Any) -> StoredRun:
    spec, names = spec_of(row), ("samples", "samples_digest", "strategy", "generator", "coder", "n")
    return StoredRun(id=row.id, label=spec.shown_generator, **{name: getattr(spec, name) for name in names})


def find_run(store: Store, run_id: str) -> StoredRun:
    """Return the run with this name or id, or the only run whose id begins with it.

    Raises:
        InputFault: if several ids begin with `run_id`.
        UnknownName: if no run matches.
    """
    with store.reading() as connection:
        runs_by_id = {row.id: row for row in connection.execute(select(t.RUN).order_by(t.RUN.c.id))}
        ids_by_name = {name: run for run, name in names(connection).items()}
    named = ids_by_name.get(run_id) if run_id not in runs_by_id else None
    return _stored_run(runs_by_id[named or whole_id(run_id, runs_by_id)])


def runs_over(store: Store, digest: str, samples: str) -> list[StoredRun]:
    """Return the runs over samples with this set digest and displayed name, sorted by strategy, generator and id."""
    query = select(t.RUN).where(t.RUN.c.samples_digest == digest)
    with store.reading() as connection:
        runs = [_stored_run(row) for row in connection.execute(query) if samples == spec_of(row).shown_samples]
    return sorted(runs, key=lambda run: (run.strategy, run.label, run.id))


def whole_id(run_id: str, ids: Collection[str]) -> str:
    """Return the id in `ids` that equals `run_id`, or the only id that begins with `run_id`; raises like `find_run`."""
    matches = [id_ for id_ in ids if id_ == run_id] or [id_ for id_ in ids if id_.startswith(run_id)]
    if not matches:
        raise UnknownName("stored run", run_id, ids, command="ctxbench runs")
    if len(matches) > 1:
        raise InputFault(
            f"{len(matches)} run ids begin with {run_id!r}", cure=f"give more of the id: {', '.join(sorted(matches))}"
        )
    return matches[0]


def check_set(run: str, digest: str, sample_set: SampleSet, *, cure: str = _GIVE_SET) -> None:
    """Check that a sample set equals the set that a run used.

    Raises:
        InputFault: if the digests differ.
    """
    if digest != sample_set.digest:
        raise InputFault(
            f"the run {run} used other samples than those of the set {sample_set.name!r}",
            cure=cure,
        )


def _sorted(runs: Iterable[Any]) -> list[Any]:
    """Sort in Python, because a server's ORDER BY depends on its locale."""
    return sorted(runs, key=lambda run: (run.samples, run.strategy, run.generator, run.id))


def _begun(connection: Connection) -> dict[str, float]:
    """Return run -> start of its latest attempt, in seconds since 1970. Attempts that only ran tests are ignored."""
    a = t.ATTEMPT.c
    query = select(a.run_id, func.max(a.started)).where(~a.isolation.startswith(JUDGING)).group_by(a.run_id)
    return dict(connection.execute(query).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """A selection of runs and samples. A field with the value None restricts nothing."""

    id: str | None = None

    samples: str | None = None
    """Displayed name of the sample set: ``demo``, or ``demo[:10]`` for runs limited to ten of its samples."""
    digest: str | None = None
    language: str | None = None
    generator: str | None = None
    """Displayed name of the generator, as in `RunInfo.generator`."""
    strict: bool = False
    """Whether only passes without flags count as passes."""

    def has(self, run: Any) -> bool:
        """Return whether the filter accepts a run, given as a database row. The language restricts only samples."""
        spec = spec_of(run)
        actual = (run.id, spec.shown_samples, spec.samples_digest, spec.shown_generator)
        choices = (self.id, self.samples, self.digest, self.generator)
        return all(choice in (None, name) for choice, name in zip(choices, actual, strict=True))


def run_tables(
    store: Store,
    *,
    samples: str | None = None,
    profile: str = "ctxbench",
    ks: Collection[int] = (),
    invalid: Literal["exclude", "include"] = "exclude",
    prices: Prices | None = None,
    selection: RunFilter | None = None,
) -> list[RunTable]:
    """Return the stored runs as tables, one per run and language, sorted by set, strategy, generator and start.

    A function counts as missing until all its completions are judged. For imported runs, context tokens, calls, times
    and costs are unknown. For reference results, times and all costs except tokens are unknown.

    Args:
        samples: name of a sample set, including its limited runs; None for all.
        profile: the profile of the metrics. Metrics of `CONTEXT` and pass@k are always included. Several completions of
            a sample are averaged.
        ks: values of k in addition to `KS`, used for runs with at least k completions per sample.
        invalid: ``include`` to count invalid samples (broken or vacuous). The columns always contain their values.
        prices: rates to apply to the stored tokens; None for the prices at the time of the run.
        selection: the runs and samples to read; None for all.
    """
    run_filter = selection or RunFilter()
    with garbage_collection_paused(), store.reading() as connection:
        query = select(t.RUN) if samples is None else select(t.RUN).where(t.RUN.c.samples == samples)
        run_rows = [run for run in _sorted(connection.execute(query)) if run_filter.has(run)]
        begun = _begun(connection)
        # A run's id is a digest, so ids do not show which of two runs is newer.
        run_rows.sort(key=lambda run: (run.samples, run.strategy, run.generator, begun.get(run.id, 0.0)))
        costs = costs_of(connection, run_rows, prices)
        columns = _run_columns(
            connection, run_rows, begun, costs, profile, ks, run_filter, exclude=invalid == "exclude"
        )
        return [table for run in columns for table in run.tables(run_filter.language)]


def _run_columns(
    connection: Connection,
    run_rows: Sequence[Any],
    begun: Mapping[str, float],
    costs: Mapping[str, Costs],
    profile: str,
    ks: Collection[int],
    run_filter: RunFilter,
    *,
    exclude: bool,
) -> Iterator[RunColumns]:
    ids = [run.id for run in run_rows]
    counts = verdict_counts(connection, ids, strict=run_filter.strict)
    gains = mean_gains(connection, ids)
    imported, remarks, cutoffs = (
        notes.imports(connection, ids),
        notes.remarks(connection, ids, strict=run_filter.strict),
        notes.cutoffs(connection),
    )
    loads, engines = loads_of(connection, ids), engine_costs(connection, ids)
    marks = notes.invalid_samples(connection, (run.samples_digest for run in run_rows))
    plans = planned_samples(connection, [(run.id, run.samples_digest) for run in run_rows])
    metrics = measures(connection, (profile, CONTEXT))
    for run, plan in zip(run_rows, plans, strict=True):
        verdicts = counts.get(run.id, {})
        values: Mapping[str, Values] = stored_scores(connection, metrics, run.id, plan, run_filter.language)
        run_remarks = remarks[run.id]
        if left_out(run_remarks):
            scores = measures(connection, (DEFAULT,))
            own = values if profile == DEFAULT else stored_scores(connection, scores, run.id, plan, run_filter.language)
            scored = own.get(ALWAYS, {}).keys()
            values, run_remarks = drop_incomplete_columns(values, scored, run_remarks, profile=profile)
        values = dict(values)
        values |= pass_columns(verdicts, run.n, ks)
        values |= {BLOCK_GAIN: gains[run.id]} if run.id in gains else {}
        yield RunColumns(
            run=run,
            profile=profile,
            samples=plan,
            values=values,
            verdicts=verdicts,
            marks=marks.get(run.samples_digest, {}),
            exclude=exclude,
            costs=costs[run.id],
            origin=imported[run.id].origin if run.id in imported else Origin.RUN,
            loads=loads.get(run.id, ()),
            remarks=run_remarks,
            cutoff=cutoffs.get(run.generator),
            began=begun.get(run.id, 0.0),
            engines=engines.get(run.id, {}),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumns:
    """A run's stored data, from which its leaderboard tables are built."""

    run: Any
    profile: str
    samples: PlannedSamples
    values: Mapping[str, Values]
    verdicts: Counts
    marks: Mapping[str, str]
    """Marks of the invalid samples, such as ``broken``, by sample id."""
    exclude: bool
    costs: Costs
    origin: Origin
    loads: tuple[Load | None, ...]
    remarks: tuple[str, ...]
    cutoff: str | None
    """Last training day of the generator's model, as in `RunInfo.cutoff`."""
    began: float
    engines: EngineCosts

    def tables(self, language: str | None = None) -> list[RunTable]:
        """Return one table per language, sorted by language. With `language`, return only its table."""
        languages = {facts.language for facts in self.samples.kinds}
        return [self._table(name) for name in sorted(languages) if language in (None, name)]

    def _table(self, language: str) -> RunTable:
        samples = self.samples.among(language)
        ids = samples.id
        unknown = (None,) * len(ids)
        columns = {metric: tuple(map(of_sample.get, ids)) for metric, of_sample in sorted(self.values.items())}
        return RunTable(
            run=self._info(samples, language),
            sample=ids,
            # Versions of one project are as similar as its files, so they form one cluster.
            repo=tuple([project_of(facts.repo) for facts in samples.facts]),
            path=tuple([facts.path for facts in samples.facts]),
            level=tuple([facts.level for facts in samples.facts]),
            status=samples.status(self.verdicts, self.run.n, self.marks.keys() if self.exclude else ()),
            metrics={name: column for name, column in columns.items() if any(value is not None for value in column)},
            context_tokens=unknown if self.origin is Origin.IMPORTED else samples.numbers["context_tokens"],
            calls=unknown if self.origin is Origin.IMPORTED else self._calls(samples),
            seconds=samples.seconds if self.origin is Origin.RUN else unknown,
            dated=tuple([facts.day for facts in samples.facts]) if any(facts.day for facts in samples.kinds) else (),
            mark=tuple([self.marks.get(id_, "") for id_ in ids]) if self.marks else (),
            costs=self._costs(samples),
        )

    def _calls(self, samples: PlannedSamples) -> tuple[float | None, ...]:
        calls, summaries = samples.numbers["calls"], self.costs.summaries
        if summaries is None:
            return calls
        return tuple(
            None if count is None else count - (summaries.calls.get(id_) or 0)
            for id_, count in zip(samples.id, calls, strict=True)
        )

    def _costs(self, samples: PlannedSamples) -> dict[str, tuple[float | None, ...]]:
        of_calls = {
            "tokens_in": self.costs.tokens_in,
            "tokens_out": self.costs.tokens_out,
            "tokens_cached": self.costs.tokens_cached,
            PRICE: self.costs.price,
        }
        is_noted = any(count is not None for count in samples.numbers["explored_files"])
        costs = {
            **{name: tuple(map(column.get, samples.id)) for name, column in of_calls.items()},
            **{
                name: column
                for name, column in samples.numbers.items()
                if name not in _FIELDS and (name not in ACCESS or is_noted)
            },
            "test_seconds": self._test_seconds(samples),
            **{name: tuple(map(column.get, samples.id)) for name, column in self.engines.items()},
        }
        if self.costs.summaries is not None:
            apart = self.costs.summaries
            columns = (apart.calls, apart.tokens_in, apart.tokens_out, apart.price)
            for name, column in zip(SUMMARY_COSTS, columns, strict=True):
                costs[name] = tuple(
                    column.get(id_, 0.0 if stored else None)
                    for id_, stored in zip(samples.id, samples.stored, strict=True)
                )
        stored_names = {Origin.RUN: tuple(costs), Origin.REFERENCE: _TOKENS}.get(self.origin, ())
        return {name: column if name in stored_names else (None,) * len(samples.id) for name, column in costs.items()}

    def _test_seconds(self, samples: PlannedSamples) -> tuple[float | None, ...]:
        """Return the test seconds of each sample: 0 if all completions are blank; None without tests or a result."""
        return tuple(
            self.costs.test_seconds.get(id_, 0.0 if facts.tested and stored else None)
            for id_, facts, stored in zip(samples.id, samples.facts, samples.stored, strict=True)
        )

    def _info(self, samples: PlannedSamples, language: str) -> RunInfo:
        run, spec = self.run, spec_of(self.run)
        control = is_control(run.strategy)
        return RunInfo(
            id=run.id,
            samples=spec.shown_samples,
            samples_digest=run.samples_digest,
            set_size=run.set_size,
            language=language,
            strategy=run.strategy,
            generator=spec.shown_generator,
            origin=self.origin,
            profile=self.profile,
            ranked=not control,
            control=control,
            functions=any(facts.tested for facts in self.samples.kinds),
            completions=run.n,
            # The import file does not say how its completions were decoded.
            sampling="" if self.origin is Origin.IMPORTED else run.sampling,
            benchmark="+".join(sorted({facts.benchmark for facts in samples.kinds})),
            versions=spec.versions,
            loads=self.loads if self.origin is Origin.RUN else (),
            offline=self.costs.offline,
            remarks=self.remarks,
            cutoff=self.cutoff,
            began=self.began,
        )
