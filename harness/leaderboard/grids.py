"""Grids: what a board says of pairs, repositories and generators, a cell each, shaded by how good it is. Pure.

Pages and report draw them with the same code (`dashboard.pictures`). A picture that could say nothing is a `Blank`,
whose sentence stands in its place.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ctxbench.harness.leaderboard import choices, numbers
from ctxbench.harness.leaderboard.columns import baseline_label, label
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, Group, Row
from ctxbench.harness.leaderboard.scales import Scale
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.metrics.profile import BIT_METRICS

SHADES = 4
"""Steps of shade to either side of none."""
MOST_ROWS, MOST_COLUMNS = 24, 24
"""Strategies, and repositories or generators, that are drawn: more could not be read."""


Shade = Callable[[float], int]
"""Value -> shade of its cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """A number of a grid."""

    text: str
    """With no more digits than are justified."""
    detail: str = ""
    """What stands smaller below it."""
    shade: int = 0
    """From `-SHADES`, the worst, over 0, without a shade, to `SHADES`, the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table whose cells are shaded."""

    title: str
    reading: str
    """How a cell is read, and what its shade says."""
    corner: str
    """What the rows are."""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GridCell | None, ...], ...]
    """Row by row; None where there is nothing to say."""
    remarks: tuple[str, ...] = ()
    """What is not drawn, a sentence each."""


@dataclass(frozen=True, slots=True)
class Blank:
    """A picture that would say nothing."""

    title: str
    why: str
    """A sentence."""


def beats(group: Group) -> Grid | Blank:
    """Return who beats whom: the difference of each pair of ranked rows, and its p corrected for all pairs."""
    title, ranked = "Who beats whom", group.ranked
    if len(ranked) < 2:
        return Blank(title, "Only one strategy is ranked here: it takes two to beat each other.")
    if not group.family.pairs:
        return Blank(title, "No two ranked strategies share a completed sample.")
    drawn = range(min(len(ranked), MOST_ROWS))
    apart = [abs(difference.mean or 0.0) for difference in group.pairs.values() if difference.significant]
    shade = _around_zero(max(apart, default=0.0), group, least=1)

    def cell(row: int, column: int) -> GridCell | None:
        way = 1 if (row, column) in group.pairs else -1
        difference = group.pairs.get((row, column) if way == 1 else (column, row))
        if difference is None or difference.mean is None:
            return None
        return GridCell(
            text=numbers.value(way * difference.mean, numbers.half_width(difference.low, difference.high), sign=True),
            detail=f"p {numbers.p_value(difference.p_adjusted)}",
            shade=shade(way * difference.mean) if difference.significant else 0,
        )

    return Grid(
        title=title,
        reading=f"{group.metric} ({group.scales[group.metric].unit}) of the row minus that of the column, and p "
        f"corrected for all {group.family.pairs} pairs. Blue: the row beats the column. Orange: the column beats the "
        "row. No shade: the test does not tell them apart.",
        corner="strategy",
        rows=tuple(f"{place + 1} {label(ranked[place])}" for place in drawn),
        columns=tuple(str(place + 1) for place in drawn),
        cells=tuple(tuple(cell(row, column) for column in drawn) for row in drawn),
        remarks=tuple(_cut(len(drawn), len(ranked), "strategies", "that rank best")),
    )


def over_repositories(group: Group, *, gains: bool) -> Grid | Blank:
    """Return strategies by repositories.

    Args:
        group: its ranked rows are drawn.
        gains: show how far each is ahead of the baseline, and not the mean itself.
    """
    title = f"Gain over {baseline_label(group)} by repository" if gains else f"{group.metric} by repository"
    values = [(row, row.repository_gains if gains else row.repository_means) for row in group.ranked]
    lines = [(row, numbers_of) for row, numbers_of in values if numbers_of]
    repositories = {repo for _, numbers_of in lines for repo in numbers_of}
    if len(repositories) < 2:
        return Blank(title, "The samples are of one repository: there is no second one to compare it with.")
    if len(lines) < (1 if gains else 2):
        return Blank(title, "Only one strategy is ranked here: there is no second one to compare it with.")
    drawn = lines[:MOST_ROWS]
    columns = _columns([numbers_of for _, numbers_of in drawn], repositories)
    every = [numbers_of[repo] for _, numbers_of in drawn for repo in columns if repo in numbers_of]
    high = max(map(abs, every)) if gains else max(every)
    shade = _around_zero(high, group) if gains else rising(min(every), high, group.scales[group.metric])
    return Grid(
        title=title,
        reading=_reading(group, high if gains else None, (min(every), max(every))),
        corner="strategy",
        rows=tuple(label(row) for row, _ in drawn),
        columns=tuple(columns),
        cells=tuple(
            tuple(_of_repository(group, row, numbers_of.get(repo), shade, sign=gains) for repo in columns)
            for row, numbers_of in drawn
        ),
        remarks=(
            *_cut(len(drawn), len(lines), "strategies", "that rank best"),
            *_cut(len(columns), len(repositories), "repositories", "on which these strategies differ most"),
        ),
    )


