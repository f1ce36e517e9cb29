"""Simulates boards; writes power of tests and coverage of intervals into docs/statistics.md. Unit tests import it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ctxbench.harness.leaderboard import signflip, stats
from ctxbench.harness.leaderboard.power import Spread, power
from ctxbench.harness.leaderboard.signflip import step_down
from scripts import write_section

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
BEGIN, END = "<!-- python -m scripts.power_table -->\n", "<!-- end -->\n"
HEAD = """| repositories | true means | pairs that differ | power: Holm | step-down | false positive: Holm | step-down |
|---:|---|---:|---:|---:|---:|---:|
"""
RUNS = 1000
REPOSITORIES = (8, 12)
EFFECTS = (
    (0.0, 0.0, 0.0, 2.5, 2.5),
    (0.0, 0.0, 1.5, 3.0, 3.5),
    (0.0, 0.0, 0.0, 0.0, 0.0, 1.5, 1.5, 1.5, 3.0, 3.0, 3.0),
)
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SimulatedBoard:
    """A simulated board. Means and noise are in standard deviations of repositories' preferences for strategies."""

    effects: Sequence[float]
    """True mean of each strategy. Equal means are true null hypotheses."""
    repositories: int = 8
    sizes: Sequence[int] = ()
    """Samples of each repository; equal sizes if empty."""
    taste: Literal["normal", "heavy", "skewed"] = "normal"
    """Distribution of preferences: ``heavy`` is Student's t with 2 degrees of freedom, which has no variance;
    ``skewed`` is exponential."""
    correlation: float = 0.0
    """Correlation of a repository's preferences for neighbouring strategies; high for variants of one strategy."""
    missing: float = 0.0
    """Share of (strategy, repository) pairs without samples."""
    interaction: float = 1.0
    """Factor of the repositories' random preferences for strategies; 0 for no preferences."""
    noise: float = 0.6
    baseline: int | None = None
    """Index of the strategy that all others are tested against; None to test all pairs."""

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of strategies that are tested together."""
        pairs = itertools.combinations(range(len(self.effects)), 2)
        return [pair for pair in pairs if self.baseline is None or self.baseline in pair]

    @property
    def true_nulls(self) -> NDArray[np.bool_]:
        """For each pair, whether both strategies have the same true mean."""
        return np.array([self.effects[a] == self.effects[b] for a, b in self.pairs])

    def sums(self, random: np.random.Generator) -> Array:
        """Draw the sum of each pair's differences in each repository, shape (pairs, repositories)."""
        sizes = np.array(self.sizes or [10] * self.repositories, dtype=float)
        shape = (len(self.effects), len(sizes))
        tastes = {
            "normal": random.standard_normal,
            "heavy": lambda shape: random.standard_t(2, shape),
            "skewed": lambda shape: random.standard_exponential(shape) - 1,
        }[self.taste](shape)
        for strategy in range(1, len(self.effects)):
            own = np.sqrt(1 - self.correlation**2) * tastes[strategy]
            tastes[strategy] = self.correlation * tastes[strategy - 1] + own
        scores = np.array(self.effects)[:, np.newaxis] + self.interaction * tastes
        scores = scores + self.noise * random.standard_normal(shape) / np.sqrt(sizes / sizes.mean())
        present = random.random(shape) >= self.missing
        return np.array([(scores[a] - scores[b]) * sizes * present[a] * present[b] for a, b in self.pairs])


@dataclass(frozen=True)
class Rates:
    """Error rate and power of a correction over many boards."""

    family_wise_error: float
    """Share of boards with at least one significant pair of equal true means."""
    power: float
    """Mean share of significant pairs among pairs of different true means."""


def rates(board: SimulatedBoard, runs: int = RUNS, *, by_holm: bool = False) -> Rates:
    """Simulate boards, and return the rates of the step-down correction, or of Holm's if `by_holm`."""
    random, nulls = np.random.default_rng(3), board.true_nulls
    boards_in_error, power_sum = 0, 0.0
    for _ in range(runs):
        sums = board.sums(random)
        p = holm(signflip.p_values(sums, seed="simulation")) if by_holm else step_down(sums, seed="simulation").p
        significant = p <= signflip.ALPHA
        boards_in_error += bool(significant[nulls].any())
        power_sum += 0.0 if nulls.all() else significant[~nulls].mean()
    return Rates(boards_in_error / runs, power_sum / runs)


