"""A board as sections to print: a title, tables of text, sentences below them. Pure.

One section a group. Of a benchmark with levels the groups of single levels are folded into a table of the whole group,
unless they are asked for; what holds for both languages, and what the papers print, stands below the last group that
it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ctxbench.harness.leaderboard import choices, numbers
from ctxbench.harness.leaderboard.notes import notes, notes_of_levels, notes_of_overall, priced
from ctxbench.harness.leaderboard.published import BOTH, Listing, published_notes, published_table, published_title
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, COMBINED, LEVELLED, Board, Group, Row, groups_by_level
from ctxbench.harness.leaderboard.stats import ALPHA
from ctxbench.harness.metrics.context import BLOCK_GAIN, DIAGNOSTICS
from ctxbench.harness.results import PRICE, Origin

_BESIDE = ("em", "es", "id_f1", "context_gain")
_BESIDE_PASSES = ("context_gain", "es", "id_f1", "em")
_MOST_BESIDE = 3
_DIAGNOSTICS = (*(metric.name for metric in DIAGNOSTICS), BLOCK_GAIN)
_MOST_PASSES = 2

Column = tuple[str, Callable[[Row], str]]
TextTable = tuple[list[str], list[list[str]]]
"""Headings, and a list of cells a line."""
TEXT_COLUMNS = ("strategy", "tier", "generator", "origin")
"""Headings of the columns that hold text and no numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSection:
    """What is printed under one title."""

    title: str
    tables: tuple[TextTable, ...]
    notes: tuple[str, ...]


def sections(board: Board, *, diagnostics: bool = False, full: bool = False) -> Iterator[BoardSection]:
    """Yield the sections of a board, in its order.

    Args:
        board: what to show.
        diagnostics: add a table of what each context brought and what was made up.
        full: give the levels of CoderEval groups of their own, each with its ranking.
    """
    pending = {(listing.benchmark.lower(), listing.language): listing for listing in board.published}
    for index, group in enumerate(board.groups):
        parts = groups_by_level(board.groups, group) if group.benchmark == LEVELLED else {}
        if full or group.level == ALL_LEVELS or group.benchmark != LEVELLED:
            yield _group(group, parts if group.level == ALL_LEVELS and not full else {}, diagnostics)
        after = board.groups[index + 1 :]
        if not any((later.benchmark, later.language) == (group.benchmark, group.language) for later in after):
            yield from _published(pending.pop((group.benchmark, group.language), None), group)
        if not any(later.benchmark == group.benchmark for later in after):
            if group.benchmark == LEVELLED and board.overall:
                yield BoardSection(title="both languages", tables=(), notes=notes_of_overall(board.overall))
            yield from _published(pending.pop((group.benchmark, BOTH), None), group)
    for listing in pending.values():
        yield from _published(listing, None)


def title(group: Group) -> str:
    """Return what the rows of a group have in common."""
    level = "" if group.level == ALL_LEVELS else f", {group.level}"
    return f"{group.samples} ({group.samples_digest[:12]}), {group.language}{level}, generator {group.generator}"


def _group(group: Group, parts: Mapping[str, Group], diagnostics: bool) -> BoardSection:
    more = [name for name in _DIAGNOSTICS if name in group.scales] if diagnostics else []
    columns = [_ranking(group), *([_levels(group, parts)] if parts else []), _beside(group)]
    columns += [[_STRATEGY, *_metrics(group, more)]] if more else []
    tables = tuple(_text(text_columns, group.rows) for text_columns in columns)
    return BoardSection(title=title(group), tables=tables, notes=(*notes(group), *notes_of_levels(group, parts)))


def _published(listing: Listing | None, group: Group | None) -> Iterator[BoardSection]:
    if listing is not None:
        profile = group.profile if group else ""
        yield BoardSection(
            title=published_title(listing),
            tables=(published_table(listing),),
            notes=published_notes(listing, profile),
        )


def _text(columns: Sequence[Column], rows: Sequence[Row]) -> TextTable:
    return [heading for heading, _ in columns], [[cell(row) for _, cell in columns] for row in rows]


def _metrics(group: Group, names: Sequence[str]) -> list[Column]:
    return [(f"{group.scales[name].heading(name)} [95%]", partial(_estimate, name=name)) for name in names]


