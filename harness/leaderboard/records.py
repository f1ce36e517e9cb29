"""A board as JSON and CSV: one record a row, full precision, missing numbers as null or an empty field. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ctxbench.harness.frames import ResultFrame
from ctxbench.harness.leaderboard.columns import COLUMNS, RECORD, Value
from ctxbench.harness.leaderboard.compare import Compared, LevelDifference
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.published import BOTH, published_records
from ctxbench.harness.leaderboard.repetitions import VarianceParts
from ctxbench.harness.leaderboard.rows import Board, Group, Overall, Row
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.results import PRICE

_DECIMALS = 6
_PRICE_DECIMALS = 12


def to_json(board: Board) -> str:
    """Return a JSON list of rows."""
    return json.dumps(records(board), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(board: Board) -> str:
    """Return one line a row; nested numbers become columns such as ``es_low`` or ``difference_es_p``."""
    return ResultFrame.of_records(flat_records(board)).to_csv()


def flat_records(board: Board) -> list[dict[str, Any]]:
    """Return the records of a board without nested ones: ``es``, ``es_low``, ``difference_es_p``."""
    return [_flat(record) for record in records(board)]


def records(board: Board) -> list[dict[str, Any]]:
    """Return one record a row: what it is, its counts, its metrics by name, its costs, its rank, then the rest.

    Then, for benchmarks with levels, one a strategy over both languages; then the published numbers, one a row of a
    paper, language and level.
    """
    return [
        *(_record(group, row) for group in board.groups for row in group.rows),
        *map(_overall, board.overall),
        *published_records(board.published),
    ]


def comparison_json(compared: Sequence[Compared]) -> str:
    """Return a JSON list with one record a metric and pair of runs."""
    rows = [
        {
            "run": pair.this.id,
            "baseline": pair.other.id,
            "repetitions": list(pair.this.repetitions),
            "baseline_repetitions": list(pair.other.repetitions),
            "strategy": pair.this.strategy,
            "baseline_strategy": pair.other.strategy,
            "language": pair.this.language,
            "metric": pair.metric,
            "difference": _difference(pair.difference),
            "repositories": [
                {"repo": part.repo, "n": part.n, "this": _number(part.this), "baseline": _number(part.other)}
                for part in pair.repositories
            ],
            "levels": [_level(part) for part in pair.levels],
        }
        for pair in compared
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _record(group: Group, row: Row) -> dict[str, Any]:
    run = row.run
    return {
        "samples": run.samples,
        "language": run.language,
        "level": row.level,
        "strategy": run.strategy,
        "generator": run.generator,
        "origin": str(run.origin),
        "n": row.n,
        "unscored": row.unscored,
        **{name: _estimate(estimate) for name, estimate in row.metrics.items()},
        **{key: _cell(key, COLUMNS[key].value(group, row)) for key in RECORD},
        "control": run.control,
        "ranked_by": group.metric,
        "run": run.id,
        "repetitions": list(run.repetitions),
        "answers": asdict(row.answers),
        "variance": {name: _variance(parts) for name, parts in row.variance.items()},
        "profile": run.profile,
        "samples_digest": run.samples_digest,
        "benchmark": run.benchmark,
        "remarks": list(run.remarks),
        "completions": run.completions,
        "sampling": json.loads(run.sampling or "{}"),
        "versions": dict(run.versions),
        "model_failed": row.model_failed,
        "excluded": row.excluded,
        "marks": dict(row.marks),
        "sensitivity": {
            name: {"worst": _number(bounds.worst), "best": _number(bounds.best)}
            for name, bounds in row.sensitivity.items()
        },
        "baseline": row.baseline,
        "difference": {name: _difference(difference) for name, difference in row.difference.items()},
        "beats": [group.rows[loser].run.id for loser in row.beats],
        "smallest_visible_difference": _number(group.family.visible),
        "smallest_p": _number(group.family.smallest_p),
    }


def _overall(overall: Overall) -> dict[str, Any]:
    """Return a record with the keys of a row's contract, and nothing that cannot be said over two languages."""
    run = overall.run
    return {
        "samples": " + ".join(overall.samples),
        "language": BOTH,
        "level": overall.level,
        "strategy": run.strategy,
        "generator": run.generator,
        "origin": str(run.origin),
        "n": max(mean.n for mean in overall.metrics.values()),
        "unscored": overall.unscored,
        **{
            name: {"mean": _number(mean.mean), "mean_of_levels": _number(mean.mean_of_levels), "n": mean.n}
            for name, mean in overall.metrics.items()
        },
        **dict.fromkeys(RECORD),
        "tier": "",
        "control": run.control,
        "profile": run.profile,
        "benchmark": run.benchmark,
    }


def _level(part: LevelDifference) -> dict[str, Any]:
    return {
        "level": part.level,
        "n": part.n,
        "this": _number(part.this),
        "baseline": _number(part.other),
        "difference": {
            "mean": _number(part.mean),
            "low": _number(part.low),
            "high": _number(part.high),
            "interval": str(part.over),
        },
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "mean": _number(estimate.mean),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "interval": str(estimate.over),
        "n": estimate.n,
        "repositories": estimate.repositories,
        "mean_of_repositories": _number(estimate.mean_of_repositories),
        "mean_of_levels": _number(estimate.mean_of_levels),
        "mean_with_marked": _number(estimate.mean_with_marked),
        "bootstrap_low": _number(estimate.bootstrap_low),
        "bootstrap_high": _number(estimate.bootstrap_high),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "mean": _number(difference.mean),
        "low": _number(difference.low),
        "high": _number(difference.high),
        "interval": str(difference.over),
        "p": _number(difference.p),
        "p_adjusted": _number(difference.p_adjusted),
        "pairs": difference.pairs,
        "n_common": difference.n_common,
        "repositories": difference.repositories,
        "smallest_visible": _number(difference.visible),
        "repositories_needed": difference.needed,
        "wins": difference.wins,
        "ties": difference.ties,
        "losses": difference.losses,
        "counts": asdict(difference.counts) if difference.counts else None,
        **({"variance": _variance(difference.variance)} if difference.variance else {}),
    }


def _variance(parts: VarianceParts) -> dict[str, Any]:
    return {
        name: {"deviation": _number(part.deviation), "share": _number(part.share), "negative": part.negative}
        for name, part in parts.items()
    }


def _number(value: float | None) -> float | None:
    # Beyond six decimals digits are noise, and may differ between machines.
    return None if value is None else round(value, _DECIMALS) + 0.0


def _cell(key: str, value: Value) -> Value:
    if not isinstance(value, float):
        return value
    # A sample may cost less than a millionth of a dollar.
    return round(value, _PRICE_DECIMALS) if key.endswith(PRICE) else _number(value)


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            inner = _flat(value, f"{prefix}{key}_")
            # A metric's column is its mean: es, es_low, es_high.
            flat.update({name.removesuffix("_mean"): cell for name, cell in inner.items()})
        else:
            flat[f"{prefix}{key}"] = "; ".join(map(str, value)) if isinstance(value, list) else value
    return flat
