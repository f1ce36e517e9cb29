"""The official protocol's common part: its names in a set's manifest, and the judgement of an outcome. Pure."""

from __future__ import annotations

from ctxbench.bench.testing.types import Judgement, Verdict
from ctxbench.sandbox.types import Ended, Outcome

PYTHON_RUNNER, JAVA_RUNNER = "codereval-python", "codereval-java"
REMARK = (
    "judged by CoderEval's official protocol: its tests are weak, and the verdict is an exit code or a word of the "
    "output, which a completion can forge; not comparable with verdicts of ctxbench's own suites"
)


def judgement(outcome: Outcome, *, passed: bool, reason: str = "") -> Judgement:
    """Return the judgement of an official run.

    Args:
        outcome: of its box.
        passed: whether it counts as passed, if its time was not over.
        reason: why it failed; empty for the last line of its output.
    """
    late = outcome.ended is Ended.TIMED_OUT
    verdict = Verdict.TIMED_OUT if late else Verdict.PASSED if passed else Verdict.FAILED
    why = "" if verdict is Verdict.PASSED else "its time was over" if late else reason or _last(outcome)
    return Judgement(
        verdict=verdict,
        reason=why,
        tests_run=1,
        output=outcome.output,
        seconds=outcome.seconds,
        peak_bytes=outcome.peak_bytes,
    )


def _last(outcome: Outcome) -> str:
    if outcome.out_of_memory:
        return "out of memory"
    lines = [line.strip() for line in outcome.output.splitlines() if line.strip()]
    last_line = lines[-1][:200] if lines else "no output"
    return (
        f"exit code {outcome.exit_code}: {last_line}"
        if outcome.exit_code is not None
        else f"{outcome.ended}: {last_line}"
    )
