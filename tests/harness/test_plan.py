"""Which samples a run has."""

from __future__ import annotations

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.run.spec import planned_samples, unfinished_samples
from tests.harness.store.making import make_samples, make_spec

MANY = (*make_samples(6, "a"), *make_samples(2, "b"), *make_samples(4, "c"))


def test_no_limit_keeps_the_order() -> None:
    assert planned_samples(MANY, None) == MANY


def test_a_limit_takes_turns() -> None:
    # Drawn a, b, c, a, b, c, a; done a repository after the other.
    assert [sample.repo for sample in planned_samples(MANY, 7)] == ["a", "a", "a", "b", "b", "c", "c"]
    assert planned_samples(MANY, 12) == planned_samples(MANY, 100) == MANY


def test_a_smaller_limit_is_a_part_of_a_larger() -> None:
    for smaller, larger in ((1, 2), (4, 9), (9, 11)):
        assert set(planned_samples(MANY, smaller)) < set(planned_samples(MANY, larger))
    assert set(planned_samples(tuple(reversed(MANY)), 5)) == set(planned_samples(MANY, 5))


def test_no_samples_are_no_run() -> None:
    with pytest.raises(InputFault, match="leaves none"):
        planned_samples(MANY, 0)


def test_missing_keeps_the_order() -> None:
    assert unfinished_samples(MANY, {sample.id for sample in MANY[1:-1]}) == (MANY[0], MANY[-1])


def test_what_failed_before_is_done_last() -> None:
    assert unfinished_samples(MANY, {MANY[2].id}, {MANY[0].id, MANY[2].id}) == (MANY[1], *MANY[3:], MANY[0])


@pytest.mark.parametrize(
    "change",
    [
        {"samples_digest": "e"},
        {"strategy": "lc.repocoder"},
        {"strategy_version": "2"},
        {"generator": "incontext"},
        {"generator_version": "2"},
        {"n": 2},
        {"seed": 1},
        {"limit": 5},
        {"tokenizer": "u"},
        {"code": "1"},
        {"coder": "x"},
    ],
)
def test_every_choice_is_another_run(change: dict[str, object]) -> None:
    assert make_spec(**change).id != make_spec().id == make_spec().id
