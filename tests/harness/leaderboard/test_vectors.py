"""Arrays of a whole group give, bit for bit, what the samples give one by one."""

from __future__ import annotations

import random
import statistics

import numpy as np
import pytest

from ctxbench.harness.leaderboard import pairs, stats
from ctxbench.harness.leaderboard.pairs import MetricColumn, RunArrays, Samples, align
from ctxbench.harness.leaderboard.scales import Scale, repositories, scale_of, values
from ctxbench.harness.results import RunTable, Status
from tests.helpers.runs import make_table

PERCENT, BITS = scale_of("ctxbench", "pass@1"), scale_of("ctxbench", "bits")
SCALES = {"es": PERCENT, "em": PERCENT, "bits": BITS, "none": PERCENT}


def tables(seed: int, *, repos: int = 9, whole: bool = False) -> list[RunTable]:
    """Return three runs over parts of one set, in their own order, with every status and with holes."""
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
def test_columns_are_the_values_of_the_samples(seed: int, metric: str) -> None:
    found = tables(seed)
    scale = SCALES[metric]
    for table, column in zip(found, columns(found, metric, scale), strict=True):
        wanted = values(table, metric, scale)
        assert dict(zip([table.sample[row] for row in column.rows], column.values.tolist(), strict=True)) == wanted
        assert list(wanted.values()) == column.values.tolist() and bool(column) == bool(wanted)
        stored = zip(table.metrics.get(metric, ()), table.status, strict=False)
        left = [value * scale.factor for value, status in stored if status is Status.EXCLUDED and value is not None]
        every = [*wanted.values(), *left]
        assert column.with_marked == (statistics.fmean(every) if every else None)


@pytest.mark.parametrize("seed", range(5))
def test_estimates_of_many_are_those_of_each(seed: int) -> None:
    found = tables(seed)
    many = stats.estimates([one.clustered for one in columns(found, "es", PERCENT)], seed="s", bounds=PERCENT.bounds)
    for table, one in zip(found, many, strict=True):
        each = values(table, "es", PERCENT)
        repos = repositories(table)
        assert one == stats.estimate(
            list(each.values()), [repos[name] for name in each], seed="s", bounds=PERCENT.bounds
        )
        assert one.mean == pytest.approx(statistics.fmean(each.values()))


def test_the_bootstrap_is_that_of_its_definition() -> None:
    table = tables(1)[0]
    each, repos = values(table, "es", PERCENT), repositories(table)
    names = sorted({repos[name] for name in each})
    members = [[each[name] for name in each if repos[name] == one] for one in names]
    drawn = stats.generator("bootstrap/s").integers(0, len(names), size=(2000, len(names)))
    means = [statistics.fmean(value for place in line for value in members[place]) for line in drawn.tolist()]
    found = stats.estimate(list(each.values()), [repos[name] for name in each], seed="s")
    assert (found.bootstrap_low, found.bootstrap_high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))


@pytest.mark.parametrize(("repos", "whole"), [(4, False), (9, False), (9, True), (30, False)])
@pytest.mark.parametrize("metric", ["es", "em", "bits"])
def test_differences_of_many_are_those_of_each(metric: str, repos: int, whole: bool) -> None:
    found = tables(7, repos=repos, whole=whole)
    scale = SCALES[metric]
    one, two, three = columns(found, metric, scale)
    together = pairs.differences([align(one, two), align(one, three), align(two, three)], scale, seed="s")
    for (this, other), difference in zip(((0, 1), (0, 2), (1, 2)), together, strict=True):
        both = {**repositories(found[this]), **repositories(found[other])}
        pair = pairs.paired(values(found[this], metric, scale), values(found[other], metric, scale), both)
        gaps = stats.clustered(pairs.gap(pair.this, pair.other), stats.coded(pair.repos))
        alone = pairs.Aligned(pair.this, pair.other, gaps)
        assert [difference] == pairs.differences([alone], scale, seed="s")
        assert difference.n_common == len(pair.samples) > 0


def test_runs_without_a_common_sample_are_not_compared() -> None:
    first, second = make_table({"es": [0.1, 0.2]}, "ab"), make_table({"es": [0.3]}, "c", first=5)
    this, other = columns([first, second], "es", PERCENT)
    (found,) = pairs.differences([align(this, other)], PERCENT, seed="s")
    assert (found.n_common, found.mean, found.p, found.visible, found.counts) == (0, None, None, None, None)


def test_p_values_of_many_are_those_of_each() -> None:
    draw = np.random.default_rng(5)
    for count in (3, 16, 17, 40):
        sums = draw.normal(0.2, 1, size=(40, count))
        assert stats.p_values(sums, seed="s").tolist() == [stats.p_value(one, seed="s") for one in sums]
