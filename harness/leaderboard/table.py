"""Builds the leaderboard from stored runs; see docs/statistics.md."""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ctxbench.bench.elementary import running_sum
from ctxbench.harness.cutoffs import NO_CUTOFFS, Cutoffs
from ctxbench.harness.leaderboard import pairs, selection, signflip, stats
from ctxbench.harness.leaderboard.pairs import Difference, MetricColumn, Paired, RunArrays, Samples, align
from ctxbench.harness.leaderboard.published import Mode, listings
from ctxbench.harness.leaderboard.repetitions import answer_gaps, pooled
from ctxbench.harness.leaderboard.rows import (
    LEVELLED,
    Board,
    Group,
    Row,
    SampleAges,
    Sensitivity,
    level_order,
    level_parts,
    mean_of_levels,
    overall_means,
)
from ctxbench.harness.leaderboard.rows import family as family_of
from ctxbench.harness.leaderboard.scales import completed, scale_of
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.results import PRICE, Origin, RunTable, Status, only_copies


def board(
    tables: Sequence[RunTable],
    *,
    metric: str | None = None,
    baseline: str | None = None,
    by_level: bool | None = None,
    all_pairs: bool = False,
    published: Mode = "none",
    cutoffs: Cutoffs = NO_CUTOFFS,
) -> Board:
    """Build the leaderboard of runs.

    Args:
        tables: one table per run and language, oldest run first. Runs that differ only in the seed are pooled. Of
            several runs of a strategy in a group, the newest complete run counts, or the newest if none is complete.
        metric: ranking metric; None for `selection.default_metric`.
        baseline: strategy (spec or name) that differences refer to; None for ``lc.infile`` or the first ranked row.
        by_level: add a group for each level; None adds them only for CoderEval.
        all_pairs: test all pairs of complete runs, instead of each row against the baseline.
        published: rows of papers' tables to add: ``auto`` for the runs' benchmarks and languages, ``all``, or ``none``.
        cutoffs: last day of each model's training data.

    Raises:
        UnknownName: if no run has the metric or strategy.
    """
    tables = selection.file_labelled(tables)
    selection.check(tables, metric, baseline)
    alike = comparable(tables)
    # Choose runs before the split into levels, so that all levels of a strategy come from one run.
    newest_tables = {
        key: selection.of_one_coder(selection.newest(pooled(members)), members) for key, members in alike.items()
    }
    parts_by_group: dict[tuple[str, ...], list[RunTable]] = defaultdict(list)
    for key, members in newest_tables.items():
        for table in members:
            for level, part in level_parts(table, by_level):
                parts_by_group[*key, level].append(part)
    ordered = sorted(parts_by_group.items(), key=lambda item: (*item[0][:-1], level_order(item[0][-1])))
    # A run that lacks a sample at one level is incomplete at all levels.
    whole = {id(table.run) for members in newest_tables.values() for table in members if selection.complete(table)}
    make = functools.partial(
        GroupBuilder, metric=metric, baseline=baseline, all_pairs=all_pairs, cutoffs=cutoffs, whole=whole
    )
    groups = tuple(
        make(members, level).group(
            superseded=len(alike[tuple(key)]) - sum(len(table.run.ids) for table in newest_tables[tuple(key)])
        )
        for (*key, level), members in ordered
    )
    return Board(groups=groups, overall=overall_means(groups), published=listings(groups, published))


def comparable(tables: Sequence[RunTable]) -> dict[tuple[str, ...], list[RunTable]]:
    """Return the runs that can be ranked together, by a key of samples, language, profile, generator and digest."""
    alike: dict[tuple[str, ...], list[RunTable]] = defaultdict(list)
    for table in tables:
        run = table.run
        alike[run.samples, run.language, run.profile, run.generator, run.samples_digest].append(table)
    return alike


_BITS = "bits"
"""Unit in which a few samples can dominate a mean."""
Values = Mapping[str, MetricColumn]


