"""Which samples only some runs solve."""

from __future__ import annotations

import pytest

from ctxbench.harness.leaderboard.compare import SolvedRegion, compare, solved
from ctxbench.harness.leaderboard.scales import Scale, scale_of
from ctxbench.harness.results import Status
from tests.helpers.runs import make_table

A = make_table({"em": [1.0, 1.0, 0.0, 0.0, 1.0]}, "aabbb", id="a")
B = make_table({"em": [1.0, 0.0, 1.0, 0.0, 1.0]}, "aabbb", id="b")
C = make_table({"em": [0.0, 0.0, 1.0, 0.0, 1.0]}, "aabbb", id="c")

PERCENT = scale_of("ctxbench", "pass@1")


def test_every_sample_is_in_one_region() -> None:
    found = solved([A, B, C], "em")
    assert found is not None and (found.count, found.n) == (3, 5)
    assert found.regions == (
        SolvedRegion(runs=(), samples=("s00003",)),
        SolvedRegion(runs=(0,), samples=("s00001",)),
        SolvedRegion(runs=(0, 1), samples=("s00000",)),
        SolvedRegion(runs=(1, 2), samples=("s00002",)),
        SolvedRegion(runs=(0, 1, 2), samples=("s00004",)),
    )
    assert found.totals() == (3, 3, 2)
    assert found.only() == (1, 0, 0)
    assert found.size(2, 1) == 1 and found.size(0, 2) == 0


def test_regions_of_two_are_the_counts_of_the_comparison() -> None:
    found = solved([A, B], "em")
    counts = compare([A, B], metric="em")[0].difference.counts
    assert found is not None and counts is not None
    assert (found.size(0, 1), found.size(1), found.size(0), found.size()) == (
        counts.both,
        counts.only_this,
        counts.only_other,
        counts.neither,
    )


def test_only_samples_that_all_completed_are_in_a_region() -> None:
    status = [Status.SCORED, Status.INFRA_FAILED, Status.SCORED, Status.MODEL_FAILED, Status.SCORED]
    late = make_table({"em": [1.0, None, 1.0, None, 0.0]}, "aabbb", status=status, id="late")
    found = solved([A, late], "em")
    assert found is not None and found.n == 4
    # The machine's fault is in no region; the model's counts as not solved.
    assert {one.runs: one.samples for one in found.regions} == {
        (): ("s00003",),
        (0,): ("s00004",),
        (1,): ("s00002",),
        (0, 1): ("s00000",),
    }


@pytest.mark.parametrize(
    ("metric", "values"), [("es", [0.5, 1.0]), ("pass@1", [0.5, 1.0]), ("context_gain", [0.0, 1.0])]
)
def test_a_metric_that_is_not_right_or_wrong_has_no_regions(metric: str, values: list[float]) -> None:
    assert solved([make_table({metric: values}, "ab")] * 2, metric) is None


def test_where_lower_is_better_the_lower_bound_solves() -> None:
    lower = Scale(factor=100.0, worst=None, bounds=(0.0, 100.0), unit="%", lower_is_better=True)
    found = solved([A, B], "em", scale=lambda *_: lower)
    assert found is not None and found.totals() == (2, 2) and found.size(0, 1) == 1
    counts = compare([A, B], metric="em", scale=lambda *_: lower)[0].difference.counts
    assert counts is not None and (counts.both, counts.neither) == (1, 2)
    upper = compare([A, B], metric="em", scale=lambda *_: PERCENT)[0].difference.counts
    assert upper is not None and (upper.both, upper.neither) == (2, 1)


def test_without_a_common_sample_there_is_no_region() -> None:
    other = make_table({"em": [1.0] * 5}, "aabbb", first=10)
    found = solved([A, other], "em")
    assert found is not None and (found.n, found.regions, found.totals()) == (0, (), (0, 0))
