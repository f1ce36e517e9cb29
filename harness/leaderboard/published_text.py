"""Published numbers as text: a line a row of a paper, and what must be known of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxbench.harness.leaderboard.listing import BOTH, Listing, columns, printed
from ctxbench.harness.leaderboard.notes import COMMAND, Instructions
from ctxbench.harness.papers.tables import ORIGINS, STATUSES, PaperRow, paper_of

PROFILE = "infercom"
"""The metric profile of the papers' line tables."""
_HEADS = {"avg": "mean of levels", "overall": "mean of both languages"}
_TIMES = {"inference": "seconds", "construction": "build s"}
_SHORT = {"missing_in_available_copy": "no copy"}


def published_title(listing: Listing) -> str:
    """Return what the rows are about."""
    return (
        f"published numbers: {listing.benchmark}, {'both languages' if listing.language == BOTH else listing.language}"
    )


def published_table(listing: Listing) -> tuple[list[str], list[list[str]]]:
    """Return headings and lines; a doubtful number has a ``?``, a missing one its reason."""
    names = _columns(listing)
    lines = [
        [
            row.preset,
            row.model,
            *(_cell(row, listing.language, name) for name in names),
            ORIGINS[row.origin],
        ]
        for row in listing.highlighted
    ]
    return ["strategy", "generator", *({**_TIMES, **_HEADS}.get(name, name) for name in names), "origin"], lines


def published_notes(listing: Listing, profile: str, instructions: Instructions = COMMAND) -> tuple[str, ...]:
    """Return the sentences below the table.

    Args:
        listing: the rows.
        profile: the metric profile of the groups above; empty if there are none.
        instructions: how a reader sees more, on the command line or on the pages.
    """
    papers = " and ".join(dict.fromkeys(paper_of(row) for row in listing.rows))
    lines = [
        f"Published by the {papers}, as printed, in percent, without intervals or counts; never ranked: "
        "samples, models, prompts and machine are the paper's."
    ]
    if listing.benchmark == "CoderEval":
        lines.append("pass@1; the mean of levels is that of class, file and project, each weighing alike.")
    elif profile not in ("", PROFILE):
        lines.append(f"They are of the metric profile {PROFILE}, the rows above of {profile}: {instructions.profile}.")
    lines += listing.contradicted
    lines += [f"?: {text}" for text in _flags(listing)]
    if any(status == "missing_in_available_copy" for row in listing.highlighted for status in _statuses(row, listing)):
        lines.append("no copy: our copy of the paper lacks that number.")
    lines += _grouped((row.preset, remark) for row in listing.highlighted for remark in row.remarks)
    more = len(listing.rows) - len(listing.highlighted)
    if more:
        rows = "1 row more is" if more == 1 else f"{more} rows more are"
        lines.append(f"{rows} shown {instructions.rows}.")
    return tuple(lines)


def _columns(listing: Listing) -> list[str]:
    names = [name for row in listing.highlighted[:1] for name in columns(row, listing.language)]
    times = [name for name in _TIMES if any(printed(row, listing.language, name) for row in listing.highlighted)]
    return names + times


def _cell(row: PaperRow, language: str, column: str) -> str:
    cell = printed(row, language, column)
    if cell is None:
        return "-"
    if cell.value is None:
        return _SHORT.get(cell.status, STATUSES[cell.status])
    return f"{cell.value:.2f}{'?' if cell.flag else ''}"


def _statuses(row: PaperRow, listing: Listing) -> Iterator[str]:
    yield from row.missing.get(listing.language, {}).values()


def _flags(listing: Listing) -> list[str]:
    """Return what is doubtful of the numbers in the table, in words."""
    column_names = set(_columns(listing))
    return _grouped(
        (f"{row.preset} {key.partition('.')[2]}", text)
        for row in listing.highlighted
        for key, text in row.flags.items()
        if key.partition(".")[0] == listing.language and key.partition(".")[2] in column_names
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a sentence a text, after all the names it is said of."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in pairs:
        names_by_text.setdefault(text, []).append(name)
    return [f"{', '.join(names)}: {text}." for text, names in names_by_text.items()]
