"""One group of comparable runs: pairs, tiers, rows. Pure.

Pairs are compared only on the samples that both completed. Significance of the ranking metric is corrected over all
pairs of ranked rows (the family that also decides tiers and ranks), of any other metric over its pairs with the
baseline.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ctxbench.harness.leaderboard import choices, pairs, signflip, stats, tiers
from ctxbench.harness.leaderboard.columns import ScaleOf, completed
from ctxbench.harness.leaderboard.levels import BENCHMARK, mean_of_levels
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.rows import Group, Row, Sensitivity
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.leaderboard.vectors import Column, Samples, Table, align
from ctxbench.harness.results import PRICE, RunTable, Status

Values = Mapping[str, Column]
"""Metric -> its values in the unit shown."""


class GroupMaker:
    """Makes one group; holds what its steps share."""

    def __init__(
        self,
        tables: Sequence[RunTable],
        level: str,
        *,
        metric: str | None,
        baseline: str | None,
        seed: int,
        scale: ScaleOf,
    ) -> None:
        self.tables = tables
        self.first = first = tables[0].run
        self.level = level
        names = sorted(
            {
                name
                for table in self.tables
                for name, column in table.metrics.items()
                if any(value is not None for value in column)
            }
        )
        self.scales = {name: scale(first.profile, name) for name in names}
        self.metric = metric or choices.default_metric(names, first)
        # Nothing of a run's own may enter: its id would change the drawn numbers from machine to machine.
        self.seed = f"{seed}/{first.samples_digest}/{first.language}/{level}"
        samples = Samples(self.tables)
        ready = [Table(table, samples) for table in self.tables]
        self.values: list[Values] = [
            {name: one.column(name, scale) for name, scale in self.scales.items()} for one in ready
        ]
        self.ranked = [
            index for index, table in enumerate(self.tables) if table.run.ranked and self.values[index].get(self.metric)
        ]
        self.base = choices.baseline(self.tables, self.ranked, baseline)

    def group(self, *, superseded: int = 0) -> Group:
        """Compare, rank and describe; `superseded` runs of these strategies are not among the tables."""
        means = {i: statistics.fmean(self.values[i][self.metric].values.tolist()) for i in self.ranked}
        lower = self.metric in self.scales and self.scales[self.metric].lower_is_better
        order = sorted(self.ranked, key=lambda i: (means[i] if lower else -means[i], self.tables[i].run.strategy))
        family = self._family(order)
        apart = [pair for pair, one in family.items() if one.p_holm is not None and one.p_holm <= signflip.ALPHA]
        beats = {(a, b) if ((family[a, b].mean or 0) < 0) is lower else (b, a) for a, b in apart}
        order = tiers.standing(order, beats)
        place = {row: position for position, row in enumerate(order)}
        told = [(place[a], place[b]) for a, b in apart]
        marks = tiers.letters(len(order), told)
        ranges = tiers.rank_ranges(len(order), {(place[a], place[b]) for a, b in beats})
        differences = self._differences(family)
        estimates = self._estimates()
        rows = [self._row(i, estimates[i], differences.get(i, {})) for i in order]
        rows = [
            replace(row, tier=mark, rank_low=low, rank_high=high)
            for row, mark, (low, high) in zip(rows, marks, ranges, strict=True)
        ]
        rows += [self._row(i, estimates[i], differences.get(i, {})) for i in range(len(self.tables)) if i not in place]
        counted = [one.repositories for one in family.values() if one.n_common]
        counted = counted or [row.metrics[self.metric].repositories for row in rows if self.metric in row.metrics]
        fewest = min(counted, default=0)
        seen = [one.visible for one in family.values() if one.visible is not None]
        return Group(
            samples=self.first.samples,
            samples_digest=self.first.samples_digest,
            benchmark=self.first.benchmark,
            language=self.first.language,
            level=self.level,
            generator=self.first.generator,
            profile=self.first.profile,
            metric=self.metric,
            scales=self.scales,
            baseline=None if self.base is None else self.tables[self.base].run.strategy,
            rows=tuple(rows),
            pairs=len(family),
            repositories=fewest,
            smallest_p=signflip.smallest_p(fewest),
            decidable=any(pairs.can_be_told_apart(one.repositories, len(family)) for one in family.values()),
            visible=statistics.median(seen) if seen else None,
            superseded=superseded,
        )

    def _compared(self, found: Sequence[tuple[int, int]], metric: str) -> list[Difference]:
        aligned = [align(self.values[this][metric], self.values[other][metric]) for this, other in found]
        return pairs.differences(aligned, self.scales[metric], seed=f"{self.seed}/{metric}")

    def _family(self, order: Sequence[int]) -> dict[tuple[int, int], Difference]:
        """Return all pairs of ranked rows under the ranking metric, better mean first, corrected together."""
        keys = list(itertools.combinations(order, 2))
        found = pairs.corrected(self._compared(keys, self.metric)) if keys else ()
        return dict(zip(keys, found, strict=True))

    def _differences(self, family: Mapping[tuple[int, int], Difference]) -> dict[int, dict[str, Difference]]:
        """Return row -> metric -> difference to the baseline."""
        base = self.base
        if base is None:
            return {}
        others = [i for i in range(len(self.tables)) if i != base]
        result: dict[int, dict[str, Difference]] = {i: {} for i in others}
        for metric in self.scales:
            shown = [i for i in others if self.values[i].get(metric) and self.values[base].get(metric)]
            found = dict(zip(shown, self._compared([(i, base) for i in shown], metric), strict=True))
            if self.tables[base].run.control:
                found = {i: pairs.untested(one) for i, one in found.items()}
            found |= {i: pairs.untested(one) for i, one in found.items() if self.tables[i].run.control}
            if metric == self.metric:
                for i in shown:
                    member = family.get((i, base)) or family.get((base, i))
                    if member:
                        found[i] = replace(found[i], p_holm=member.p_holm, pairs=member.pairs)
            elif base in self.ranked:
                members = [i for i in shown if i in self.ranked]
                found.update(zip(members, pairs.corrected([found[i] for i in members]), strict=True))
            for i in shown:
                result[i][metric] = found[i]
        return result

    def _row(self, index: int, metrics: Mapping[str, Estimate], difference: Mapping[str, Difference]) -> Row:
        table, mine = self.tables[index], self.values[index]
        unscored = table.status.count(Status.INFRA_FAILED)
        keep = completed(table)
        return Row(
            run=table.run,
            level=self.level,
            n=len(keep),
            model_failed=table.status.count(Status.MODEL_FAILED),
            unscored=unscored,
            excluded=table.status.count(Status.EXCLUDED),
            marks=Counter(sorted(filter(None, table.mark))),
            metrics=metrics,
            sensitivity=self._sensitivity(mine, unscored),
            context_tokens=_mean(_of(table.context_tokens, keep)),
            calls=_mean(_of(table.calls, keep)),
            seconds=_mean(_of(table.seconds, keep)),
            baseline=None if self.base in (None, index) else self.tables[self.base or 0].run.strategy,
            difference=difference,
            rank_low=None,
            rank_high=None,
            tier="",
            costs={name: _cost(name, _of(column, keep)) for name, column in table.costs.items()},
        )

    def _estimates(self) -> list[dict[str, Estimate]]:
        """Return for each row metric -> estimate; all rows of one metric together."""
        made: list[dict[str, Estimate]] = [{} for _ in self.tables]
        for name, scale in self.scales.items():
            shown = [i for i in range(len(self.tables)) if self.values[i][name].with_marked is not None]
            columns = [self.values[i][name] for i in shown]
            found = stats.estimates([one.clustered for one in columns], seed=f"{self.seed}/{name}", bounds=scale.bounds)
            for i, column, one in zip(shown, columns, found, strict=True):
                of_levels = self._mean_of_levels(self.tables[i], column)
                made[i][name] = replace(one, mean_of_levels=of_levels, mean_with_marked=column.with_marked)
        return made

    def _mean_of_levels(self, table: RunTable, column: Column) -> float | None:
        if table.run.benchmark != BENCHMARK:
            return None
        ids = [table.sample[row] for row in column.rows.tolist()]
        return mean_of_levels(table, self.level, dict(zip(ids, column.values.tolist(), strict=True)))

    def _sensitivity(self, mine: Values, unscored: int) -> dict[str, Sensitivity]:
        result: dict[str, Sensitivity] = {}
        for name, found in mine.items():
            bounds = self.scales[name].bounds
            if unscored and bounds and found:
                total, count = sum(found.values.tolist()), len(found.values) + unscored
                right = pairs.best(self.scales[name], bounds)
                worst, best = ((total + unscored * bound) / count for bound in (sum(bounds) - right, right))
                result[name] = Sensitivity(worst=worst, best=best)
        return result


def _cost(name: str, numbers: Sequence[float | None]) -> float | None:
    """Return the mean cost; a mean of some prices would be too low, or too high, without saying so."""
    return None if name == PRICE and None in numbers else _mean(numbers)


def _of(column: Sequence[float | None], keep: Sequence[int]) -> Sequence[float | None]:
    return column if len(keep) == len(column) else [column[i] for i in keep]


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [one for one in numbers if one is not None]
    return statistics.fmean(known) if known else None
