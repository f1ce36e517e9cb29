"""The leaderboard as frozen values: groups of comparable rows, what the test says of them, and their levels. Pure.

Terminal, pages, report and LaTeX take what they say of a test from `Family` and `pair_verdict`, so that no two
sentences contradict each other: where no difference can be significant none is called visible, and none is said to
lead. Source of the means of levels: the ICL-strategies paper prints, for CoderEval, the unweighted mean of the levels
class, file and project of a language, and the mean of both languages' means.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ctxbench.harness.leaderboard import numbers, signflip
from ctxbench.harness.leaderboard.numbers import Scale, at_level, at_levels
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.repetitions import AnswerGaps, VarianceParts
from ctxbench.harness.leaderboard.stats import REPOSITORY, Estimate, FlipUnit
from ctxbench.harness.paper_tables import LEVELS, PaperRow
from ctxbench.harness.results import RunInfo, RunTable, Status

LEVELLED = "codereval"
"""The benchmark whose sets are shown by level unasked, with means of levels."""
COMBINED = "+".join(LEVELS)
"""The samples of the three levels that the paper averages."""
COMBINED_LEVELS = tuple(f"{level}_runnable" for level in LEVELS)
LANGUAGES = ("python", "java")

ALL_LEVELS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The mean if every missing sample had the worst or the best value."""

    worst: float
    best: float


