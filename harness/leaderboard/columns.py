"""Defines each leaderboard column once (heading, help, value, text), for all output formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.harness.leaderboard.selection import leading
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.results import ACCESS, COSTS, ENGINE_COSTS, OFFLINE_COSTS, PRICE, SUMMARY_COSTS, Origin

Value: TypeAlias = float | str | None
"""Value of a cell. Integers are counts and are printed without rounding."""
INTERVAL = "[95%]"
"""Suffix of the headings of columns that contain means with intervals."""
INTERVAL_HELP = (
    "Mean over samples, with its 95% interval over five or more repositories, or over the files of a single repository."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a leaderboard."""

    key: str
    """Name in JSON, in CSV and in lists of columns."""
    heading: str | Callable[[Group], str] = ""
    """Heading, or a function that returns it; empty for columns that only JSON and CSV have."""
    help: str = ""
    """One or two sentences for hover text and the report's glossary; may be empty."""
    value: Callable[[Group, Row], Value]
    """Function that returns the unrounded value, for JSON and CSV; None if unknown."""
    text: Callable[[Group, Row], str] | None = None
    """Function that returns the cell's text, with rounded numbers. If None, the value or a dash is printed."""
    term: str = ""
    """Name in the report's glossary, if the heading depends on the group."""
    is_text: bool = False
    """Whether the column contains words, aligned left, instead of numbers."""

    def head(self, group: Group) -> str:
        """Return the column's heading in a group's table."""
        return self.heading if isinstance(self.heading, str) else self.heading(group)

    def written(self, group: Group, row: Row) -> str:
        """Return the text of the column's cell in a row."""
        if self.text is not None:
            return self.text(group, row)
        value = self.value(group, row)
        return scales.UNKNOWN if value is None else str(value)


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """Heading of a column in a text table, with its help."""

    text: str
    help: str = ""
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of a board with all cells as text."""

    heads: tuple[ColumnHead, ...]
    lines: list[list[str]]
    caption: str = ""

    @classmethod
    def of(cls, columns: Iterable[Column], group: Group, caption: str = "") -> TextTable:
        """Return a group's rows as a table with these columns."""
        columns = tuple(columns)
        heads = tuple(ColumnHead(column.head(group), column.help, column.is_text) for column in columns)
        return cls(heads, [[column.written(group, row) for column in columns] for row in group.rows], caption)


def heading(group: Group, metric: str) -> str:
    """Return the heading of a metric's column: its name and unit."""
    return group.scales[metric].heading(metric) if metric in group.scales else metric


def metric_column(group: Group, metric: str) -> Column:
    """Return the column of a metric's means with their intervals."""
    scale = group.scales.get(metric)
    return Column(
        key=metric,
        heading=f"{heading(group, metric)} {INTERVAL}",
        help=" ".join(filter(None, (scale.explained if scale else "", INTERVAL_HELP))),
        value=lambda _, row: mean(row, metric),
        text=lambda _, row: interval_of(row, metric),
    )


def mean_column(group: Group, metric: str) -> Column:
    """Return the column of a metric's means, rounded by their intervals but printed without them."""

    def text(_: Group, row: Row) -> str:
        found = row.metrics.get(metric)
        half = scales.half_width(found.low, found.high) if found else None
        return scales.written(found.mean, half) if found else scales.UNKNOWN

    explained = group.scales[metric].explained if metric in group.scales else ""
    value = metric_column(group, metric).value
    return Column(key=metric, heading=heading(group, metric), help=explained, value=value, text=text)


def label(row: Row) -> str:
    """Return a row's displayed name: strategy, then ``(control)`` or, unless run here, the origin in parentheses."""
    if row.run.control:
        return f"{row.run.strategy} (control)"
    return row.run.strategy if row.run.origin is Origin.RUN else f"{row.run.strategy} ({row.run.origin})"


def baseline_label(group: Group) -> str:
    """Return the displayed name of the baseline; empty without a baseline."""
    return "" if group.base is None else label(group.base)


def rank(row: Row) -> str:
    """Return the ranks that significant differences allow a row, such as ``1-2``; a dash if it is not ranked."""
    if row.rank_low is None:
        return scales.UNKNOWN
    return str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low}-{row.rank_high}"


def mean(row: Row, metric: str) -> float | None:
    """Return a row's mean of a metric; None without the metric."""
    return row.metrics[metric].mean if metric in row.metrics else None


def interval_of(row: Row, metric: str) -> str:
    """Return a row's mean of a metric with its interval, as text; a dash without the metric."""
    estimate = row.metrics.get(metric)
    return scales.interval(estimate.mean, estimate.low, estimate.high) if estimate else scales.UNKNOWN


def _mean_of_repositories(group: Group, row: Row) -> str:
    estimate = row.metrics.get(group.metric)
    half = scales.half_width(estimate.low, estimate.high) if estimate else None
    return scales.written(estimate.mean_of_repositories, half) if estimate else ""


