"""Our runs in the shape of a paper's table: a number a column, with its interval and its count. Pure.

Only the columns that the paper prints are computed, by the paper's rules: pass@1 by level, their unweighted mean,
the mean of both languages (ICL-strategies paper); EM, ES and identifiers over all tasks (InferCom paper).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.types import Kind
from ctxbench.harness.leaderboard.columns import Scale, at_level, completed, repositories, scale_of, values
from ctxbench.harness.leaderboard.stats import estimate
from ctxbench.harness.papers.tables import LEVELS, Table
from ctxbench.harness.results import RunTable, Status

PROFILE = "infercom"
"""The metric profile of the line tables: the scorer released with InferCom."""
_LEVEL = {level: f"{level}_runnable" for level in LEVELS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number of ours."""

    mean: float
    n: int
    """Samples behind it."""
    low: float | None = None
    """Of the 95% interval; None where none is given."""
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """What one strategy did on the samples of one set in one language."""

    run: str
    samples: str
    language: str
    strategy: str
    """Canonical spec."""
    counts: Mapping[str, int]
    """Completed samples by level."""
    unscored: int
    """Samples that the machine, or a fault of the strategy, left missing: in no number."""
    cells: Mapping[str, Cell]


def ours(run: RunTable, table: Table) -> Ours:
    """Return the columns of `table` as `run` fills them; a column that it cannot fill is left out."""
    cells = _functions(run) if table.kind is Kind.FUNCTION else _lines(run)
    return Ours(
        run=run.run.id,
        samples=run.run.samples,
        language=run.run.language,
        strategy=run.run.strategy,
        counts=Counter(run.level[index] for index in completed(run)),
        unscored=sum(status is Status.INFRA_FAILED for status in run.status),
        cells={column: cells[column] for column in table.columns if column in cells},
    )


def overall(both: Sequence[Ours]) -> float | None:
    """Return the mean of the languages' averages, None unless both languages have one."""
    averages = [one.cells["avg"].mean for one in both if "avg" in one.cells]
    return math.fsum(averages) / 2 if len(averages) == 2 else None


def _functions(run: RunTable) -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    for level, name in _LEVEL.items():
        cell = _estimated(at_level(run, name), "pass@1", scale_of(run.run.profile, "pass@1"))
        found |= {level: cell} if cell else {}
    levels = [found[level] for level in LEVELS if level in found]
    if len(levels) == len(LEVELS):
        found["avg"] = Cell(mean=math.fsum(one.mean for one in levels) / len(levels), n=sum(one.n for one in levels))
    tokens = _mean([run.context_tokens[i] for i in completed(run) if run.level[i] in _LEVEL.values()])
    return found | ({"tokens": tokens} if tokens else {})


def _lines(run: RunTable) -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    for metric in ("em", "es", "id_em", "id_f1"):
        cell = _estimated(run, metric, scale_of(PROFILE, metric))
        found |= {metric: cell} if cell else {}
    seconds = _mean([run.seconds[i] for i in completed(run)])
    return found | ({"inference": seconds} if seconds else {})


def _estimated(run: RunTable, metric: str, scale: Scale) -> Cell | None:
    found, repos = values(run, metric, scale), repositories(run)
    places = [repos[sample] for sample in found]
    made = estimate(list(found.values()), places, seed=f"{run.run.id}/{metric}", bounds=scale.bounds)
    return None if made.mean is None else Cell(mean=made.mean, n=made.n, low=made.low, high=made.high)


def _mean(found: Sequence[float | None]) -> Cell | None:
    known = [value for value in found if value is not None]
    return Cell(mean=math.fsum(known) / len(known), n=len(known)) if known else None
