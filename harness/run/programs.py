"""`execute` for strategies that run what the model wrote: each program in a fresh box of its own.

A box holds a Python interpreter and nothing else: no repository, no packages, no network. Functions are not judged
here, and a program's output decides no verdict.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.types import MIB, Command, Ended, Environment, Job, Limits, Outcome, Pool, Sandbox
from ctxbench.strategies.api import Execute, Execution

SECONDS = 60.0
"""The longest that a program may run, whatever a strategy asks for."""
OUTPUT = 20_000
"""Bytes of a program's output that are returned, the first and the last half."""
_ENVIRONMENT = Environment(name="execute")
_LONGEST = 1 * MIB
_LIMITS = Limits(memory=512 * MIB, output=OUTPUT)
_PROGRAM = "program.py"
_ACTION = Command(argv=("python3", "-I", _PROGRAM))
_CURE = "see `ctxbench doctor`, then run the same command again; it does only what is missing"

OpenTools = Callable[[int], AbstractContextManager[Execute]]
"""Programs at once -> what runs them."""
OpenSandbox = Callable[[Home, str | None], Sandbox]
"""Home, name of a back end (None: what this machine offers) -> the back end."""


class Programs:
    """Runs programs in a pool of boxes; safe to use from many threads."""

    def __init__(self, pool: Pool) -> None:
        """Use a pool that gives each job a fresh box."""
        self._pool = pool

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        """Run a Python program; it may take `SECONDS` at most.

        Raises:
            MachineFault: if the box was lost.
        """
        # Not `min`: a strategy may pass something that is no number.
        seconds = seconds if 0 < seconds < SECONDS else SECONDS
        source = program.encode("utf-8", "replace")
        if len(source) > _LONGEST:
            return Execution(
                finished=False, output=f"the program has {len(source)} bytes, over the limit of {_LONGEST}"
            )
        try:
            outcome = self._pool.run(Job(action=_ACTION, files={_PROGRAM: source}, seconds=seconds))
        except SandboxError as error:
            raise MachineFault(f"a program could not be run: {error.what}", where=error.where, cure=_CURE) from error
        return Execution(
            finished=outcome.ended is Ended.EXITED and outcome.exit_code == 0, output=_words(outcome, seconds)
        )


def _words(outcome: Outcome, seconds: float) -> str:
    """Return a program's output, with a line on how it ended unless it ended by itself."""
    ends = {
        Ended.TIMED_OUT: f"timed out after {seconds:g} seconds",
        Ended.KILLED: "killed: out of memory" if outcome.out_of_memory else f"killed by signal {outcome.signal}",
        Ended.WRECKED: "killed: it took the sandbox down",
    }
    end = ends.get(outcome.ended, "")
    return "\n".join(part for part in (outcome.output.rstrip("\n"), end) if part)


def back_end(home: Home, name: str | None) -> Sandbox:
    """Return the back end of that name, or what this machine offers.

    Raises:
        SandboxUnavailable: if there is none.
    """
    from ctxbench.sandbox import registry  # noqa: PLC0415 - few strategies need it

    return registry.open_sandbox(name, home.cache / "sandbox")


@contextlib.contextmanager
def open_tools(width: int, *, home: Home, sandbox: str | None, opens: OpenSandbox = back_end) -> Iterator[Execute]:
    """Open what runs programs; on leaving, in whatever way, end every box.

    At most `width` programs run at once. `sandbox` names a back end; None for what this machine offers.

    Raises:
        SandboxUnavailable: if the back end is not there.
    """
    opened = opens(home, sandbox)
    opened.prepare(_ENVIRONMENT, lambda _: None)
    with opened.open(_ENVIRONMENT, limits=_LIMITS, width=max(1, width), reuse=1) as pool:
        yield Programs(pool)