class Standing(StrEnum):
    """What the test says of a row among all that are ranked."""

    UNBEATEN = "unbeaten"
    """It is significantly better than a row, and worse than none."""
    BEATEN = "beaten"
    UNDECIDED = "undecided"
    """It is significantly different from none."""
    UNRANKED = "unranked"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAges:
    """How old the samples of a group are, and how many of them its model may have read."""

    oldest: str
    """Day of the oldest sample whose day is known, as ``YYYY-MM-DD``."""
    newest: str
    unknown: int
    """Samples whose day is not known."""
    cutoff: str | None
    """The last day of what the model was trained on, by its generator's spec, else by the tables; None if unknown."""
    before: int
    """Samples of that day or an earlier one; 0 without a cutoff, as is the next."""
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One strategy of a group; numbers in the unit shown (percent, bits)."""

    run: RunInfo
    level: str
    n: int
    """Samples that count: scored, or model-failed (counted as the worst value)."""
    model_failed: int
    missing: int
    """Samples that the machine failed: missing, not 0."""
    excluded: int
    """Samples that are left out because they are invalid."""
    marks: Mapping[str, int]
    """Mark (``broken``, ``vacuous``) -> samples that have it, whether they are left out or not."""
    metrics: Mapping[str, Estimate]
    sensitivity: Mapping[str, Sensitivity]
    """Empty when nothing is missing; only metrics with a range."""
    baseline: str | None
    """The strategy that `difference` compares with; None for the baseline itself, and without one."""
    difference: Mapping[str, Difference]
    rank_low: int | None
    """Best rank that significant differences leave open; None for rows that are not ranked."""
    rank_high: int | None
    letters: str
    """Letters; two rows that share one are not significantly different. Empty for rows that are not ranked."""
    beats: tuple[int, ...] = ()
    """Places, among the group's rows, of those that this one is significantly better than; rising."""
    apart: bool = False
    """Whether a test of its question is significant: it beats a row, or one beats it."""
    needed: int | None = None
    """About how many units would tell this row from another; None where one does already, or where that cannot
    be said."""
    before_cutoff: Estimate | None = None
    """Of the ranking metric, over samples from before the model's cutoff; None where there are none on either side."""
    after_cutoff: Estimate | None = None
    variance: Mapping[str, VarianceParts] = field(default_factory=dict)
    """Metric -> where the uncertainty of its mean comes from; empty for a run by itself, of which nobody knows it."""
    answers: AnswerGaps = field(default_factory=AnswerGaps)
    """What some of its runs lack and others have; nothing for a run by itself."""
    costs: Mapping[str, float | None] = field(default_factory=dict)
    """``context_tokens``, ``calls``, ``seconds`` or a name of `harness.results.COSTS` -> mean over the samples that
    count; a price is None unless all of theirs are known."""

    @property
    def standing(self) -> Standing:
        """What the test says of this row."""
        if self.rank_low is None:
            return Standing.UNRANKED
        if not self.apart:
            return Standing.UNDECIDED
        return Standing.UNBEATEN if self.rank_low == 1 else Standing.BEATEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the test says of the pairs that were corrected for each other."""

    against: str | None
    """The strategy that each is tested against; None where all pairs are."""
    pairs: int
    """Those that were tested: the others have no common sample."""
    units: int
    """The most that a pair has."""
    unit: FlipUnit
    smallest_p: float
    """The smallest p-value that the test can reach with so many units."""
    significant: int
    """Pairs that differ significantly at 5%."""
    visible: float | None
    """The smallest difference that these pairs could show: their median; None if none could show any."""
    nearest: tuple[str, str] | None
    """The pair whose difference the fewest more units would show; None if that cannot be said."""
    needed: int | None
    """About how many units that takes."""

    @property
    def decidable(self) -> bool:
        """Whether any difference could be significant."""
        return self.pairs > 0 and self.smallest_p <= signflip.ALPHA

    def verdict(self) -> str:
        """Say how many differences are significant, and what more would need; empty where nothing was tested."""
        if not self.pairs:
            return ""
        if self.unit.refusal:
            return f"No difference can be significant here: {self.unit.refusal}."
        if not self.decidable:
            return (
                f"No difference can be significant here: with {self.unit.count(self.units)} the smallest possible p "
                f"is {numbers.p_value(self.smallest_p)}; {signflip.LEAST} repositories are the fewest that can show one"
                f"{self._more()}."
            )
        one, many = ("pair", "pairs") if self.against is None else ("other strategy", "other strategies")
        some = f"{'All' if self.significant == self.pairs else f'{self.significant} of'} {self.pairs} {many}"
        who = f"No {one}" if not self.significant else f"The {one}" if self.pairs == 1 else some
        of = "" if self.against is None else f" from {self.against}"
        return f"{who} {'is' if self.significant <= 1 else 'are'} significantly different{of}{self._more()}."

    def claim(self) -> str:
        """Say what a test within one repository claims; empty of one over repositories, and without a test."""
        return self.unit.claim(self.units) if self.pairs else ""

    def question(self) -> str:
        """Say what was asked, and which pairs are corrected for each other; empty where nothing was tested."""
        if not self.pairs:
            return ""
        if self.against is None:
            rows = round((1 + math.sqrt(1 + 8 * self.pairs)) / 2)
            return f"all {self.pairs} pairs of {rows} strategies" if self.pairs > 1 else "the pair"
        return (
            f"each of {self.pairs} strategies against {self.against}"
            if self.pairs > 1
            else f"one against {self.against}"
        )

    def _more(self) -> str:
        if self.nearest is None:
            return ""
        this, other = self.nearest
        return f"; it would take about {self.needed} {self.unit.plural} to separate {this} from {other}"

    def sight(self, unit: str) -> str:
        """Say which difference would be seen; empty where none would, or it cannot be said."""
        if self.visible is None:
            return ""
        median = "; the median over the pairs" if self.pairs > 1 else ""
        least = numbers.written(self.visible, self.visible)
        difference = f"A difference of {least} {unit}"
        return f"{difference} would be significant in about four of five such boards (80% power{median})."


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
    """The strategy that differences refer to; of its rows it is `base`."""
    rows: tuple[Row, ...]
    """Ranked rows best first, then those that are not ranked."""
    family: Family
    """What the tests say of the question: of one's own rows, of others' where there are none."""
    pairs: Mapping[tuple[int, int], Difference]
    """Places of two rows -> the first minus the second, where that is tested under the metric that ranks."""
    ages: SampleAges | None = None
    """None if no sample's day is known, or the generator knows nothing but its prompt."""
    set_size: int = 0
    """Samples of the whole set, in all its languages; 0 where nobody knows."""
    superseded: int
    """Runs that are not shown because a newer or more complete one of the same strategy is."""

    @property
    def all_pairs(self) -> bool:
        """Whether every pair of ranked rows was asked about, and not each against the baseline."""
        return self.family.against is None

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that are ranked."""
        return tuple(row for row in self.rows if row.rank_low is not None)

    @property
    def base(self) -> Row | None:
        """The row that differences refer to; None without one. Another origin of its strategy may have a row too."""
        return None if self.baseline is None else next(row for row in self.rows if row.baseline is None)

    @property
    def unbeaten(self) -> tuple[Row, ...]:
        """The rows that are significantly better than another, and worse than none."""
        return tuple(row for row in self.rows if row.standing is Standing.UNBEATEN)


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
    missing: int
    metrics: Mapping[str, OverallMean]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The published rows of one benchmark and language, which stand below the groups of that benchmark."""

    benchmark: str
    """As the papers write it."""
    language: str
    rows: tuple[PaperRow, ...]
    """All of them, in the papers' order."""
    highlighted: tuple[PaperRow, ...]
    """Those that a person sees unasked, best first."""
    contradicted: tuple[str, ...] = ()
    """Sentences: what recorded predictions stored here say against a number as printed."""


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


