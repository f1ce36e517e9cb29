"""`RunQuery` and `BoardQuery`: which stored runs a user selects, and how to rank them. Used by commands and the API."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.home import Home

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.compare import Compared
    from ctxbench.harness.leaderboard.rows import Board
    from ctxbench.harness.results import RunTable
    from ctxbench.harness.store import Store

NOTHING_CURE = "store one with `ctxbench quickstart`, or `ctxbench run --samples NAME --strategy SPEC --generator SPEC`"


class NothingStored(InputFault):
    """Raised if the database does not exist, or no stored run matches the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """A user's selection of stored runs; fields correspond to command options."""

    home: Home
    db: str | None = None
    samples: str | None = None
    generator: str | None = None
    """Spec, name or model of the generators whose runs are selected; None for all generators."""
    profile: str = "ctxbench"
    ks: tuple[int, ...] = ()
    invalid: Literal["exclude", "include"] = "exclude"
    after: date | None = None
    """Day after which a sample's code must be dated for the sample to be selected; None for all samples."""
    prices: Path | None = None
    strict: bool = False
    """Whether completions that passed their tests, but have flags for suspicious code, count as failed."""

    @property
    def url(self) -> str:
        """URL of the runs' database; by default, the database in the home folder."""
        return self.db or self.home.database

    def ids_of(self, runs: Sequence[str]) -> list[str]:
        """Return the ids of runs, each given by name, id, start of an id, or strategy (its newest complete run).

        All strategies are looked up for one sample set and one generator: those of the other named runs, if any.

        Raises:
            InputFault: if an id or strategy is ambiguous, or no set and generator has complete runs of each strategy.
            UnknownName: if no run or strategy matches, or as in `tables` if a strategy is given.
            NothingStored: if the database does not exist, or a strategy is given and no run matches the query.
        """
        from ctxbench.harness.leaderboard.selection import is_named, newest_of
        from ctxbench.harness.store.runs import find_run

        found: dict[str, str] = {}
        unknown: list[str] = []
        with self._opened() as store:
            for run in runs:
                try:
                    found[run] = find_run(store, run).id
                except UnknownName:
                    unknown.append(run)
        if unknown:
            tables = self.tables()
            strategies = {table.run.strategy for table in tables}
            for run in unknown:
                if not any(is_named(run, strategy) for strategy in strategies):
                    known = {*strategies, *(id_ for table in tables for id_ in table.run.ids)}
                    raise UnknownName("stored run or strategy", run, known, command="ctxbench runs")
            found |= newest_of(tables, unknown, beside=list(found.values()))
        return [found[run] for run in runs]

    def compared(self, runs: Sequence[str], *, metric: str | None = None) -> tuple[list[Compared], list[str]]:
        """Return the differences between the first run and the others, and the languages that cannot be compared.

        Runs are named as for `ids_of`. A language is omitted unless the first run and another run have samples in it.

        Raises:
            InputFault: as in `ids_of` and `tables`, and if the runs cannot be compared or share no metric.
            UnknownName: as in `ids_of` and `tables`, and if the runs do not share `metric`.
        """
        from ctxbench.harness.leaderboard.compare import compare
        from ctxbench.harness.leaderboard.repetitions import pooled

        ids, tables = self.ids_of(runs), self.tables()
        # Runs that differ only in the seed are pooled, unless that would pool two of the named runs.
        pools = pooled(tables)
        is_shared = any(len(set(ids).intersection(table.run.ids)) > 1 for table in pools)
        by_run = [[table for table in (tables if is_shared else pools) if id_ in table.run.ids] for id_ in ids]
        first, *others = ({table.run.language for table in of_run} for of_run in by_run)
        # A limited run may lack a language that others have.
        shared = first.intersection(set().union(*others)) if others else first
        if not shared:
            raise InputFault(
                f"no other run has samples in a language of the first run, {runs[0]!r}",
                cure="name runs over the same samples (see `ctxbench runs`)",
            )
        differences: list[Compared] = []
        for language in sorted(shared):
            parts = [table for of_run in by_run for table in of_run if table.run.language == language]
            differences += compare(parts, metric=metric)
        if not differences:
            raise InputFault(
                f"these runs share no metric of profile {self.profile} that can be compared",
                cure="finish the runs with the same commands as before, then `ctxbench rescore --profile "
                f"{self.profile}`",
            )
        return differences, sorted(first.union(*others) - shared)

    def _opened(self) -> Store:
        from ctxbench.harness.store.store import exists, open_reader

        # Reading must not create an empty database.
        if self.db is None and not exists(self.url):
            raise NothingStored("no runs are stored", where=str(self.home.root), cure=NOTHING_CURE)
        return open_reader(self.url)

    def tables(self) -> list[RunTable]:
        """Return tables of the selected runs, one per run and language, sorted by set, strategy, generator and start.

        Raises:
            UnknownName: if no run has the sample set or generator, or the profile does not exist.
            NothingStored: if the database does not exist, or no run matches.
            InputFault: if the file of prices is invalid, or no sample is dated after the given day.
        """
        from ctxbench.harness.leaderboard.scales import tables_dated_after
        from ctxbench.harness.leaderboard.selection import is_generator, runs_over
        from ctxbench.harness.metrics import PROFILES
        from ctxbench.harness.prices import load
        from ctxbench.harness.results import Origin
        from ctxbench.harness.store.runs import RunFilter, run_tables

        if self.profile not in PROFILES:
            raise UnknownName("metric profile", self.profile, PROFILES)
        with self._opened() as store:
            rates = load(self.prices) if self.prices else None
            read = functools.partial(
                run_tables,
                store,
                profile=self.profile,
                ks=self.ks,
                invalid=self.invalid,
                prices=rates,
                selection=RunFilter(strict=self.strict),
            )
            tables = read(samples=self.samples and self.samples.partition("[")[0])
            others = read(samples=None) if not tables and self.samples else []
        if self.generator is not None:
            labels = {table.run.generator for table in tables}
            tables = [table for table in tables if is_generator(self.generator, table.run.generator)]
            if labels and not tables:
                raise UnknownName("generator of the stored runs", self.generator, labels)
        if self.samples:
            # `demo` is the whole set, `demo[:10]` ten of its samples. Without whole runs, the parts appear.
            whole = [table for table in tables if table.run.samples == self.samples]
            parts = [table for table in tables or others if table.run.samples.startswith(f"{self.samples}[")]
            own = [table for table in parts if table.run.origin is Origin.RUN]
            if whole and own and all(table.run.origin is not Origin.RUN for table in whole):
                # If the user ran only a part, show the other rows over that part.
                matching = runs_over(tables, own[-1].run.samples)
            else:
                matching = runs_over(tables, self.samples) if whole else parts
            if not matching and (tables or others):
                names = {table.run.samples for table in tables or others}
                raise UnknownName("sample set of the stored runs", self.samples, names)
            tables = matching
        if self.after is not None:
            tables = tables_dated_after(tables, self.after)
        if not tables:
            what = f"no runs with scores of profile {self.profile} are stored"
            raise NothingStored(what, where=self.url, cure=NOTHING_CURE)
        return list(tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardQuery(RunQuery):
    """A user's selection of stored runs, with the options of their leaderboard."""

    metric: str | None = None
    baseline: str | None = None
    by_level: bool | None = None
    all_pairs: bool = False
    """Whether to test all pairs of rows, instead of each of the user's rows against the baseline."""
    published: Literal["auto", "all", "none"] = "auto"

    def board(self, tables: Sequence[RunTable] | None = None) -> Board:
        """Return the leaderboard of `tables`; if None, of the selected runs.

        With ``published="all"`` and without `samples`, the board may have no stored runs.

        Raises:
            InputFault: as in `RunQuery.tables`, and if no run has the metric or baseline, or the cutoffs file is wrong.
        """
        from ctxbench.harness import cutoffs
        from ctxbench.harness.leaderboard import board
        from ctxbench.harness.leaderboard.selection import with_rows_over_more

        try:
            tables = self.tables() if tables is None else tables
        except NothingStored:
            if self.published != "all" or self.samples:
                raise
            tables = []
        return board(
            with_rows_over_more(tables),
            metric=self.metric,
            baseline=self.baseline,
            by_level=self.by_level,
            all_pairs=self.all_pairs,
            published=self.published,
            cutoffs=cutoffs.of_home(self.home),
        )
