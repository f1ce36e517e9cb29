"""Render a paper's table with our numbers beside it as text, markdown and JSON. Pure: returns text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import parse
from ctxbench.bench.types import Kind
from ctxbench.bench.visible import markdown as plain_markdown
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.notes import remarks
from ctxbench.harness.papers import averages, solved
from ctxbench.harness.papers.fidelity import TOKENIZER_OPTION, differences
from ctxbench.harness.papers.presets import encoders_of
from ctxbench.harness.papers.reproduce import PROFILE, ComparedTable, OwnNumber, OwnResult, overall
from ctxbench.harness.papers.solved import SolvedBy
from ctxbench.harness.papers.tables import BENCHMARKS, LEVELS, ORIGINS, STATUSES, UNSTATED, PaperRow, is_shown

WIDTH = 120
_BLANK = "    \n"
_RULE = box.Box(2 * _BLANK + " -- \n" + 5 * _BLANK, ascii=True)
_HEADS = {
    "id_em": "ID-EM",
    "id_f1": "ID-F1",
    "em": "EM",
    "es": "ES",
    "construction": "construction s",
    "inference": "inference s",
    "overall": "mean of both languages",
}
_WHOLE = ("tokens", "completed")
_SHORT = {"out_of_memory": "oom"}
_BOTH = "both"
Line = tuple[str, ...]
_TABLE_LEVELS = {f"{level}_runnable": level for level in LEVELS}


def title(compared: ComparedTable) -> str:
    """Return the table's name, paper and title."""
    return f"{compared.table.name}: {compared.table.paper}, {compared.table.title}"


