"""A run as a log of Inspect: its samples are Inspect's samples, its completions epochs, its metrics scorers.

Source: the log format of inspect_ai, version 2 (`EvalLog`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ctxbench.harness.exports.stored import ExportedRun, scores_of
from ctxbench.harness.results import Status
from ctxbench.harness.run.sample import FINAL
from ctxbench.harness.store.details import CompletionFacts, Detail, StoredCall

_VERSION = 2


def inspect_log(run: ExportedRun) -> str:
    """Return the file; a sample that is missing is in it with its fault and without scores."""
    samples = [sample for detail in run.details() for sample in _samples(run, detail)]
    missing = sum(sample["error"] is not None for sample in samples)
    log = {
        "version": _VERSION,
        "status": "error" if missing else "success",
        "eval": _spec(run),
        "plan": {"name": "plan", "steps": [{"solver": run.work.choices.strategy, "params": {}}]},
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples) - missing,
            "scores": _scores(run),
        },
        "stats": {"started_at": run.began.isoformat(), "completed_at": run.ended.isoformat()},
        "samples": samples,
    }
    if missing:
        message = f"{missing} of {len(samples)} samples are missing"
        log["error"] = {"message": message, "traceback": message, "traceback_ansi": message}
    return json.dumps(log, ensure_ascii=False, indent=1) + "\n"


def _spec(run: ExportedRun) -> dict[str, Any]:
    choices, sampling = run.work.choices, run.sampling
    ids = [sample for table in run.tables for sample in table.sample]
    return {
        "eval_id": run.id,
        "run_id": run.id,
        "task_id": run.work.samples_digest,
        "created": run.began.isoformat(),
        "task": choices.samples,
        "task_args": {"strategy": choices.strategy, "seed": choices.seed},
        "solver": choices.strategy,
        "dataset": {"name": choices.samples, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": choices.generator,
        "model_generate_config": {
            name: sampling[name] for name in ("max_tokens", "temperature", "top_p") if name in sampling
        },
        "config": {"epochs": choices.n},
        "packages": {"ctxbench": run.code},
        "metadata": {"versions": dict(run.work.versions), "remarks": list(run.work.remarks)},
    }


def _scores(run: ExportedRun) -> list[dict[str, Any]]:
    """Return the means that the board shows, in its units; of several languages each by itself."""
    several = len(run.tables) > 1
    return [
        {
            "name": f"{name} ({group.language})" if several else name,
            "scorer": name,
            "scored_samples": row.n,
            "unscored_samples": row.unscored + row.excluded,
            "params": {"unit": group.scales[name].unit},
            "metrics": {
                part: {"name": part, "value": value}
                for part, value in (("mean", mean.mean), ("low_95", mean.low), ("high_95", mean.high))
                if value is not None
            },
        }
        for group, row in run.rows()
        for name, mean in row.metrics.items()
        if name in group.scales
    ]


def _samples(run: ExportedRun, detail: Detail) -> Iterator[dict[str, Any]]:
    """Yield a sample once a completion, which Inspect calls an epoch; of a reference result without output."""
    about = {
        "id": detail.sample,
        "input": detail.prompt or "",
        "target": run.target(detail.sample),
        "metadata": {
            "repository": detail.repo,
            "path": detail.path,
            "line": detail.line + 1,
            "language": detail.language,
            "level": detail.level,
            "status": str(detail.status),
            "context_tokens": detail.context_tokens,
            "blocks": [
                {"kind": piece.kind, "state": piece.state, "places": [[p.path, p.start, p.end] for p in piece.places]}
                for piece in detail.pieces
            ],
        },
    }
    if not detail.completions:
        text = "; ".join(detail.faults) or f"the sample is {detail.status}"
        yield {**about, "epoch": 1, "error": {"message": text, "traceback": text, "traceback_ansi": text}}
        return
    for completion in detail.completions:
        calls = _calls(detail, completion)
        usage, written = _usage(calls), run.text(detail.sample, completion)
        answer = {} if written is None else {"answer": written}
        yield {
            **about,
            "epoch": completion.idx + 1,
            **({} if written is None else {"output": _output(run, completion, written, calls)}),
            "scores": {name: {"value": value, **answer} for name, value in scores_of(completion).items()},
            "model_usage": {run.work.choices.generator: usage} if usage else {},
            "error": None,
        }


def _calls(detail: Detail, completion: CompletionFacts) -> list[StoredCall]:
    """Return the calls of an epoch, its own one last; those before the prompt, which all share, are the first one's."""
    before = [call for call in detail.calls if call.role != FINAL] if completion.idx == 0 else []
    own = [call for call in detail.calls if call.role == FINAL][completion.idx : completion.idx + 1]
    return [*before, *own]


def _usage(calls: Sequence[StoredCall]) -> dict[str, int]:
    if not calls:
        return {}
    read, written = (sum(getattr(call, f"tokens_{way}") for call in calls) for way in ("in", "out"))
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def _output(run: ExportedRun, completion: CompletionFacts, text: str, calls: Sequence[StoredCall]) -> dict[str, Any]:
    usage, finish = _usage(calls), calls[-1].finish if calls else "stop"
    failed = completion.status is Status.MODEL_FAILED
    message = {
        "role": "assistant",
        "content": text,
        "source": "generate",
        "model": run.work.choices.generator,
    }
    reason = "unknown" if failed else {"stop": "stop", "length": "max_tokens"}.get(finish, "unknown")
    choice = {"message": message, "stop_reason": reason}
    return {
        "model": run.work.choices.generator,
        "choices": [choice],
        **({"usage": usage} if usage else {}),
        "time": math.fsum(call.seconds for call in calls),
    }
