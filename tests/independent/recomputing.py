"""A board recomputed from the tables by the rules in docs/statistics.md, docs/metrics.md and docs/board.md.

Simple and slow, with sqlite3, numpy and scipy, and nothing of ctxbench. All runs are over one set, profile `ctxbench`.
"""

import itertools
import math
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

OWN_SCALE = ("bits", "context_gain", "copyable_bits", "made_up_names")
"""Metrics that are not shares. They have no bounds and are not shown as percentages."""
DESCRIBES_CONTEXT = (*OWN_SCALE, "api_recall", "context_waste", "hallucinated")
"""Metrics that keep their own value if the model failed."""
LOWER_IS_BETTER = ("bits", "context_waste", "hallucinated", "made_up_names")
KS = (1, 3, 5, 10, 20, 50, 100)
COSTS = (
    "tokens_in", "tokens_out", "tokens_cached", "price", "strategy_seconds", "generator_seconds", "test_seconds",
    "seconds", "context_tokens", "calls",
)  # fmt: skip
_SAMPLES = """SELECT s.id, s.repo, s.kind, s.subkind FROM planned p JOIN sample s
    ON s.set_digest = p.set_digest AND s.id = p.sample_id WHERE p.run_id = ? AND s.language = ?"""
_LANGUAGES = """SELECT DISTINCT s.language FROM planned p JOIN sample s
    ON s.set_digest = p.set_digest AND s.id = p.sample_id WHERE p.run_id = ?"""
_SCORES = "SELECT metric, sample_id, value FROM score WHERE run_id = ? AND profile IN ('ctxbench', 'context')"
_CALLS = "SELECT g.* FROM call c JOIN generation g ON g.id = c.generation_id WHERE c.run_id = ? AND c.sample_id = ?"
_TESTS = "SELECT v.seconds FROM judged j JOIN verdict v ON v.key = j.verdict_key WHERE run_id = ? AND sample_id = ?"
_Z2 = 1.959963984540054**2