def holm(p: Array) -> Array:
    """Return Holm's adjusted p-values."""
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(np.minimum(1, p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def line(effects: Sequence[float], repositories: int) -> str:
    """Return a row of the table of corrections, as Markdown."""
    board = SimulatedBoard(effects=effects, repositories=repositories)
    by_holm, by_step_down = rates(board, by_holm=True), rates(board)
    means = ", ".join(f"{count} x {mean:g}" for mean, count in _counted(effects))
    differ = int(np.count_nonzero(~board.true_nulls))
    cells = [f"{100 * share:.0f} %" for share in (by_holm.power, by_step_down.power)]
    cells += [f"{100 * share:.1f} %" for share in (by_holm.family_wise_error, by_step_down.family_wise_error)]
    return f"| {repositories} | {means} | {differ} of {len(board.pairs)} | {' | '.join(cells)} |\n"


def _counted(effects: Sequence[float]) -> Iterator[tuple[float, int]]:
    for mean, members in itertools.groupby(effects):
        yield mean, len(list(members))


@dataclass(frozen=True, kw_only=True)
class TwoLevels:
    """Runs whose paired differences vary between repositories and within them. The first row leads by `LEAD` points."""

    repositories: int
    samples: int
    between: float = 4.0
    within: float = 20.0
    rows: int = 2
    is_uneven: bool = False
    """Whether the sizes of repositories vary from half to one and a half times the mean."""
    taste: Literal["normal", "heavy"] = "normal"
    """Distribution between repositories: ``heavy`` is Student's t with 4 degrees of freedom and the same variance."""

    def values(self, random: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
        """Draw a score for each row and sample, shape (rows, samples), and the repository of each sample."""
        shares = np.linspace(0.5, 1.5, self.repositories) if self.is_uneven else np.ones(self.repositories)
        codes = np.repeat(np.arange(self.repositories), np.rint(shares * self.samples).astype(int))
        shape = (self.rows, self.repositories)
        tastes = random.standard_normal(shape) if self.taste == "normal" else random.standard_t(4, shape) / np.sqrt(2)
        noise = self.within * random.standard_normal((self.rows, len(codes)))
        scores = (self.between * tastes[:, codes] + noise) / np.sqrt(2)
        scores[0] += LEAD
        return scores, codes

    def gaps(self, random: np.random.Generator) -> list[stats.Clustered]:
        """Draw the paired differences between each other row and the baseline, which is the last row."""
        scores, codes = self.values(random)
        return [stats.clustered(scores[row] - scores[-1], codes) for row in range(self.rows - 1)]

    def simulated(self, runs: int = RUNS) -> float:
        """Return the share of simulated boards on which the first row differs significantly from the baseline."""
        random = np.random.default_rng(5)
        tested = (step_down(np.array([gap.sums for gap in self.gaps(random)]), seed="s").p[0] for _ in range(runs))
        return float(np.mean([p <= signflip.ALPHA for p in tested]))

    def predicted(self) -> float:
        """Return the power predicted before a run from the true variances."""
        deviation = Spread(between=self.between**2, within=self.within**2).deviation(self.samples)
        return power(LEAD, deviation, self.repositories, rows=self.rows)

    def line(self, runs: int = RUNS) -> str:
        """Return a row of the table of predicted power, as Markdown."""
        sizes = "50 to 150 %" if self.is_uneven else "even"
        return (
            f"| {self.repositories} | {self.samples} | {sizes} | {self.taste} | {self.rows} | "
            f"{100 * self.predicted():.0f} % | {100 * self.simulated(runs):.0f} % |\n"
        )


LEAD = 3.0
PREDICTED = (
    TwoLevels(repositories=6, samples=50),
    TwoLevels(repositories=12, samples=10),
    TwoLevels(repositories=12, samples=25, is_uneven=True),
    TwoLevels(repositories=12, samples=25, taste="heavy"),
    TwoLevels(repositories=20, samples=25),
    TwoLevels(repositories=20, samples=25, rows=4),
    TwoLevels(repositories=40, samples=25, is_uneven=True, taste="heavy"),
    TwoLevels(repositories=12, samples=50, between=1.0, rows=11),
)
PREDICTED_BEGIN = "<!-- predicted: python -m scripts.power_table -->\n"
PREDICTED_HEAD = """| repositories | samples each | sizes | effects | rows | predicted power | simulated |
|---:|---:|---|---|---:|---:|---:|
"""


COVERED = (5, 6, 12, 30)
COVERAGE_BEGIN = "<!-- coverage: python -m scripts.power_table -->\n"
COVERAGE_HEAD = """| repositories | of even sizes | of uneven sizes |
|---:|---:|---:|
"""


def coverage(repositories: int, *, uneven: bool, runs: int = 4 * RUNS) -> float:
    """Return the share of 95% intervals over simulated repositories that contain the true mean."""
    random = np.random.default_rng(4)
    centre, held = 50.0, 0
    for _ in range(runs):
        shape = np.exp(random.standard_normal(repositories)) * 8 if uneven else np.full(repositories, 10.0)
        sizes = np.maximum(1, shape.astype(int))
        codes = np.repeat(np.arange(repositories), sizes)
        values = random.normal(centre, 10, repositories)[codes] + random.normal(0, 20, len(codes))
        interval = stats.estimate_of(stats.clustered(values, codes))
        assert interval.low is not None and interval.high is not None
        held += interval.low <= centre <= interval.high
    return held / runs


def coverage_line(repositories: int) -> str:
    """Return a row of the table of coverage, as Markdown."""
    even, uneven = (100 * coverage(repositories, uneven=of) for of in (False, True))
    return f"| {repositories} | {even:.1f} % | {uneven:.1f} % |\n"


def main() -> None:
    """Write the tables into docs/statistics.md."""
    _write(BEGIN, HEAD, [line(effects, repositories) for effects in EFFECTS for repositories in REPOSITORIES])
    _write(PREDICTED_BEGIN, PREDICTED_HEAD, [case.line() for case in PREDICTED])
    _write(COVERAGE_BEGIN, COVERAGE_HEAD, [coverage_line(repositories) for repositories in COVERED])


def _write(begin: str, head: str, lines: Sequence[str]) -> None:
    write_section(PAGE, begin, END, "".join([head, *lines]))


if __name__ == "__main__":
    main()
