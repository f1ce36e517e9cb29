"""What must be said beside a table: in what ours differs from the paper. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.spec import parse
from ctxbench.bench.types import Kind
from ctxbench.harness.papers.beside import PROFILE, Ours
from ctxbench.harness.papers.presets import encoders_of
from ctxbench.harness.papers.reproduce import Beside
from ctxbench.harness.papers.tables import BENCHMARKS, LEVELS

_TABLE_LEVELS = {f"{level}_runnable": level for level in LEVELS}


def notes(beside: Beside, languages: Sequence[str]) -> Iterator[str]:
    """Yield the remarks, the gravest first."""
    rows = beside.table.rows
    if not beside.specs:
        yield "the paper's numbers only: nothing here computes them"
        return
    yield "ours beside the paper's numbers, not a reproduction of them: samples, model and machine differ"
    theirs = dict.fromkeys(row.benchmark for row in rows)
    yield f"samples: ours {_samples(beside)}; the paper {' and '.join(BENCHMARKS.get(one, one) for one in theirs)}"
    models = dict.fromkeys(row.model for row in rows)
    yield f"generator: ours {beside.generator} for every row; the paper {', '.join(models)}"
    yield from _encoders(beside)
    yield from _measured(beside, languages)
    if any(row.doubtful for row in rows):
        yield "?: the number as printed cannot be right (docs/presets.md says why)"
    if any("out_of_memory" in of.values() for row in rows for of in row.missing.values()):
        yield "oom: the paper ran out of memory"


def _encoders(beside: Beside) -> Iterator[str]:
    printed = dict.fromkeys(row.encoder for row in beside.table.rows if row.encoder)
    used = dict.fromkeys(encoder for spec in beside.specs.values() for encoder in encoders_of(parse(spec)))
    theirs = ", ".join(printed) or "prints none"
    if beside.encoder:
        kept = ", but bm25 where the row has it" if "bm25" in printed else ""
        yield f"encoder: ours {beside.encoder} for every row{kept}; the paper {theirs}"
    elif used:
        own = f"{', '.join(printed)} as each row of the paper" if printed else ""
        ours = ", ".join(one for one in used if one not in printed)
        filled = f"{ours} where the paper prints none" if ours else ""
        yield f"encoder: {'; '.join(filter(None, (own, filled)))}"


def _measured(beside: Beside, languages: Sequence[str]) -> Iterator[str]:
    columns, ours = beside.table.columns, [one for found in beside.ours.values() for one in found]
    if beside.table.kind is Kind.FUNCTION:
        yield "numbers: pass@1 in percent by level, ours with 95% intervals; avg is the unweighted mean of the levels"
        others = sorted({level for one in ours for level in one.counts} - set(_TABLE_LEVELS))
        if others:
            yield f"left out, as in the paper: samples of the levels {', '.join(others)}"
    elif "em" in columns:
        yield f"numbers: percent, metric profile {PROFILE}, ours with 95% intervals"
    if "tokens" in columns:
        yield f"tokens: of the whole prompt, ours counted by {TOKENIZER}; the paper's tokenizer is not stated"
    if "inference" in columns:
        yield "inference: seconds a task, ours of strategy and generator on this machine"
        yield "construction: seconds a project; not measured here (`python -m benchmarks.apis` measures the API base)"
    absent = [one for one in languages if ours and one not in {found.language for found in ours}]
    if absent:
        yield f"our samples have no {' and no '.join(absent)}"
    left = [
        one for one in dict.fromkeys(of for row in beside.table.rows for of in row.languages) if one not in languages
    ]
    if left:
        yield f"not shown: the paper's rows of {' and '.join(left)} (--languages {left[0]})"
    unscored = max((one.unscored for one in ours), default=0)
    if unscored:
        yield f"samples without a result are in no number: up to {unscored} of a strategy; run the same command again"


def _samples(beside: Beside) -> str:
    """Say how many samples stand behind a strategy's numbers, by set and language."""
    first = next(iter(beside.ours.values()), ())
    by_set: dict[str, list[Ours]] = {}
    for one in first:
        by_set.setdefault(one.samples, []).append(one)
    said = []
    for name, found in by_set.items():
        sizes = [
            f"{_size(one)} in {one.language.capitalize()}"
            for one in sorted(found, key=lambda one: one.language != "python")
        ]
        said.append(f"{name} ({', '.join(sizes)})")
    return ", ".join(said)


def _size(one: Ours) -> str:
    levels = {short: one.counts[name] for name, short in _TABLE_LEVELS.items() if one.counts.get(name)}
    if levels:
        return ", ".join(f"{level} {count}" for level, count in levels.items())
    return f"{sum(one.counts.values())} tasks"
