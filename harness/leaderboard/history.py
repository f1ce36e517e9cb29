"""The versions of a strategy over time: what each of them reached, the oldest first. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ctxbench.harness.leaderboard import choices, stats
from ctxbench.harness.leaderboard.comparability import coders_of
from ctxbench.harness.leaderboard.grids import MOST_COLUMNS, MOST_ROWS, Blank, Grid, estimated, rising
from ctxbench.harness.leaderboard.repetitions import pooled
from ctxbench.harness.leaderboard.rows import Group, level_parts
from ctxbench.harness.leaderboard.scales import Scale, repositories, values
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.metrics.profile import BIT_METRICS
from ctxbench.harness.results import RunTable


def over_versions(tables: Sequence[RunTable], group: Group) -> Grid | Blank:
    """Return strategies by their versions; those of one version only are left out.

    Args:
        tables: the stored runs of the group, oldest first; also those that newer ones supersede. Those that differ only
            in the seed are pooled, as on the board.
        group: what ranks, at which level, and how it is shown.
    """
    title, scale = "Versions of a strategy, the oldest first", group.scales.get(group.metric)
    versioned = [table for table in choices.file_labelled(tables) if _version(table) and table.run.ranked]
    labelled = [table for table in versioned if not _in_other_bits(table, group)]
    # In the order of their first runs, whenever they were repeated.
    versions: dict[str, dict[str, RunTable | None]] = defaultdict(dict)
    for table in labelled:
        versions[table.run.strategy][_version(table)] = None
    for table in pooled(labelled):
        of_strategy = versions[table.run.strategy]
        # Of several runs of one version the last complete one.
        if of_strategy[_version(table)] is None or choices.complete(table):
            of_strategy[_version(table)] = table
    at_level = {
        name: [part for run in runs.values() if run and (part := dict(level_parts(run, True)).get(group.level))]
        for name, runs in versions.items()
        if len(runs) > 1  # most have no history, and need not be cut
    }
    several = {name: runs for name, runs in at_level.items() if len(runs) > 1}
    if not several or scale is None:
        return Blank(title, "No strategy here was run in two versions.")
    drawn = dict(sorted(several.items())[:MOST_ROWS])
    longest = min(max(map(len, drawn.values())), MOST_COLUMNS)
    lines = []
    for name, runs in drawn.items():
        estimates = [_estimate(table, group, scale) for table in runs[-longest:]]
        means = [estimate.mean for estimate in estimates if estimate.mean is not None]
        shade = rising(min(means, default=0.0), max(means, default=0.0), scale)
        lines.append((name, [estimated(estimate, shade) for estimate in estimates]))
    return Grid(
        title=title,
        reading=f"Mean {group.metric} ({scale.unit}) and its 95% interval; the newest version stands on the right. The "
        "darker the better, within a row.",
        corner="strategy",
        rows=tuple(name for name, _ in lines),
        columns=(*(f"{before} before" for before in range(longest - 1, 0, -1)), "newest"),
        cells=tuple((None,) * (longest - len(cells)) + tuple(cells) for _, cells in lines),
        remarks=tuple(_left_out(len(versioned) - len(labelled))),
    )


def _version(table: RunTable) -> str:
    """Return the version of the strategy; empty where nobody knows it."""
    return table.run.versions.get("strategy", "")


def _in_other_bits(table: RunTable, group: Group) -> bool:
    """Return whether a run's values are bits that another model measured than those of the group: another unit."""
    if group.metric not in BIT_METRICS or group.metric not in table.metrics:
        return False
    return not {*coders_of([table.run])} & {*coders_of([row.run for row in group.rows if group.metric in row.metrics])}


def _left_out(count: int) -> list[str]:
    runs = "1 run is" if count == 1 else f"{count} runs are"
    return [f"{runs} left out: another model measured the bits, which is another unit."] if count else []


def _estimate(table: RunTable, group: Group, scale: Scale) -> Estimate:
    numbers_of = values(table, group.metric, scale)
    repos = repositories(table)
    return stats.estimate(
        list(numbers_of.values()),
        [repos[sample] for sample in numbers_of],
        seed=f"{group.samples_digest}/{group.metric}",
        bounds=scale.bounds,
    )