def _difference(row: Row, metric: str) -> str:
    difference = row.difference.get(metric)
    return scales.interval(difference.mean, difference.low, difference.high, sign=True) if difference else ""


def _p(row: Row, metric: str) -> float | None:
    difference = row.difference.get(metric)
    return None if difference is None else difference.p


def _verdict(group: Group, row: Row) -> str:
    difference = row.difference.get(group.metric)
    if row is group.base:
        return "baseline"
    if row.run.control or row.missing:
        return "control" if row.run.control else "incomplete"
    if difference is None or difference.p is None:
        return "not tested"
    if not difference.significant:
        return "not significant"
    is_lower = (difference.mean or 0.0) < 0
    return "better" if is_lower is group.scales[group.metric].lower_is_better else "worse"


def _p_text(row: Row, metric: str) -> str:
    return "" if row.difference.get(metric) is None else scales.p_value(_p(row, metric))


def _cutoff_columns(part: str, preposition: str) -> tuple[Column, Column]:
    def estimate(row: Row) -> Estimate | None:
        of_part: Estimate | None = getattr(row, part)
        return of_part

    def heading(group: Group) -> str:
        return f"{preposition} {group.ages.cutoff if group.ages else 'cutoff'}"

    def text(_: Group, row: Row) -> str:
        of_part = estimate(row)
        return scales.interval(of_part.mean, of_part.low, of_part.high) if of_part else scales.UNKNOWN

    count = Column(
        key=f"{part}_n",
        heading=lambda group: f"n {heading(group)}",
        help=f"Samples whose code is dated {preposition} the last day of the model's training data.",
        value=lambda _, row: getattr(estimate(row), "n", None),
    )
    means = Column(
        key=part,
        heading=lambda group: f"{heading(group)} {INTERVAL}",
        help=f"Mean of the ranking metric over samples dated {preposition} the last day of the model's training data.",
        value=lambda _, row: getattr(estimate(row), "mean", None),
        text=text,
    )
    return count, means


def cost_column(
    key: str,
    heading: str = "",
    help: str = "",  # noqa: A002 - as the field is called
    *,
    write: Callable[[float | None], str] = scales.amount,
) -> Column:
    """Return the column of a cost. `key` is a key of `Row.costs`."""
    return Column(
        key=key,
        heading=heading,
        help=help,
        value=lambda _, row: row.costs.get(key),
        text=lambda _, row: write(row.costs.get(key)),
    )


def _offline_column(key: str) -> Column:
    return Column(key=key, value=lambda _, row: row.run.offline.get(key))


def _middle_column(key: str, heading: str, text: str) -> Column:
    def written(group: Group, row: Row) -> str:
        estimate = row.metrics.get(group.metric)
        half = scales.half_width(estimate.low, estimate.high) if estimate else None
        return scales.written(getattr(estimate, key, None), half)

    return Column(
        key=key,
        heading=heading,
        help=text,
        value=lambda group, row: getattr(row.metrics.get(group.metric), key, None),
        text=written,
    )


