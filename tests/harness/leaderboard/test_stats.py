"""Check quantiles, intervals and coverage against scipy and by hand, and array results against single samples."""

import math
import random
import statistics

import numpy as np
import pytest
from scipy import stats as reference

from ctxbench.harness.leaderboard import pairs, signflip, stats
from ctxbench.harness.leaderboard.pairs import MetricColumn, RunArrays, Samples, align
from ctxbench.harness.leaderboard.scales import Scale, repositories, scale_of, values
from ctxbench.harness.leaderboard.stats import IntervalScope
from ctxbench.harness.results import RunTable, Status
from scripts.power_table import COVERAGE_HEAD, COVERED, END, PAGE, coverage_line
from tests.helpers.runs import make_table


@pytest.mark.parametrize("df", [1, 2, 3, 4.5, 10, 22, 99, 346, 5000, 1e6])
@pytest.mark.parametrize("p", [1e-6, 0.025, 0.2, 0.5, 0.8, 0.95, 0.975, 0.9995])
def test_quantiles_equal_scipys(p: float, df: float) -> None:
    assert stats.quantile(p, df) == pytest.approx(reference.t.ppf(p, df), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("df", [1, 3, 22, 400])
@pytest.mark.parametrize("t", [-30.0, -2.0, -0.1, 0.0, 0.3, 1.7, 12.0])
def test_the_distribution_equals_scipys(t: float, df: float) -> None:
    assert stats.cdf(t, df) == pytest.approx(reference.t.cdf(t, df), rel=1e-9)


@pytest.mark.parametrize(("p", "df"), [(0.0, 3), (1.0, 3), (0.5, 0), (-1, 2)])
def test_quantiles_outside_the_open_interval_are_refused(p: float, df: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        stats.quantile(p, df)


def test_a_cluster_interval_matches_a_calculation_by_hand() -> None:
    # Two samples per repository with means 1, 2, 3, 4, 5: residual sums -4, -2, 0, 2, 4; 5/4 * 40 / 10^2 = 0.5.
    values = [0.0, 2.0, 1.0, 3.0, 2.0, 4.0, 3.0, 5.0, 4.0, 6.0]
    found = stats.estimate(values, [name for name in "abcde" for _ in "12"])
    half = reference.t.ppf(0.975, 4) * math.sqrt(0.5)
    assert (found.n, found.units, found.over) == (10, 5, IntervalScope.REPOSITORIES)
    assert (found.mean, found.mean_of_repositories) == (3.0, 3.0)
    assert found.low == pytest.approx(3 - half) and found.high == pytest.approx(3 + half)


@pytest.mark.parametrize(("repos", "over"), [("abcdef", IntervalScope.REPOSITORIES), ("aabbcd", IntervalScope.SAMPLES)])
def test_single_samples_and_few_repositories_use_the_ordinary_interval(repos: str, over: IntervalScope) -> None:
    values = [0.1, 0.5, 0.2, 0.9, 0.4, 0.7]
    found = stats.estimate(values, list(repos))
    low, high = reference.t.interval(0.95, 5, loc=np.mean(values), scale=reference.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.over is over


def test_means_over_samples_and_repositories_differ_for_uneven_sizes() -> None:
    found = stats.estimate([0.0, 0.0, 0.0, 1.0], ["big", "big", "big", "small"])
    assert (found.mean, found.mean_of_repositories) == (0.25, 0.5)


def test_empty_and_single_values_have_no_interval() -> None:
    nothing, one = stats.estimate([], []), stats.estimate([0.3], ["a"])
    assert (nothing.n, nothing.mean, nothing.low, nothing.over) == (0, None, None, IntervalScope.NONE)
    assert (one.n, one.mean, one.low, one.high, one.over) == (1, 0.3, None, None, IntervalScope.NONE)


def test_values_all_on_one_bound_use_the_wilson_interval() -> None:
    bottom = stats.estimate([0.0] * 50, [f"r{i % 10}" for i in range(50)], bounds=(0.0, 100.0))
    top = stats.estimate([100.0] * 50, ["a"] * 50, bounds=(0.0, 100.0))
    wilson = reference.binomtest(0, 50).proportion_ci(method="wilson").high * 100
    assert (bottom.low, bottom.high, bottom.over) == (0.0, pytest.approx(wilson), IntervalScope.SAMPLES)
    assert (top.low, top.high) == (pytest.approx(100 - wilson), 100.0)


@pytest.mark.parametrize("sizes", [[20] * 8, [30] * 23, [10, 20, 30, 30, 30, 30, 25, 30, 28, 30]])
def test_intervals_cover_95_percent_for_the_sizes_of_sets(sizes: list[int]) -> None:
    assert 0.93 <= _coverage(np.array(sizes, dtype=np.float64)) <= 0.97


def _coverage(sizes: np.ndarray, runs: int = 2000) -> float:  # type: ignore[type-arg]
    random = np.random.default_rng(7)
    half = stats.quantile(0.975, len(sizes) - 1)
    hits = 0
    for _ in range(runs):
        # Draw each repository's sum of values: repositories vary by 0.6, samples within them by 1.
        sums = sizes * random.normal(0, 0.6, len(sizes)) + np.sqrt(sizes) * random.normal(0, 1, len(sizes))
        hits += abs(sums.sum() / sizes.sum()) <= half * stats.cluster_error(sums, sizes)
    return hits / runs


@pytest.mark.slow
def test_the_page_contains_the_coverage_for_uneven_sizes() -> None:
    lines = PAGE.read_text(encoding="utf-8").split(COVERAGE_HEAD)[1].split(END)[0].splitlines(keepends=True)
    assert [int(line.split("|")[1]) for line in lines] == list(COVERED)
    assert lines[0] == coverage_line(COVERED[0])


PERCENT, BITS = scale_of("ctxbench", "pass@1"), scale_of("ctxbench", "bits")
SCALES = {"es": PERCENT, "em": PERCENT, "bits": BITS, "none": PERCENT}


def tables(seed: int, *, repos: int = 9, whole: bool = False) -> list[RunTable]:
    """Return three runs over parts of one set, in different orders, with every status and missing values."""
    draw = random.Random(seed)
    repo = [f"r{draw.randrange(repos)}" for _ in range(60)]
    made = []
    for _ in range(3):
        keep = draw.sample(range(60), 60 if whole else draw.randrange(20, 60))
        status = [Status.SCORED if whole else draw.choices(list(Status), (8, 1, 1, 1))[0] for _ in keep]
        es = [None if draw.random() < 0.1 and not whole else draw.gauss(0.4, 0.2) for _ in keep]
        metrics = {"es": es, "em": [float(draw.random() < 0.5) for _ in keep], "bits": [draw.gauss(9, 2) for _ in keep]}
        one = make_table(metrics, [repo[i] for i in keep], status=status)
        made.append(
            RunTable(**{**{name: getattr(one, name) for name in one.__slots__}, "sample": tuple(f"s{i}" for i in keep)})
        )
    return made


def columns(found: list[RunTable], metric: str, scale: Scale) -> list[MetricColumn]:
    samples = Samples(found)
    return [RunArrays(table, samples).column(metric, scale) for table in found]


@pytest.mark.parametrize("metric", SCALES)
@pytest.mark.parametrize("seed", range(5))
def test_columns_equal_the_values_of_the_samples(seed: int, metric: str) -> None:
    found = tables(seed)
    scale = SCALES[metric]
    for table, column in zip(found, columns(found, metric, scale), strict=True):
        wanted = values(table, metric, scale)
        assert dict(zip([table.sample[row] for row in column.rows], column.values.tolist(), strict=True)) == wanted
        assert list(wanted.values()) == column.values.tolist() and bool(column) == bool(wanted)
        stored = zip(table.metrics.get(metric, ()), table.status, strict=False)
        left = [value * scale.factor for value, status in stored if status is Status.EXCLUDED and value is not None]
        every = [*wanted.values(), *left]
        assert column.with_invalid == (statistics.fmean(every) if every else None)


@pytest.mark.parametrize("seed", range(5))
def test_estimates_of_many_rows_equal_those_of_each(seed: int) -> None:
    found = tables(seed)
    many = [stats.estimate_of(one.clustered, PERCENT.bounds) for one in columns(found, "es", PERCENT)]
    for table, one in zip(found, many, strict=True):
        each = values(table, "es", PERCENT)
        repos = repositories(table)
        assert one == stats.estimate(list(each.values()), [repos[name] for name in each], bounds=PERCENT.bounds)
        assert one.mean == pytest.approx(statistics.fmean(each.values()))


@pytest.mark.parametrize(("repos", "whole"), [(4, False), (9, False), (9, True), (30, False)])
@pytest.mark.parametrize("metric", ["es", "em", "bits"])
def test_differences_of_many_pairs_equal_those_of_each(metric: str, repos: int, whole: bool) -> None:
    found = tables(7, repos=repos, whole=whole)
    scale = SCALES[metric]
    one, two, three = columns(found, metric, scale)
    together = pairs.differences([align(one, two), align(one, three), align(two, three)], scale)
    for (this, other), difference in zip(((0, 1), (0, 2), (1, 2)), together, strict=True):
        mine, its = (values(found[place], metric, scale) for place in (this, other))
        repos = {**repositories(found[this]), **repositories(found[other])}
        common = sorted(mine.keys() & its.keys())
        left, right = (np.array([column[sample] for sample in common]) for column in (mine, its))
        gaps = stats.clustered(pairs.gap(left, right), stats.coded([repos[sample] for sample in common]))
        alone = pairs.Paired(left, right, gaps, np.arange(len(common)), one.samples)
        assert [difference] == pairs.differences([alone], scale)
        assert difference.n_common == len(common) > 0


def test_p_values_of_many_pairs_equal_those_of_each() -> None:
    draw = np.random.default_rng(5)
    for count in (3, 16, 17, 40):
        sums = draw.normal(0.2, 1, size=(40, count))
        assert signflip.p_values(sums, seed="s").tolist() == [
            signflip.p_values(one[np.newaxis], seed="s")[0] for one in sums
        ]
