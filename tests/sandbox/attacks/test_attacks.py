"""Every attack on the box, on both back ends, in one pool that reuses its boxes.

Each attack is contained, the next honest job finds no trace of it, and at the end the host is unchanged.
"""

import pytest

from ctxbench.sandbox.types import Ended
from tests.sandbox.attacks.arena import LIMITS, Arena
from tests.sandbox.attacks.case import CASES, Case, matches

pytestmark = [pytest.mark.slow, pytest.mark.long]

BOXES = 2
"""A pool of width 1 has one box in use and a spare one, so this many jobs reach both."""
ALL = [case for cases in CASES.values() for case in cases]


def test_there_are_enough_attacks_and_their_names_are_unique():
    assert len(ALL) >= 140
    assert len({case.name for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_an_attack_is_contained(ring: Arena, case: Case):
    outcome = ring.run(case)
    assert outcome.ended in case.ended, outcome
    if Ended.TIMED_OUT in case.ended:
        assert outcome.seconds < case.seconds + 8.0
    if case.seen != "*":
        assert matches(ring.fill(case.seen), outcome.output), outcome.output
    assert len(outcome.output) <= LIMITS.output + 100
    assert outcome.truncated == case.truncated
    expected = [ring.fill(part) for part in case.result] if isinstance(case.result, list) else case.result
    assert outcome.result == expected
    assert outcome.peak_bytes <= LIMITS.memory + (64 << 20)
    if case.out_of_memory is not None:
        assert outcome.out_of_memory == case.out_of_memory
    if case.exit_code is not None:
        assert outcome.exit_code == case.exit_code
    for _ in range(BOXES):
        if case.then:
            second = ring.job(case.then)
            assert matches(ring.fill(case.then_seen), second.output), second.output
        ring.honest()
