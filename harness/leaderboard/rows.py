"""The leaderboard as frozen values: groups of rows that may be compared, and what can be said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxbench.harness.leaderboard.columns import Scale
from ctxbench.harness.leaderboard.listing import Listing
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.results import RunInfo

ALL_LEVELS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The mean if every unscored sample had the worst or the best value."""

    worst: float
    best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One strategy of a group; numbers in the unit shown (percent, bits)."""

    run: RunInfo
    level: str
    n: int
    """Samples that count: scored, or model-failed (counted as the worst value)."""
    model_failed: int
    unscored: int
    """Samples that the machine failed: missing, not 0."""
    excluded: int
    """Samples that are left out because they are marked."""
    marks: Mapping[str, int]
    """Mark (``broken``, ``vacuous``) -> samples that have it, whether they are left out or not."""
    metrics: Mapping[str, Estimate]
    sensitivity: Mapping[str, Sensitivity]
    """Empty when nothing is unscored; only metrics with a range."""
    context_tokens: float | None
    """Mean over the samples that count, as are the two below."""
    calls: float | None
    seconds: float | None
    baseline: str | None
    """The strategy that `difference` compares with; None for the baseline itself."""
    difference: Mapping[str, Difference]
    rank_low: int | None
    """Best rank that significant differences leave open; None for rows that are not ranked."""
    rank_high: int | None
    tier: str
    """Letters; two rows that share one are not told apart. Empty for rows that are not ranked."""
    costs: Mapping[str, float | None] = field(default_factory=dict)
    """Name of `harness.results.COSTS` -> mean over the samples that count; a price is None unless all of theirs are
    known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows of one sample set, language, level, generator and metric profile: only these are ranked together."""

    samples: str
    samples_digest: str
    benchmark: str
    language: str
    level: str
    generator: str
    profile: str
    metric: str
    """The metric that ranks."""
    scales: Mapping[str, Scale]
    baseline: str | None
    rows: tuple[Row, ...]
    """Ranked rows best first, then those that are not ranked."""
    pairs: int
    """Comparisons between ranked rows: the family of Holm's correction."""
    repositories: int
    """Fewest repositories that a pair of ranked rows, or else a row, has."""
    smallest_p: float
    """The smallest p-value that the test can reach with these repositories, before correction."""
    decidable: bool
    """Whether any difference could be significant at 5% after the correction."""
    visible: float | None
    """The smallest difference that the board can see: median over its pairs (80% power at 5%)."""
    superseded: int
    """Runs that are not shown because a newer or more complete one of the same strategy is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallMean:
    """One metric over both languages, in the unit shown."""

    mean: float
    """Over the tasks of both."""
    mean_of_levels: float
    """The mean of the two languages' means of levels."""
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """What one strategy and generator did in both languages of a benchmark with levels."""

    run: RunInfo
    """Of the first language."""
    samples: tuple[str, ...]
    """The sets, one or two."""
    level: str
    unscored: int
    metrics: Mapping[str, OverallMean]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Every group, in the order of its names, and what stands below them."""

    groups: tuple[Group, ...]
    overall: tuple[Overall, ...] = ()
    published: tuple[Listing, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all groups."""
        return tuple(row for group in self.groups for row in group.rows)
