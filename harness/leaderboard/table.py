"""Stored runs -> leaderboard. Pure; what the numbers mean is in docs/statistics.md.

Runs are ranked together only within one sample set (by digest), language, level, generator and metric profile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ctxbench.harness.leaderboard import choices, levels
from ctxbench.harness.leaderboard import published as published_rows
from ctxbench.harness.leaderboard.columns import ScaleOf, scale_of
from ctxbench.harness.leaderboard.group import GroupMaker
from ctxbench.harness.leaderboard.rows import Board
from ctxbench.harness.results import RunTable


def board(
    tables: Sequence[RunTable],
    *,
    metric: str | None = None,
    baseline: str | None = None,
    by_level: bool | None = None,
    seed: int = 0,
    scale: ScaleOf = scale_of,
    published: published_rows.Mode = "none",
) -> Board:
    """Rank runs.

    Args:
        tables: one table a run and language, oldest run first: of several runs of one strategy in a group, the newest
            complete one is shown, or the newest if none is complete.
        metric: what ranks; None takes ``pass@1`` for functions, ``context_gain`` for the generator that measures
            contexts, else ``es``, else what there is.
        baseline: the strategy (spec or name) that differences refer to; None takes ``lc.infile``, else the first.
        by_level: add a group for each level; None: for CoderEval only.
        seed: decides drawn flips and bootstrap samples.
        scale: how a metric of a profile is shown.
        published: which rows of the papers' tables stand below: ``auto`` those of the runs' benchmarks and languages,
            ``all``, or ``none``.

    Raises:
        UnknownName: if no run has that metric or strategy.
    """
    choices.check(tables, metric, baseline)
    alike: dict[tuple[str, ...], list[RunTable]] = defaultdict(list)
    for table in tables:
        run = table.run
        alike[run.samples, run.language, run.profile, run.generator, run.samples_digest].append(table)
    # Chosen before they are cut into levels: all levels of a strategy are of one run.
    newest_tables = {key: choices.newest(members) for key, members in alike.items()}
    parts_by_group: dict[tuple[str, ...], list[RunTable]] = defaultdict(list)
    for key, members in newest_tables.items():
        for table in members:
            for level, part in levels.parts(table, by_level):
                parts_by_group[*key, level].append(part)
    ordered = sorted(parts_by_group.items(), key=lambda item: (*item[0][:-1], levels.order(item[0][-1])))
    groups = tuple(
        GroupMaker(members, level, metric=metric, baseline=baseline, seed=seed, scale=scale).group(
            superseded=len(alike[tuple(key)]) - len(newest_tables[tuple(key)])
        )
        for (*key, level), members in ordered
    )
    return Board(groups=groups, overall=levels.overall(groups), published=published_rows.listings(groups, published))
