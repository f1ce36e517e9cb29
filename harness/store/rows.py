"""Table rows, made from records and read back. Pure."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import Table

from ctxbench.bench.types import Sample
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.records import Finished, StoredGeneration, StoredVerdict

Row = dict[str, Any]
V = TypeVar("V")


def clean(value: V) -> V:
    """Replace what no database takes: lone surrogates and NUL; other values pass."""
    if isinstance(value, str):
        # "replace" writes a question mark for each lone surrogate.
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")  # type: ignore[return-value]
    return value


def sample(set_digest: str, record: Sample) -> Row:
    """Return the row of a sample's public facts; its answer is not stored."""
    return {
        "set_digest": set_digest,
        "id": record.id,
        "benchmark": record.benchmark,
        "language": str(record.language),
        "kind": str(record.kind),
        "subkind": record.subkind,
        "repo": record.repo,
        "path": record.path,
        "line": record.cursor.line,
        "col": record.cursor.column,
    }


def prompts(texts: Mapping[str, str]) -> dict[str, Row]:
    """Return digest -> row."""
    return {digest: {"digest": digest, "text": clean(text)} for digest, text in texts.items()}


def generation(record: StoredGeneration) -> Row:
    """Return the row of an answer; its prompt has a row of its own."""
    return {
        "id": record.id,
        "generator": record.generator,
        "version": record.version,
        "prompt_digest": record.prompt_digest,
        "sampling": record.sampling,
        "idx": record.idx,
        "text": clean(record.text),
        "finish": clean(record.finish),
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "seconds": record.seconds,
        "cached": record.cached,
        "price": record.price,
    }


def verdict(record: StoredVerdict) -> Row:
    """Return the row of a verdict."""
    row = {key: clean(value) for key, value in dataclasses.asdict(record).items()}
    return {**row, "flags": json.dumps(record.flags)}


def flags(stored: str | None) -> tuple[str, ...]:
    """Return flags as they were before they were stored; none where there is no row."""
    return tuple(json.loads(stored)) if stored else ()


def finished(run: str, record: Finished) -> dict[Table, list[Row]]:
    """Return the rows of a finished sample, parents first."""
    key = {"run_id": run, "sample_id": record.sample_id}
    result = {
        **key,
        "status": str(record.status),
        "prompt_digest": record.prompt_digest,
        "context_tokens": record.context_tokens,
        "calls": len(record.calls),
        "flags": json.dumps(record.flags),
        "strategy_seconds": record.strategy_seconds,
        "generator_seconds": record.generator_seconds,
    }
    calls = [
        {**key, "ordinal": ordinal, "role": clean(role), "generation_id": id_}
        for ordinal, (role, id_) in enumerate(record.calls)
    ]
    return {t.RESULT: [result], t.CALL: calls, t.BLOCK: _blocks(key, record), **_completions(key, record)}


def _blocks(key: Row, record: Finished) -> list[Row]:
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
        for ordinal, block in enumerate(record.blocks)
    ]


def _completions(key: Row, record: Finished) -> dict[Table, list[Row]]:
    completions, scores, judged = [], [], []
    for idx, completion in enumerate(record.completions):
        completions.append(
            {
                **key,
                "idx": idx,
                "generation_id": completion.generation_id,
                "status": str(completion.status),
                "text": clean(completion.text),
                "flags": json.dumps(completion.flags),
            }
        )
        scores += [
            {**key, "idx": idx, "profile": profile, "metric": metric, "value": number(value)}
            for (profile, metric), value in sorted(completion.scores.items())
        ]
        if completion.verdict is not None:
            judged.append({**key, "idx": idx, "verdict_key": completion.verdict})
    return {t.COMPLETION: completions, t.SCORE: scores, t.JUDGED: judged}


def number(value: float | None) -> float | None:
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
