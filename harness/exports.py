"""Exports a whole run to other tools' log formats; `harness.exported` writes benchmarks' prediction files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ctxbench.bench.samples import SampleSet
from ctxbench.harness.generators.base import settings_of
from ctxbench.harness.generators.openai.settings import OFFICIAL
from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.results import RunTable, Status
from ctxbench.harness.run.sample import FINAL
from ctxbench.harness.run.spec import sampling_key
from ctxbench.harness.store.details import CompletionFacts, Detail, StoredCall, detail
from ctxbench.harness.store.runs import RunFilter, find_run, run_tables
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.work import RunWork, run_works

_OURS = ("ctxbench", "context")
"""Profiles whose metrics keep their plain names. Other metrics are prefixed with their profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRun:
    """A run to export. Samples are read from the store when needed."""

    store: Store
    work: RunWork
    tables: tuple[RunTable, ...]
    sample_set: SampleSet | None
    """Samples and references; None if the home folder lacks them."""
    day: str | None = None
    """Date (``YYYY-MM-DD``) of the package that the run was read from; None for other runs."""

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.work.id

    @property
    def sampling(self) -> dict[str, Any]:
        """Decoding parameters, such as the temperature."""
        values: dict[str, Any] = json.loads(sampling_key(self.work.choices.sampling))
        return values

    @property
    def code(self) -> str:
        """Version of ctxbench that computed the run, or the current version if the run records none."""
        return self.work.choices.versions.get("ctxbench") or version("ctxbench")

    @property
    def began(self) -> datetime:
        """The package's date, or the start of the run's first attempt; 1970-01-01 without either."""
        return self._day or datetime.fromtimestamp(min((at.started for at in self.work.attempts), default=0.0), UTC)

    @property
    def ended(self) -> datetime:
        """The package's date, or the last attempt's end (its start if no end is stored); 1970-01-01 without either."""
        ends = [attempt.ended or attempt.started for attempt in self.work.attempts]
        return self._day or datetime.fromtimestamp(max(ends, default=0.0), UTC)

    @property
    def _day(self) -> datetime | None:
        return None if self.day is None else datetime.fromisoformat(self.day).replace(tzinfo=UTC)

    def details(self) -> Iterator[Detail]:
        """Yield the details of all planned samples, one language after the other."""
        for table in self.tables:
            for sample in table.sample:
                yield detail(self.store, self.id, sample)

    def target(self, sample: str) -> str:
        """Return the reference text of a sample; empty if `sample_set` is None."""
        return "" if self.sample_set is None else self.sample_set.references[sample].target

    def rows(self) -> Iterator[tuple[Group, Row]]:
        """Yield, per language, a board group and its row of means with confidence intervals, in the units of boards."""
        for group in board(self.tables, by_level=False).groups:
            yield from ((group, row) for row in group.rows)


def scores_of(completion: CompletionFacts) -> dict[str, float]:
    """Return a completion's known values in the profile's scale, by ``metric`` (ctxbench's) or ``profile.metric``."""
    return {
        metric if profile in _OURS else f"{profile}.{metric}": value
        for (profile, metric), value in completion.scores.items()
        if value is not None
    }


def read_run(store: Store, run: str) -> ExportedRun:
    """Read a run for export. Its `sample_set` is None.

    Raises:
        InputFault: if several run ids begin with `run`.
        UnknownName: if no run matches.
    """
    id_ = find_run(store, run).id
    [work] = run_works(store, [id_])
    tables = run_tables(store, selection=RunFilter(id=id_))
    return ExportedRun(store=store, work=work, tables=tuple(tables), sample_set=None)


_SCHEMA = "0.3.0"
_LOCAL = ("hf", "incontext", "vllm")


