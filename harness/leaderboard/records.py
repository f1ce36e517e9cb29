"""A board as JSON and CSV: one record a row, full precision, missing numbers as null or an empty field. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ctxbench.harness.leaderboard.compare import AtLevel, Compared
from ctxbench.harness.leaderboard.listing import BOTH
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.published_records import published_records
from ctxbench.harness.leaderboard.rows import Board, Group, Overall, Row
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.results import COSTS, PRICE

_DECIMALS = 6
_PRICE_DECIMALS = 12


def to_json(board: Board) -> str:
    """Return a JSON list of rows."""
    return json.dumps(records(board), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(board: Board) -> str:
    """Return one line a row; nested numbers become columns such as ``es_low`` or ``difference_es_p``."""
    flat = [_flat(record) for record in records(board)]
    columns = list(dict.fromkeys(name for record in flat for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


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
            "run": one.this.id,
            "baseline": one.other.id,
            "strategy": one.this.strategy,
            "baseline_strategy": one.other.strategy,
            "language": one.this.language,
            "metric": one.metric,
            "difference": _difference(one.difference),
            "repositories": [
                {"repo": part.repo, "n": part.n, "this": _number(part.this), "baseline": _number(part.other)}
                for part in one.repositories
            ],
            "levels": [_level(part) for part in one.levels],
        }
        for one in compared
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
        **{name: _estimate(found) for name, found in row.metrics.items()},
        "context_tokens": _number(row.context_tokens),
        "calls": _number(row.calls),
        "seconds": _number(row.seconds),
        "rank_low": row.rank_low,
        "rank_high": row.rank_high,
        "tier": row.tier,
        **{name: _cost(row, name) for name in COSTS},
        "control": run.control,
        "ranked_by": group.metric,
        "run": run.id,
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
            name: {"worst": _number(one.worst), "best": _number(one.best)} for name, one in row.sensitivity.items()
        },
        "baseline": row.baseline,
        "difference": {name: _difference(one) for name, one in row.difference.items()},
        "smallest_visible_difference": _number(group.visible),
        "smallest_p": _number(group.smallest_p),
    }


def _overall(found: Overall) -> dict[str, Any]:
    """Return a record with the keys of a row's contract, and nothing that cannot be said over two languages."""
    run = found.run
    return {
        "samples": " + ".join(found.samples),
        "language": BOTH,
        "level": found.level,
        "strategy": run.strategy,
        "generator": run.generator,
        "origin": str(run.origin),
        "n": max(one.n for one in found.metrics.values()),
        "unscored": found.unscored,
        **{
            name: {"mean": _number(one.mean), "mean_of_levels": _number(one.mean_of_levels), "n": one.n}
            for name, one in found.metrics.items()
        },
        **dict.fromkeys(("context_tokens", "calls", "seconds", "rank_low", "rank_high")),
        "tier": "",
        **dict.fromkeys(COSTS),
        "control": run.control,
        "profile": run.profile,
        "benchmark": run.benchmark,
    }


def _level(part: AtLevel) -> dict[str, Any]:
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


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "mean": _number(found.mean),
        "low": _number(found.low),
        "high": _number(found.high),
        "interval": str(found.over),
        "n": found.n,
        "repositories": found.repositories,
        "mean_of_repositories": _number(found.mean_of_repositories),
        "mean_of_levels": _number(found.mean_of_levels),
        "mean_with_marked": _number(found.mean_with_marked),
        "bootstrap_low": _number(found.bootstrap_low),
        "bootstrap_high": _number(found.bootstrap_high),
    }


def _difference(found: Difference) -> dict[str, Any]:
    return {
        "mean": _number(found.mean),
        "low": _number(found.low),
        "high": _number(found.high),
        "interval": str(found.over),
        "p": _number(found.p),
        "p_holm": _number(found.p_holm),
        "pairs": found.pairs,
        "n_common": found.n_common,
        "repositories": found.repositories,
        "smallest_visible": _number(found.visible),
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
        "counts": asdict(found.counts) if found.counts else None,
    }


def _number(value: float | None) -> float | None:
    # Beyond six decimals digits are noise, and may differ between machines.
    return None if value is None else round(value, _DECIMALS) + 0.0


def _cost(row: Row, name: str) -> float | None:
    value = row.costs.get(name)
    # A sample may cost less than a millionth of a dollar.
    return _number(value) if name != PRICE or value is None else round(value, _PRICE_DECIMALS)


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            inner = _flat(value, f"{prefix}{key}_")
            # A metric's column is its mean: es, es_low, es_high.
            flat.update({name.removesuffix("_mean"): one for name, one in inner.items()})
        else:
            flat[f"{prefix}{key}"] = "; ".join(value) if isinstance(value, list) else value
    return flat
