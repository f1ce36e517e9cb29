"""Published numbers as records of the leaderboard's JSON and CSV. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxbench.harness.leaderboard.listing import Listing, Printed, PublishedLevel, levels
from ctxbench.harness.leaderboard.published_text import PROFILE
from ctxbench.harness.papers.tables import STATUSES, PaperRow, paper_of
from ctxbench.harness.results import Origin


def published_records(listings: Sequence[Listing]) -> Iterator[dict[str, Any]]:
    """Yield one record a row, language and level, under the keys of our own rows; what a paper does not print is null.

    A metric has ``mean`` (over tasks) or, where the paper prints that, ``mean_of_levels``; ``status`` says why a number
    is missing, ``flag`` what is doubtful about it.
    """
    for listing in listings:
        for row in listing.rows:
            for at in levels(row, listing.language):
                yield _record(listing, row, at)


def _record(listing: Listing, row: PaperRow, at: PublishedLevel) -> dict[str, Any]:
    costs = {name: cell.value for name, cell in at.costs.items()}
    lines = row.benchmark != "CoderEval"
    return {
        "samples": row.benchmark,
        "language": listing.language,
        "level": at.level,
        "strategy": row.preset,
        "generator": row.model,
        "origin": str(Origin.PUBLISHED),
        "n": None,
        "unscored": None,
        **{name: _metric(cell, at) for name, cell in at.metrics.items()},
        "context_tokens": costs.get("context_tokens"),
        "calls": None,
        "seconds": costs.get("seconds"),
        "rank_low": None,
        "rank_high": None,
        "tier": "",
        "control": False,
        "profile": PROFILE if lines else None,
        "benchmark": row.benchmark.lower(),
        "remarks": list(row.remarks),
        "source": row.origin,
        "paper": paper_of(row),
        "table": row.table,
        "method": row.method,
        "encoder": row.encoder or None,
        "computed_by": row.strategy or None,
        "inferred_n": row.inferred_n,
        "flags": [f"{name}: {cell.flag}" for name, cell in (*at.metrics.items(), *at.costs.items()) if cell.flag],
        **{name: value for name, value in costs.items() if name == "construction_seconds"},
    }


def _metric(cell: Printed, at: PublishedLevel) -> dict[str, Any]:
    record: dict[str, Any] = {
        "mean": None if at.of_levels else cell.value,
        "low": None,
        "high": None,
        "mean_of_levels": cell.value if at.of_levels else None,
        "status": cell.status,
    }
    if cell.value is None:
        record["why"] = STATUSES[cell.status]
    if cell.flag:
        record["flag"] = cell.flag
    return record
