"""The clock of a cell, read from outside: its processes' work, waiting time and memory.

A busy machine is not the strategy's fault: only processor time counts as work, and only time in which none of its
processes could run counts as waiting. Where there is no ``/proc``, all time counts as waiting.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ctxbench.harness.cells.bounds import GIGABYTE, Excess, StrategyBounds

EVERY = 0.5
"""Seconds between two looks at a cell."""
_FIRST_REMARK = 10.0
"""Seconds of work and waiting after which there is something to say; then each time they have doubled."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")
_STATE, _TIMES, _PAGES = 0, slice(11, 15), 21
"""Fields of ``/proc/PID/stat`` behind the name: state; processor time, of ended children too; resident pages."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that the processes of a cell use."""

    seconds: float
    """Processor time, ended processes included."""
    memory: int
    """Bytes; memory that several processes share may be counted for each."""
    runnable: bool
    """Whether one of them works, or would if a processor were free."""
    pids: tuple[int, ...]


def usage(pid: int) -> Usage:
    """Return the use of a process and its descendants; zeros for a process that is not there."""
    ticks = pages = 0
    runnable = False
    pids: list[int] = []
    to_visit = [pid]
    while to_visit:
        process = _PROC / str(to_visit.pop())
        with contextlib.suppress(OSError):  # it may end meanwhile
            fields = _stat(process)
            ticks += sum(map(int, fields[_TIMES]))
            pages += int(fields[_PAGES])
            pids.append(int(process.name))
            for thread in process.joinpath("task").iterdir():
                runnable = runnable or _stat(thread)[_STATE] == "R"
                to_visit += map(int, thread.joinpath("children").read_text(encoding="ascii").split())
    return Usage(ticks / _TICKS, pages * _PAGE, runnable, tuple(pids))


def ended_for_memory() -> int:
    """Return how many processes of this machine the kernel has ended for want of memory; 0 where it does not say."""
    with contextlib.suppress(OSError):
        for line in _PROC.joinpath("vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


class Clock:
    """The time that one cell has used of its bounds. Belongs to one thread."""

    def __init__(self, limits: StrategyBounds, remark: Callable[[str], None] = lambda _: None) -> None:
        """Stand still until it is started.

        Args:
            limits: of the cell.
            remark: called with a message when it takes long.
        """
        self._limits, self._remark = limits, remark
        self._pid: int | None = None
        self._worked = self._waited = self._looked = 0.0
        self._next_remark = _FIRST_REMARK

    @property
    def runs(self) -> bool:
        """Whether it has been started."""
        return self._pid is not None

    def start(self, pid: int) -> None:
        """Begin now, with the cell's first process; 0 if that is not known."""
        self._pid, self._looked = pid, time.monotonic()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let it stand still: time in which this side works for the strategy is not the strategy's."""
        try:
            yield
        finally:
            self._looked = time.monotonic()

    def look(self) -> None:
        """Note the use of the cell, if the last look is long enough ago.

        Raises:
            Excess: if it exceeds a bound.
            TimeoutError: if it has waited for too long.
        """
        passed = time.monotonic() - self._looked
        if self._pid is None or passed < EVERY / 2:
            return
        self._looked += passed
        used = usage(self._pid)
        worked = max(0.0, used.seconds - self._worked)
        self._worked += worked
        if not used.runnable:
            # Not more than a look's time: this side may have stood still as well.
            self._waited += max(0.0, min(passed, 2 * EVERY) - worked)
        limits = self._limits
        if self._worked > limits.work:
            raise Excess(
                f"its own processor time: more than {limits.work:g} seconds",
                cure="make it faster, or allow it more with --strategy-seconds",
            )
        if used.memory > limits.memory and sum(map(_own_memory, used.pids)) > limits.memory:
            raise Excess(
                f"memory of its processes: more than {limits.memory / GIGABYTE:.3g} GiB",
                cure="have it hold less at once",
            )
        if self._waited > limits.wait:
            raise TimeoutError
        if self._worked + self._waited >= self._next_remark:
            self._next_remark = 2 * (self._worked + self._waited)
            self._remark(
                f"{self._worked:.0f} of {limits.work:g} seconds of work, waited {self._waited:.0f} of {limits.wait:g}"
            )


def _stat(process: Path) -> list[str]:
    # The process chooses its name, whose end can only be found from behind.
    return process.joinpath("stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _own_memory(pid: int) -> int:
    """Return the bytes that a process holds, with its part of shared memory; 0 if that may not be read."""
    with contextlib.suppress(OSError):
        for line in _PROC.joinpath(str(pid), "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0
