"""Canaries: tests that must be reported as failed, drawn from a job's secret. Pure.

A candidate that makes every test look passed makes them look passed too. One that can tell them from the
real tests is not stopped by them.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ctxbench.bench.testing.events import Phase


@dataclass(frozen=True, slots=True)
class Canary:
    """One test that asserts that two different numbers are equal."""

    name: str
    unittest: bool
    """Whether it is a method of a TestCase, where the real tests have one."""
    place: float
    """From 0 to 1: where among the tests."""
    left: int
    right: int

    def argument(self) -> dict[str, Any]:
        """Return it as the guest runner takes it."""
        return asdict(self)

    def failed_as_it_must(self, phases: Sequence[Phase]) -> bool:
        """Say whether these phases are those of this canary, run once and failed for its own reason."""
        if [(phase.phase, phase.outcome) for phase in phases] != [
            ("setup", "passed"),
            ("call", "failed"),
            ("teardown", "passed"),
        ]:
            return False
        return phases[1].raised and f"{self.left} == {self.right}" in phases[1].message


def canaries(secret: str, tests: Sequence[str]) -> tuple[Canary, ...]:
    """Draw a job's canaries: one last of all, two anywhere; one of these a method, if the tests have methods."""
    drawn = random.Random(hashlib.sha256(f"canaries {secret}".encode()).digest())  # noqa: S311 - seeded by a secret
    words = _words(tests)
    drawn_canaries: list[Canary] = []
    for unittest, place in ((False, drawn.random()), (True, drawn.random()), (False, 1.0)):
        first, second = drawn.sample(range(1000, 10_000), 2)
        number = drawn.randrange(2, 100) + 100 * len(drawn_canaries)
        name = "_".join(["test", *drawn.sample(words, min(2, len(words))), str(number)])
        drawn_canaries.append(Canary(name, unittest, place, first, second))
    return tuple(drawn_canaries)


def nonce(secret: str) -> str:
    """Return what must come back with a job's result."""
    return hashlib.sha256(f"nonce {secret}".encode()).hexdigest()


def _words(tests: Sequence[str]) -> list[str]:
    """Return the words of the tests' own names, so that a canary's name looks like them."""
    names = " ".join(test.split("[", 1)[0].rsplit("::", 1)[-1] for test in tests)
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", names.replace("_", " "))} - {"test"}
    return sorted(words) or ["value"]