_ALL = (
    Column(
        key="rank",
        heading="rank",
        help="Ranks that the significant differences allow: 1-3 means that any of these three is possible.",
        value=lambda _, row: rank(row),
    ),
    Column(
        key="group",
        heading="group",
        help="Letters: rows that share a letter are not significantly different, after correction for all pairs.",
        value=lambda _, row: row.letters,
        is_text=True,
    ),
    Column(
        key="strategy",
        heading="strategy",
        help="The method that chooses which parts of the repository the model sees.",
        value=lambda _, row: label(row),
        is_text=True,
    ),
    Column(
        key="n",
        heading="n",
        help="Samples that count: scored samples, and samples without a usable answer, which count as the worst value.",
        value=lambda _, row: row.n,
    ),
    Column(
        key="runs",
        heading="runs",
        help="Number of runs that differ only in the seed; a sample's value is its mean over these runs.",
        value=lambda _, row: len(row.run.repetitions) or None,
        text=lambda _, row: str(len(row.run.ids)),
    ),
    Column(
        key="missing",
        heading="missing",
        help="Samples without a result, because the strategy or the machine failed, or the run was interrupted.",
        value=lambda _, row: row.missing,
    ),
    Column(
        key="excluded",
        heading="invalid",
        help="Samples left out because their tests cannot judge them.",
        value=lambda _, row: row.excluded or None,
        text=lambda _, row: str(row.excluded),
    ),
    Column(
        key="metric",
        heading=lambda group: f"{heading(group, group.metric)} {INTERVAL}",
        term=f"mean {INTERVAL}",
        help=INTERVAL_HELP,
        value=lambda group, row: mean(row, group.metric),
        text=lambda group, row: interval_of(row, group.metric),
    ),
    Column(
        key="mean_of_repositories",
        heading="by repo",
        help="Mean of the repositories' means, in which each repository has the same weight.",
        value=lambda group, row: getattr(row.metrics.get(group.metric), "mean_of_repositories", None),
        text=_mean_of_repositories,
    ),
    _middle_column("median", "median", "Median over samples, in bits; a few samples can dominate the mean."),
    _middle_column("trimmed", "trimmed", "Mean without the lowest and the highest tenth of the samples, in bits."),
    Column(
        key="difference",
        heading=lambda group: f"vs {baseline_label(group)}",
        term="vs (a strategy)",
        help="Paired difference from the baseline, with the 95% interval of its test, which excludes 0 if p is at "
        "most 5%.",
        value=lambda group, row: getattr(row.difference.get(group.metric), "mean", None),
        text=lambda group, row: _difference(row, group.metric),
    ),
    Column(
        key="p",
        heading="p",
        help="Probability that chance alone produces a difference at least this large, corrected for all tested pairs.",
        value=lambda group, row: _p(row, group.metric),
        text=lambda group, row: _p_text(row, group.metric),
    ),
    Column(
        key="verdict",
        heading="verdict",
        help="Whether the row is significantly better or worse than the baseline, at 5%.",
        value=_verdict,
        is_text=True,
    ),
    *_cutoff_columns("before_cutoff", "up to"),
    *_cutoff_columns("after_cutoff", "after"),
    cost_column("context_tokens", "tokens", "Mean context tokens in the final prompt."),
    cost_column("calls", "calls", "Mean model calls per sample."),
    cost_column("seconds", "seconds", "Mean seconds per sample, of the strategy and the model."),
    cost_column(
        PRICE,
        "US$",
        "Mean price per sample in US dollars; a dash if the model's price is unknown.",
        write=scales.dollars,
    ),
    cost_column("tokens_in", "tokens in", "Mean prompt tokens per sample, over all calls."),
    cost_column("tokens_out", "tokens out", "Mean answer tokens per sample, over all calls."),
    cost_column("tokens_cached", "cached", "Mean prompt tokens per sample that the service had cached."),
    *map(cost_column, ("strategy_seconds", "generator_seconds", "test_seconds", *SUMMARY_COSTS, *ENGINE_COSTS)),
    *map(_offline_column, OFFLINE_COSTS),
    cost_column(
        "explored_recall",
        "explored %",
        "Share of the definitions used in the reference that the strategy looked at.",
        write=scales.percent,
    ),
    cost_column("explored_files", "explored", "Mean number of files per sample that the strategy looked at."),
    Column(
        key="origin",
        heading="origin",
        help="run: run here; reference: ships with ctxbench; imported: recorded elsewhere; published: in a paper.",
        value=lambda _, row: "control" if row.run.control else str(row.run.origin),
        is_text=True,
    ),
    Column(
        key="beats",
        heading="beats",
        help="Tested rows that this row is significantly better than.",
        value=lambda group, row: ", ".join(label(group.rows[loser]) for loser in row.beats) or None,
        is_text=True,
    ),
    Column(
        key="repositories_needed",
        heading="needs",
        help="Approximate number of repositories, or files of a single repository, that would make a difference of "
        "this row significant.",
        value=lambda _, row: row.needed,
    ),
    Column(key="rank_low", value=lambda _, row: row.rank_low),
    Column(key="rank_high", value=lambda _, row: row.rank_high),
)
COLUMNS = {column.key: column for column in _ALL}
RANKING = (
    *("rank", "group", "strategy", "runs", "n", "missing", "excluded", "metric", "mean_of_repositories"),
    *("difference", "p"),
)
_MOST_BESIDE = 3
BESIDE = ("context_tokens", "calls", "seconds", PRICE)
CUTOFF = ("before_cutoff_n", "before_cutoff", "after_cutoff_n", "after_cutoff")
"""Columns, besides the strategy, of the table of scores before and after the model's training cutoff."""
RECORD = (
    *("context_tokens", "calls", "seconds", "rank_low", "rank_high", "group", "repositories_needed"),
    *COSTS,
    *SUMMARY_COSTS,
    *ENGINE_COSTS,
    *OFFLINE_COSTS,
    *ACCESS,
    *CUTOFF,
    "runs",
)
FRAME_APART = ("level", "origin")
"""Columns of a data frame that are included only if their values differ."""
FRAME = (
    *("strategy", "generator", "samples", "language", *FRAME_APART, "n", "ranked_by", "metric", "metric_low"),
    *("metric_high", "difference", "difference_low", "difference_high", "p"),
)
"""Columns of a data frame before the metrics."""
FRAME_COSTS = ("context_tokens", PRICE, "seconds")
MOST_FRAME = 20


def glossary() -> tuple[tuple[str, str], ...]:
    """Return (heading, explanation) for each default column of a board."""
    columns = [COLUMNS[key] for key in (*RANKING, *BESIDE)]
    return tuple((column.term or str(column.heading), column.help) for column in columns)


def secondary_metrics(group: Group) -> list[str]:
    """Return the metrics printed beside the ranking metric."""
    return leading(group.profile, group.scales, but=group.metric)[:_MOST_BESIDE]
