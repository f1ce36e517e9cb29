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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ctxbench.harness.cells import protocol, wire
from ctxbench.harness.cells.protocol import GIGABYTE, Account, Excess, StrategyBounds, StrategyFault

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
_STATE, _BEGAN, _PAGES = 0, 19, 21
"""Fields of ``/proc/PID/stat`` behind the name: state; when it began; resident pages."""
_COUNTS = ((11, 12), (7,), (13, 14), (8,))
"""Those of each of `Counts`: time in the program and in the kernel, minor faults, both of the children."""


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
        except protocol.Garbage as error:
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
                self.account.take("sent", protocol.send(self._channel, message, look=self._look))
                if not self._clock.runs:
                    # Only now: the job was there when the cell came, so that it did not wait for it.
                    self._clock.start(greeted(self._channel))
                self._channel.settimeout(self._clock.until_look())
                answer, size = protocol.receive(self._channel, most=protocol.MESSAGE, look=self._look)
                self._clock.look(asked=True)
                self.account.take("received", size)
                self.account.check_time()
                if "error" in answer:
                    raise self._raised(wire.fields(answer, "error")["error"])
        except TimeoutError:
            what = f"gave no answer in time: it waited for more than {self._limits.wait:g} seconds without working"
            raise self.fault(what) from None
        return answer

    def _look(self) -> None:
        self._clock.look()
        self._channel.settimeout(EVERY)

    def _raised(self, report: object) -> StrategyFault:
        kind, message, trace = three_texts(report)
        if kind:
            message = f"raised {kind[: protocol.WORD]}: {message}"
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
        raise protocol.Garbage("a report of fewer than three texts")
    return texts[0][: protocol.SENTENCE], texts[1][: protocol.SENTENCE], texts[2][: protocol.TEXT]


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
        greeting, ancillary, *_ = mine.recvmsg(len(protocol.GREETING), socket.CMSG_SPACE(_CREDENTIALS.size))
    except OSError:
        greeting, ancillary = b"", []
    finally:
        mine.settimeout(EVERY)
    if greeting != protocol.GREETING:
        raise CellGone
    sent = [data for _, kind, data in ancillary if kind == getattr(socket, "SCM_CREDENTIALS", None)]
    return int(_CREDENTIALS.unpack(sent[0])[0]) if sent else 0


Process = tuple[int, int]
"""A process's number, and when it began: numbers are used again."""


class Counts(NamedTuple):
    """What one process has used: ticks of processor time, and page faults."""

    ticks: int = 0
    faults: int = 0
    childrens_ticks: int = 0
    """Of children that have ended, as far as it has waited for them; so the next."""
    childrens_faults: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that the processes of a cell use."""

    processes: Mapping[Process, Counts]
    memory: int
    """Bytes; memory that several processes share may be counted for each."""
    runnable: bool
    """Whether one of them works, or would if a processor were free."""


def usage(pid: int, earlier: Iterable[Process] = ()) -> Usage:
    """Return the use of a process and its descendants; nothing for a process that is not there.

    Args:
        pid: the process.
        earlier: descendants of before, which count although their parents may have ended.
    """
    pages = 0
    runnable = False
    processes: dict[Process, Counts] = {}
    visited: set[int] = set()
    # Parents first: what is handed to a parent meanwhile must not be counted for both.
    to_visit: list[tuple[int, int | None]] = [*earlier, (pid, None)]
    while to_visit:
        number, beginning = to_visit.pop()
        process = _PROC / str(number)
        with contextlib.suppress(OSError):  # it may end meanwhile
            fields = _stat(process)
            began = int(fields[_BEGAN])
            if number in visited or beginning not in (None, began):
                continue
            visited.add(number)
            processes[number, began] = Counts(*(sum(int(fields[at]) for at in places) for places in _COUNTS))
            pages += int(fields[_PAGES])
            for thread in process.joinpath("task").iterdir():
                with contextlib.suppress(OSError):
                    runnable = runnable or _stat(thread)[_STATE] == "R"
                    children = thread.joinpath("children").read_text(encoding="ascii").split()
                    to_visit += [(int(child), None) for child in children]
    return Usage(processes, pages * _PAGE, runnable)


class Work:
    """The work of a cell's processes, added up from look to look."""

    def __init__(self) -> None:
        """Begin before the first look."""
        self.processes: Mapping[Process, Counts] = {}
        """Those of the last look."""
        self._unclaimed = (0, 0)

    @property
    def escapes(self) -> bool:
        """Whether processes have ended that nobody waited for: more work may have gone with them than was seen."""
        return any(self._unclaimed)

    def add(self, processes: Mapping[Process, Counts]) -> float:
        """Return the seconds that were worked since the last look.

        A child's work becomes its parent's when that has waited for it, or is in no count any more: then what was
        seen of it stays counted.
        """
        before, self.processes = self.processes, processes
        ended = [counts for process, counts in before.items() if process not in processes]
        ticks = claimed_ticks = claimed_faults = 0
        for process, counts in processes.items():
            last = before.get(process, Counts())
            ticks += counts.ticks - last.ticks
            claimed_ticks += counts.childrens_ticks - last.childrens_ticks
            claimed_faults += counts.childrens_faults - last.childrens_faults
        owed_ticks = self._unclaimed[0] + sum(counts.ticks + counts.childrens_ticks for counts in ended)
        owed_faults = self._unclaimed[1] + sum(counts.faults + counts.childrens_faults for counts in ended)
        self._unclaimed = max(0, owed_ticks - claimed_ticks), max(0, owed_faults - claimed_faults)
        return (ticks + max(0, claimed_ticks - owed_ticks)) / _TICKS


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
        self._work = Work()
        self._worked = self._waited = self._looked = self._paused = 0.0
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
        """Let it stand still: in time in which this side works for the strategy, that does not wait."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._paused += time.monotonic() - began

    def until_look(self) -> float:
        """Return the seconds until the next look is due, a hundredth at least."""
        return max(0.01, self._looked + EVERY - time.monotonic()) if self.runs else EVERY

    def look(self, *, asked: bool = False) -> None:
        """Note the use of the cell, if the last look is long enough ago.

        Args:
            asked: whether it rests only because it has just asked something: then that says nothing of its waiting.

        Raises:
            Excess: if it exceeds a bound.
            TimeoutError: if it has waited for too long.
        """
        passed = time.monotonic() - self._looked
        if self._pid is None or passed < (EVERY if asked else EVERY / 2):
            return
        # Not more than a look's time: this side may have stood still as well.
        elapsed = min(passed - self._paused, 2 * EVERY)
        self._looked, self._paused = self._looked + passed, 0.0
        used = usage(self._pid, self._work.processes)
        worked = self._work.add(used.processes)
        if not used.runnable:
            self._waited += 0.0 if asked else max(0.0, elapsed - worked)
        elif self._work.escapes:
            worked = max(worked, elapsed)
        self._worked += worked
        limits = self._limits
        if self._worked > limits.work:
            raise Excess(
                f"its own processor time: more than {limits.work:g} seconds",
                cure="make it faster, or allow it more with --strategy-seconds",
            )
        if used.memory > limits.memory and sum(_own_memory(pid) for pid, _ in used.processes) > limits.memory:
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
