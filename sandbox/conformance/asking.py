"""Questions of checks: a Python program in a box, and the output it must have."""

from __future__ import annotations

from collections.abc import Mapping

from ctxbench.sandbox.types import Command, Ended, Job, Outcome, Pool

SECONDS = 30.0


def python(pool: Pool, program: str, *, seconds: float = SECONDS, files: Mapping[str, bytes] | None = None) -> Outcome:
    """Run a Python program in a box."""
    return pool.run(Job(action=Command(argv=("python3", "-c", program)), seconds=seconds, files=files or {}))


def refused(pool: Pool, attempts: Mapping[str, str]) -> str:
    """Run statements, each of which must raise OSError or ValueError; return what did not.

    Args:
        pool: where.
        attempts: what a statement tries, in words -> the statement.
    """
    program = "import contextlib, ctypes, os, resource, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    for words, statement in attempts.items():
        body = "\n".join(f"    {line}" for line in statement.splitlines())
        program += f"try:\n{body}\n    print('done: ' + {words!r})\nexcept (OSError, ValueError):\n    pass\n"
    return expect(python(pool, program + "print('all tried')\n"), "all tried\n")


def expect(outcome: Outcome, output: str, *, exit_code: int = 0) -> str:
    """Return how an outcome differs from a job that said `output` and exited; empty if it does not."""
    if outcome.ended is Ended.EXITED and outcome.exit_code == exit_code and outcome.output == output:
        return ""
    return f"expected {output!r} and exit code {exit_code}, got {described(outcome)}"


def described(outcome: Outcome) -> str:
    """Return an outcome in a few words."""
    how = f"exit code {outcome.exit_code}" if outcome.ended is Ended.EXITED else f"{outcome.ended}, {outcome.signal}"
    memory = ", out of memory" if outcome.out_of_memory else ""
    return f"{outcome.output[-600:]!r}, {how}{memory}"
