"""Numbers that papers print (`paper_tables`), as text and records for the leaderboard, with notes on doubtful ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxbench.harness import paper_tables
from ctxbench.harness.leaderboard.columns import COLUMNS, ColumnHead, TextTable
from ctxbench.harness.leaderboard.notes import COMMAND, Instructions
from ctxbench.harness.leaderboard.rows import LANGUAGES, Group, Listing
from ctxbench.harness.paper_tables import LEVELS, ORIGINS, STATUSES, PaperRow, paper_of
from ctxbench.harness.results import Origin, spec_of_label

BOTH = "both"
_COMBINED = "+".join(LEVELS)
_METRIC = "pass@1"
PAPERS_PROFILE = "infercom"
_HEADS = {"avg": "mean of levels", "overall": "mean of both languages"}
_TIMES = {"inference": "seconds", "construction": "build s"}
_SHORT = {"missing_in_available_copy": "no copy"}

Mode = Literal["auto", "all", "none"]
REPORTED = ("CoderEval", "CrossCodeEval", "ProjBench", "sota_test")
_OF_OUR_MODELS = 4
_BEST = 3
_SHORTEST_NAME = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number printed in a paper, or the reason why it is missing."""

    value: float | None
    status: str = "ok"
    """``ok``, or a key of `harness.paper_tables.STATUSES`."""
    flag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLevel:
    """The numbers in a row of a paper's table at one level of samples."""

    level: str
    """Name of the level: ``all``, a CoderEval level such as ``class_runnable``, or ``class+file+project``."""
    of_levels: bool = False
    """Whether the numbers are means of levels, instead of means over tasks."""
    metrics: Mapping[str, Printed] = field(default_factory=dict)
    costs: Mapping[str, Printed] = field(default_factory=dict)
    """Costs by name: ``context_tokens`` and ``seconds`` per task, ``construction_seconds`` per project."""


def listings(groups: Sequence[Group], mode: Mode) -> tuple[Listing, ...]:
    """Return the rows of papers' tables to print below `groups`, by benchmark and language.

    Args:
        groups: the groups of the board.
        mode: ``auto`` selects the benchmarks and languages of the groups; ``all`` selects all papers and highlights
            every row; ``none`` selects nothing.
    """
    if mode == "none":
        return ()
    languages_present = {(group.benchmark, group.language) for group in groups}
    selected = []
    for benchmark in REPORTED:
        of_benchmark = [row for row in paper_tables.rows() if row.benchmark == benchmark]
        spoken = [name for name in LANGUAGES if mode == "all" or (benchmark.lower(), name) in languages_present]
        for language in (*spoken, *([BOTH] if len(spoken) == len(LANGUAGES) else [])):
            rows = tuple(row for row in of_benchmark if language in row.printed or language in row.missing)
            if not rows:
                continue
            beside = [
                group for group in groups if group.benchmark == benchmark.lower() and language in (BOTH, group.language)
            ]
            highlighted = rows if mode == "all" else _highlighted(rows, language, {group.generator for group in beside})
            contradictions = () if language == BOTH else tuple(_contradictions(rows, language, beside))
            selected.append(
                Listing(
                    benchmark=benchmark,
                    language=language,
                    rows=rows,
                    highlighted=highlighted,
                    contradicted=contradictions,
                )
            )
    return tuple(selected)


def same_model(model: str, generator: str) -> bool:
    """Return whether a name of 5 letters or more in a generator's spec contains a paper's model name, or vice versa."""
    model_letters = _letters(model)
    names = [_letters(name) for name in re.split(r"[(),=/\s]+", spec_of_label(generator))]
    return any(len(name) >= _SHORTEST_NAME and (name in model_letters or model_letters in name) for name in names)


def columns_of(row: PaperRow, language: str) -> tuple[str, ...]:
    """Return the names of the score columns that a row's paper table has for a language."""
    if row.benchmark == "sota_test":
        return ("completed",)
    if row.benchmark != "CoderEval":
        return "em", "es", "id_em", "id_f1"
    return ("overall",) if language == BOTH else (*LEVELS, "avg")


def ranking_column(row: PaperRow, language: str) -> str:
    """Return the name of the column that orders rows of papers' tables."""
    columns = columns_of(row, language)
    return "es" if "es" in columns else columns[-1]