class GroupBuilder:
    """A builder of one group of the board, from runs that can be ranked together."""

    def __init__(
        self,
        tables: Sequence[RunTable],
        level: str,
        *,
        metric: str | None,
        baseline: str | None,
        all_pairs: bool,
        cutoffs: Cutoffs,
        whole: Collection[int] | None = None,
    ) -> None:
        """Choose ranking metric, ranked rows and baseline. `whole` contains Python's ``id()`` of each complete run."""
        self.tables = tables
        self.all_pairs = all_pairs
        self.first = first = tables[0].run
        self.level = level
        names = _metrics(self.tables)
        self.scales = {name: scale_of(first.profile, name) for name in names}
        # Metrics of others' runs must not change the user's ranking metric.
        of_own = _metrics([table for table in self.tables if table.run.origin is Origin.RUN])
        self.metric = metric or selection.default_metric(of_own or names, first)
        # The seed excludes the run's id, which would change the drawn flips from machine to machine. The 0 keeps the
        # flips of published p-values.
        self.seed = f"0/{first.samples_digest}/{first.language}/{level}"
        samples = Samples(self.tables)
        self.unit = samples.unit
        group_tables = [RunArrays(table, samples) for table in self.tables]
        self.values: list[Values] = [
            {name: group_table.column(name, scale) for name, scale in self.scales.items()}
            for group_table in group_tables
        ]
        # Interrupted runs are shown below and not tested.
        self.whole = [
            index
            for index, table in enumerate(self.tables)
            if table.run.ranked
            and (selection.complete(table) if whole is None else id(table.run) in whole)
            and self.values[index].get(self.metric)
        ]
        self.own = [index for index in self.whole if self.tables[index].run.origin is Origin.RUN]
        self.ranked = self.whole if all_pairs or not self.own else self.own
        self.base = selection.baseline(self.tables, self.ranked, self.whole, baseline)
        self.ages = sample_ages(self.tables, cutoffs)

    def group(self, *, superseded: int = 0) -> Group:
        """Compare, rank and describe the rows. `superseded` counts runs that newer or more complete runs replaced."""
        lower = self.metric in self.scales and self.scales[self.metric].lower_is_better
        order = self._by_mean(self.ranked)
        families = [self._tested(keys, self.metric) for keys in self._asked(order, self.metric)]
        tests = {pair: difference for family in families for pair, difference in family.items()}
        significant = [pair for pair, difference in tests.items() if difference.significant]
        beats = {(a, b) if ((tests[a, b].mean or 0) < 0) is lower else (b, a) for a, b in significant}
        order = signflip.order_rows(order, beats)
        in_order = [*order, *(i for i in self._by_mean(self.whole) if i not in order)]
        in_order += [i for i in range(len(self.tables)) if i not in in_order]
        differences = self._differences(tests)
        estimates = self._estimates()
        rows = [self._row(i, estimates[i], differences.get(i, {})) for i in in_order]
        # If the user has rows, only these are tested, even if there is no pair.
        family = families[0] if self.own and families else next(filter(None, families), {})
        rows = self._placed(in_order, len(order), rows, beats, tests, family)
        units = [row.metrics[self.metric].units for row in rows if self.metric in row.metrics]
        names = {i: self.tables[i].run.strategy for i in in_order}
        place = {i: position for position, i in enumerate(in_order)}
        return Group(
            samples=self.first.samples,
            samples_digest=self.first.samples_digest,
            set_size=self.first.set_size,
            benchmark=self.first.benchmark,
            language=self.first.language,
            level=self.level,
            generator=self.first.generator,
            profile=self.first.profile,
            metric=self.metric,
            scales=self.scales,
            baseline=None if self.base is None else self.tables[self.base].run.strategy,
            rows=tuple(rows),
            family=family_of(
                [((names[a], names[b]), difference) for (a, b), difference in family.items()],
                against=None if self.all_pairs else names.get(-1 if self.base is None else self.base, ""),
                unit=self.unit,
                units=min(units, default=0),
            ),
            pairs={(place[a], place[b]): difference for (a, b), difference in tests.items()},
            superseded=superseded,
            ages=self.ages,
        )

    def _by_mean(self, rows: Sequence[int]) -> list[int]:
        means = {i: statistics.fmean(self.values[i][self.metric].values.tolist()) for i in rows}
        lower = self.metric in self.scales and self.scales[self.metric].lower_is_better
        return sorted(rows, key=lambda i: (means[i] if lower else -means[i], self.tables[i].run.strategy))

    @staticmethod
    def _placed(
        in_order: Sequence[int],
        ranked: int,
        rows: Sequence[Row],
        beats: Collection[tuple[int, int]],
        tests: Mapping[tuple[int, int], Difference],
        question: Mapping[tuple[int, int], Difference],
    ) -> list[Row]:
        """Add the tests' results to the rows, and ranks to the first `ranked` rows, by the tests in `question`."""
        place = {i: position for position, i in enumerate(in_order)}
        beats_places = sorted((place[winner], place[loser]) for winner, loser in beats)
        significant = [(place[a], place[b]) for a, b in tests if tests[a, b].significant]
        marks = signflip.group_letters(ranked, [pair for pair in significant if max(pair) < ranked])
        ranges = signflip.rank_ranges(ranked, _through([pair for pair in beats_places if max(pair) < ranked]))
        placed = []
        for position, row in enumerate(rows):
            i = in_order[position]
            own_tests = {pair: test for pair, test in (question if position < ranked else tests).items() if i in pair}
            is_significant = any(test.significant for test in own_tests.values())
            needed = [test.needed for test in own_tests.values() if test.needed]
            losers = [b for a, b in beats if a == i and ((a, b) in own_tests or (b, a) in own_tests)]
            low, high = ranges[position] if position < ranked else (None, None)
            placed.append(
                replace(
                    row,
                    letters=marks[position] if position < ranked else "",
                    rank_low=low,
                    rank_high=high,
                    beats=tuple(sorted(place[loser] for loser in losers)),
                    significant=is_significant,
                    needed=None if is_significant else min(needed, default=None),
                )
            )
        return placed

    def aligned(self, keys: Sequence[tuple[int, int]], metric: str) -> list[Paired]:
        """Pair the values of runs, given by position, over the samples for which both have a value."""
        return [align(self.values[this][metric], self.values[other][metric]) for this, other in keys]

    def _asked(self, rows: Sequence[int], metric: str) -> list[list[tuple[int, int]]]:
        if self.all_pairs and metric == self.metric:
            return [list(itertools.combinations(rows, 2))]
        if self.base not in self.whole:
            return []
        members = [i for i in self.whole if i != self.base and self.values[i].get(metric)]
        if self.all_pairs:
            return [[(i, self.base) for i in members]]
        return [[(i, self.base) for i in members if self.tables[i].run.origin is origin] for origin in Origin]

    def _tested(self, keys: Sequence[tuple[int, int]], metric: str) -> dict[tuple[int, int], Difference]:
        if not keys:
            return {}
        aligned, scale = self.aligned(keys, metric), self.scales[metric]
        tests = pairs.corrected(pairs.differences(aligned, scale), aligned, scale, seed=f"{self.seed}/{metric}")
        return dict(zip(keys, tests, strict=True))

    def _differences(self, tests: Mapping[tuple[int, int], Difference]) -> dict[int, dict[str, Difference]]:
        """Return the differences from the baseline, by row and metric. `tests` are those of the ranking metric."""
        base = self.base
        if base is None:
            return {}
        others = [i for i in range(len(self.tables)) if i != base]
        result: dict[int, dict[str, Difference]] = {i: {} for i in others}
        for metric in self.scales:
            shared = [i for i in others if self.values[i].get(metric) and self.values[base].get(metric)]
            of_metric = tests
            if metric != self.metric:
                questions = self._asked(self.ranked, metric) if self.values[base].get(metric) else []
                of_metric = {pair: test for keys in questions for pair, test in self._tested(keys, metric).items()}
            signed = {i: test for (i, other), test in of_metric.items() if other == base}
            signed |= {i: -test for (other, i), test in of_metric.items() if other == base}
            tested = {i: signed[i] for i in shared if i in signed}
            untested = [i for i in shared if i not in tested]
            described = pairs.differences(self.aligned([(i, base) for i in untested], metric), self.scales[metric])
            for i, difference in (tested | dict(zip(untested, described, strict=True))).items():
                result[i][metric] = difference
        return result

    def _row(self, index: int, metrics: Mapping[str, Estimate], difference: Mapping[str, Difference]) -> Row:
        table, mine = self.tables[index], self.values[index]
        missing = table.status.count(Status.INFRA_FAILED)
        keep = completed(table)
        before, after = self._around_cutoff(table, mine)
        costs = {"context_tokens": table.context_tokens, "calls": table.calls, "seconds": table.seconds, **table.costs}
        return Row(
            run=table.run,
            level=self.level,
            n=len(keep),
            model_failed=table.status.count(Status.MODEL_FAILED),
            missing=missing,
            excluded=table.status.count(Status.EXCLUDED),
            marks=Counter(sorted(filter(None, table.mark))),
            metrics=metrics,
            sensitivity=self._sensitivity(mine, missing, table),
            variance={name: column.variance for name, column in mine.items() if column and column.variance},
            answers=answer_gaps(table, self.metric),
            baseline=None if self.base in (None, index) else self.tables[self.base or 0].run.strategy,
            difference=difference,
            rank_low=None,
            rank_high=None,
            letters="",
            before_cutoff=before,
            after_cutoff=after,
            costs={name: _cost(name, _of(column, keep)) for name, column in costs.items()},
        )

    def _around_cutoff(self, table: RunTable, mine: Values) -> tuple[Estimate | None, Estimate | None]:
        column = mine.get(self.metric)
        if not column or self.ages is None or not (self.ages.before and self.ages.after):
            return None, None
        days = [table.dated[row] for row in column.rows.tolist()] if table.dated else []
        sides: dict[bool, list[int]] = {False: [], True: []}
        for place, day in enumerate(days):
            if day:
                sides[day > str(self.ages.cutoff)].append(place)
        bounds = self.scales[self.metric].bounds
        before, after = (stats.estimate_of(column.clustered_at(places), bounds) for places in sides.values())
        return before, after

    def _estimates(self) -> list[dict[str, Estimate]]:
        by_row: list[dict[str, Estimate]] = [{} for _ in self.tables]
        for name, scale in self.scales.items():
            columns = [(i, own[name]) for i, own in enumerate(self.values) if own[name].with_invalid is not None]
            for i, column in columns:
                by_row[i][name] = replace(
                    stats.estimate_of(column.clustered, scale.bounds),
                    mean_of_levels=self._mean_of_levels(self.tables[i], column),
                    mean_with_invalid=column.with_invalid,
                )
                if scale.unit == _BITS and column:
                    bits = column.values.tolist()
                    middle = {"median": statistics.median(bits), "trimmed": stats.trimmed_mean(bits)}
                    by_row[i][name] = replace(by_row[i][name], **middle)
        return by_row

    def _mean_of_levels(self, table: RunTable, column: MetricColumn) -> float | None:
        if table.run.benchmark != LEVELLED:
            return None
        ids = [table.sample[row] for row in column.rows.tolist()]
        return mean_of_levels(table, self.level, dict(zip(ids, column.values.tolist(), strict=True)))

    def _sensitivity(self, mine: Values, missing: int, table: RunTable) -> dict[str, Sensitivity]:
        result: dict[str, Sensitivity] = {}
        for name, column in mine.items():
            bounds = self.scales[name].range
            # Share of each sample's runs that lack it.
            outcomes = [table.outcomes[row] for row in column.rows.tolist()] if table.outcomes else []
            lacking = [of_runs.count(Status.INFRA_FAILED) / len(of_runs) for of_runs in outcomes]
            if (missing or any(lacking)) and bounds and column:
                values = column.values.tolist()
                if any(lacking):
                    values = [value * (1 - lack) for value, lack in zip(values, lacking, strict=True)]
                total, count, guessed = running_sum(values), len(values) + missing, missing + math.fsum(lacking)
                right = pairs.best(self.scales[name], bounds)
                worst, best = ((total + guessed * bound) / count for bound in (sum(bounds) - right, right))
                result[name] = Sensitivity(worst=worst, best=best)
        return result


