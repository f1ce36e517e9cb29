"""The data classes of a leaderboard: groups of comparable rows, their tests and levels."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ctxbench.harness.leaderboard import scales, signflip
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.repetitions import AnswerGaps, VarianceParts
from ctxbench.harness.leaderboard.scales import Scale, at_level, at_levels
from ctxbench.harness.leaderboard.stats import REPOSITORY, Estimate, FlipUnit
from ctxbench.harness.paper_tables import LEVELS, PaperRow
from ctxbench.harness.results import RunInfo, RunTable, Status

LEVELLED = "codereval"
"""Benchmark that is printed by level by default, with means of levels."""
COMBINED = "+".join(LEVELS)
"""Name of the group of CoderEval's levels class, file and project, whose means papers average."""
COMBINED_LEVELS = tuple(f"{level}_runnable" for level in LEVELS)
LANGUAGES = ("python", "java")

ALL_LEVELS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """A row's mean of a metric if all missing samples had the worst value, and if all had the best."""

    worst: float
    best: float


class Standing(StrEnum):
    """The result of a row's tests."""

    UNBEATEN = "unbeaten"
    """Significantly better than another row, and not worse than any."""
    BEATEN = "beaten"
    UNDECIDED = "undecided"
    """Not significantly different from any row."""
    UNRANKED = "unranked"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAges:
    """Dates of a group's samples, and how many are dated before and after the end of the model's training data."""

    oldest: str
    newest: str
    unknown: int
    cutoff: str | None
    """Last day of the model's training data; None if unknown."""
    before: int
    """Number of samples dated up to and including `cutoff`; 0 without a cutoff."""
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A strategy's results in a group, with metrics in their displayed units (percent, bits)."""

    run: RunInfo
    level: str
    n: int
    """Number of samples that count: scored, or model-failed (the worst value)."""
    model_failed: int
    missing: int
    """Samples without a result: the strategy or the machine failed, or the run ended early. Never counted as 0."""
    excluded: int
    marks: Mapping[str, int]
    """Numbers of ``broken`` and ``vacuous`` samples, by these words, even if the samples are not excluded."""
    metrics: Mapping[str, Estimate]
    sensitivity: Mapping[str, Sensitivity]
    """Sensitivity to missing samples and answers, by metric, for metrics with a range; empty if nothing is missing."""
    baseline: str | None
    """Strategy that `difference` compares with; None for the baseline itself, or without a baseline."""
    difference: Mapping[str, Difference]
    rank_low: int | None
    """Best rank that the significant differences allow; None for unranked rows. `rank_high` is the worst rank."""
    rank_high: int | None
    letters: str
    """Group letters. Rows that share a letter are not significantly different. Empty for unranked rows."""
    beats: tuple[int, ...] = ()
    """Rows that this row is significantly better than, as ascending positions in the group."""
    significant: bool = False
    """Whether the row differs significantly from another row."""
    needed: int | None = None
    """Approximate number of units that would make a difference of this row significant; None if one is already
    significant, or if unknown."""
    before_cutoff: Estimate | None = None
    """Mean of the ranking metric over samples dated up to the model's training cutoff; None without samples on both
    sides."""
    after_cutoff: Estimate | None = None
    variance: Mapping[str, VarianceParts] = field(default_factory=dict)
    """Sources of the variance of each metric's mean, by metric; empty for a single run."""
    answers: AnswerGaps = field(default_factory=AnswerGaps)
    """Counts of answers missing, unusable or without a value in some of the row's runs only; all 0 for a single run."""
    costs: Mapping[str, float | None] = field(default_factory=dict)
    """Means of ``context_tokens``, ``calls``, ``seconds`` and `RunTable.costs` over the samples that count, by name. A
    price is None unless all prices are known."""

    @property
    def standing(self) -> Standing:
        """Result of this row's tests."""
        if self.rank_low is None:
            return Standing.UNRANKED
        if not self.significant:
            return Standing.UNDECIDED
        return Standing.UNBEATEN if self.rank_low == 1 else Standing.BEATEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The results of significance tests whose p-values were corrected together."""

    against: str | None
    """Strategy that each row is tested against; None if all pairs are tested, empty without a baseline."""
    pairs: int
    units: int
    """Largest number of units (repositories or files) in the test of a pair."""
    unit: FlipUnit
    smallest_p: float
    significant: int
    visible: float | None
    """Smallest difference that a pair's test can find with 80% power: the median over the pairs; None if unknown."""
    nearest: tuple[str, str] | None
    """Pair whose difference would become significant with the fewest units; None if unknown."""
    needed: int | None

    @property
    def decidable(self) -> bool:
        """Whether any difference can be significant."""
        return self.pairs > 0 and self.smallest_p <= signflip.ALPHA

    def verdict(self) -> str:
        """Return a sentence on how many pairs differ significantly, or why none can; empty without tests."""
        if not self.pairs:
            return ""
        if self.unit.refusal:
            return f"No difference can be significant here: {self.unit.refusal}."
        if not self.decidable:
            return (
                f"No difference can be significant here: with {self.unit.count(self.units)} the smallest possible p "
                f"is {scales.p_value(self.smallest_p)}; at least {signflip.LEAST} repositories are needed"
                f"{self._more()}."
            )
        one, many = ("pair", "pairs") if self.against is None else ("other strategy", "other strategies")
        some = f"{'All' if self.significant == self.pairs else f'{self.significant} of'} {self.pairs} {many}"
        who = f"No {one}" if not self.significant else f"The {one}" if self.pairs == 1 else some
        of = "" if self.against is None else f" from {self.against}"
        return f"{who} {'is' if self.significant <= 1 else 'are'} significantly different{of}{self._more()}."

    def claim(self) -> str:
        """Return the sentence that limits the tests' claim to one repository; empty without tests or such a limit."""
        return self.unit.claim(self.units) if self.pairs else ""

    def question(self) -> str:
        """Return a phrase that names the pairs tested together. Empty without tests."""
        if not self.pairs:
            return ""
        if self.against is None:
            rows = round((1 + math.sqrt(1 + 8 * self.pairs)) / 2)
            return f"all {self.pairs} pairs of {rows} strategies" if self.pairs > 1 else "the pair"
        return (
            f"each of {self.pairs} strategies against {self.against}"
            if self.pairs > 1
            else f"one strategy against {self.against}"
        )

    def _more(self) -> str:
        if self.nearest is None:
            return ""
        this, other = self.nearest
        return f"; about {self.needed} {self.unit.plural} would separate {this} from {other}"

    def sight(self, unit: str) -> str:
        """Return a sentence that states which difference the tests would detect. Empty if unknown."""
        if self.visible is None:
            return ""
        median = "; the median over the pairs" if self.pairs > 1 else ""
        least = scales.written(self.visible, self.visible)
        difference = f"A difference of {least} {unit}"
        return f"{difference} would be significant in about four of five such boards (80% power{median})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows of one sample set, language, level, generator and metric profile, ranked together."""

    samples: str
    samples_digest: str
    benchmark: str
    language: str
    level: str
    generator: str
    profile: str
    metric: str
    scales: Mapping[str, Scale]
    baseline: str | None
    rows: tuple[Row, ...]
    family: Family
    """Tests of the user's rows, or of others' rows if the user has none."""
    pairs: Mapping[tuple[int, int], Difference]
    """Difference (first row minus second) of each pair tested by the ranking metric, by the positions of both rows."""
    ages: SampleAges | None = None
    """Dates of the samples; None if no sample is dated, or the generator has no training data."""
    set_size: int = 0
    """Samples in the complete set, all languages together; 0 if unknown."""
    superseded: int
    """Number of runs hidden by a newer or more complete run of the same strategy."""

    @property
    def all_pairs(self) -> bool:
        """Whether all pairs of ranked rows are tested, not only each row against the baseline."""
        return self.family.against is None

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The group's ranked rows, best first."""
        return tuple(row for row in self.rows if row.rank_low is not None)

    @property
    def base(self) -> Row | None:
        """Row of the baseline; None without a baseline."""
        return None if self.baseline is None else next(row for row in self.rows if row.baseline is None)

    @property
    def unbeaten(self) -> tuple[Row, ...]:
        """Rows that are significantly better than another row, and not worse than any."""
        return tuple(row for row in self.rows if row.standing is Standing.UNBEATEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallMean:
    """A metric's means over both languages of CoderEval, in its displayed unit."""

    mean: float
    """Mean over the tasks of both languages."""
    mean_of_levels: float
    """Mean of two numbers: the unweighted mean over levels of each language."""
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """Means of a strategy and generator over both languages of CoderEval."""

    run: RunInfo
    samples: tuple[str, ...]
    level: str
    missing: int
    metrics: Mapping[str, OverallMean]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Rows of papers' tables for one benchmark and one or both languages, printed below the benchmark's groups."""

    benchmark: str
    language: str
    rows: tuple[PaperRow, ...]
    highlighted: tuple[PaperRow, ...]
    contradicted: tuple[str, ...] = ()
    """Sentences about printed numbers that differ from the results of recorded predictions in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A leaderboard: groups, sorted by sample set first, CoderEval's means over both languages, and papers' rows."""

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
    """Summarise differences that were corrected together. `units` is the number of units if no pair was tested."""
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
    """Return a phrase about what a pair's test could show; empty if the difference is significant or untested."""
    if difference.p is None or difference.significant:
        return ""
    of = difference.unit
    # A user cannot add files to a repository, so this advice would not help.
    needed = (
        f"about {difference.needed} {of.plural} like these would show the difference"
        if difference.needed and not of.repo
        else ""
    )
    if of.refusal:
        return f"no difference can be significant at 5%: {of.refusal}"
    if not difference.decidable:
        return (
            f"no difference over {of.count(difference.units)} can be significant at 5%; "
            f"{needed or f'at least {signflip.LEAST} are needed'}"
        )
    if not difference.wins and not difference.losses:
        return "both runs have the same value on every sample"
    least = "" if difference.visible is None else scales.written(difference.visible, difference.visible)
    sight = f"a true difference of {least} {unit} would be significant in about four of five cases" if least else ""
    return "; ".join(filter(None, ["this difference is not significant", sight, needed]))


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def level_parts(table: RunTable, by_level: bool | None) -> list[tuple[str, RunTable]]:
    """Split a run by level: all samples, for CoderEval the levels class, file and project together, then single levels.

    If `by_level` is None, only CoderEval is split.
    """
    parts = [(ALL_LEVELS, table)]
    ours = table.run.benchmark == LEVELLED
    if not (ours if by_level is None else by_level):
        return parts
    if ours and set(COMBINED_LEVELS) & set(table.level):
        parts.append((COMBINED, at_levels(table, COMBINED_LEVELS)))
    return [*parts, *((level, at_level(table, level)) for level in sorted(set(table.level)))]


def level_order(level: str) -> tuple[bool, bool, str]:
    """Return the sort key of a level: all samples, then levels class, file and project together, then single levels."""
    return level != ALL_LEVELS, level != COMBINED, level


def mean_of_levels(table: RunTable, level: str, values: Mapping[str, float]) -> float | None:
    """Return the unweighted mean over levels of each level's mean. `values` are given by sample.

    Args:
        level: level of the group; only CoderEval's `ALL_LEVELS` and `COMBINED` have such a mean.

    Returns:
        The mean; None for other groups, or if a level has no value: means over fewer levels would not be comparable.
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
    """Return CoderEval's means over both languages for rows of the same strategy, generator, profile, origin and set.

    Sets whose names differ only in the language (``codereval-python``, ``codereval-java``) count as one set.
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
        # Two sets with the same name in one language (imported twice, differently) cannot be averaged.
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
    """Return the groups with the set, language, generator and profile of `group`, by level, without ``all``."""
    return {
        other.level: other for other in groups if other.level != ALL_LEVELS and _identity(other) == _identity(group)
    }


def _identity(group: Group) -> tuple[str, ...]:
    return group.samples, group.samples_digest, group.language, group.generator, group.profile
