"""Verdicts and findings for all languages, and the protocol `Suite` of a repository's tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import Ended, Environment, Job, Limits, Outcome


class Verdict(StrEnum):
    """The result of a completion's tests. `PASSED` scores 1, `BROKEN` is not scored, and all others score 0."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    NO_TESTS = "NO_TESTS"
    BROKEN = "BROKEN"
    """No verdict, because the machine failed. The next run judges the completion again."""


_MAX_REASON = 300
MOST_FLAGS = 5
TAMPERED = "tampered"
"""Start of the reason if a completion manipulated its verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with its reason and costs."""

    verdict: Verdict
    reason: str = ""
    """Reason for the verdict, in one short line; empty if the completion passed."""
    tests_run: int = 0
    failed: tuple[str, ...] = ()
    """Ids of the tests that did not pass; empty if the report is not trusted, or the verdict has another cause."""
    earlier: str = ""
    """The first verdict and its reason, if the tests ran again while no other job ran; otherwise empty."""
    output: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    flags: tuple[str, ...] = ()
    """At most `MOST_FLAGS` remarks on unusual code, each with its line."""


class Finding(NamedTuple):
    """The result of a test run, without costs."""

    verdict: Verdict
    reason: str = ""
    run: int = 0
    failed: tuple[str, ...] = ()

    def judgement(self, outcome: Outcome, output: str) -> Judgement:
        """Return a judgement with this finding, the job's costs and `output`."""
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
    """Return the finding on a job that was stopped from outside; None if the job exited by itself."""
    if outcome.ended is Ended.TIMED_OUT:
        return Finding(Verdict.TIMED_OUT, "ran out of time")
    if outcome.ended is Ended.WRECKED:
        return Finding(Verdict.FAILED, "broke its box three times")
    if outcome.ended is Ended.KILLED:
        return Finding(Verdict.FAILED, killed(outcome.signal, outcome))
    return None


def killed(number: int | None, outcome: Outcome) -> str:
    """Return why a signal killed a process."""
    return "out of memory" if outcome.out_of_memory else f"killed by signal {number}"


def concluded(tests: Sequence[str], wrong: Mapping[str, str], unproven: str, run: int) -> Finding:
    """Return the finding on a job that was not cut short, and in which `run` of the tests ran.

    Args:
        wrong: why each failed test failed, by test id.
        unproven: why the report cannot be trusted; empty if it can.
    """
    if wrong:
        first, why = next(iter(wrong.items()))
        reason = f"{len(wrong)} of {len(tests)} tests did not pass: {first}: {why}"
        return Finding(Verdict.FAILED, reason, run, () if unproven else tuple(wrong))
    return Finding(Verdict.FAILED, unproven, run) if unproven else Finding(Verdict.PASSED, "", run)


def short(text: str) -> str:
    """Shorten a text to one line of at most 300 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_REASON else line[: _MAX_REASON - 1] + "…"


def span_of(sample: Sample) -> tuple[int, int]:
    """Return the lines ``[start, end)`` of a sample's function, 0-based.

    Raises:
        InputFault: if the sample is not a function.
    """
    if sample.span is None:
        raise InputFault("the sample is not a function", where=sample.id, cure="use a set built with --kind function")
    return sample.span


class Suite(Protocol):
    """A repository's test suite, which judges one changed file at a time."""

    environment: Environment
    limits: Limits

    def blank(self, sample: Sample) -> str:
        """Return the sample's function with an empty body, which must fail the tests."""
        ...

    def job(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return a job that judges `text` as the sample's function. Only the target file changes.

        Args:
            secret: random text, new for each job, that ties the outcome to the job.

        Raises:
            InputFault: if the file is missing, `text` lacks the function, or the encoding cannot represent `text`.
        """
        ...

    def judge(self, reference: Reference, outcome: Outcome, secret: str) -> Judgement:
        """Return the judgement on the outcome of a job that `job` created."""
        ...

    def remarks(self, sample: Sample, reference: Reference, text: str) -> Sequence[str]:
        """Return remarks, with line numbers, on code in `text` that may affect the tests, as both share a process."""
        ...

    def trial(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return a job whose outcome `failing` reads. Arguments and errors are those of `job`."""
        ...

    def failing(self, reference: Reference, outcome: Outcome) -> frozenset[str] | None:
        """Return the reference's tests that did not pass in a job from `trial`; None without a usable report."""
        ...
