"""A run as a record of Every Eval Ever: its means with their intervals, a result a language and metric.

Source: the EvalEval Coalition's ``eval.schema.json``, version 0.3.0.
"""

from __future__ import annotations

import json
import math
from typing import Any

from ctxbench.harness.exports.stored import ExportedRun
from ctxbench.harness.generators.facts import settings_of
from ctxbench.harness.generators.openai.settings import OFFICIAL
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.harness.leaderboard.stats import Estimate

_SCHEMA = "0.3.0"
_LOCAL = ("hf", "incontext", "vllm")
"""Generators that run on the machine that asks them."""


def every_eval_ever(run: ExportedRun) -> str:
    """Return the file; numbers are in the units that boards show."""
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
    """Return the model that a generator asks; its own spec where it names none."""
    return settings_of(generator).get("model") or generator


def _deployment(generator: str) -> str:
    """Return whose machine the model ran on, in the schema's words; of a label of an imported run nobody knows it."""
    name = generator.partition("(")[0]
    served = "externally_managed" if settings_of(generator).get("url") == OFFICIAL else "unknown"
    return "self_deployed" if name in _LOCAL else served


def _versions(run: ExportedRun) -> dict[str, str]:
    return {f"{name}_version": version for name, version in run.work.versions.items() if version}


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
                "unscored": str(row.unscored),
                "excluded": str(row.excluded),
                "model_failed": str(row.model_failed),
                "repositories": str(mean.repositories),
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
