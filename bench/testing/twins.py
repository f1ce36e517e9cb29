"""What it means that tests pass although the value of the function that they test was taken away. Pure.

A verdict of tests that run in one process with the code under test is worth nothing if that code can switch them
off. So the tests of a completion that passed are run again with its answers kept from them: they must fail where
the reference's do. What comes back is written by untrusted code, like all events, but here it would have to say
that tests fail, of its own accord.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.testing import events
from ctxbench.bench.testing.judging import passed
from ctxbench.bench.testing.types import TAMPERED
from ctxbench.sandbox.types import Outcome

WAYS = frozenset(("returns", "raises", "idles"))
"""In which the guest runner takes a value away; see ``ctxbench_pytest.twin``."""


@dataclass(frozen=True, slots=True)
class Twins:
    """Which tests passed without the function's value."""

    survivors: Mapping[str, frozenset[int]]
    """Way -> positions among the expected tests."""
    ended: frozenset[str] = frozenset()
    """The ways that came to their ends."""
    flags: frozenset[str] = frozenset()

    @property
    def plain(self) -> bool:
        """Whether every test failed both ways, so that nothing has to be compared."""
        return self.ended == WAYS and not any(self.survivors.values())


def survived(tests: Sequence[str], nonce: str, outcome: Outcome) -> Twins:
    """Read the outcome of a job that took the value away.

    Args:
        tests: ids of the expected ones.
        nonce: what the result must carry.
        outcome: of that job.

    Raises:
        Malformed: if anything in it is not what the guest runner writes.
    """
    if outcome.result is None:
        return Twins({})
    ways = events.read_ways(outcome.result)
    if any(report.nonce != nonce for report in ways.values()):
        raise events.Malformed("the result is not this job's")
    return Twins(
        {way: passed(report, tests) for way, report in ways.items()},
        frozenset(way for way, report in ways.items() if report.end is not None),
        frozenset(flag for report in ways.values() for flag in report.flags),
    )


def forged(tests: Sequence[str], completion: Twins, reference: Twins) -> str:
    """Return what speaks against a completion whose tests passed, or nothing.

    Args:
        tests: ids of the expected ones.
        completion: what survived without its value.
        reference: what survived without the reference's: tests that do not look at the value, for one.
    """
    none: frozenset[int] = frozenset()
    odd = {
        test
        for way, survivors in completion.survivors.items()
        for test in survivors - reference.survivors.get(way, none)
    }
    if odd:
        return (
            f"{TAMPERED}: {len(odd)} of {len(tests)} tests passed although the function gave them nothing: "
            f"{tests[min(odd)]}"
        )
    if reference.ended - completion.ended:
        return f"{TAMPERED}: the tests came to no end when the function gave them nothing"
    return ""
