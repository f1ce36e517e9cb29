"""Verdicts, and what each language brings to judge a function. Frozen data, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import Environment, Job, Limits, Outcome


class Verdict(StrEnum):
    """What the tests say of a completion. Only `PASSED` counts as 1; `BROKEN` is never scored."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    NO_TESTS = "NO_TESTS"
    """Nothing was run: a 0, since absent means worst."""
    BROKEN = "BROKEN"
    """The machine failed: tried again, never scored."""


TAMPERED = "tampered"
"""The reason of a FAILED completion that reached for its own verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict and what led to it."""

    verdict: Verdict
    reason: str = ""
    """One short line; empty when it passed."""
    tests_run: int = 0
    failed: tuple[str, ...] = ()
    """Ids of the expected tests that did not pass, where nothing else speaks against the completion."""
    earlier: str = ""
    """What the tests said before, if they were run once more with no other job beside them; else empty."""
    output: str = ""
    """Capped; text of untrusted code."""
    seconds: float = 0.0
    peak_bytes: int = 0
    flags: tuple[str, ...] = ()
    """Which of `FLAGS` the completion earned, sorted, each once. They are shown and change no score."""


FLAGS: Mapping[str, str] = {
    "compares-itself": "returned a value of its own making that decides itself what it is equal to",
    "ctypes": "reaches for memory through ctypes",
    "frames": "reaches for the frames, the code or the tracing of whoever called it",
    "gc": "searches the objects of the process through gc",
    "hooks": "reaches into the interpreter: its modules, imports, names, exit, signals, or code made at run time",
    "patches": "changes what it imports, or what its file defines beside it",
    "pytest": "reaches for pytest or the tests",
    "threads": "starts threads or processes",
    "unittest": "reaches for unittest",
}
"""What a `Judgement` can be flagged with: an honest function seldom needs it, a forged verdict often does."""


class Suite(Protocol):
    """How the tests of one repository are run on one changed file."""

    environment: Environment
    limits: Limits

    def blank(self, sample: Sample) -> str:
        """Return the function with an empty body, which must fail."""
        ...

    def job(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return the job that judges a completion; only the target file is changed.

        Args:
            sample: what was asked for.
            reference: its tests.
            text: the whole function.
            secret: random, new for each job; ties the outcome to it.

        Raises:
            InputFault: if the text cannot be put into the file (it is no text of one function).
        """
        ...

    def judge(self, reference: Reference, outcome: Outcome, secret: str) -> Judgement:
        """Return what an outcome of that job means. Pure."""
        ...


Arguments = dict[str, Any]