def _ranking(group: Group) -> list[Column]:
    name = group.metric
    heading = group.scales[name].heading(name) if name in group.scales else name
    columns: list[Column] = [
        ("rank", _rank),
        ("tier", lambda row: row.tier),
        ("strategy", _strategy),
        ("n", lambda row: str(row.n)),
        ("unscored", lambda row: str(row.unscored)),
        (f"{heading} [95%]", partial(_estimate, name=name)),
        ("by repo", partial(_mean_of_repositories, name=name)),
    ]
    if any(row.excluded for row in group.rows):
        columns.insert(5, ("marked", lambda row: str(row.excluded)))
    if group.baseline is not None and any(row.difference for row in group.rows):
        columns += [(f"to {group.baseline}", lambda row: _difference(row, name)), ("p", lambda row: _p(row, name))]
    return columns


def _levels(group: Group, parts: Mapping[str, Group]) -> list[Column]:
    """Return a column a level, under the ranking metric; then the mean over the paper's three, and of their means."""
    row_at = {(level, row.run.id, row.run.strategy): row for level, part in parts.items() for row in part.rows}

    def at(row: Row, level: str) -> Row | None:
        return row_at.get((level, row.run.id, row.run.strategy))

    def mean_at(row: Row, *, level: str) -> str:
        return _mean(at(row, level), group.metric)

    def of_levels(row: Row) -> str:
        combined_row = at(row, COMBINED)
        mean = (
            combined_row.metrics[group.metric].mean_of_levels
            if combined_row and group.metric in combined_row.metrics
            else None
        )
        return numbers.UNKNOWN if mean is None else f"{mean:.2f}"

    single = [level for level in parts if level != COMBINED]
    by_level: list[Column] = [
        (level.removesuffix("_runnable"), partial(mean_at, level=level))
        for level in (*single, *([COMBINED] if COMBINED in parts else []))
    ]
    last: list[Column] = [("mean of these levels", of_levels)] if COMBINED in parts else []
    return [_STRATEGY, *by_level, *last]


def _beside(group: Group) -> list[Column]:
    passes = [name for name in choices.passes(group.scales) if name != group.metric][-_MOST_PASSES:]
    own = choices.own_metrics(group.profile, group.scales)
    usual = _BESIDE_PASSES if choices.passes(group.scales) else _BESIDE
    # A profile with none of the usual metrics shows its own first.
    others = (*([] if set(own) & set(usual) else own), *usual)
    names = [*passes, *(name for name in others if name in group.scales and name != group.metric)][:_MOST_BESIDE]
    price: list[Column] = [("US$", lambda row: numbers.dollars(row.costs.get(PRICE)))] if priced(group) else []
    return [
        _STRATEGY,
        *_metrics(group, names),
        ("tokens", lambda row: numbers.amount(row.context_tokens)),
        ("calls", lambda row: numbers.amount(row.calls)),
        ("seconds", lambda row: numbers.amount(row.seconds)),
        *price,
    ]


def _rank(row: Row) -> str:
    if row.rank_low is None:
        return numbers.UNKNOWN
    return str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low}-{row.rank_high}"


def _strategy(row: Row) -> str:
    if row.run.control:
        return f"{row.run.strategy} (control)"
    return row.run.strategy if row.run.origin is Origin.RUN else f"{row.run.strategy} ({row.run.origin})"


_STRATEGY: Column = ("strategy", _strategy)


def _estimate(row: Row, name: str) -> str:
    estimate = row.metrics.get(name)
    return numbers.interval(estimate.mean, estimate.low, estimate.high) if estimate else numbers.UNKNOWN


def _mean(row: Row | None, name: str) -> str:
    """Write a mean as the papers do, since it is there to be compared with theirs."""
    estimate = row.metrics.get(name) if row else None
    return numbers.UNKNOWN if estimate is None or estimate.mean is None else f"{estimate.mean:.2f}"


def _mean_of_repositories(row: Row, name: str) -> str:
    estimate = row.metrics.get(name)
    return (
        numbers.value(estimate.mean_of_repositories, numbers.half_width(estimate.low, estimate.high))
        if estimate
        else ""
    )


def _difference(row: Row, name: str) -> str:
    difference = row.difference.get(name)
    return numbers.interval(difference.mean, difference.low, difference.high, sign=True) if difference else ""


def _p(row: Row, name: str) -> str:
    """Write the corrected p-value (the plain one for rows outside the family), a star where it is significant."""
    difference = row.difference.get(name)
    if not difference:
        return ""
    if difference.p_holm is None:
        return numbers.p_value(difference.p)
    return numbers.p_value(difference.p_holm) + ("*" if difference.p_holm <= ALPHA else "")
