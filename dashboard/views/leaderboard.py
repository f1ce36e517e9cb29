"""The leaderboard as a page shows it: one group of a board as lines, a chart and sentences. Pure.

Numbers are those of the board, rounded as `harness.leaderboard.numbers` does; nothing is computed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ctxbench.dashboard.views.figure import Figure
from ctxbench.harness.leaderboard import Board, Group, Row, choices, numbers
from ctxbench.harness.leaderboard.levels import COMBINED, order
from ctxbench.harness.leaderboard.notes import PAGE, notes
from ctxbench.harness.leaderboard.published_text import published_notes, published_table, published_title
from ctxbench.harness.leaderboard.records import to_csv
from ctxbench.harness.leaderboard.rows import ALL_LEVELS
from ctxbench.harness.leaderboard.signflip import ALPHA
from ctxbench.harness.metrics.context import MADE_UP
from ctxbench.harness.results import Origin, RunTable

Line = dict[str, object]
_MARK = re.compile(r"\(\d+\)|[a-zA-Z]")
_COSTS = {
    "tokens in": "tokens_in",
    "tokens out": "tokens_out",
    "cached": "tokens_cached",
}
"""Heading -> one of `harness.results.COSTS`."""
LINKS = ("compare", "samples")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The rows that a paper prints about the same benchmark."""

    title: str
    lines: tuple[Mapping[str, object], ...]
    notes: tuple[str, ...]


def metrics(tables: Sequence[RunTable]) -> list[str]:
    """Return the metrics that can rank these runs, the default first, then by name; none if no run is scored."""
    names = sorted(
        {name for one in tables for name, column in one.metrics.items() if any(value is not None for value in column)}
    )
    if not names:
        return []
    first = choices.default_metric(names, tables[0].run)
    return [first, *(one for one in names if one != first)] if first in names else names


def levels(tables: Sequence[RunTable]) -> list[str]:
    """Return what can be ranked by itself: all samples, CoderEval's three levels together, and every level."""
    single = {level for one in tables for level in set(one.level)}
    combined = {COMBINED} if any(one.run.benchmark == "codereval" for one in tables) else set()
    return sorted({ALL_LEVELS, *combined, *single}, key=order) if len(single) > 1 else [ALL_LEVELS]


def at_level(board: Board, level: str) -> Group:
    """Return the group of a level; of a level that no run has, that of all samples."""
    return next((one for one in board.groups if one.level == level), board.groups[0])


def lines(group: Group, links: Mapping[str, Mapping[str, str]] | None = None) -> list[Line]:
    """Return a line a row: heading -> cell, a number where there is one to sort by.

    Args:
        group: whose rows.
        links: run -> heading of `LINKS` -> address.
    """
    made = [_line(group, row, (links or {}).get(row.run.id, {})) for row in group.rows]
    known = {name for line in made for name, cell in line.items() if cell is not None}
    always = {"rank", "tier", "strategy", *_main(group)}
    return [{name: cell for name, cell in line.items() if name in known | always} for line in made]


def matching(lines: Sequence[Line], find: str) -> list[Line]:
    """Return the lines whose strategy or origin has all these words, large or small."""
    words = find.casefold().split()
    return [line for line in lines if all(word in f"{line['strategy']} {line['origin']}".casefold() for word in words)]


def _main(group: Group) -> tuple[str, str, str]:
    return heading(group, group.metric), "low", "high"


def heading(group: Group, metric: str) -> str:
    """Return the heading of a metric's column: its name and its unit."""
    return group.scales[metric].heading(metric) if metric in group.scales else metric


def _line(group: Group, row: Row, links: Mapping[str, str]) -> Line:
    mean, low, high = _main(group)
    found = row.metrics.get(group.metric)
    half = numbers.half_width(found.low, found.high) if found else None
    difference = row.difference.get(group.metric)
    apart = numbers.half_width(difference.low, difference.high) if difference else None
    return {
        "rank": rank(row),
        # In any order but that of ranks a control could be taken for a leader.
        "strategy": label(row) if row.run.control else row.run.strategy,
        mean: _rounded(found.mean if found else None, half),
        low: _rounded(found.low if found else None, half),
        high: _rounded(found.high if found else None, half),
        "by repo": _rounded(found.mean_of_repositories if found else None, half),
        f"to {group.baseline}": _rounded(difference.mean if difference else None, apart),
        "to low": _rounded(difference.low if difference else None, apart),
        "to high": _rounded(difference.high if difference else None, apart),
        "p": _p(row, group.metric),
        "tier": row.tier,
        "n": row.n,
        **links,
        "unscored": row.unscored,
        "marked": row.excluded or None,
        "tokens": _amount(row.context_tokens),
        "calls": _amount(row.calls),
        "seconds": _amount(row.seconds),
        "price US$": _price(row.costs.get("price")),
        "origin": "control" if row.run.control else str(row.run.origin),
        **_others(group, row),
        **{heading: _amount(row.costs.get(name)) for heading, name in _COSTS.items()},
    }


