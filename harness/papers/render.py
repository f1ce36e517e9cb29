"""Formats a paper's table with ctxbench's numbers as text, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.escaping import markdown as plain_markdown
from ctxbench.bench.spec import parse
from ctxbench.bench.types import Kind
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.columns import ColumnHead, TextTable
from ctxbench.harness.leaderboard.notes import remarks
from ctxbench.harness.leaderboard.render import WIDTH, markdown_table, printed, rich_table
from ctxbench.harness.paper_tables import BENCHMARKS, LEVELS, ORIGINS, STATUSES, PaperRow
from ctxbench.harness.papers.presets import differences, encoders_of
from ctxbench.harness.papers.reproduce import (
    PROFILE,
    Average,
    ComparedTable,
    OwnNumber,
    OwnResult,
    SolvedBy,
    averages,
    overall,
)

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
Line = list[str]
_TABLE_LEVELS = {f"{level}_runnable": level for level in LEVELS}


def title(compared: ComparedTable) -> str:
    """Return the table's name, its paper and its title."""
    return f"{compared.table.name}: {compared.table.paper}, {compared.table.title}"


def table(compared: ComparedTable, languages: Sequence[str], *, width: int = WIDTH) -> str:
    """Return the table as text: title, remarks, then its `sections`, with ctxbench's lines below the paper's."""
    parts: list[Text | Table] = [Text(title(compared)), *(Text(f"- {note}") for note in notes(compared, languages))]
    for section in sections(compared, languages):
        parts += [Text(f"\n{section.caption}"), rich_table(section, width)]
    return printed(parts, width=width)


def markdown(compared: ComparedTable, languages: Sequence[str]) -> str:
    """Return the table and its remarks as Markdown."""
    remarks = "".join(f"- {plain_markdown(note)}\n" for note in notes(compared, languages))
    tables = [f"### {section.caption}\n\n{markdown_table(section)}" for section in sections(compared, languages)]
    return "\n".join([f"## {plain_markdown(title(compared))}\n", remarks, *tables])


def to_json(compared: ComparedTable, languages: Sequence[str]) -> str:
    """Return the table as JSON: remarks, a record per row and language (not rounded), averages, and solved samples."""
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
        "averages": [asdict(average) for average in averages(compared, languages)],
        "solved": [_solved_record(by) for by in compared.solved],
    }  # fmt: skip
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sections(compared: ComparedTable, languages: Sequence[str]) -> Iterator[TextTable]:
    """Yield a table per language, then any tables of means over both languages, mean gains and solved samples."""
    columns = compared.table.columns
    for language in languages:
        yield _table(language, columns, _lines(compared, language, columns))
    if len(languages) > 1 and any(_BOTH in row.printed for row in compared.table.rows):
        yield _table("both languages", ("overall",), _lines(compared, _BOTH, ("overall",)))
    if lines := [_average_line(average, columns) for average in averages(compared, languages)]:
        yield _table("averages", columns, lines)
    for by in compared.solved:
        regions = [[_who(by, strategies), "", f"{len(samples)}"] for strategies, samples in by.regions.items()]
        yield TextTable(_heads("solved by", "", "samples"), regions, by.title)


def _table(caption: str, columns: Sequence[str], lines: list[list[str]]) -> TextTable:
    return TextTable(_heads("method", "whose", *(_HEADS.get(column, column) for column in columns)), lines, caption)


def _heads(*texts: str) -> tuple[ColumnHead, ...]:
    return tuple(ColumnHead(text, is_text=place < 2) for place, text in enumerate(texts))


def _lines(compared: ComparedTable, language: str, columns: Sequence[str]) -> list[Line]:
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
    return [
        row.method,
        f"paper: {', '.join(filter(None, source))}",
        *(_printed(row, language, column) for column in columns),
    ]


def _printed(row: PaperRow, language: str, column: str) -> str:
    number = row.printed.get(language, {}).get(column)
    if number is None:
        return _SHORT.get(row.missing.get(language, {}).get(column, ""), scales.UNKNOWN)
    text = f"{number:.0f}" if column in _WHOLE else f"{number:.2f}"
    return f"{text}?" if f"{language}.{column}" in row.flags else text


