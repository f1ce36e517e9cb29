"""The second run of a completion that passed: its tests without its value, compared with those of the reference."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ctxbench.bench.testing.python.judging import Twins, forged
from ctxbench.bench.testing.types import TAMPERED, Finding, Verdict, ended
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import Job, Outcome

Run = Callable[[Job], Outcome]
_PATIENCE = 5.0
"""Seconds that a test may take without the function's value, beside three times what all took with it."""
_NO_END = "the tests came to no end"


@runtime_checkable
class Twinning(Protocol):
    """A `Suite` whose tests run in one process with the code under test, so that a pass must be tried again."""

    def twins(self, sample: Sample, reference: Reference, text: str, secret: str, patience: float) -> Job:
        """Return the job that runs the tests, each for some seconds, without the value of the function in `text`."""
        ...

    def survived(self, reference: Reference, outcome: Outcome, secret: str) -> Twins:
        """Return which tests passed in such a job.

        Raises:
            Malformed: if the outcome is not one of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class SecondRun:
    """The run of a completion that passed, and of the reference, without their values.

    A busy machine must harm nobody: a run that is cut short is tried once more, alone, and what was kept of the
    reference, from a time that may have been busier, is tried alone before it speaks against a completion.
    """

    suite: Twinning
    run: Run
    alone: Run
    sample: Sample
    reference: Reference
    seconds: float
    """How long the tests of the completion took with its value."""

    @property
    def patience(self) -> float:
        """Seconds for each test, of the completion and of the reference: one that is cut then fails."""
        return _PATIENCE + 3 * self.seconds

    def twins(self, text: str, *, alone: bool = False) -> tuple[Twins, str]:
        """Return what survives without the value of the function in `text`, and what cut the run short, if anything.

        Raises:
            Malformed: if what came back is not of such a run.
            SandboxLost: if the machine failed.
        """
        for run in (self.alone,) if alone else (self.run, self.alone):
            secret = secrets.token_hex(16)
            outcome = run(self.suite.twins(self.sample, self.reference, text, secret, self.patience))
            cut = ended(outcome)
            if cut is None:
                break
        return self.suite.survived(self.reference, outcome, secret), cut.reason if cut else ""

    def doubt(self, twins: Twins, cut: str, normal: dict[str, Twins]) -> Finding | None:
        """Return what speaks against a completion with these twins, or why there is no verdict; None for a pass.

        Raises:
            Malformed, SandboxLost: as `twins` does.
        """
        baseline = normal.get(self.sample.id)
        reason = ""
        for alone in (False, True):
            if baseline is None:
                baseline, unended = self.twins(self.reference.target, alone=alone)
                if unended:
                    return Finding(Verdict.BROKEN, f"without the reference's value {_NO_END}: {unended}")
                normal[self.sample.id] = baseline
            reason = f"{TAMPERED}: without its value {_NO_END}: {cut}" if cut else ""
            reason = reason or forged(self.reference.tests, twins, baseline)
            if not reason:
                return None
            baseline = None
        return Finding(Verdict.FAILED, reason)
