"""In what the rows of a group are not alike besides their strategy: what else their differences may come from.

Pure text, one sentence a line.
"""

from __future__ import annotations

import json
from typing import Any

from harness.leaderboard.rows import Group, Row

_MADE_BY = ("generator", "coder", "tokenizer", "ctxbench")
"""Whose versions rows should share; that of a strategy is its own."""
_ALWAYS = ("completions", "temperature")


def unlike(group: Group) -> list[str]:
    """Say where rows were decoded differently, were made by different versions, or have other samples."""
    return [*_decoding(group), *_versions(group), *_samples(group)]


def _decoding(group: Group) -> list[str]:
    known = [(row, _decoded(row)) for row in group.rows if row.run.sampling]
    differ = _differing([decoded for _, decoded in known])
    if not differ:
        return []
    how = "; ".join(f"{row.run.strategy} {_how(decoded, differ)}" for row, decoded in known)
    return [f"Rows were decoded in different ways, which their differences include: {how}."]


def _decoded(row: Row) -> dict[str, Any]:
    return {"completions": row.run.completions, "temperature": 0.0, **json.loads(row.run.sampling)}


def _how(decoded: dict[str, Any], differ: list[str]) -> str:
    more = [f", {name} {json.dumps(decoded.get(name))}" for name in differ if name not in _ALWAYS]
    return f"{decoded['completions']} a sample at temperature {decoded['temperature']:g}{''.join(more)}"


def _versions(group: Group) -> list[str]:
    known = [row for row in group.rows if row.run.versions]
    found = [{name: row.run.versions[name] for name in _MADE_BY if name in row.run.versions} for row in known]
    differ = [name for name in _MADE_BY if len({one[name] for one in found if name in one}) > 1]
    if not differ:
        return []
    of_rows = [
        f"{row.run.strategy} ({', '.join(f'{name} {one[name]}' for name in differ if name in one)})"
        for row, one in zip(known, found, strict=True)
        if one.keys() & set(differ)
    ]
    return [
        f"Rows were made by different versions, which their differences include: {'; '.join(of_rows)}. "
        "Cure: run the older ones again."
    ]


def _samples(group: Group) -> list[str]:
    counts = {row.run.id: row.metrics[group.metric].n for row in group.rows if group.metric in row.metrics}
    ranked = [row for row in group.rows if row.rank_low is not None]
    # Equally many are the same ones if the pairs with the baseline have as many.
    common = {row.difference[group.metric].n_common for row in ranked if group.metric in row.difference}
    if len({counts[row.run.id] for row in ranked} | {row.n for row in ranked} | common) < 2:
        return []
    shown = ", ".join(f"{row.run.strategy} {counts[row.run.id]}" for row in ranked)
    pairs = "; differences, p and ranks are over the samples that both of a pair have" if group.pairs else ""
    return [f"Not every row has {group.metric} at the same samples, and means are over a row's own ({shown}){pairs}."]


def _differing(found: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for one in found for name in one)
    return [name for name in names if len({json.dumps(one.get(name)) for one in found}) > 1]
