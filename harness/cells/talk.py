"""One conversation of the trusted side with a cell, within its bounds and against its clock; no message is trusted.

The clock is read from outside: work, waiting time and memory of the cell's processes. A busy machine is not the
strategy's fault: only processor time counts as work, and only time in which none of its processes could run counts as
waiting. Where there is no ``/proc``, all time counts as waiting.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.harness.cells import contract, transport, wire
from ctxbench.harness.cells.contract import GIGABYTE, Account, Excess, StrategyBounds, StrategyFault

_REFUSALS = ("FileNotFoundError", "PermissionError", "OSError", "URLError", "gaierror")
"""Exceptions of Python for files and networks that are not there."""
_OUTSIDE = (
    "a strategy reads the repository by `repo`, files of its own beside it, writes to its temporary folder, "
    "and has no network (docs/isolation.md)"
)
_START_TIMEOUT = 120.0
"""Seconds until a cell must be there."""
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the sender."""
EVERY = 0.5
"""Seconds between two looks at a cell."""
_FIRST_REMARK = 10.0
"""Seconds of work and waiting after which there is something to say; then each time they have doubled."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")
_STATE, _TIMES, _PAGES = 0, slice(11, 15), 21
"""Fields of ``/proc/PID/stat`` behind the name: state; processor time, of ended children too; resident pages."""


class Talk:
    """One conversation with a cell, against the clock."""

    def __init__(
        self,
        channel: socket.socket,
        clock: Clock,
        spec: str,
        sample: str,
        *,
        limits: StrategyBounds,
        cure: str = "",
    ) -> None:
        """Talk over `channel`, in the calling thread; `cure` is that of faults, empty for the usual: to check it."""
        self._channel, self._clock, self.spec, self._sample = channel, clock, spec, sample
        self._limits, self._cure = limits, cure
        self.account = Account(limits)
        channel.settimeout(EVERY)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand still: work on this side is not the strategy's time."""
        with self._clock.paused():
            yield

    @contextlib.contextmanager
    def suspecting(self) -> Iterator[None]:
        """Turn a refusal inside, of what the strategy sent or used, into its fault."""
        try:
            yield
        except transport.Garbage as error:
            raise self.fault(f"sent garbage ({error})") from None
        except Excess as error:
            raise self.fault(f"went beyond its bounds ({error})", cure=error.cure) from None

    def fault(self, what: str, *, cure: str = "") -> StrategyFault:
        """Return a fault of this strategy; `cure` is the fault's own, if it has one."""
        return fault_of(self.spec, self._sample, what, cure=self._cure or cure)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the next one.

        Raises:
            StrategyFault: if the strategy raised, is late, sent nonsense or exceeded its bounds.
        """
        try:
            with self.suspecting(), or_gone():
                self.account.take("sent", transport.send(self._channel, message, look=self._clock.look))
                if not self._clock.runs:
                    # Only now: the job was there when the cell came, so that it did not wait for it.
                    self._clock.start(greeted(self._channel))
                answer, size = transport.receive(self._channel, most=contract.MESSAGE, look=self._clock.look)
                self.account.take("received", size)
                self.account.check_time()
                if "error" in answer:
                    raise self._raised(wire.fields(answer, "error")["error"])
        except TimeoutError:
            what = f"gave no answer in time: it waited for more than {self._limits.wait:g} seconds without working"
            raise self.fault(what) from None
        return answer

    def _raised(self, report: object) -> StrategyFault:
        kind, message, trace = three_texts(report)
        if kind:
            message = f"raised {kind[: contract.WORD]}: {message}"
        fault = self.fault(message, cure=_OUTSIDE if kind in _REFUSALS else "")
        fault.traceback = trace
        return fault


class CellGone(Exception):
    """Raised when the other side of a socket has gone."""


@contextlib.contextmanager
def or_gone() -> Iterator[None]:
    """Raise `CellGone` for every exception that means that the other side of a socket has gone."""
    try:
        yield
    except (BrokenPipeError, ConnectionResetError, EOFError):
        raise CellGone from None


def fault_of(spec: str, sample: str, what: str, *, cure: str = "") -> StrategyFault:
    """Return the one-line fault of a strategy on a sample."""
    return StrategyFault(f"the strategy {what}", where=f"{spec} on {sample}", cure=cure or to_check(spec))


def to_check(spec: str) -> str:
    """Return the cure of a fault that has none of its own."""
    return f"try it with `ctxbench strategy check {spec!r}`"


def three_texts(report: object) -> tuple[str, str, str]:
    """Return a cell's report, each text cut to its limit: two short ones for a line, and a long one.

    Raises:
        Garbage: if it is no list of three texts.
    """
    texts = [wire.checked(part, str) for part in wire.items(report, 3, "parts")]
    if len(texts) < 3:
        raise transport.Garbage("a report of fewer than three texts")
    return texts[0][: contract.SENTENCE], texts[1][: contract.SENTENCE], texts[2][: contract.TEXT]


def channel() -> tuple[socket.socket, socket.socket]:
    """Return this side's end of a channel, which learns who sends, and the cell's end."""
    mine, theirs = socket.socketpair()
    if (passes := getattr(socket, "SO_PASSCRED", None)) is not None:
        mine.setsockopt(socket.SOL_SOCKET, passes, 1)
    return mine, theirs


def greeted(mine: socket.socket) -> int:
    """Wait for a cell's greeting, before its strategy is there; return its process number, 0 if it is not sent.

    Raises:
        CellGone: if no greeting comes.
    """
    mine.settimeout(_START_TIMEOUT)
    try:
        greeting, ancillary, *_ = mine.recvmsg(len(transport.GREETING), socket.CMSG_SPACE(_CREDENTIALS.size))
    except OSError:
        greeting, ancillary = b"", []
    finally:
        mine.settimeout(EVERY)
    if greeting != transport.GREETING:
        raise CellGone
    sent = [data for _, kind, data in ancillary if kind == getattr(socket, "SCM_CREDENTIALS", None)]
    return int(_CREDENTIALS.unpack(sent[0])[0]) if sent else 0


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
        _, name, counts = _PROC.joinpath("vmstat").read_bytes().partition(b"\noom_kill ")
        return int(counts.split(None, 1)[0]) if name else 0
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