def table(compared: ComparedTable, languages: Sequence[str], *, width: int = WIDTH) -> str:
    """Return the table as text: remarks first, then a table for each language, our lines under the paper's."""
    screen = io.StringIO()
    console = Console(file=screen, width=width, no_color=True, highlight=False, emoji=False, markup=False)
    console.print(Text(title(compared)))
    for note in notes(compared, languages):
        console.print(Text(f"- {note}"))
    for heading, columns, lines in sections(compared, languages):
        grid = RichTable(box=_RULE, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for index, column in enumerate(columns):
            grid.add_column(Text(column), justify="right" if index > 1 else "left", overflow="fold", no_wrap=index > 1)
        for line in lines:
            grid.add_row(*map(Text, line))
        console.print(Text(f"\n{heading}"))
        console.print(grid)
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def markdown(compared: ComparedTable, languages: Sequence[str]) -> str:
    """Return the same as markdown."""
    parts = [
        f"## {plain_markdown(title(compared))}\n",
        "".join(f"- {plain_markdown(note)}\n" for note in notes(compared, languages)),
    ]
    for heading, columns, lines in sections(compared, languages):
        rule = ["---", "---", *["---:"] * (len(columns) - 2)]
        rows = [columns, rule, *([plain_markdown(cell) for cell in line] for line in lines)]
        parts.append(f"### {heading}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows))
    return "\n".join(parts)


def to_json(compared: ComparedTable, languages: Sequence[str]) -> str:
    """Return one record a row and language, the paper's numbers and ours at full precision."""
    whole = {
        "table": compared.table.name,
        "paper": compared.table.paper,
        "title": compared.table.title,
        "generators": list(compared.generators),
        "encoder": compared.encoder,
        "summariser": compared.summariser or None,
        "notes": list(notes(compared, languages)),
        "rows": [_record(compared, row, language) for language in languages for row in compared.table.rows
                 if language in row.languages],
        "averages": [averages.record(average) for average in averages.averages(compared, languages)],
        "solved": [solved.record(by) for by in _solved(compared, languages)],
    }  # fmt: skip
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sections(compared: ComparedTable, languages: Sequence[str]) -> Iterator[tuple[str, Line, list[Line]]]:
    """Yield heading, column names and lines: one a language, and one for their mean where the paper prints it."""
    for language in languages:
        columns = compared.table.columns
        yield (
            language,
            ("method", "whose", *(_HEADS.get(column, column) for column in columns)),
            _lines(compared, language, columns),
        )
    if len(languages) > 1 and any(_BOTH in row.printed for row in compared.table.rows):
        yield "both languages", ("method", "whose", _HEADS["overall"]), _lines(compared, _BOTH, ("overall",))
    if lines := [averages.line(average, compared.table.columns) for average in averages.averages(compared, languages)]:
        columns = compared.table.columns
        yield "averages", ("method", "whose", *(_HEADS.get(column, column) for column in columns)), lines
    for by in _solved(compared, languages):
        regions: list[Line] = [(solved.who(by, region), "", f"{len(region.samples)}") for region in by.solved.regions]
        yield by.title, ("solved by", "", "samples"), regions


def figure(compared: ComparedTable, languages: Sequence[str]) -> str:
    """Return who solves what as an SVG.

    Raises:
        InputFault: if no two strategies have a result that is right or wrong.
    """
    charts = _solved(compared, languages)
    if not charts:
        raise InputFault(
            f"{compared.table.name}: no two strategies have samples that both completed, so there is no picture",
            cure="leave out --figure, or run it over more samples",
        )
    return solved.picture(charts)


def _solved(compared: ComparedTable, languages: Sequence[str]) -> list[SolvedBy]:
    return [by for by in compared.solved if is_shown(by.language, languages)]


def _lines(compared: ComparedTable, language: str, columns: Sequence[str]) -> list[Line]:
    """Return the paper's lines of each strategy, then ours; strategies in the order of the paper."""
    groups: dict[str, list[PaperRow]] = {}
    for row in compared.table.rows:
        if language in row.printed or language in row.missing:
            groups.setdefault(compared.specs.get(row.preset, row.preset), []).append(row)
    lines = []
    for spec, rows in groups.items():
        lines += [_theirs(row, language, columns) for row in rows]
        lines += _ours(compared, spec, language, columns)
    return lines


def _theirs(row: PaperRow, language: str, columns: Sequence[str]) -> Line:
    source = [row.model, row.encoder] if row.table.startswith("icl") else [row.benchmark, row.model]
    if ORIGINS[row.origin] != "measured":
        source.append(ORIGINS[row.origin])
    if not row.strategy:
        source.append("external")
    return (
        row.method,
        f"paper: {', '.join(filter(None, source))}",
        *(_printed(row, language, column) for column in columns),
    )


def _printed(row: PaperRow, language: str, column: str) -> str:
    number = row.printed.get(language, {}).get(column)
    if number is None:
        return _SHORT.get(row.missing.get(language, {}).get(column, ""), numbers.UNKNOWN)
    text = f"{number:.0f}" if column in _WHOLE else f"{number:.2f}"
    return f"{text}?" if f"{language}.{column}" in row.doubtful else text


def _ours(compared: ComparedTable, spec: str, language: str, columns: Sequence[str]) -> Iterator[Line]:
    results = compared.ours.get(spec, ())
    for samples, generator in dict.fromkeys((result.samples, result.generator) for result in results):
        of_set = [result for result in results if (result.samples, result.generator) == (samples, generator)]
        whose = f"ours: {samples}, {generator}"
        if language == _BOTH:
            mean = overall(of_set)
            yield "", whose, numbers.UNKNOWN if mean is None else f"{mean:.2f}"
        for result in of_set if language != _BOTH else ():
            if is_shown(result.language, (language,)):
                of_language = f" in {result.language.capitalize()}" if language == UNSTATED else ""
                yield "", whose + of_language, *(_cell(result.cells.get(column), column) for column in columns)


def _cell(cell: OwnNumber | None, column: str) -> str:
    if cell is None:
        return numbers.UNKNOWN
    if column in (*_WHOLE, "inference", "construction"):
        return numbers.amount(cell.mean)
    return numbers.interval(cell.mean, cell.low, cell.high)


def _record(compared: ComparedTable, row: PaperRow, language: str) -> dict[str, Any]:
    spec = compared.specs.get(row.preset)
    prefix = f"{language}."
    return {
        "preset": row.preset,
        "row": row.row,
        "benchmark": row.benchmark,
        "language": language,
        "method": row.method,
        "model": row.model,
        "encoder": row.encoder or None,
        "summariser": row.summariser or None,
        "origin": ORIGINS[row.origin],
        "external": not row.strategy,
        "strategy": spec,
        "paper": dict(row.printed.get(language, {})),
        "missing": {column: STATUSES[why] for column, why in row.missing.get(language, {}).items()},
        "doubtful": sorted(key.removeprefix(prefix) for key in row.doubtful if key.startswith(prefix)),
        "flags": {key.removeprefix(prefix): why for key, why in row.flags.items() if key.startswith(prefix)},
        "remarks": list(row.remarks),
        "ours": [_ours_record(own) for own in compared.ours.get(spec or "", ()) if is_shown(own.language, (language,))],
    }


def _ours_record(result: OwnResult) -> dict[str, Any]:
    cells = {column: asdict(cell) for column, cell in result.cells.items()}
    rounded = {
        column: {key: round(value, 6) if isinstance(value, float) else value for key, value in cell.items()}
        for column, cell in cells.items()
    }
    return {
        "samples": result.samples,
        "generator": result.generator,
        "language": result.language,
        "run": result.run,
        "strategy": result.strategy,
        "counts": dict(sorted(result.counts.items())),
        "unscored": result.unscored,
        **rounded,
    }


def notes(compared: ComparedTable, languages: Sequence[str]) -> Iterator[str]:
    """Yield the remarks, the gravest first."""
    rows = compared.table.rows
    yield "ours beside the paper's numbers, not a reproduction of them: samples, model and machine differ"
    theirs = dict.fromkeys(row.benchmark for row in rows)
    sizes = " and ".join(BENCHMARKS.get(benchmark, benchmark) for benchmark in theirs)
    yield f"samples: ours {_samples(compared)}; the paper {sizes}"
    models = dict.fromkeys(row.model for row in rows)
    yield f"generator: ours {' and '.join(compared.generators)} for every row; the paper {', '.join(models)}"
    theirs_summarised = dict.fromkeys(row.summariser for row in rows if row.summariser)
    if theirs_summarised:
        ours = (
            compared.summariser or f"{' and '.join(compared.generators)}, as the generator (--summariser names another)"
        )
        yield f"summariser: ours {ours}; the paper {', '.join(theirs_summarised)}"
    yield from _continuing(compared)
    yield from _encoders(compared)
    yield from _measured(compared, languages)
    yield from remarks((own.strategy, own.remarks) for results in compared.ours.values() for own in results)
    for name, specs in compared.left_out.items():
        yield f"not run on {name}, which has samples in a language that they do not take: {', '.join(specs)}"
    for method in differences(compared.specs.values()):
        differs = [of for of in method.differs if of.switch != TOKENIZER_OPTION or compared.tokenizer == TOKENIZER]
        if differs:
            yield f"{method.title} differs from the paper's: {'; '.join(map(str, differs))}"
    if any(row.doubtful for row in rows):
        yield "?: the number as printed cannot be right (docs/presets.md says why)"
    if any("out_of_memory" in of.values() for row in rows for of in row.missing.values()):
        yield "oom: the paper ran out of memory"


def _continuing(compared: ComparedTable) -> Iterator[str]:
    """Say what strategies do with a model that only continues code; nothing of strategies that ask it for no more."""
    which = " and ".join(compared.continuing)
    follows = "follows" if len(compared.continuing) == 1 else "follow"
    if which and compared.table.kind is Kind.FUNCTION:
        yield (
            f"{which} {follows} no instructions: steps and documentation are taken from docstrings, no role is played "
            "and no reasons are given (docs/icl.md, docs/baselines.md)"
        )
    elif which and not compared.summariser and any(row.summariser for row in compared.table.rows):
        yield (
            f"{which} {follows} no instructions: summaries, of drafts too, are plain ones that no model wrote "
            "(docs/apis.md)"
        )


def _encoders(compared: ComparedTable) -> Iterator[str]:
    printed = dict.fromkeys(row.encoder for row in compared.table.rows if row.encoder)
    used = dict.fromkeys(encoder for spec in compared.specs.values() for encoder in encoders_of(parse(spec)))
    theirs = ", ".join(printed) or "prints none"
    if compared.encoder:
        exception = ", but bm25 where the row has it" if "bm25" in printed else ""
        yield f"encoder: ours {compared.encoder} for every row{exception}; the paper {theirs}"
    elif used:
        own = f"{', '.join(printed)} as each row of the paper" if printed else ""
        ours = ", ".join(encoder_name for encoder_name in used if encoder_name not in printed)
        filled = f"{ours} where the paper prints none" if ours else ""
        yield f"encoder: {'; '.join(filter(None, (own, filled)))}"


def _measured(compared: ComparedTable, languages: Sequence[str]) -> Iterator[str]:
    columns, ours = compared.table.columns, [result for results in compared.ours.values() for result in results]
    if compared.table.kind is Kind.FUNCTION:
        yield "numbers: pass@1 in percent by level, ours with 95% intervals; avg is the unweighted mean of the levels"
        others = sorted({level for result in ours for level in result.counts} - set(_TABLE_LEVELS))
        if others:
            yield f"left out, as in the paper: samples of the levels {', '.join(others)}"
    elif "em" in columns:
        yield f"numbers: percent, metric profile {PROFILE}, ours with 95% intervals"
    if "tokens" in columns:
        yield f"tokens: of the whole prompt, ours counted by {TOKENIZER}; the paper's tokenizer is not stated"
    if "inference" in columns:
        yield "inference: seconds a task, ours of strategy and generator on this machine"
        yield (
            "construction: seconds a project, ours what a run had to make of a repository to search it; "
            "what an earlier run left, such as vectors, takes no time"
        )
    if "completed" in columns:
        yield "completed: tasks completed exactly; ours by EM"
    measured = {result.language for result in ours} | {UNSTATED}
    absent = [language for language in languages if ours and language not in measured]
    if absent:
        yield f"our samples have no {' and no '.join(absent)}"
    if any(averages.averages(compared, languages)):
        yield "averages: of the paper's rows, and of ours, over models, benchmarks and languages, all counting alike"
    printed = dict.fromkeys(language for row in compared.table.rows for language in row.languages)
    hidden = [language for language in printed if language not in languages]
    if hidden:
        yield f"not shown: the paper's rows of {' and '.join(hidden)} (--languages {hidden[0]})"
    unscored = max((result.unscored for result in ours), default=0)
    if unscored:
        yield f"samples without a result are in no number: up to {unscored} of a strategy; run the same command again"


def _samples(compared: ComparedTable) -> str:
    """Say how many samples stand behind a strategy's numbers, by set and language."""
    first = next(iter(compared.ours.values()), ())
    by_set: dict[str, list[OwnResult]] = {}
    for result in first:
        if result.generator == first[0].generator:
            by_set.setdefault(result.samples, []).append(result)
    parts = []
    for name, results in by_set.items():
        sizes = [
            f"{_size(result)} in {result.language.capitalize()}"
            for result in sorted(results, key=lambda result: result.language != "python")
        ]
        parts.append(f"{name} ({', '.join(sizes)})")
    return ", ".join(parts)


def _size(result: OwnResult) -> str:
    levels = {short: result.counts[name] for name, short in _TABLE_LEVELS.items() if result.counts.get(name)}
    if levels:
        return ", ".join(f"{level} {count}" for level, count in levels.items())
    return f"{sum(result.counts.values())} tasks"
