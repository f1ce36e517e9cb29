"""From runs side by side to tables and charts: differences, repositories, levels, what is missing. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from ctxbench.dashboard.theme import SERIES
from ctxbench.dashboard.views.figure import Figure
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.columns import completed
from ctxbench.harness.leaderboard.comparability import bits_apart, run_warnings
from ctxbench.harness.leaderboard.compare import Compared
from ctxbench.harness.leaderboard.pairs import can_be_told_apart
from ctxbench.harness.leaderboard.stats import IntervalScope
from ctxbench.harness.results import RunTable, Status

Row = dict[str, object]

THIS, BASELINE = SERIES[0], SERIES[1]
MOST_BARS = 40
"""Repositories that a chart shows; its table shows all."""
_LABEL = 240
_OVER = {
    IntervalScope.REPOSITORIES: "over repositories",
    IntervalScope.SAMPLES: "over samples of these repositories only",
    IntervalScope.NONE: "no interval",
}


def difference_rows(compared: Sequence[Compared], names: Mapping[str, str]) -> list[Row]:
    """Return one row a pair of one metric; `names` maps a run's id to what it is called."""
    rows: list[Row] = []
    for one in compared:
        found = one.difference
        control = one.this.control or one.other.control
        rows.append(
            {
                "strategy": names[one.this.id],
                "difference": _rounded(found.mean, found.low, found.high),
                "95% interval": _interval(found.low, found.high),
                "over": _OVER[found.over],
                "p": None if control or found.p_holm is None else Figure(numbers.p_value(found.p_holm), found.p_holm),
                "better": found.wins,
                "equal": found.ties,
                "worse": found.losses,
                "common": found.n_common,
                "repositories": found.repositories,
            }
        )
    return rows


def remarks(compared: Sequence[Compared], names: Mapping[str, str]) -> list[str]:
    """Return what a reader must know of these differences, a sentence each."""
    runs = [compared[0].other, *(one.this for one in compared)] if compared else []
    said = [*run_warnings(runs), *bits_apart(runs)]
    tested = max((one.difference.pairs for one in compared), default=0)
    if tested > 1:
        said.append(f"p-values are corrected (Holm) for the {tested} comparisons shown.")
    for one in compared:
        found, name = one.difference, names[one.this.id]
        if one.this.strategy != one.other.strategy and one.this.generator != one.other.generator:
            said.append(
                f"{name}: strategy and generator differ from the baseline's: the difference is of both together."
            )
        if one.this.control or one.other.control:
            which = name if one.this.control else names[one.other.id]
            said.append(f"{which} is a control: it is compared, and not tested.")
        elif not found.n_common:
            said.append(f"{name} shares no completed sample with the baseline.")
        elif not can_be_told_apart(found.repositories, found.pairs):
            said.append(
                f"{name}: no difference of {found.repositories} repositories can be significant at 5%"
                + (f" among {found.pairs} comparisons." if found.pairs > 1 else ".")
            )
        elif not found.wins and not found.losses:
            said.append(f"{name} has the baseline's value at every sample.")
        elif found.visible is not None:
            least = numbers.value(found.visible, numbers.half_width(found.low, found.high))
            said.append(f"{name}: the smallest difference that these samples can show is about {least} {one.unit}.")
    return list(dict.fromkeys(said))


def difference_chart(compared: Sequence[Compared], names: Mapping[str, str]) -> alt.LayerChart:
    """Return the differences with their intervals as bars, beside a line at zero."""
    rows = [
        _bar(names[one.this.id], one.difference.mean, one.difference.low, one.difference.high, one.unit)
        for one in compared
    ]
    return _intervals(rows, compared[0].unit if compared else "")


def level_rows(one: Compared) -> list[Row]:
    """Return one row a level of one pair."""
    return [
        {
            "level": part.level,
            "samples": part.n,
            "baseline": _rounded(part.other, part.low, part.high),
            "this run": _rounded(part.this, part.low, part.high),
            "difference": _rounded(part.mean, part.low, part.high),
            "95% interval": _interval(part.low, part.high),
            "over": _OVER[part.over],
        }
        for part in one.levels
    ]


def level_chart(one: Compared) -> alt.LayerChart:
    """Return the difference at each level with its interval."""
    rows = [_bar(f"{part.level} (n {part.n})", part.mean, part.low, part.high, one.unit) for part in one.levels]
    return _intervals(rows, one.unit)


def repository_rows(one: Compared) -> list[Row]:
    """Return one row a repository of one pair, the largest gain first."""
    half = numbers.half_width(one.difference.low, one.difference.high)
    # A repository has no interval of its own; it is never known better than the difference of all.
    return [
        {
            "repository": part.repo,
            "samples": part.n,
            "baseline": _digits(part.other, half),
            "this run": _digits(part.this, half),
            "difference": _digits(part.this - part.other, half),
        }
        for part in sorted(one.repositories, key=lambda part: (part.other - part.this, part.repo))
    ]