def over_generators(groups: Sequence[Group]) -> list[Grid | Blank]:
    """Return strategies by generators, a grid for each set, language and profile that more than one generator ran.

    The metric is that which ranks, of those that all of the generators have; bits of two models are two units.
    """
    alike: dict[tuple[str, ...], list[Group]] = defaultdict(list)
    for group in groups:
        if group.level == ALL_LEVELS and group.ranked:
            alike[group.samples, group.samples_digest, group.language, group.profile].append(group)
    return [_over_generators(members) for members in alike.values() if len(members) > 1]


def _over_generators(groups: Sequence[Group]) -> Grid | Blank:
    first, title = groups[0], "Strategies by generator"
    shared = set.intersection(*(set(group.scales) for group in groups)) - set(BIT_METRICS)
    if not shared:
        return Blank(title, "These generators share no metric: bits of two models are two units.")
    metric = choices.default_metric(sorted(shared), first.ranked[0].run)
    if metric not in shared:
        return Blank(title, f"Not every one of these generators has {metric}.")
    rows = {(label(row), group.generator): row for group in groups for row in group.ranked if metric in row.metrics}
    often = Counter(name for name, _ in rows)
    names = [name for name, count in often.items() if count > 1]
    if not names:
        return Blank(title, "No strategy was run with two of these generators.")
    drawn, drawn_groups = names[:MOST_ROWS], groups[:MOST_COLUMNS]
    columns = []
    for group in drawn_groups:
        present = [rows.get((name, group.generator)) for name in drawn]
        means = [row.metrics[metric].mean or 0.0 for row in present if row]
        shade = rising(min(means, default=0.0), max(means, default=0.0), group.scales[metric])
        columns.append([estimated(row.metrics[metric], shade) if row else None for row in present])
    return Grid(
        title=f"{title}: {first.samples}, {first.language}",
        reading=f"Mean {metric} ({first.scales[metric].unit}) and its 95% interval. The darker the better, within the "
        "column of a generator.",
        corner="strategy",
        rows=tuple(drawn),
        columns=tuple(group.generator for group in drawn_groups),
        cells=tuple(zip(*columns, strict=True)),
        remarks=(
            *_cut(len(drawn), len(names), "strategies that two generators ran", "that rank best with the first"),
            *_cut(len(drawn_groups), len(groups), "generators", "by name"),
        ),
    )


def _around_zero(largest: float, group: Group, *, least: int = 0) -> Shade:
    """Return the shade of a difference, up for the better: the darkest at the largest, of none less than `least`."""
    sign = -1 if group.scales[group.metric].lower_is_better else 1

    def shade(value: float) -> int:
        steps = max(least, round(SHADES * abs(value) / largest)) if largest else 0
        return round(math.copysign(steps, sign * value))

    return shade


def rising(low: float, high: float, scale: Scale) -> Shade:
    """Return the shade of a mean: none at the worst, the darkest at the best."""
    worst, best = (high, low) if scale.lower_is_better else (low, high)
    return lambda value: 0 if worst == best else round(SHADES * (value - worst) / (best - worst))


def estimated(estimate: Estimate, shade: Shade) -> GridCell | None:
    """Return the cell of a mean above its interval; None without a mean."""
    if estimate.mean is None:
        return None
    mean, _, interval = numbers.interval(estimate.mean, estimate.low, estimate.high).partition(" ")
    return GridCell(text=mean, detail=interval, shade=shade(estimate.mean))


def _reading(group: Group, largest: float | None, ends: tuple[float, float]) -> str:
    """Say how a cell of strategies by repositories is read; `largest` of gains, None of means."""
    scale = group.scales[group.metric]
    if largest is not None:
        baseline = baseline_label(group)
        return (
            f"{group.metric} ({scale.unit}) minus that of {baseline}, mean over the samples of a repository. "
            f"Blue: better than {baseline}. Orange: worse. "
            f"The darkest stands for {numbers.amount(largest)} {scale.unit}."
        )
    worst, best = reversed(ends) if scale.lower_is_better else ends
    return (
        f"Mean {group.metric} ({scale.unit}) over the samples of a repository. The darker the better, from "
        f"{numbers.amount(worst)} to {numbers.amount(best)}."
    )


def _of_repository(group: Group, row: Row, value: float | None, shade: Shade, *, sign: bool) -> GridCell | None:
    if value is None:
        return None
    # A repository has no interval of its own; it is never known better than all of them together.
    whole = row.difference.get(group.metric) if sign else row.metrics[group.metric]
    half = numbers.half_width(whole.low, whole.high) if whole else None
    return GridCell(text=numbers.value(value, half, sign=sign), shade=shade(value))


def _columns(lines: Sequence[Mapping[str, float]], repositories: Collection[str]) -> list[str]:
    """Return the repositories on which the lines differ most, by what the lines reach there, the highest first."""
    reached = {repo: [line[repo] for line in lines if repo in line] for repo in repositories}
    reached = {repo: values for repo, values in reached.items() if values}
    spread = sorted(
        reached, key=lambda repo: (-statistics.pstdev([*reached[repo], *([0.0] if len(lines) == 1 else [])]), repo)
    )
    return sorted(spread[:MOST_COLUMNS], key=lambda repo: (-statistics.fmean(reached[repo]), repo))


def _cut(drawn: int, every: int, what: str, which: str) -> Iterator[str]:
    if drawn < every:
        yield f"Drawn: the {drawn} of {every} {what} {which}."