def printed_numbers(row: PaperRow, language: str) -> dict[str, Printed]:
    """Return the numbers that a row prints or lacks for a language, by column."""
    printed = row.printed.get(language, {}).items()
    missing = row.missing.get(language, {}).items()
    return {name: Printed(value=value, flag=row.flags.get(f"{language}.{name}", "")) for name, value in printed} | {
        name: Printed(value=None, status=status) for name, status in missing
    }


def levels_of(row: PaperRow, language: str) -> Iterator[PublishedLevel]:
    """Yield a row's numbers at each level, with metrics and levels named as in stored runs."""
    cells = printed_numbers(row, language)
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


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _highlighted(rows: Sequence[PaperRow], language: str, generators: set[str]) -> tuple[PaperRow, ...]:
    once: dict[tuple[str, ...], PaperRow] = {}
    for row in rows:
        once.setdefault((row.model, row.strategy, str(_numbers(row, language))), row)
    ordered = sorted(once.values(), key=lambda row: _key(row, language))
    filled = [row for row in ordered if any(cell is not None for cell in _numbers(row, language))]
    ours = [row for row in filled if any(same_model(row.model, generator) for generator in generators)][:_OF_OUR_MODELS]
    best = [row for row in filled if _key(row, language) <= 0][:_BEST]
    return tuple(row for row in filled if row in ours or row in best)


def _numbers(row: PaperRow, language: str) -> list[tuple[float | None, str] | None]:
    cells = map(printed_numbers(row, language).get, columns_of(row, language))
    return [None if cell is None else (cell.value, cell.status) for cell in cells]


def _key(row: PaperRow, language: str) -> float:
    cell = printed_numbers(row, language).get(ranking_column(row, language))
    return 1.0 if cell is None or cell.value is None else -cell.value


def _contradictions(rows: Sequence[PaperRow], language: str, groups: Sequence[Group]) -> Iterator[str]:
    for row in rows:
        for at in levels_of(row, language):
            for metric, cell in at.metrics.items():
                if cell.value is None or not cell.flag:
                    continue
                for group in groups:
                    if group.level == at.level and same_model(row.model, group.generator):
                        yield from _against(row, metric, cell.value, at.of_levels, group)


def _against(row: PaperRow, metric: str, value: float, of_levels: bool, group: Group) -> Iterator[str]:
    for ours in group.rows:
        estimate = ours.metrics.get(metric)
        mean = None if estimate is None else estimate.mean_of_levels if of_levels else estimate.mean
        # A row without a strategy of ctxbench refers to the recorded predictions. Otherwise the strategies must match.
        comparable = ours.run.origin is Origin.IMPORTED and row.strategy in ("", ours.run.strategy)
        if comparable and mean is not None and f"{mean:.2f}" != f"{value:.2f}":
            yield (
                f"{row.preset}, {group.language}, {group.level}: the paper prints {value:.2f}; the recorded "
                f"predictions stored here ({group.generator}, {ours.run.strategy}) give {mean:.2f}."
            )


def published_title(listing: Listing) -> str:
    """Return the title of a listing: its benchmark and language."""
    language = "both languages" if listing.language == BOTH else listing.language
    return f"published numbers: {listing.benchmark}, {language}"


def published_table(listing: Listing) -> TextTable:
    """Return the highlighted rows as a text table. ``?`` marks a doubtful number. A missing number shows its reason."""
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
    helps = {column.heading: column.help for column in (COLUMNS["strategy"], COLUMNS["seconds"])}
    headings = [{**_TIMES, **_HEADS}.get(name, name) for name in names]
    return TextTable(
        (
            ColumnHead("strategy", helps["strategy"], is_text=True),
            ColumnHead("generator", is_text=True),
            *(ColumnHead(heading, helps.get(heading, "")) for heading in headings),
            ColumnHead("origin", is_text=True),
        ),
        lines,
    )


