"""Levels of function samples: which groups a set gets, and means in which every level weighs alike. Pure.

Source: the ICL-strategies paper prints, for CoderEval, the unweighted mean of the levels class, file and project of a
language, and the mean of both languages' means.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ctxbench.harness.leaderboard.columns import at_level, at_levels
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, Group, Overall, OverallMean, Row
from ctxbench.harness.papers.tables import LEVELS
from ctxbench.harness.results import RunTable, Status

BENCHMARK = "codereval"
"""The benchmark whose sets are shown by level unasked, with means of levels."""
COMBINED = "+".join(LEVELS)
"""The samples of the three levels that the paper averages."""
COMBINED_LEVELS = tuple(f"{level}_runnable" for level in LEVELS)
LANGUAGES = ("python", "java")


def parts(table: RunTable, by_level: bool | None) -> list[tuple[str, RunTable]]:
    """Return level -> the samples of a run at it; first all, then for CoderEval the three levels of the paper.

    Args:
        table: one run in one language.
        by_level: whether each level has a part of its own; None: only for CoderEval.
    """
    level_parts = [(ALL_LEVELS, table)]
    ours = table.run.benchmark == BENCHMARK
    if not (ours if by_level is None else by_level):
        return level_parts
    if ours and set(COMBINED_LEVELS) & set(table.level):
        level_parts.append((COMBINED, at_levels(table, COMBINED_LEVELS)))
    return [*level_parts, *((level, at_level(table, level)) for level in sorted(set(table.level)))]


def order(level: str) -> tuple[bool, bool, str]:
    """Return the key by which levels are sorted: all, the paper's three, then the single ones."""
    return level != ALL_LEVELS, level != COMBINED, level


def mean_of_levels(table: RunTable, level: str, values: Mapping[str, float]) -> float | None:
    """Return the unweighted mean of the levels' means.

    Args:
        table: the samples of the group.
        level: which group it is; only all samples and the paper's three levels have such a mean, of CoderEval only.
        values: sample -> value.

    Returns:
        None if a level has no value: a mean over fewer levels would be another number under the same name.
    """
    if table.run.benchmark != BENCHMARK or level not in (ALL_LEVELS, COMBINED):
        return None
    counted = {name for name, status in zip(table.level, table.status, strict=True) if status is not Status.EXCLUDED}
    by_level: dict[str, list[float]] = defaultdict(list)
    for sample, name in zip(table.sample, table.level, strict=True):
        if sample in values:
            by_level[name].append(values[sample])
    names = counted if level == ALL_LEVELS else set(COMBINED_LEVELS)
    if not names or names - by_level.keys():
        return None
    return statistics.fmean(statistics.fmean(by_level[name]) for name in sorted(names))


def overall(groups: Sequence[Group]) -> tuple[Overall, ...]:
    """Return the means over both languages of what ran in both: same strategy, generator, profile, origin and set.

    Sets of one benchmark whose names differ in the language only (``codereval-python``, ``codereval-java``) are one.
    """
    pairs_by_key: dict[tuple[str, ...], list[tuple[Group, Row]]] = defaultdict(list)
    for group in groups:
        if group.benchmark == BENCHMARK and group.level == COMBINED:
            name = group.samples.replace(group.language, "")
            for row in group.rows:
                key = (name, row.run.strategy, row.run.generator, row.run.profile, str(row.run.origin))
                pairs_by_key[key].append((group, row))
    means = []
    for members in pairs_by_key.values():
        # Two sets of one name in a language (imported twice, differently) are two results: none is their mean.
        if sorted(group.language for group, _ in members) == sorted(LANGUAGES):
            means += _overall([row for _, row in members])
    return tuple(means)


def _overall(rows: Sequence[Row]) -> list[Overall]:
    shared = [name for name in rows[0].metrics if name in rows[1].metrics]
    metrics = {}
    for name in shared:
        estimates = [row.metrics[name] for row in rows]
        means = [estimate.mean_of_levels for estimate in estimates if estimate.mean_of_levels is not None]
        if len(means) == len(rows):
            total = math.fsum((estimate.mean or 0.0) * estimate.n for estimate in estimates)
            n = sum(estimate.n for estimate in estimates)
            metrics[name] = OverallMean(mean=total / n, mean_of_levels=statistics.fmean(means), n=n)
    if not metrics:
        return []
    samples = tuple(dict.fromkeys(row.run.samples for row in rows))
    unscored = sum(row.unscored for row in rows)
    return [Overall(run=rows[0].run, samples=samples, level=COMBINED, unscored=unscored, metrics=metrics)]


def by_level(groups: Sequence[Group], group: Group) -> dict[str, Group]:
    """Return level -> the group of the same runs at that level only, in the order of the groups."""
    return {
        other.level: other for other in groups if other.level != ALL_LEVELS and _identity(other) == _identity(group)
    }


def _identity(group: Group) -> tuple[str, ...]:
    return group.samples, group.samples_digest, group.language, group.generator, group.profile