def repository_chart(one: Compared) -> alt.LayerChart:
    """Return a dumbbell a repository: baseline and strategy joined by a line, the largest gain on top.

    Of more than `MOST_BARS` repositories, those with the largest differences.
    """
    rows = repository_rows(one)
    if len(rows) > MOST_BARS:
        largest = sorted(one.repositories, key=lambda part: (-abs(part.this - part.other), part.repo))[:MOST_BARS]
        shown = {part.repo for part in largest}
        rows = [row for row in rows if row["repository"] in shown]
    joined = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("repository:N", sort=[str(row["repository"]) for row in rows], title=None, axis=_axis()),
        tooltip=[
            alt.Tooltip("repository:N"),
            alt.Tooltip("samples:Q"),
            alt.Tooltip("baseline:Q"),
            alt.Tooltip("this run:Q"),
            alt.Tooltip("difference:Q"),
        ],
    )
    title = f"{one.metric} ({one.unit})"
    line = joined.mark_rule(strokeWidth=2, color=SERIES[7]).encode(
        x=alt.X("baseline:Q", title=title, scale=alt.Scale(zero=False), axis=_under()), x2="this run:Q"
    )
    before = joined.mark_point(filled=True, size=70, color=BASELINE, shape="diamond", opacity=1).encode(x="baseline:Q")
    after = joined.mark_point(filled=True, size=70, color=THIS, opacity=1).encode(x="this run:Q")
    return alt.LayerChart(layer=[line, before, after]).properties(height=alt.Step(20))


def count_rows(tables: Sequence[RunTable], names: Mapping[str, str]) -> list[Row]:
    """Return what became of the samples in each run, over every sample that any of them was to do."""
    every = {sample for table in tables for sample in table.sample}
    return [
        {
            "strategy": names[table.run.id],
            "run": table.run.id,
            "completed": len(completed(table)),
            "model failed": table.status.count(Status.MODEL_FAILED),
            "unscored": table.status.count(Status.INFRA_FAILED),
            "excluded": table.status.count(Status.EXCLUDED),
            "not in the run": len(every - set(table.sample)),
        }
        for table in tables
    ]


def missing_rows(tables: Sequence[RunTable], names: Mapping[str, str]) -> list[Row]:
    """Return the samples that some of the runs completed and others did not: these are compared in no pair of both."""
    held = [{table.sample[index] for index in completed(table)} for table in tables]
    status = [dict(zip(table.sample, table.status, strict=True)) for table in tables]
    rows: list[Row] = []
    for sample in sorted(set[str]().union(*held) - held[0].intersection(*held)):
        lacking = [at for at, mine in enumerate(held) if sample not in mine]
        rows.append(
            {
                "sample": sample,
                "missing in": ", ".join(names[tables[at].run.id] for at in lacking),
                "why": ", ".join(dict.fromkeys(str(status[at].get(sample, "not in the run")) for at in lacking)),
            }
        )
    return rows


def _rounded(number: float | None, low: float | None, high: float | None) -> Figure | None:
    return _digits(number, numbers.half_width(low, high))


def _digits(number: float | None, half: float | None) -> Figure | None:
    """Return a number that sorts as one and shows the digits that its interval justifies."""
    return None if number is None else Figure(numbers.value(number, half))


def _interval(low: float | None, high: float | None) -> str:
    half = numbers.half_width(low, high)
    if half is None:
        return numbers.UNKNOWN
    return f"[{numbers.value(low, half, sign=True)}, {numbers.value(high, half, sign=True)}]"


def _bar(name: str, mean: float | None, low: float | None, high: float | None, unit: str) -> Row:
    shown = f"{numbers.interval(mean, low, high, sign=True)} {unit}"
    return {"name": name, "mean": mean, "low": low, "high": high, "shown": shown}


def _intervals(rows: Sequence[Row], unit: str) -> alt.LayerChart:
    """Return one line a row: its interval as a bar, its mean as a point, and a line at zero."""
    names = [str(row["name"]) for row in rows]
    base = alt.Chart(alt.InlineData(values=list(rows))).encode(
        y=alt.Y("name:N", sort=names, title=None, axis=_axis()),
        tooltip=[alt.Tooltip("name:N", title="strategy"), alt.Tooltip("shown:N", title="difference")],
    )
    zero = (
        alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4], color=SERIES[7]).encode(x="zero:Q")
    )
    title = f"difference to the baseline ({unit})"
    bar = base.mark_bar(height=6, opacity=0.55, color=THIS).encode(
        x=alt.X("low:Q", title=title, axis=_under()), x2="high:Q"
    )
    point = base.mark_point(filled=True, size=110, color=THIS, opacity=1).encode(x="mean:Q")
    return alt.LayerChart(layer=[zero, bar, point]).properties(height=alt.Step(32))


def _axis() -> alt.Axis:
    return alt.Axis(labelLimit=_LABEL, labelFlush=False)


def _under() -> alt.Axis:
    """Return an axis whose title ends where it ends: there is room to the left of it, on a phone too."""
    return alt.Axis(format="~g", titleAnchor="end", titleAlign="right")