def _ours(compared: ComparedTable, spec: str, language: str, columns: Sequence[str]) -> Iterator[Line]:
    results = compared.ours.get(spec, ())
    for samples, generator in dict.fromkeys((result.samples, result.generator) for result in results):
        of_set = [result for result in results if (result.samples, result.generator) == (samples, generator)]
        whose = f"ours: {samples}, {generator}"
        if language == _BOTH:
            mean = overall(of_set)
            yield ["", whose, scales.UNKNOWN if mean is None else f"{mean:.2f}"]
        for result in of_set if language != _BOTH else ():
            if result.language == language:
                yield ["", whose, *(_cell(result.cells.get(column), column) for column in columns)]


def _average_line(average: Average, columns: Sequence[str]) -> Line:
    cells = (average.cells.get(column) for column in columns)
    return [average.name, average.whose, *(scales.UNKNOWN if cell is None else f"{cell:.2f}" for cell in cells)]


def _cell(cell: OwnNumber | None, column: str) -> str:
    if cell is None:
        return scales.UNKNOWN
    if column in (*_WHOLE, "inference", "construction"):
        return scales.amount(cell.mean)
    return scales.interval(cell.mean, cell.low, cell.high)


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
        "flags": {key.removeprefix(prefix): why for key, why in row.flags.items() if key.startswith(prefix)},
        "remarks": list(row.remarks),
        "ours": [_ours_record(own) for own in compared.ours.get(spec or "", ()) if own.language == language],
    }


def _ours_record(result: OwnResult) -> dict[str, Any]:
    record = asdict(result)
    cells = record.pop("cells")
    return {**record, **cells}


def notes(compared: ComparedTable, languages: Sequence[str]) -> Iterator[str]:
    """Yield the remarks above the table, the most important first."""
    rows = compared.table.rows
    if compared.generators:
        yield from _beside(compared)
    else:
        yield "only the paper's numbers are shown; --generator runs the table and adds ours"
    if compared.table.headlines:
        yield "averages: mean points gained over the settings that have all rows (docs/strategies.md)"
    printed = dict.fromkeys(language for row in rows for language in row.languages)
    hidden = [language for language in printed if language not in languages]
    if hidden:
        yield f"not shown: the paper's rows of {' and '.join(hidden)}, because our samples have none"
    if any(row.flags for row in rows):
        yield "?: the printed number cannot be right (--format json names the reason)"
    if any("out_of_memory" in of.values() for row in rows for of in row.missing.values()):
        yield "oom: the paper ran out of memory"


def _beside(compared: ComparedTable) -> Iterator[str]:
    rows, generators = compared.table.rows, " and ".join(compared.generators)
    yield "our numbers are not a reproduction of the paper's, because samples, model and machine differ"
    if compared.stored:
        yield from _stored(compared)
    benchmarks = dict.fromkeys(BENCHMARKS.get(row.benchmark, row.benchmark) for row in rows)
    yield f"samples: ours {_samples(compared)}; the paper {' and '.join(benchmarks)}"
    yield f"generator: ours {generators} for every row; the paper {', '.join(dict.fromkeys(row.model for row in rows))}"
    if summarisers := dict.fromkeys(row.summariser for row in rows if row.summariser):
        yield f"summariser: ours {_summariser(compared)}; the paper {', '.join(summarisers)}"
    yield from _continuing(compared)
    yield from _encoders(compared)
    yield from _measured(compared)
    yield from remarks((own.strategy, own.remarks) for results in compared.ours.values() for own in results)
    for name, specs in compared.left_out.items():
        yield f"strategies not run on {name}, because they do not accept all its languages: {', '.join(specs)}"
    for method in differences(compared.specs.values()):
        differs = [of for of in method.differs if of.switch not in compared.options]
        if differs:
            yield f"{method.title} differs from the paper's: {'; '.join(map(str, differs))}"


def _summariser(compared: ComparedTable) -> str:
    if not compared.summariser:
        names, asked = " and ".join(compared.generators), ", also for functions of tests"
        return f"{names}, as the generator (--summariser names another){asked * (not compared.continuing)}"
    if "--summarise-tests" in compared.options:
        return f"{compared.summariser}, also for functions of tests"
    return f"{compared.summariser}, not for functions of tests and vendored files (--summarise-tests)"