def family(
    differences: Iterable[tuple[tuple[str, str], Difference]],
    *,
    against: str | None = None,
    unit: FlipUnit = REPOSITORY,
    units: int = 0,
) -> Family:
    """Sum up differences that were corrected together.

    Args:
        differences: the names of two rows, and the difference of these.
        against: the strategy that is the second of all of them; None where they are all pairs.
        unit: of all of them.
        units: how many there are where no pair was tested.
    """
    tested = [(names, difference) for names, difference in differences if difference.p is not None]
    most = max((difference.units for _, difference in tested), default=units)
    visible = [difference.visible for _, difference in tested if difference.visible is not None]
    needed = [(difference.needed, names) for names, difference in tested if difference.needed is not None]
    fewest, nearest = min(needed, key=lambda item: item[0], default=(None, None))
    return Family(
        against=against,
        pairs=len(tested),
        units=most,
        unit=unit,
        smallest_p=signflip.smallest_p(most),
        significant=sum(difference.significant for _, difference in tested),
        visible=statistics.median(visible) if visible else None,
        nearest=nearest,
        needed=fewest,
    )


def pair_verdict(difference: Difference, unit: str) -> str:
    """Say what the test could and could not show of one pair, as the end of a sentence; empty if it was not tested."""
    if difference.p is None or difference.significant:
        return ""
    of = difference.unit
    needed = "" if difference.needed is None else f"about {difference.needed} {of.plural} like these would show it"
    if of.refusal:
        return f"no difference can be significant at 5%: {of.refusal}"
    if not difference.decidable:
        return (
            f"no difference of {of.count(difference.units)} can be significant at 5%; "
            f"{needed or f'{signflip.LEAST} are the fewest that can show one'}"
        )
    if not difference.wins and not difference.losses:
        return "both have the same value at every sample"
    least = "" if difference.visible is None else numbers.written(difference.visible, difference.visible)
    sight = f"one of {least} {unit} would be in about four of five cases" if least else ""
    return "; ".join(filter(None, ["this difference is not significant", sight, needed]))


