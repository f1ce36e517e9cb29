"""Run the command line inside the test process."""

import contextlib
import io
from dataclasses import dataclass

from ctxbench.harness.cli.main import run


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def run_cli(*arguments: str) -> Result:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(arguments))
    return Result(code, out.getvalue(), err.getvalue())


def assert_fault(result: Result, *words: str) -> None:
    """Check for a user's fault: exit code 1, and one line that contains each word."""
    assert result.code == 1, result
    lines = [line for line in result.err.splitlines() if line.startswith("ctxbench: ")]
    assert len(lines) == 1 and "Traceback" not in result.err, result.err
    for word in words:
        assert word.lower() in lines[0].lower(), (word, lines[0])
