"""Verdicts, what all languages conclude alike, and what each brings to judge a function. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import Ended, Environment, Job, Limits, Outcome


class Verdict(StrEnum):
    """What the tests say of a completion. Only `PASSED` counts as 1; `BROKEN` is never scored."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    NO_TESTS = "NO_TESTS"
    """Nothing was run: a 0, since absent means worst."""
    BROKEN = "BROKEN"
    """The machine failed: tried again, never scored."""


_MAX_REASON = 300
MOST_FLAGS = 5
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
    """What of the completion is not plain, each with its line; empty for a plain one, at most `MOST_FLAGS`."""


class Finding(NamedTuple):
    """What a run of tests means, without what it cost."""

    verdict: Verdict
    reason: str = ""
    run: int = 0
    failed: tuple[str, ...] = ()

    def judgement(self, outcome: Outcome, output: str) -> Judgement:
        """Return it with what the job cost and printed."""
        return Judgement(
            verdict=self.verdict,
            reason=short(self.reason),
            tests_run=self.run,
            failed=self.failed,
            output=output,
            seconds=outcome.seconds,
            peak_bytes=outcome.peak_bytes,
        )


def ended(outcome: Outcome) -> Finding | None:
    """Return what is found of a job that did not come to its end by itself, None of one that did."""
    if outcome.ended is Ended.TIMED_OUT:
        return Finding(Verdict.TIMED_OUT, "ran out of time")
    if outcome.ended is Ended.WRECKED:
        return Finding(Verdict.FAILED, "wrecked its box, three times")
    if outcome.ended is Ended.KILLED:
        return Finding(Verdict.FAILED, killed(outcome.signal, outcome))
    return None


def killed(number: int | None, outcome: Outcome) -> str:
    """Return why a process was killed, by the signal that it died of."""
    return "out of memory" if outcome.out_of_memory else f"killed by signal {number}"


def concluded(tests: Sequence[str], wrong: Mapping[str, str], unproven: str, run: int) -> Finding:
    """Return what is found of tests that came to their end.

    Args:
        tests: the expected ones.
        wrong: those of them that did not pass, in their order -> why.
        unproven: what is missing for a pass even if all did; empty for nothing.
        run: how many were run.
    """
    if wrong:
        first, why = next(iter(wrong.items()))
        reason = f"{len(wrong)} of {len(tests)} tests did not pass: {first}: {why}"
        return Finding(Verdict.FAILED, reason, run, () if unproven else tuple(wrong))
    return Finding(Verdict.FAILED, unproven, run) if unproven else Finding(Verdict.PASSED, "", run)


def short(text: str) -> str:
    """Return a reason on one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_REASON else line[: _MAX_REASON - 1] + "…"


def span_of(sample: Sample) -> tuple[int, int]:
    """Return the lines ``[start, end)`` of a sample's function, 0-based.

    Raises:
        InputFault: if the sample is no function.
    """
    if sample.span is None:
        raise InputFault("the sample is no function", where=sample.id, cure="use a set built with --kind function")
    return sample.span


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

    def remarks(self, sample: Sample, reference: Reference, text: str) -> Sequence[str]:
        """Return what in a completion is not on the allow-list, each with its line. Pure.

        Its tests run in one process with it, so what is not plain may reach them.
        """
        ...

    def trial(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return the job that runs the reference's tests for no verdict; arguments and faults are `job`'s."""
        ...

    def failing(self, reference: Reference, outcome: Outcome) -> frozenset[str] | None:
        """Return which of the reference's tests did not pass in such a job, None if that is not known. Pure."""
        ...
