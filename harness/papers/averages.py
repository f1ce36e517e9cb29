"""The averages of a reproduced table over models, benchmarks and languages, the papers' and ours. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.papers.reproduce import ComparedTable
from ctxbench.harness.papers.tables import PaperRow, is_shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """The means of a strategy's rows over models, benchmarks and languages, as the papers' text states them."""

    method: str
    """Empty for ours."""
    whose: str
    strategy: str
    n: int
    """Rows behind it."""
    cells: Mapping[str, float]
    """Column -> mean; only columns that every row has."""


def averages(compared: ComparedTable, languages: Sequence[str]) -> Iterator[Average]:
    """Yield the averages of the paper's rows and of ours, strategy by strategy; nothing where nothing is averaged."""
    printed: dict[str, list[tuple[PaperRow, Mapping[str, float]]]] = {}
    for row in compared.table.rows:
        cells = [(row, row.printed.get(language, {})) for language in languages if language in row.languages]
        printed.setdefault(compared.specs.get(row.preset, row.preset), []).extend(cells)
    settings = {(row.benchmark, row.model) for row in compared.table.rows if row.strategy}
    if len(settings) < 2 and len(compared.generators) < 2:
        return
    for spec, rows in printed.items():
        results = [result for result in compared.ours.get(spec, ()) if is_shown(result.language, languages)]
        if not results and len(rows) < 2:
            continue
        method = rows[0][0].method if rows else ""
        whose = f"paper: {len(rows)} rows"
        yield Average(method=method, whose=whose, strategy=spec, n=len(rows), cells=_means([of for _, of in rows]))
        if results:
            means = _means([{column: cell.mean for column, cell in result.cells.items()} for result in results])
            whose = f"ours: {len(results)} {'row' if len(results) == 1 else 'rows'}"
            yield Average(method="", whose=whose, strategy=spec, n=len(results), cells=means)


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    columns = set.intersection(*(set(row) for row in rows)) if rows else set()
    return {column: math.fsum(row[column] for row in rows) / len(rows) for column in columns}


def line(average: Average, columns: Sequence[str]) -> tuple[str, ...]:
    """Return its line of a table."""
    cells = (average.cells.get(column) for column in columns)
    return average.method, average.whose, *(numbers.UNKNOWN if cell is None else f"{cell:.2f}" for cell in cells)


def record(average: Average) -> dict[str, Any]:
    """Return it for JSON."""
    return asdict(average) | {"cells": {column: round(value, 6) for column, value in sorted(average.cells.items())}}