def _metrics(tables: Sequence[RunTable]) -> list[str]:
    columns = [(name, column) for table in tables for name, column in table.metrics.items()]
    return sorted({name for name, column in columns if any(value is not None for value in column)})


def _through(beats: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    closure = set(beats)
    while more := {(a, d) for a, b in closure for c, d in closure if b == c} - closure:
        closure |= more
    return closure


def sample_ages(tables: Sequence[RunTable], cutoffs: Cutoffs) -> SampleAges | None:
    """Return the dates of a group's samples; None if no sample is dated, or the generator has no training data."""
    generator = tables[0].run.generator
    if only_copies(generator) or not tables[0].run.completions:
        return None
    day_of = {
        sample: day
        for table in tables
        for sample, day in zip(table.sample, table.dated or (None,) * len(table.sample), strict=True)
    }
    days = [day for day in day_of.values() if day is not None]
    if not days:
        return None
    cutoff = cutoffs.day(generator)
    noted = next((table.run.cutoff for table in tables if table.run.cutoff), None)
    last = noted or (None if cutoff is None else cutoff.isoformat())
    after = 0 if last is None else sum(day > last for day in days)
    return SampleAges(
        oldest=min(days),
        newest=max(days),
        unknown=len(day_of) - len(days),
        cutoff=last,
        before=0 if last is None else len(days) - after,
        after=after,
    )


def _cost(name: str, numbers: Sequence[float | None]) -> float | None:
    """Return the mean cost; None if a price is missing, because the mean of the others would mislead."""
    return None if name.endswith(PRICE) and None in numbers else _mean(numbers)


def _of(column: Sequence[float | None], keep: Sequence[int]) -> Sequence[float | None]:
    return column if len(keep) == len(column) else [column[i] for i in keep]


def _mean(numbers: Sequence[float | None]) -> float | None:
    present = [number for number in numbers if number is not None]
    return statistics.fmean(present) if present else None
