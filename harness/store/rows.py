"""From records to table rows, and what rows say. Pure."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import Table

from ctxbench.bench.types import Sample
from ctxbench.harness.store import tables as t
from ctxbench.harness.store.records import Finished, StoredGeneration, StoredVerdict

Row = dict[str, Any]
V = TypeVar("V")


def clean(value: V) -> V:
    """Replace what no database takes: lone surrogates and NUL; other values pass."""
    if isinstance(value, str):
        # "replace" writes a question mark for each lone surrogate.
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")  # type: ignore[return-value]
    return value


def sample(set_digest: str, one: Sample) -> Row:
    """Return the row of a sample's public facts; its answer is not stored."""
    return {
        "set_digest": set_digest,
        "id": one.id,
        "benchmark": one.benchmark,
        "language": str(one.language),
        "kind": str(one.kind),
        "subkind": one.subkind,
        "repo": one.repo,
        "path": one.path,
        "line": one.cursor.line,
        "col": one.cursor.column,
    }


def prompts(texts: Mapping[str, str]) -> dict[str, Row]:
    """Return digest -> row."""
    return {digest: {"digest": digest, "text": clean(text)} for digest, text in texts.items()}


def generation(one: StoredGeneration) -> Row:
    """Return the row of an answer; its prompt has a row of its own."""
    return {
        "id": one.id,
        "generator": one.generator,
        "version": one.version,
        "prompt_digest": one.prompt_digest,
        "sampling": one.sampling,
        "idx": one.idx,
        "text": clean(one.text),
        "finish": clean(one.finish),
        "tokens_in": one.tokens_in,
        "tokens_out": one.tokens_out,
        "seconds": one.seconds,
        "cached": one.cached,
        "price": one.price,
    }


def verdict(one: StoredVerdict) -> Row:
    """Return the row of a verdict."""
    row = {key: clean(value) for key, value in dataclasses.asdict(one).items()}
    return {**row, "flags": json.dumps(one.flags)}


def flags(stored: str | None) -> tuple[str, ...]:
    """Return flags as they were before they were stored; none where there is no row."""
    return tuple(json.loads(stored)) if stored else ()


def finished(run: str, one: Finished) -> dict[Table, list[Row]]:
    """Return the rows of a finished sample, parents first."""
    key = {"run_id": run, "sample_id": one.sample_id}
    result = {
        **key,
        "status": str(one.status),
        "prompt_digest": one.prompt_digest,
        "context_tokens": one.context_tokens,
        "calls": len(one.calls),
        "flags": json.dumps(one.flags),
        "strategy_seconds": one.strategy_seconds,
        "generator_seconds": one.generator_seconds,
    }
    calls = [
        {**key, "ordinal": ordinal, "role": clean(role), "generation_id": id_}
        for ordinal, (role, id_) in enumerate(one.calls)
    ]
    return {t.RESULT: [result], t.CALL: calls, t.BLOCK: _blocks(key, one), **_completions(key, one)}


def _blocks(key: Row, one: Finished) -> list[Row]:
    return [
        {
            **key,
            "ordinal": ordinal,
            "kind": block.kind,
            "places": clean(block.places),
            "score": block.score,
            "tokens": block.tokens,
            "state": block.state,
            "reason": clean(block.reason),
            "char_start": block.char_start,
            "char_end": block.char_end,
        }
        for ordinal, block in enumerate(one.blocks)
    ]


def _completions(key: Row, one: Finished) -> dict[Table, list[Row]]:
    completions, scores, judged = [], [], []
    for idx, made in enumerate(one.completions):
        completions.append(
            {
                **key,
                "idx": idx,
                "generation_id": made.generation_id,
                "status": str(made.status),
                "text": clean(made.text),
                "flags": json.dumps(made.flags),
            }
        )
        scores += [
            {**key, "idx": idx, "profile": profile, "metric": metric, "value": _number(value)}
            for (profile, metric), value in sorted(made.scores.items())
        ]
        if made.verdict is not None:
            judged.append({**key, "idx": idx, "verdict_key": made.verdict})
    return {t.COMPLETION: completions, t.SCORE: scores, t.JUDGED: judged}


def _number(value: float | None) -> float | None:
    """Write no number as NULL: SQLite does it by itself, other databases would keep a NaN."""
    return None if value is None or math.isnan(value) else value


def versions(run: Any) -> dict[str, str]:
    """Return what made a run, from its row; an import says nothing of the generator's version."""
    named = {
        "ctxbench": run.code,
        "strategy": run.strategy_version,
        "generator": run.generator_version,
        "coder": run.coder,
        "tokenizer": run.tokenizer,
    }
    return {name: version for name, version in named.items() if version}
