"""Tables of the Compare page: differences from a baseline, repositories, levels, samples; default runs and names."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ctxbench.dashboard.views import Figure, estimated
from ctxbench.dashboard.views.leaderboard import DrawnTable
from ctxbench.harness.leaderboard import scales, selection
from ctxbench.harness.leaderboard.columns import INTERVAL, ColumnHead
from ctxbench.harness.leaderboard.compare import Compared
from ctxbench.harness.leaderboard.repetitions import variance_text
from ctxbench.harness.leaderboard.rows import Standing, pair_verdict
from ctxbench.harness.leaderboard.scales import scale_of, values
from ctxbench.harness.leaderboard.selection import differing_coders, run_warnings
from ctxbench.harness.leaderboard.stats import IntervalScope
from ctxbench.harness.results import RunInfo, RunTable

FEW, MOST_RUNS = 3, 6
"""Default and maximum number of compared runs, including the baseline."""
MOST_ROWS = 100

Row = dict[str, object]

_OVER = {
    IntervalScope.REPOSITORIES: "over repositories",
    IntervalScope.FILES: "over files",
    IntervalScope.SAMPLES: "over samples of these repositories only",
    IntervalScope.FLIPS: "by the test",
    IntervalScope.NONE: "no interval",
}


def headline(compared: Sequence[Compared], names: Mapping[str, str]) -> str:
    """Return a sentence about the first difference and its test. `names` maps run ids to displayed names."""
    pair = compared[0]
    difference, (this, other) = pair.difference, (names[pair.this.id], names[pair.other.id])
    if difference.mean is None:
        return f"{this} shares no completed sample with {other}."
    interval = scales.interval(difference.mean, difference.low, difference.high, sign=True)
    start = f"{this} minus {other}: {interval} {pair.unit} of {pair.metric}"
    if pair.this.control or pair.other.control:
        return f"{start}; controls are not tested."
    verdict = "significant" if difference.significant else "not significant"
    return f"{start}, p {scales.p_value(difference.p)}: {verdict}."


def difference_rows(compared: Sequence[Compared], names: Mapping[str, str]) -> list[Row]:
    """Return one row per pair of runs and metric. `names` maps run ids to displayed names."""
    rows: list[Row] = []
    for pair in compared:
        difference = pair.difference
        control = pair.this.control or pair.other.control
        rows.append(
            {
                "strategy": names[pair.this.id],
                f"difference {INTERVAL}": estimated(difference.mean, difference.low, difference.high, sign=True),
                "over": _OVER[difference.over],
                "p": None if control or difference.p is None else Figure(scales.p_value(difference.p), difference.p),
                "better": difference.wins,
                "equal": difference.ties,
                "worse": difference.losses,
                "common": difference.n_common,
                difference.unit.plural: difference.units,
            }
        )
    return rows


def remarks(compared: Sequence[Compared], names: Mapping[str, str]) -> list[str]:
    """Return remarks on the differences: warnings about runs, correction of p-values, verdicts and variances."""
    runs = [compared[0].other, *(pair.this for pair in compared)] if compared else []
    claims = [pair.difference.claim for pair in compared]
    sentences = [*filter(None, claims), *run_warnings(runs), *differing_coders(runs)]
    tested = max((pair.difference.pairs for pair in compared), default=0)
    if tested:
        which = f"the {tested} comparisons shown, corrected together" if tested > 1 else "this comparison alone"
        sentences.append(
            f"The p-values and intervals are for {which}; the Leaderboard page corrects for all of its rows."
        )
    for pair in compared:
        difference, name = pair.difference, names[pair.this.id]
        if pair.this.strategy != pair.other.strategy and pair.this.generator != pair.other.generator:
            sentences.append(
                f"{name}: strategy and generator both differ from the baseline, so neither effect can be isolated."
            )
        if pair.this.control or pair.other.control:
            which = name if pair.this.control else names[pair.other.id]
            sentences.append(f"{which} is a control: its difference is shown but not tested.")
        elif not difference.n_common:
            sentences.append(f"{name} shares no completed sample with the baseline.")
        elif verdict := pair_verdict(difference, pair.unit):
            sentences.append(f"{name}: {verdict}.")
        if difference.variance:
            text = variance_text(difference.variance, pair.this, pair.other)
            sentences.append(f"{name}: variance of the difference: {text}.")
    return list(dict.fromkeys(sentences))


def difference_table(compared: Sequence[Compared], names: Mapping[str, str], helps: Mapping[str, str]) -> DrawnTable:
    """Return `difference_rows` as a table with drawn intervals and a line at zero. `helps` explains the headings."""
    rows = difference_rows(compared, names)
    heads = tuple(ColumnHead(name, helps.get(name, ""), name in ("strategy", "over")) for name in rows[0])
    lines = [["-" if cell is None else getattr(cell, "text", str(cell)) for cell in row.values()] for row in rows]
    differences = [pair.difference for pair in compared]
    intervals = [None if of.mean is None else (of.mean, of.low, of.high) for of in differences]
    table = DrawnTable(
        caption=f"{compared[0].metric} ({compared[0].unit}) minus the baseline {names[compared[0].other.id]}",
        heads=heads,
        lines=lines,
        standings=tuple(_standing(pair) for pair in compared),
    )
    return table.with_bars(intervals, 0.0)


def _standing(pair: Compared) -> Standing:
    if pair.difference.p is None:
        return Standing.UNRANKED
    if not pair.difference.significant:
        return Standing.UNDECIDED
    lower = scale_of(pair.this.profile, pair.metric).lower_is_better
    return Standing.UNBEATEN if ((pair.difference.mean or 0.0) < 0) is lower else Standing.BEATEN


def level_rows(pair: Compared) -> list[Row]:
    """Return one row per level of two compared runs."""
    return [
        {
            "level": part.level,
            "samples": part.n,
            "baseline": _digits(part.other, scales.half_width(part.low, part.high)),
            "this run": _digits(part.this, scales.half_width(part.low, part.high)),
            f"difference {INTERVAL}": estimated(part.mean, part.low, part.high, sign=True),
            "over": _OVER[part.over],
        }
        for part in pair.levels
    ]


def unit_rows(pair: Compared) -> list[Row]:
    """Return one row per repository or file of two compared runs, the largest difference (run minus baseline) first."""
    half = scales.half_width(pair.difference.low, pair.difference.high)
    # A single unit has no interval, so its digits are those of the whole difference.
    return [
        {
            pair.difference.unit.noun: part.name,
            "samples": part.n,
            "baseline": _digits(part.other, half),
            "this run": _digits(part.this, half),
            "difference": _digits(part.this - part.other, half),
        }
        for part in sorted(pair.units, key=lambda part: (part.other - part.this, part.name))
    ]


def sample_rows(pair: Compared, address: Callable[[str], str]) -> list[Row]:
    """Return at most `MOST_ROWS` rows, one per differing sample, farthest apart first. `address` returns its URL."""
    of_pair = pair.paired
    samples, codes = of_pair.samples, of_pair.codes
    farthest: list[int] = np.argsort(-np.abs(of_pair.this - of_pair.other), kind="stable").tolist()
    return [
        {
            "open": address(samples[at]),
            "sample": samples[at],
            of_pair.of.unit.noun: of_pair.of.names[codes[at]],
            "baseline": Figure(scales.written(float(of_pair.other[at]), None)),
            "this run": Figure(scales.written(float(of_pair.this[at]), None)),
            "difference": Figure(scales.written(float(of_pair.this[at] - of_pair.other[at]), None, sign=True)),
        }
        for at in farthest[:MOST_ROWS]
        if of_pair.this[at] != of_pair.other[at]
    ]


def _digits(number: float | None, half: float | None) -> Figure | None:
    return None if number is None else Figure(scales.written(number, half))


def spelled(table: RunTable, *, generator: bool = False) -> str:
    """Return the text of a run in a list of options: strategy, generator if requested, number of runs if pooled, id."""
    runs = [f"{len(table.run.repetitions)} runs"] if table.run.repetitions else []
    return " · ".join([table.run.strategy, *([table.run.generator] if generator else []), *runs, table.run.id])


def labels(runs: Sequence[RunInfo]) -> tuple[str, ...]:
    """Return a distinct name per run: its strategy, with generator, origin or id where these differ."""
    names = [run.strategy for run in runs]
    if len({run.generator for run in runs}) > 1:
        names = [f"{run.strategy} · {run.generator}" for run in runs]
    for more in ("origin", "id"):
        often = Counter(names)
        # Add only what differs among runs with the same name.
        suffixes = {
            name: {getattr(run, more) for run, other in zip(runs, names, strict=True) if other == name}
            for name in often
        }
        names = [
            f"{name} · {getattr(run, more)}" if often[name] > 1 and len(suffixes[name]) > 1 else name
            for run, name in zip(runs, names, strict=True)
        ]
    return tuple(names)


def usual_baseline(tables: Sequence[RunTable]) -> RunTable:
    """Return the default baseline: the newest run of ``lc.infile``, or the first ranked run, or the first run."""
    newest = selection.newest(tables)
    ranked = [index for index, table in enumerate(newest) if table.run.ranked]
    at = selection.baseline(newest, ranked, ranked, None)
    return newest[at or 0]


def usual_others(tables: Sequence[RunTable], baseline: RunTable, metric: str) -> list[RunTable]:
    """Return the best runs to compare with a baseline by default: at most `FEW` minus 1, without controls.

    The runs are by the baseline's generator; without such runs, of the baseline's strategy; without either, any runs.
    """
    generators = dict.fromkeys(table.run.generator for table in tables)
    newest = [
        table
        for name in generators
        for table in selection.newest([table for table in tables if table.run.generator == name])
        if table.run.ranked and table.run.id != baseline.run.id
    ]
    scale = scale_of(baseline.run.profile, metric)
    sign = 1.0 if scale.lower_is_better else -1.0
    means = {table.run.id: list(values(table, metric, scale).values()) for table in newest}
    able = [table for table in newest if means[table.run.id]]
    able.sort(key=lambda table: (sign * statistics.fmean(means[table.run.id]), table.run.strategy))
    alike = (
        [table for table in able if table.run.generator == baseline.run.generator],
        [table for table in able if table.run.strategy == baseline.run.strategy],
        able,
    )
    return next((group for group in alike if group), [])[: FEW - 1]