def _stored(compared: ComparedTable) -> Iterator[str]:
    yield "nothing was run: our numbers come from stored runs, per language over the samples that all runs share"
    missing = [spec for spec, results in compared.ours.items() if not results]
    if missing:
        yield f"no run is stored for {', '.join(missing)}"


def _continuing(compared: ComparedTable) -> Iterator[str]:
    which = " and ".join(compared.continuing)
    follows = "follows" if len(compared.continuing) == 1 else "follow"
    if which and compared.table.kind is Kind.FUNCTION:
        yield (
            f"{which} {follows} no instructions: steps and documentation come from docstrings, without roles "
            "or reasons (docs/strategies.md)"
        )
    elif which and not compared.summariser and any(row.summariser for row in compared.table.rows):
        yield (
            f"{which} {follows} no instructions: summaries, also of drafts, are plain texts that no model wrote "
            "(docs/strategy.md)"
        )


def _encoders(compared: ComparedTable) -> Iterator[str]:
    printed = dict.fromkeys(row.encoder for row in compared.table.rows if row.encoder)
    used = dict.fromkeys(encoder for spec in compared.specs.values() for encoder in encoders_of(parse(spec)))
    theirs = ", ".join(printed) or "prints none"
    if compared.encoder:
        exception = ", but bm25 where the row has it" if "bm25" in printed else ""
        yield f"encoder: ours {compared.encoder} for every row{exception}; the paper {theirs}"
    elif used:
        own = f"{', '.join(printed)} as in each row of the paper" if printed else ""
        ours = ", ".join(encoder_name for encoder_name in used if encoder_name not in printed)
        filled = f"{ours} where the paper prints none" if ours else ""
        yield f"encoder: {'; '.join(filter(None, (own, filled)))}"


def _measured(compared: ComparedTable) -> Iterator[str]:
    columns, ours = compared.table.columns, [result for results in compared.ours.values() for result in results]
    if compared.table.kind is Kind.FUNCTION:
        yield "numbers: pass@1 in percent by level, ours with 95% intervals; avg is the unweighted mean of the levels"
        others = sorted({level for result in ours for level in result.counts} - set(_TABLE_LEVELS))
        if others:
            yield f"left out, as in the paper: samples of the levels {', '.join(others)}"
    elif "em" in columns:
        yield f"numbers: percent, metric profile {PROFILE}, ours with 95% intervals"
    if "tokens" in columns:
        yield f"tokens: in the whole prompt, ours counted by {TOKENIZER}; the paper does not name its tokenizer"
    if "inference" in columns:
        yield "inference: seconds per task; ours are of strategy and generator on this machine"
        yield (
            "construction: seconds per project, ours to make a repository searchable; "
            "results stored by an earlier run, such as vectors, take no time"
        )
    if "completed" in columns:
        yield "completed: tasks completed exactly; ours by EM"
    missing = max((result.missing for result in ours), default=0)
    if missing:
        yield f"numbers exclude samples without a result, up to {missing} per strategy; run the same command again"


def _samples(compared: ComparedTable) -> str:
    first = next(iter(compared.ours.values()), ())
    sizes: dict[str, list[str]] = {}
    for result in sorted(first, key=lambda result: result.language != "python"):
        if result.generator == first[0].generator:
            sizes.setdefault(result.samples, []).append(f"{_size(result)} in {result.language.capitalize()}")
    return ", ".join(f"{name} ({', '.join(of_set)})" for name, of_set in sizes.items())


def _size(result: OwnResult) -> str:
    levels = {short: result.counts[name] for name, short in _TABLE_LEVELS.items() if result.counts.get(name)}
    if levels:
        return ", ".join(f"{level} {count}" for level, count in levels.items())
    return f"{sum(result.counts.values())} tasks"


def _who(by: SolvedBy, strategies: Sequence[str]) -> str:
    if not strategies:
        return "none of them"
    return "all of them" if len(strategies) == len(by.strategies) else f"only {' and '.join(strategies)}"


def _solved_record(by: SolvedBy) -> dict[str, Any]:
    return {
        "samples": by.samples,
        "language": by.language,
        "generator": by.generator,
        "metric": by.metric,
        "n": by.n,
        "regions": [{"strategies": strategies, "samples": samples} for strategies, samples in by.regions.items()],
    }
