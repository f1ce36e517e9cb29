"""Wrong functions against the split oracle, on both back ends: none passes, and the right one does."""

from __future__ import annotations

import re
import secrets

import pytest

from ctxbench.sandbox.types import Check, Ended, Job, Outcome
from tests.sandbox.attacks.arena import Arena
from tests.sandbox.attacks.forgeries import CHECK, RIGHT, STUB, Forgery
from tests.sandbox.attacks.more_forgeries import FORGERIES

pytestmark = pytest.mark.slow


def judge(ring: Arena, program: str) -> Outcome:
    """Check a program; its output must not hold what stands in the check alone."""
    mark = f"MARK-{secrets.token_hex(8)}"
    check = Check(program=program, entry="total", check=CHECK.replace("@MARK@", mark))
    outcome = ring.pool.run(Job(action=check, seconds=10.0))
    assert mark not in outcome.output
    assert "heard \0" not in outcome.output
    return outcome


def test_the_eleven_known_ones_are_among_them():
    assert sum(forgery.known for forgery in FORGERIES) == 11
    assert len({forgery.name for forgery in FORGERIES}) == len(FORGERIES)


def test_the_right_function_passes_and_a_stub_fails(ring: Arena):
    assert judge(ring, RIGHT).result == {"passed": True, "detail": ""}
    failed = judge(ring, STUB)
    assert failed.ended == Ended.EXITED
    assert failed.result["passed"] is False
    assert "line 5 of the check" in failed.result["detail"]


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_it_does_not_pass(ring: Arena, forgery: Forgery):
    outcome = judge(ring, forgery.program)
    assert outcome.ended in (Ended.EXITED, Ended.KILLED, Ended.TIMED_OUT)
    if outcome.result is not None:
        assert outcome.result["passed"] is False
        # It fails by its answers, not by a slip of ours in writing it down.
        assert not {"SyntaxError", "NameError", "ImportError"} & set(re.findall(r"\w+", outcome.result["detail"]))
    ring.honest()
    assert judge(ring, RIGHT).result == {"passed": True, "detail": ""}