def listed(names: Sequence[str]) -> str:
    """Return names as a person lists them: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def level_parts(table: RunTable, by_level: bool | None) -> list[tuple[str, RunTable]]:
    """Return level -> the samples of a run at it; first all, then for CoderEval the three levels of the paper.

    Args:
        table: one run in one language.
        by_level: whether each level has a part of its own; None: only for CoderEval.
    """
    parts = [(ALL_LEVELS, table)]
    ours = table.run.benchmark == LEVELLED
    if not (ours if by_level is None else by_level):
        return parts
    if ours and set(COMBINED_LEVELS) & set(table.level):
        parts.append((COMBINED, at_levels(table, COMBINED_LEVELS)))
    return [*parts, *((level, at_level(table, level)) for level in sorted(set(table.level)))]


def level_order(level: str) -> tuple[bool, bool, str]:
    """Return the key by which levels are sorted: all, the paper's three, then the single ones."""
    return level != ALL_LEVELS, level != COMBINED, level


def mean_of_levels(table: RunTable, level: str, values: Mapping[str, float]) -> float | None:
    """Return the unweighted mean of the levels' means.

    Args:
        table: the samples of the group.
        level: which group it is; only all samples and the paper's three levels have such a mean, of CoderEval only.
        values: sample -> value.

    Returns:
        None if a level has no value: a mean over fewer levels would be another number under the same name.
    """
    if table.run.benchmark != LEVELLED or level not in (ALL_LEVELS, COMBINED):
        return None
    counted = {name for name, status in zip(table.level, table.status, strict=True) if status is not Status.EXCLUDED}
    by_level: dict[str, list[float]] = defaultdict(list)
    for sample, name in zip(table.sample, table.level, strict=True):
        if sample in values:
            by_level[name].append(values[sample])
    names = counted if level == ALL_LEVELS else set(COMBINED_LEVELS)
    if not names or names - by_level.keys():
        return None
    return statistics.fmean(statistics.fmean(by_level[name]) for name in sorted(names))


def overall_means(groups: Sequence[Group]) -> tuple[Overall, ...]:
    """Return the means over both languages of what ran in both: same strategy, generator, profile, origin and set.

    Sets of one benchmark whose names differ in the language only (``codereval-python``, ``codereval-java``) are one.
    """
    pairs_by_key: dict[tuple[str, ...], list[tuple[Group, Row]]] = defaultdict(list)
    for group in groups:
        if group.benchmark == LEVELLED and group.level == COMBINED:
            name = group.samples.replace(group.language, "")
            for row in group.rows:
                key = (name, row.run.strategy, row.run.generator, row.run.profile, str(row.run.origin))
                pairs_by_key[key].append((group, row))
    means = []
    for members in pairs_by_key.values():
        # Two sets of one name in a language (imported twice, differently) are two results: none is their mean.
        if sorted(group.language for group, _ in members) == sorted(LANGUAGES):
            means += _overall([row for _, row in members])
    return tuple(means)


def _overall(rows: Sequence[Row]) -> list[Overall]:
    shared = [name for name in rows[0].metrics if name in rows[1].metrics]
    metrics = {}
    for name in shared:
        estimates = [row.metrics[name] for row in rows]
        means = [estimate.mean_of_levels for estimate in estimates if estimate.mean_of_levels is not None]
        if len(means) == len(rows):
            total = math.fsum((estimate.mean or 0.0) * estimate.n for estimate in estimates)
            n = sum(estimate.n for estimate in estimates)
            metrics[name] = OverallMean(mean=total / n, mean_of_levels=statistics.fmean(means), n=n)
    if not metrics:
        return []
    samples = tuple(dict.fromkeys(row.run.samples for row in rows))
    missing = sum(row.missing for row in rows)
    return [Overall(run=rows[0].run, samples=samples, level=COMBINED, missing=missing, metrics=metrics)]


def groups_by_level(groups: Sequence[Group], group: Group) -> dict[str, Group]:
    """Return level -> the group of the same runs at that level only, in the order of the groups."""
    return {
        other.level: other for other in groups if other.level != ALL_LEVELS and _identity(other) == _identity(group)
    }


def _identity(group: Group) -> tuple[str, ...]:
    return group.samples, group.samples_digest, group.language, group.generator, group.profile