class Run:
    def __init__(self, db: sqlite3.Connection, row: Mapping[str, Any], language: str) -> None:
        self.id, self.n, self.strategy, self.language = row["id"], row["n"], row["strategy"], language
        self.samples = {one["id"]: dict(one) for one in db.execute(_SAMPLES, (self.id, language))}
        self.repo = {id_: one["repo"] for id_, one in self.samples.items()}
        self.scores: dict[str, dict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
        for metric, sample, value in db.execute(_SCORES, [self.id]):
            if sample in self.samples:
                self.scores[metric][sample].append(value)
        marks = db.execute("SELECT sample_id FROM mark WHERE set_digest = ?", [row["samples_digest"]])
        self.invalid = {one[0] for one in marks} & self.samples.keys()
        results = {one["sample_id"]: one for one in db.execute("SELECT * FROM result WHERE run_id = ?", [self.id])}
        self.done = {id_: results[id_] for id_ in self.samples if id_ in results and self._judged(id_)}
        self.counts = sorted(self.done.keys() - self.invalid)
        self.missing = self.samples.keys() - self.done.keys() - self.invalid
        self.failed = {id_ for id_ in self.counts if self.done[id_]["status"] == "model-failed"}
        self.costs = self._costs(db)

    def _tested(self, sample: str) -> bool:
        return bool(self.samples[sample]["kind"] == "function")

    def _judged(self, sample: str) -> bool:
        return not self._tested(sample) or len(self.scores["pass"].get(sample, ())) == self.n

    def metrics(self) -> list[str]:
        """Return the metrics for which at least one sample has a value."""
        named = [name for name in self.scores if name != "pass"]
        named += [f"pass@{k}" for k in KS if k <= self.n] if self.scores["pass"] else []
        return [name for name in sorted(named) if self.values(name)]

    def values(self, metric: str) -> dict[str, float]:
        """Return sample -> value in the displayed unit, for counted samples that have a value."""
        worst = dict.fromkeys(self.failed, 0.0) if metric not in DESCRIBES_CONTEXT else {}
        found = {id_: self._value(metric, id_) for id_ in self.counts}
        factor = 1.0 if metric in OWN_SCALE else 100.0
        return {id_: value * factor for id_, value in found.items() if value is not None} | worst

    def _value(self, metric: str, sample: str) -> float | None:
        if metric.startswith("pass@"):
            k, passed = int(metric[5:]), int(sum(one or 0.0 for one in self.scores["pass"][sample]))
            return 1 - math.comb(self.n - passed, k) / math.comb(self.n, k)
        known = [one for one in self.scores[metric].get(sample, ()) if one is not None]
        return sum(known) / len(known) if known else None

    def _costs(self, db: sqlite3.Connection) -> dict[str, float | None]:
        columns: dict[str, list[float | None]] = {name: [] for name in COSTS}
        for sample in self.counts:
            calls, tests = (list(db.execute(asked, (self.id, sample))) for asked in (_CALLS, _TESTS))
            prices, waited = [one["price"] for one in calls], sum(one["seconds"] for one in calls)
            worked = self.done[sample]["strategy_seconds"]
            one = {
                "tokens_in": sum(one["tokens_in"] for one in calls),
                "tokens_out": sum(one["tokens_out"] for one in calls),
                "tokens_cached": sum(one["cached"] for one in calls),
                "price": None if None in prices else sum(prices),
                "strategy_seconds": worked,
                "generator_seconds": waited,
                "test_seconds": sum(one["seconds"] for one in tests) if self._tested(sample) else None,
                "seconds": worked + waited,
                "context_tokens": self.done[sample]["context_tokens"],
                "calls": len(calls),
            }
            for name, value in one.items():
                columns[name].append(value)
        return {name: _mean(column) for name, column in columns.items()}


def _mean(column: Sequence[float | None]) -> float | None:
    known = [one for one in column if one is not None]
    return sum(known) / len(known) if known and len(known) == len(column) else None


def read(path: Path) -> dict[tuple[str, str], Run]:
    """Return (id, language) -> run, for every run of a database."""
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    try:
        return {
            (row["id"], language): Run(db, row, language)
            for row in list(db.execute("SELECT * FROM run"))
            for (language,) in list(db.execute(_LANGUAGES, [row["id"]]))
        }
    finally:
        db.close()


def bounds(metric: str, *, of_difference: bool = False) -> tuple[float, float] | None:
    """Return the range of a metric, or of its differences, in the displayed unit."""
    return None if metric in OWN_SCALE else (-100.0 if of_difference else 0.0, 100.0)


def estimate(
    values: Mapping[str, float], repo: Mapping[str, str], reach: tuple[float, float] | None
) -> dict[str, float | str | None]:
    """Return the mean over samples, the mean of repository means, and the 95% interval, under their JSON names."""
    x, names = np.array([values[one] for one in sorted(values)]), [repo[one] for one in sorted(values)]
    of = {name: [v for v, one in zip(x, names, strict=True) if one == name] for name in names}
    low, high, over = _interval(x, list(of.values()), reach)
    means = [sum(some) / len(some) for some in of.values()]
    return {
        "mean": float(x.sum() / len(x)),
        "mean_of_repositories": float(sum(means) / len(means)),
        "low": low,
        "high": high,
        "interval": over,
    }


def _interval(
    x: np.ndarray[Any, Any], of_repositories: Sequence[Sequence[float]], reach: tuple[float, float] | None
) -> tuple[float | None, float | None, str]:
    n, mean, c = len(x), x.sum() / len(x), len(of_repositories)
    least, most = reach or (-math.inf, math.inf)
    if reach and np.ptp(x) == 0 and x[0] in (least, 0.0, most):
        share = _Z2 / (n + _Z2)
        if x[0] == least:
            return least, least + share * (most - least), "samples"
        if x[0] == most:
            return most - share * (most - least), most, "samples"
        return share * least, share * most, "samples"
    if c >= 5:
        rest = [sum(value - mean for value in some) for some in of_repositories]
        half = stats.t.ppf(0.975, c - 1) * math.sqrt(c / (c - 1) * sum(one**2 for one in rest)) / n
    elif n > 1:
        half = stats.t.ppf(0.975, n - 1) * x.std(ddof=1) / math.sqrt(n)
    else:
        return None, None, "none"
    return max(least, float(mean - half)), min(most, float(mean + half)), "repositories" if c >= 5 else "samples"


def gaps(this: Run, other: Run, metric: str) -> dict[str, float]:
    """Return sample -> this run's value minus the other's, for samples that both have."""
    mine, its = this.values(metric), other.values(metric)
    return {one: mine[one] - its[one] for one in mine.keys() & its.keys()}


def p_value(gap: Mapping[str, float], repo: Mapping[str, str]) -> float:
    """Return the exact two-sided p-value over all sign flips of the repositories' sums of gaps."""
    sums = [math.fsum(value for one, value in gap.items() if repo[one] == name) for name in {repo[one] for one in gap}]
    bar = abs(math.fsum(sums)) - 1e-9 * sum(map(abs, sums))
    hits = [abs(math.fsum(map(math.prod, zip(signs, sums, strict=True)))) >= bar for signs in _signs(len(sums))]
    return sum(hits) / len(hits)


def _error(gap: Mapping[str, float], repo: Mapping[str, str]) -> tuple[int, float]:
    """Return the number of repositories, two or more, and the cluster-robust standard error of the mean gap."""
    names = sorted({repo[one] for one in gap})
    mean, c = math.fsum(gap.values()) / len(gap), len(names)
    rest = [math.fsum(value - mean for one, value in gap.items() if repo[one] == name) for name in names]
    return c, math.sqrt(c / (c - 1) * sum(one**2 for one in rest)) / len(gap)


@dataclass(frozen=True)
class Family:
    """Pairs that are corrected together: their gaps, which are not empty, and the repository of each sample."""

    gaps: Mapping[Any, Mapping[str, float]]
    repo: Mapping[str, str]

    @cached_property
    def _flipped(self) -> dict[Any, list[float]]:
        """Pair -> its statistic under every flip. The first flip changes nothing."""
        names = sorted({self.repo[sample] for gap in self.gaps.values() for sample in gap})
        statistics = {}
        for pair, gap in self.gaps.items():
            sums = [math.fsum(v for one, v in gap.items() if self.repo[one] == name) for name in names]
            size = math.sqrt(math.fsum(x * x for x in sums))
            flips = [abs(math.fsum(map(math.prod, zip(signs, sums, strict=True)))) for signs in _signs(len(sums))]
            statistics[pair] = [flip / size if size else 0.0 for flip in flips]
        return statistics

    @cached_property
    def p(self) -> dict[Any, float]:
        """Pair -> share of flips in which it or a later pair reaches the observed statistic. Never decreases."""
        adjusted: dict[Any, float] = {}
        remaining = dict(self._flipped)
        while remaining:
            pair = max(remaining, key=lambda one: remaining[one][0])
            largest = [max(column) for column in zip(*remaining.values(), strict=True)]
            hits = sum(one >= remaining[pair][0] - 1e-9 for one in largest)
            adjusted[pair] = max([hits / len(largest), *adjusted.values()])
            del remaining[pair]
        return adjusted

    def refutes(self, pair: Any, mean: float) -> bool:
        """Return whether at most 5% of flips, in any pair, reach the statistic of the pair minus a mean difference."""
        names = sorted({self.repo[sample] for gap in self.gaps.values() for sample in gap})
        gap = {one: value - mean for one, value in self.gaps[pair].items()}
        sums = [math.fsum(v for one, v in gap.items() if self.repo[one] == name) for name in names]
        size = math.sqrt(math.fsum(x * x for x in sums)) or 1.0
        own = [abs(math.fsum(map(math.prod, zip(signs, sums, strict=True)))) / size for signs in _signs(len(sums))]
        others = [self._flipped[other] for other in self.gaps if other != pair]
        largest = [max(column) for column in zip(own, *others, strict=True)]
        return sum(one >= own[0] - 1e-9 for one in largest) <= 0.05 * len(largest)

    def has_interval(self, pair: Any, low: float | None, high: float | None, reach: tuple[float, float] | None) -> bool:
        """Return whether an interval ends where refutation begins, and excludes 0 exactly if p is at most 5%."""
        is_significant = self.p[pair] <= 0.05
        if low is None and high is None:
            return not is_significant and not (self.refutes(pair, -1e7) and self.refutes(pair, 1e7))
        if ((low or 0) > 0 or (high or 0) < 0) is not is_significant:
            return False
        # Skip ends at the bounds of a difference, and ends next to 0, where only the step-down makes it significant.
        ends = [(end, way) for end, way in ((low, -1), (high, 1)) if end is not None]
        free = [(end, way) for end, way in ends if end not in (reach or ()) and abs(end) > 2e-6]
        step = 1e-5 * max(1.0, *(abs(end) for end, _ in ends))
        return all(
            self.refutes(pair, end + way * step) and not self.refutes(pair, end - way * step) for end, way in free
        )

    @cached_property
    def critical(self) -> float | None:
        """Statistic that 5% of flips exceed among pairs that are not significant, or for the last pair if all are."""
        not_yet = [pair for pair, p in self.p.items() if p > 0.05] or [list(self.p)[-1]]
        largest = [max(column) for column in zip(*(self._flipped[pair] for pair in not_yet), strict=True)]
        # Use only one of each flip and its opposite.
        others, allowed = sorted(largest[1 : len(largest) // 2], reverse=True), int(0.05 * (len(largest) // 2))
        return others[allowed - 1] if allowed else None

    def smallest_visible(self, pair: Any) -> float | None:
        """Return the difference detected with 80% power, or None if no p can reach 5% or nothing varies."""
        if len({self.repo[one] for one in self.gaps[pair]}) < 6 or self.critical is None:
            return None
        c, error = _error(self.gaps[pair], self.repo)
        if error <= 1e-9 or self.critical**2 >= c:
            return None
        t = math.sqrt((c - 1) * self.critical**2 / (c - self.critical**2))
        return float((t + stats.t.ppf(0.8, c - 1)) * error)

    def needs(self, pair: Any, repositories: int | None) -> bool:
        """Return whether this number of repositories is needed: it is enough, and a third fewer are not."""
        gap = self.gaps[pair]
        mean, c = abs(math.fsum(gap.values()) / len(gap)), len({self.repo[one] for one in gap})
        if self.p[pair] <= 0.05 or c < 5 or mean <= 1e-9:
            return repositories is None
        c, error = _error(gap, self.repo)

        def enough(count: float) -> bool:
            t = stats.t.ppf(1 - 0.025 / len(self.gaps), count - 1) + stats.t.ppf(0.8, count - 1)
            return bool(count >= 6 and t * error * math.sqrt(c / count) <= mean)

        if repositories is None:
            return not enough(1000)
        least = max(6, c + 1)
        return enough(repositories) and (repositories == least or not enough(repositories * 2 / 3))


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(itertools.product((1, -1), repeat=count))