def published_notes(listing: Listing, profile: str, instructions: Instructions = COMMAND) -> tuple[str, ...]:
    """Return the notes below the table. `profile` is the metric profile of the groups above; empty without groups."""
    papers = " and ".join(dict.fromkeys(paper_of(row) for row in listing.rows))
    unit = "in exactly completed tasks out of 50" if listing.benchmark == "sota_test" else "in percent"
    lines = [
        f"Published by the {papers}, as printed, {unit}, without intervals or counts. These rows are never ranked, "
        "because samples, models, prompts and machine are the paper's."
    ]
    if listing.benchmark == "CoderEval":
        lines.append("pass@1; the mean of levels is the unweighted mean of class, file and project.")
    elif profile not in ("", PAPERS_PROFILE):
        lines.append(
            f"The metric profile of these rows is {PAPERS_PROFILE}, but the rows above have {profile}: "
            f"{instructions.profile}."
        )
    lines += listing.contradicted
    lines += [f"?: {text}" for text in _flags(listing)]
    if any(
        "missing_in_available_copy" in row.missing.get(listing.language, {}).values() for row in listing.highlighted
    ):
        lines.append("no copy: ctxbench's copy of the paper lacks the number.")
    lines += _grouped((row.preset, remark) for row in listing.highlighted for remark in row.remarks)
    more = len(listing.rows) - len(listing.highlighted)
    if more:
        rows = "1 more row is" if more == 1 else f"{more} more rows are"
        lines.append(f"{rows} shown {instructions.rows}.")
    return tuple(lines)


def _columns(listing: Listing) -> list[str]:
    names = [name for row in listing.highlighted[:1] for name in columns_of(row, listing.language)]
    times = [
        name for name in _TIMES if any(name in printed_numbers(row, listing.language) for row in listing.highlighted)
    ]
    return names + times


def _cell(row: PaperRow, language: str, column: str) -> str:
    cell = printed_numbers(row, language).get(column)
    if cell is None:
        return "-"
    if cell.value is None:
        return _SHORT.get(cell.status, STATUSES[cell.status])
    return f"{cell.value:.{0 if column == 'completed' else 2}f}{'?' if cell.flag else ''}"


def _flags(listing: Listing) -> list[str]:
    column_names = set(_columns(listing))
    return _grouped(
        (f"{row.preset} {key.partition('.')[2]}", text)
        for row in listing.highlighted
        for key, text in row.flags.items()
        if key.partition(".")[0] == listing.language and key.partition(".")[2] in column_names
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[str]:
    names_by_text: dict[str, list[str]] = {}
    for name, text in pairs:
        names_by_text.setdefault(text, []).append(name)
    return [f"{', '.join(names)}: {text}." for text, names in names_by_text.items()]


def published_records(listings: Sequence[Listing]) -> Iterator[dict[str, Any]]:
    """Yield one record per row, language and level, with the keys of stored runs' records. Unprinted numbers are None.

    A metric has ``mean`` (over tasks) or ``mean_of_levels``, as printed. ``status`` and ``why`` state why a number is
    missing, and ``flag`` why it is doubtful.
    """
    for listing in listings:
        for row in listing.rows:
            for at in levels_of(row, listing.language):
                yield _published_record(listing, row, at)


def _published_record(listing: Listing, row: PaperRow, at: PublishedLevel) -> dict[str, Any]:
    costs = {name: cell.value for name, cell in at.costs.items()}
    lines = row.benchmark != "CoderEval"
    return {
        "samples": row.benchmark,
        "language": listing.language,
        "level": at.level,
        "strategy": row.preset,
        "generator": row.model,
        "origin": str(Origin.PUBLISHED),
        "n": None,
        "missing": None,
        **{name: _published_metric(cell, at) for name, cell in at.metrics.items()},
        "context_tokens": costs.get("context_tokens"),
        "calls": None,
        "seconds": costs.get("seconds"),
        "rank_low": None,
        "rank_high": None,
        "group": "",
        "control": False,
        "profile": PAPERS_PROFILE if lines else None,
        "benchmark": row.benchmark.lower(),
        "remarks": list(row.remarks),
        "source": row.origin,
        "paper": paper_of(row),
        "table": row.table,
        "method": row.method,
        "encoder": row.encoder or None,
        "computed_by": row.strategy or None,
        "inferred_n": row.inferred_n,
        "flags": [f"{name}: {cell.flag}" for name, cell in (*at.metrics.items(), *at.costs.items()) if cell.flag],
        **{name: value for name, value in costs.items() if name == "construction_seconds"},
    }


def _published_metric(cell: Printed, at: PublishedLevel) -> dict[str, Any]:
    record = {
        "mean": None if at.of_levels else cell.value,
        "low": None,
        "high": None,
        "mean_of_levels": cell.value if at.of_levels else None,
        "status": cell.status,
    }
    why = {"why": STATUSES[cell.status]} if cell.value is None else {}
    return record | why | ({"flag": cell.flag} if cell.flag else {})
