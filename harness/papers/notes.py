"""Remarks on a compared table: where our numbers differ from the paper's in samples, model or measure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.spec import parse
from ctxbench.bench.types import Kind
from ctxbench.harness.papers.own_results import PROFILE, OwnResult
from ctxbench.harness.papers.presets import encoders_of
from ctxbench.harness.papers.reproduce import ComparedTable
from ctxbench.harness.papers.tables import BENCHMARKS, LEVELS

_TABLE_LEVELS = {f"{level}_runnable": level for level in LEVELS}


def notes(compared: ComparedTable, languages: Sequence[str]) -> Iterator[str]:
    """Yield the remarks, the gravest first."""
    rows = compared.table.rows
    if not compared.specs:
        yield "the paper's numbers only: nothing here computes them"
        return
    yield "ours beside the paper's numbers, not a reproduction of them: samples, model and machine differ"
    theirs = dict.fromkeys(row.benchmark for row in rows)
    sizes = " and ".join(BENCHMARKS.get(benchmark, benchmark) for benchmark in theirs)
    yield f"samples: ours {_samples(compared)}; the paper {sizes}"
    models = dict.fromkeys(row.model for row in rows)
    yield f"generator: ours {compared.generator} for every row; the paper {', '.join(models)}"
    yield from _encoders(compared)
    yield from _measured(compared, languages)
    if any(row.doubtful for row in rows):
        yield "?: the number as printed cannot be right (docs/presets.md says why)"
    if any("out_of_memory" in of.values() for row in rows for of in row.missing.values()):
        yield "oom: the paper ran out of memory"


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
        yield "construction: seconds a project; not measured here (`python -m benchmarks.apis` measures the API base)"
    absent = [language for language in languages if ours and language not in {result.language for result in ours}]
    if absent:
        yield f"our samples have no {' and no '.join(absent)}"
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
