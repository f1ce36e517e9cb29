"""The versions of a strategy over time: what each of them reached, the oldest first. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ctxbench.harness.leaderboard import choices, stats
from ctxbench.harness.leaderboard.grids import MOST_COLUMNS, MOST_ROWS, Blank, Grid, estimated, rising
from ctxbench.harness.leaderboard.rows import Group
from ctxbench.harness.leaderboard.scales import Scale, repositories, values
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.results import RunTable


def over_versions(tables: Sequence[RunTable], group: Group) -> Grid | Blank:
    """Return strategies by their versions; those of one version only are left out.

    Args:
        tables: the stored runs of the group, oldest first; also those that newer ones supersede.
        group: what ranks, and how it is shown.
    """
    title, scale = "Versions of a strategy, the oldest first", group.scales.get(group.metric)
    versions: dict[str, dict[str, RunTable]] = defaultdict(dict)
    for table in choices.file_labelled(tables):
        version = table.run.versions.get("strategy", "")
        earlier = versions[table.run.strategy].get(version)
        # Of several runs of one version the last complete one, in the place of the first.
        if version and table.run.ranked and (earlier is None or choices.complete(table)):
            versions[table.run.strategy][version] = table
    several = {name: list(runs.values()) for name, runs in versions.items() if len(runs) > 1}
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
    )


def _estimate(table: RunTable, group: Group, scale: Scale) -> Estimate:
    numbers_of = values(table, group.metric, scale)
    repos = repositories(table)
    return stats.estimate(
        list(numbers_of.values()),
        [repos[sample] for sample in numbers_of],
        seed=f"{group.samples_digest}/{group.metric}",
        bounds=scale.bounds,
    )
