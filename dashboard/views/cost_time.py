"""Where time goes: a sample's by stage, and what makes a repository searchable. Pure."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import altair as alt

from ctxbench.dashboard.theme import SERIES
from ctxbench.dashboard.views.compare import Row
from ctxbench.dashboard.views.compare_choice import labels
from ctxbench.dashboard.views.cost import amount, cost
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.rows import Group

if TYPE_CHECKING:
    from ctxbench.harness.store.attempts import ConstructionTime

STAGES: Mapping[str, str] = {"strategy_seconds": "method", "generator_seconds": "model", "test_seconds": "tests"}
"""Where a sample's time goes, in the order in which it passes."""
MOST_BARS = 40
"""Repositories that a chart shows, those that took longest; its table shows all."""
_LABEL = 240


def stage_rows(group: Group) -> list[Row]:
    """Return one row a strategy: its mean seconds a sample, by the stages that anybody knows."""
    names = labels([row.run for row in group.rows])
    known = {name: shown for name, shown in STAGES.items() if any(cost(row, name) is not None for row in group.rows)}
    return [
        {"strategy": label, **{shown: amount(cost(row, name)) for name, shown in known.items()}}
        for row, label in zip(group.rows, names, strict=True)
    ]


def stage_chart(group: Group) -> alt.Chart:
    """Return a stacked bar a strategy: its mean seconds a sample by stage."""
    rows = stage_rows(group)
    parts = [
        {"name": row["strategy"], "stage": shown, "order": at, "seconds": cost(of, name), "shown": row[shown]}
        for row, of in zip(rows, group.rows, strict=True)
        for at, (name, shown) in enumerate(STAGES.items())
        if cost(of, name) is not None
    ]
    stages = [shown for shown in STAGES.values() if shown in rows[0]]
    return _stacked(parts, [str(row["strategy"]) for row in rows], stages, "seconds a sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Construction:
    """How long one stage of making one repository searchable took."""

    repo: str
    stage: str
    seconds: float
    """Mean over the attempts that did it."""
    attempts: int


def construction(built: Iterable[ConstructionTime]) -> list[Construction]:
    """Return repository and stage -> seconds, sorted; an attempt's add up, attempts are averaged."""
    totals: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for one in built:
        totals[one.repo, one.stage][one.attempt] += one.seconds
    return [
        Construction(repo=repo, stage=stage, seconds=statistics.fmean(found.values()), attempts=len(found))
        for (repo, stage), found in sorted(totals.items())
    ]


def construction_rows(found: Sequence[Construction]) -> list[Row]:
    """Return one row a repository and stage."""
    return [
        {"repository": one.repo, "stage": one.stage, "seconds": amount(one.seconds), "attempts": one.attempts}
        for one in found
    ]


def short(stages: Collection[str]) -> dict[str, str]:
    """Return stage -> its name without the arguments of specs, for a legend; with them where names would be equal."""
    bare = {stage: re.sub(r"\([^()]*\)", "", stage) for stage in stages}
    often = Counter(bare.values())
    return {stage: name if often[name] == 1 else stage for stage, name in bare.items()}


def construction_chart(found: Sequence[Construction]) -> alt.Chart:
    """Return a stacked bar a repository, the one that took longest on top."""
    total: dict[str, float] = defaultdict(float)
    for one in found:
        total[one.repo] += one.seconds
    repos = sorted(total, key=lambda repo: (-total[repo], repo))[:MOST_BARS]
    names = short(sorted({one.stage for one in found}))
    stages = list(names.values())
    parts: list[Row] = [
        {
            "name": one.repo,
            "stage": names[one.stage],
            "order": stages.index(names[one.stage]),
            "seconds": one.seconds,
            "shown": numbers.amount(one.seconds),
        }
        for one in found
        if one.repo in set(repos)
    ]
    return _stacked(parts, repos, stages, "seconds a repository")


def _stacked(parts: Sequence[Row], names: Sequence[str], stages: Sequence[str], title: str) -> alt.Chart:
    colours = [SERIES[at % len(SERIES)] for at in range(len(stages))]
    drawn: alt.Chart = (
        alt.Chart(alt.InlineData(values=list(parts)))
        .mark_bar()
        .encode(
            x=alt.X("seconds:Q", title=title, stack="zero"),
            y=alt.Y("name:N", sort=list(names), title=None, axis=alt.Axis(labelLimit=_LABEL, labelFlush=False)),
            color=alt.Color(
                "stage:N",
                scale=alt.Scale(domain=list(stages), range=colours),
                legend=alt.Legend(title=None, orient="top", direction="vertical", labelLimit=_LABEL),
            ),
            order="order:Q",
            tooltip=[alt.Tooltip("name:N"), alt.Tooltip("stage:N"), alt.Tooltip("shown:N", title="seconds")],
        )
        .properties(height=alt.Step(26))
    )
    return drawn