def every_eval_ever(run: ExportedRun) -> str:
    """Return a run's Every Eval Ever record as JSON: means with intervals, one result per language and metric.

    Numbers are in the units of boards. Source: ``eval.schema.json`` 0.3.0 of the EvalEval Coalition.
    """
    choices, when = run.work.choices, str(int(run.ended.timestamp()))
    record = {
        "schema_version": _SCHEMA,
        "evaluation_id": f"{choices.samples}/{choices.generator}/{run.id}",
        "evaluation_timestamp": run.ended.isoformat(),
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": "ctxbench",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "third_party",
            "additional_details": {"run": run.id, "origin": str(run.work.origin)},
        },
        "eval_library": {"name": "ctxbench", "version": run.code},
        "model_info": {
            "name": _model(choices.generator),
            "id": _model(choices.generator),
            "inference_platform": "unknown",
            "additional_details": {
                "deployment_type": _deployment(choices.generator),
                "model_availability": "unknown",
                "generator": choices.generator,
                **_versions(run),
            },
        },
        "evaluation_results": [
            _result(run, group, row, name, mean)
            for group, row in run.rows()
            for name, mean in row.metrics.items()
            if name in group.scales and mean.mean is not None
        ],
    }
    return json.dumps(record, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _model(generator: str) -> str:
    return settings_of(generator).get("model") or generator


def _deployment(generator: str) -> str:
    name = generator.partition("(")[0]
    served = "externally_managed" if settings_of(generator).get("url") == OFFICIAL else "unknown"
    return "self_deployed" if name in _LOCAL else served


def _versions(run: ExportedRun) -> dict[str, str]:
    return {f"{name}_version": version for name, version in run.work.choices.versions.items() if version}


def _result(run: ExportedRun, group: Group, row: Row, name: str, mean: Estimate) -> dict[str, Any]:
    choices, scale, sampling = run.work.choices, group.scales[name], run.sampling
    low, high = scale.bounds or (-math.inf, math.inf)
    interval = {"lower": mean.low, "upper": mean.high, "confidence_level": 0.95, "method": f"over {mean.over}"}
    has_interval = None not in (mean.low, mean.high)
    return {
        "evaluation_result_id": f"{run.id}/{group.language}/{name}",
        "evaluation_name": f"{group.samples} ({group.language}), {choices.strategy}",
        "source_data": {
            "dataset_name": group.samples,
            "source_type": "other",
            "additional_details": {
                "digest": group.samples_digest,
                "benchmark": group.benchmark,
                "language": group.language,
            },
        },
        "evaluation_timestamp": run.ended.isoformat(),
        "metric_config": {
            "metric_id": f"ctxbench.{group.profile}.{name}",
            "metric_name": name,
            "metric_unit": scale.unit,
            "evaluation_description": scale.explained or name,
            "lower_is_better": scale.lower_is_better,
            "score_type": "continuous",
            "min_score": _bound(low * 1.0),
            "max_score": _bound(high * 1.0),
        },
        "score_details": {
            "score": mean.mean,
            "details": {
                "strategy": choices.strategy,
                "samples": str(row.n),
                "missing": str(row.missing),
                "excluded": str(row.excluded),
                "model_failed": str(row.model_failed),
                mean.unit.plural: str(mean.units),
            },
            "uncertainty": {"num_samples": mean.n, **({"confidence_interval": interval} if has_interval else {})},
        },
        "generation_config": {
            "generation_args": {
                name: sampling[name] for name in ("temperature", "top_p", "max_tokens") if name in sampling
            },
            "additional_details": {"strategy": choices.strategy, "seed": str(choices.seed), "n": str(choices.n)},
        },
    }


def _bound(value: float) -> float | str:
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


_LOG_VERSION = 2


def inspect_log(run: ExportedRun) -> str:
    """Return a run as an Inspect log in JSON. Completions are epochs, metrics are scorers; missing samples have errors.

    Source: log format 2 of inspect_ai (`EvalLog`).
    """
    samples = [sample for detail in run.details() for sample in _samples(run, detail)]
    missing = sum(sample["error"] is not None for sample in samples)
    log = {
        "version": _LOG_VERSION,
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
        "task_id": run.work.choices.samples_digest,
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
        "metadata": {"versions": dict(run.work.choices.versions), "remarks": list(run.work.remarks)},
    }


def _scores(run: ExportedRun) -> list[dict[str, Any]]:
    several = len(run.tables) > 1
    return [
        {
            "name": f"{name} ({group.language})" if several else name,
            "scorer": name,
            "scored_samples": row.n,
            "unscored_samples": row.missing + row.excluded,
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
                {"kind": block.kind, "state": block.state, "places": [[p.path, p.start, p.end] for p in block.places]}
                for block in detail.blocks
            ],
        },
    }
    if not detail.completions:
        text = "; ".join(detail.faults) or f"the sample is {detail.status}"
        yield {**about, "epoch": 1, "error": {"message": text, "traceback": text, "traceback_ansi": text}}
        return
    for completion in detail.completions:
        calls = _calls(detail, completion)
        usage, written = _usage(calls), completion.text
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
    """Return the model calls of a completion. The first completion also has the calls that built the prompt."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFormat:
    """An export format that writes a whole run into one file."""

    shape: str
    """Description for the help text, one sentence."""
    write: Callable[[ExportedRun], str]


RUN_FORMATS: Mapping[str, RunFormat] = {
    "every-eval-ever": RunFormat(
        shape="one JSON document of Every Eval Ever's schema 0.3.0: a result per language and metric.",
        write=every_eval_ever,
    ),
    "inspect": RunFormat(
        shape="a log of Inspect (inspect_ai), as JSON, with prompts, answers, targets and scores.", write=inspect_log
    ),
}
