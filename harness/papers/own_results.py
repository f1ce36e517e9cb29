"""Our runs in the columns of a paper's table: numbers with intervals and sample counts. Pure.

Only the columns that the paper prints are computed, by the paper's rules: pass@1 by level, their unweighted mean,
the mean of both languages (ICL-strategies paper); EM, ES and identifiers over all tasks (InferCom paper).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.types import Kind
from ctxbench.harness.leaderboard.scales import Scale, at_level, completed, repositories, scale_of, values
from ctxbench.harness.leaderboard.stats import estimate
from ctxbench.harness.papers.tables import LEVELS, PaperTable
from ctxbench.harness.results import RunTable, Status

PROFILE = "infercom"
"""The metric profile of the line tables: the scorer released with InferCom."""
_LEVEL = {level: f"{level}_runnable" for level in LEVELS}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNumber:
    """One number of ours."""

    mean: float
    n: int
    """Samples behind it."""
    low: float | None = None
    """Of the 95% interval; None where none is given."""
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnResult:
    """The numbers of one strategy on the samples of one set in one language."""

    run: str
    samples: str
    language: str
    strategy: str
    """Canonical spec."""
    counts: Mapping[str, int]
    """Completed samples by level."""
    unscored: int
    """Samples that the machine, or a fault of the strategy, left missing; they are in no number."""
    cells: Mapping[str, OwnNumber]


def ours(run: RunTable, table: PaperTable) -> OwnResult:
    """Return the columns of `table` as `run` fills them; a column that it cannot fill is left out."""
    cells = _functions(run) if table.kind is Kind.FUNCTION else _lines(run)
    return OwnResult(
        run=run.run.id,
        samples=run.run.samples,
        language=run.run.language,
        strategy=run.run.strategy,
        counts=Counter(run.level[index] for index in completed(run)),
        unscored=sum(status is Status.INFRA_FAILED for status in run.status),
        cells={column: cells[column] for column in table.columns if column in cells},
    )


def overall(results: Sequence[OwnResult]) -> float | None:
    """Return the mean of the languages' averages, None unless both languages have one."""
    averages = [result.cells["avg"].mean for result in results if "avg" in result.cells]
    return math.fsum(averages) / 2 if len(averages) == 2 else None


def _functions(run: RunTable) -> dict[str, OwnNumber]:
    cells: dict[str, OwnNumber] = {}
    for level, name in _LEVEL.items():
        cell = _estimated(at_level(run, name), "pass@1", scale_of(run.run.profile, "pass@1"))
        cells |= {level: cell} if cell else {}
    levels = [cells[level] for level in LEVELS if level in cells]
    if len(levels) == len(LEVELS):
        mean = math.fsum(cell.mean for cell in levels) / len(levels)
        cells["avg"] = OwnNumber(mean=mean, n=sum(cell.n for cell in levels))
    tokens = _mean([run.context_tokens[i] for i in completed(run) if run.level[i] in _LEVEL.values()])
    return cells | ({"tokens": tokens} if tokens else {})


def _lines(run: RunTable) -> dict[str, OwnNumber]:
    cells: dict[str, OwnNumber] = {}
    for metric in ("em", "es", "id_em", "id_f1"):
        cell = _estimated(run, metric, scale_of(PROFILE, metric))
        cells |= {metric: cell} if cell else {}
    seconds = _mean([run.seconds[i] for i in completed(run)])
    return cells | ({"inference": seconds} if seconds else {})


def _estimated(run: RunTable, metric: str, scale: Scale) -> OwnNumber | None:
    by_sample, repos = values(run, metric, scale), repositories(run)
    places = [repos[sample] for sample in by_sample]
    estimated = estimate(list(by_sample.values()), places, seed=f"{run.run.id}/{metric}", bounds=scale.bounds)
    if estimated.mean is None:
        return None
    return OwnNumber(mean=estimated.mean, n=estimated.n, low=estimated.low, high=estimated.high)


def _mean(numbers: Sequence[float | None]) -> OwnNumber | None:
    present = [value for value in numbers if value is not None]
    return OwnNumber(mean=math.fsum(present) / len(present), n=len(present)) if present else None
