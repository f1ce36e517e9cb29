"""Tables and charts of time: a sample's by stage, and a repository's until it can be searched. Pure."""

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
    from ctxbench.harness.store.work import ConstructionTime

STAGES: Mapping[str, str] = {"strategy_seconds": "method", "generator_seconds": "model", "test_seconds": "tests"}
"""Where a sample's time goes, in the order in which it passes."""
MOST_BARS = 40
"""Repositories that a chart shows, those that took longest; its table shows all."""
_LABEL = 240


def stage_rows(group: Group) -> list[Row]:
    """Return one row a strategy: its mean seconds a sample, by the stages that anybody knows."""
    names = labels([row.run for row in group.rows])
    stages = {name: title for name, title in STAGES.items() if any(cost(row, name) is not None for row in group.rows)}
    return [
        {"strategy": label, **{title: amount(cost(row, name)) for name, title in stages.items()}}
        for row, label in zip(group.rows, names, strict=True)
    ]


def stage_chart(group: Group) -> alt.Chart:
    """Return a stacked bar a strategy: its mean seconds a sample by stage."""
    rows = stage_rows(group)
    parts = [
        {"name": row["strategy"], "stage": title, "order": at, "seconds": cost(of, name), "shown": row[title]}
        for row, of in zip(rows, group.rows, strict=True)
        for at, (name, title) in enumerate(STAGES.items())
        if cost(of, name) is not None
    ]
    stages = [title for title in STAGES.values() if title in rows[0]]
    return _stacked(parts, [str(row["strategy"]) for row in rows], stages, "seconds a sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """How long one stage of making one repository searchable took."""

    repo: str
    stage: str
    seconds: float
    """Mean over the attempts that did it."""
    attempts: int


def construction(built: Iterable[ConstructionTime]) -> list[StageTime]:
    """Return repository and stage -> seconds, sorted; an attempt's add up, attempts are averaged."""
    totals: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for stage_time in built:
        totals[stage_time.repo, stage_time.stage][stage_time.attempt] += stage_time.seconds
    return [
        StageTime(repo=repo, stage=stage, seconds=statistics.fmean(by_attempt.values()), attempts=len(by_attempt))
        for (repo, stage), by_attempt in sorted(totals.items())
    ]


def construction_rows(stage_times: Sequence[StageTime]) -> list[Row]:
    """Return one row a repository and stage."""
    return [
        {
            "repository": stage.repo,
            "stage": stage.stage,
            "seconds": amount(stage.seconds),
            "attempts": stage.attempts,
        }
        for stage in stage_times
    ]


def short(stages: Collection[str]) -> dict[str, str]:
    """Return stage -> its name without the arguments of specs, for a legend; with them where names would be equal."""
    bare = {stage: re.sub(r"\([^()]*\)", "", stage) for stage in stages}
    often = Counter(bare.values())
    return {stage: name if often[name] == 1 else stage for stage, name in bare.items()}


def construction_chart(stage_times: Sequence[StageTime]) -> alt.Chart:
    """Return a stacked bar a repository, the one that took longest on top."""
    total: dict[str, float] = defaultdict(float)
    for stage_time in stage_times:
        total[stage_time.repo] += stage_time.seconds
    repos = sorted(total, key=lambda repo: (-total[repo], repo))[:MOST_BARS]
    names = short(sorted({stage_time.stage for stage_time in stage_times}))
    stages = list(names.values())
    parts: list[Row] = [
        {
            "name": stage_time.repo,
            "stage": names[stage_time.stage],
            "order": stages.index(names[stage_time.stage]),
            "seconds": stage_time.seconds,
            "shown": numbers.amount(stage_time.seconds),
        }
        for stage_time in stage_times
        if stage_time.repo in set(repos)
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
