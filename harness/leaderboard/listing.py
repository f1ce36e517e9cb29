"""Published numbers as the leaderboard holds them: rows of the papers' tables about one benchmark. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ctxbench.harness.papers.tables import LEVELS, PaperRow

BOTH = "both"
"""The language of an average over two."""
_COMBINED = "+".join(LEVELS)
_METRIC = "pass@1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """One number as a paper prints it, or why it prints none."""

    value: float | None
    status: str = "ok"
    """``ok``, or a key of `harness.papers.tables.STATUSES`."""
    flag: str = ""
    """What is doubtful about it, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLevel:
    """What a row of a paper says of one level."""

    level: str
    """``all``, or a level of CoderEval, or the three that the paper averages."""
    of_levels: bool = False
    """Whether its numbers are means of levels, not over tasks."""
    metrics: Mapping[str, Printed] = field(default_factory=dict)
    costs: Mapping[str, Printed] = field(default_factory=dict)
    """``context_tokens``; ``seconds`` a task and ``construction_seconds`` a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The published rows of one benchmark and language, which stand below the groups of that benchmark."""

    benchmark: str
    """As the papers write it."""
    language: str
    rows: tuple[PaperRow, ...]
    """All of them, in the papers' order."""
    highlighted: tuple[PaperRow, ...]
    """Those that a person sees unasked, best first."""
    contradicted: tuple[str, ...] = ()
    """Sentences: what recorded predictions stored here say against a number as printed."""


def columns(row: PaperRow, language: str) -> tuple[str, ...]:
    """Return the columns by which a row is shown to a person."""
    if row.benchmark != "CoderEval":
        return "em", "es", "id_em", "id_f1"
    return ("overall",) if language == BOTH else (*LEVELS, "avg")


def ranking(row: PaperRow, language: str) -> str:
    """Return the column that says which published rows are the best."""
    return columns(row, language)[-1] if row.benchmark == "CoderEval" else "es"


def printed(row: PaperRow, language: str, column: str) -> Printed | None:
    """Return one number of a row, None if the row has no such column."""
    if column in row.printed.get(language, {}):
        return Printed(value=row.printed[language][column], flag=row.flags.get(f"{language}.{column}", ""))
    status = row.missing.get(language, {}).get(column)
    return None if status is None else Printed(value=None, status=status)


def levels(row: PaperRow, language: str) -> Iterator[PublishedLevel]:
    """Yield what a row says of each level, under the names of metrics and levels that our own runs have."""
    all_cells = {
        name: printed(row, language, name) for name in (*row.printed.get(language, {}), *row.missing.get(language, {}))
    }
    cells = {name: cell for name, cell in all_cells.items() if cell is not None}
    if row.benchmark != "CoderEval":
        names = {"inference": "seconds", "construction": "construction_seconds"}
        yield PublishedLevel(
            level="all",
            metrics={name: cell for name, cell in cells.items() if name not in names},
            costs={names[name]: cell for name, cell in cells.items() if name in names},
        )
        return
    average = cells.get("overall" if language == BOTH else "avg")
    costs = {"context_tokens": cells["tokens"]} if "tokens" in cells else {}
    if average or costs:
        yield PublishedLevel(
            level=_COMBINED, of_levels=True, metrics={_METRIC: average} if average else {}, costs=costs
        )
    for level in LEVELS:
        if level in cells:
            yield PublishedLevel(level=f"{level}_runnable", metrics={_METRIC: cells[level]})