def _others(group: Group, row: Row) -> Line:
    found: Line = {}
    for name in group.scales:
        if name not in (group.metric, MADE_UP):
            one = row.metrics.get(name)
            half = numbers.half_width(one.low, one.high) if one else None
            found[heading(group, name)] = _rounded(one.mean if one else None, half)
    return found


def rank(row: Row) -> str:
    """Return the ranks that significant differences leave open, e.g. ``1-2``."""
    if row.rank_low is None:
        return numbers.UNKNOWN
    return str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low}-{row.rank_high}"


def headline(group: Group) -> str:
    """Return who leads, and whether the lead is real, in a sentence or two."""
    ranked = [row for row in group.rows if row.rank_low is not None]
    if not ranked:
        return f"No run here has {group.metric}: nothing is ranked."
    first, found = ranked[0], ranked[0].metrics[group.metric]
    unit = group.scales[group.metric].unit
    shown = numbers.interval(found.mean, found.low, found.high)
    start = f"{first.run.strategy} has the best {group.metric}: {shown} {unit}."
    if len(ranked) == 1:
        return f"{start} Nothing else here is ranked: run another strategy to compare with."
    beside = [row.run.strategy for row in ranked[1:] if share_a_tier(row.tier, first.tier)]
    if not beside:
        return f"{start} Its lead over every other is significant at 5%."
    if not group.decidable:
        counts = f"{group.repositories} repositories and {group.pairs} comparison{'s' * (group.pairs != 1)}"
        return f"{start} With {counts} no lead can be told from chance: add repositories."
    return f"{start} The test does not tell it from {', '.join(beside)}."


def share_a_tier(one: str, other: str) -> bool:
    """Return whether two rows share a letter of `Row.tier`; beyond 52 a letter is a number in brackets."""
    return not set(_MARK.findall(one)).isdisjoint(_MARK.findall(other))


def sentences(group: Group) -> tuple[str, ...]:
    """Return what must be said below the table."""
    return notes(group, PAGE)


def published(board: Board, group: Group, *, every: bool = False) -> list[Published]:
    """Return the papers' rows about the group's benchmark, the best of them or `every` one: never ranked with ours."""
    made = []
    for one in board.published:
        listing = replace(one, highlighted=one.rows) if every else one
        headings, cells = published_table(listing)
        made.append(
            Published(
                title=published_title(listing),
                lines=tuple(dict(zip(headings, line, strict=True)) for line in cells),
                notes=published_notes(listing, group.profile, PAGE),
            )
        )
    return made


def unshown(board: Board) -> bool:
    """Return whether the papers have more rows than are shown unasked."""
    return any(len(one.highlighted) < len(one.rows) for one in board.published)


def csv(board: Board, group: Group) -> str:
    """Return the view as `ctxbench leaderboard --format csv` writes it: the group's rows, then the papers'."""
    return to_csv(replace(board, groups=(group,), overall=()))


def label(row: Row) -> str:
    """Return what tells a row from the others of its group."""
    if row.run.control:
        return f"{row.run.strategy} (control)"
    return row.run.strategy if row.run.origin is Origin.RUN else f"{row.run.strategy} ({row.run.origin})"


def _rounded(number: float | None, half: float | None) -> Figure | None:
    return None if number is None else Figure(numbers.value(number, half))


def _amount(number: float | None) -> Figure | None:
    return None if number is None else Figure(numbers.amount(number))


def _price(number: float | None) -> Figure | None:
    return None if number is None else Figure(numbers.dollars(number))


def _p(row: Row, name: str) -> Figure | None:
    found = row.difference.get(name)
    p = None if found is None else found.p if found.p_holm is None else found.p_holm
    if found is None or p is None:
        return None
    star = "*" if found.p_holm is not None and p <= ALPHA else ""
    return Figure(f"{numbers.p_value(p)}{star}", p)
