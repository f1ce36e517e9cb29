"""One conversation of the trusted side with a cell, within its time and bounds; no message of it is trusted."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

from ctxbench.harness.cells import bounds, wire
from ctxbench.harness.cells.base import StrategyFault
from ctxbench.harness.cells.bounds import Account, Bounds, Excess
from ctxbench.harness.cells.clock import EVERY, Clock

_REFUSALS = ("FileNotFoundError", "PermissionError", "OSError", "URLError", "gaierror")
"""What Python raises for files and networks that are not there."""
_OUTSIDE = (
    "a strategy reads the repository by `repo`, files of its own beside it, writes to its temporary folder, "
    "and has no network (docs/isolation.md)"
)
_START_TIMEOUT = 120.0
"""Seconds until a cell must be there."""
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group of who sends."""


class Talk:
    """One conversation with a cell, against the clock."""

    def __init__(
        self,
        channel: socket.socket,
        clock: Clock,
        spec: str,
        sample: str,
        *,
        limits: Bounds,
        cure: str = "",
    ) -> None:
        """Talk over `channel`, in the thread that makes this.

        Args:
            channel: to the cell.
            clock: of the cell.
            spec: the strategy, for messages.
            sample: what it works on, for messages.
            limits: what it may use.
            cure: of its faults; empty: that it be checked.
        """
        self._channel, self._clock, self.spec, self._sample = channel, clock, spec, sample
        self._limits, self._cure = limits, cure
        self.account = Account(limits)
        channel.settimeout(EVERY)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand still: what is done on this side is not the strategy's time."""
        with self._clock.paused():
            yield

    @contextlib.contextmanager
    def suspecting(self) -> Iterator[None]:
        """Make the strategy answer for what it sent or used, if that is refused inside."""
        try:
            yield
        except wire.Garbage as error:
            raise self.fault(f"sent garbage ({error})") from None
        except Excess as error:
            raise self.fault(f"went beyond its bounds ({error})", cure=error.cure) from None

    def fault(self, what: str, *, cure: str = "") -> StrategyFault:
        """Return the fault that this strategy committed; `cure` is its own, where it has one."""
        return fault_of(self.spec, self._sample, what, cure=self._cure or cure)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the next one.

        Raises:
            StrategyFault: if the cell says that the strategy raised, is late, talks nonsense or has gone beyond its
                bounds.
        """
        try:
            with self.suspecting(), or_gone():
                self.account.take("sent", wire.send(self._channel, message, look=self._clock.look))
                if not self._clock.runs:
                    # Only now: the cell has found the job when it came, and did not wait for it.
                    self._clock.start(greeted(self._channel))
                answer, size = wire.receive(self._channel, most=bounds.MESSAGE, look=self._clock.look)
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
            message = f"raised {kind[: bounds.WORD]}: {message}"
        fault = self.fault(message, cure=_OUTSIDE if kind in _REFUSALS else "")
        fault.traceback = trace
        return fault


class Gone(Exception):
    """Raised when the other side of a socket has gone."""


@contextlib.contextmanager
def or_gone() -> Iterator[None]:
    """Raise `Gone` for whatever says that the other side of a socket has gone."""
    try:
        yield
    except (BrokenPipeError, ConnectionResetError, EOFError):
        raise Gone from None


def fault_of(spec: str, sample: str, what: str, *, cure: str = "") -> StrategyFault:
    """Return the one-line fault of a strategy on a sample."""
    return StrategyFault(f"the strategy {what}", where=f"{spec} on {sample}", cure=cure or to_check(spec))


def to_check(spec: str) -> str:
    """Return the cure of a fault that has none of its own."""
    return f"try it with `ctxbench strategy check {spec!r}`"


def three_texts(report: object) -> tuple[str, str, str]:
    """Return what a cell reports, each text cut to what is kept of it: two for a line, and one behind them.

    Raises:
        Garbage: if it is no list of three texts.
    """
    texts = [wire.checked(one, str) for one in wire.items(report, 3, "parts")]
    if len(texts) < 3:
        raise wire.Garbage("a report of fewer than three texts")
    return texts[0][: bounds.SENTENCE], texts[1][: bounds.SENTENCE], texts[2][: bounds.TEXT]


def channel() -> tuple[socket.socket, socket.socket]:
    """Return this side's end of a channel, which is told who sends, and the cell's."""
    mine, theirs = socket.socketpair()
    if (passes := getattr(socket, "SO_PASSCRED", None)) is not None:
        mine.setsockopt(socket.SOL_SOCKET, passes, 1)
    return mine, theirs


def greeted(mine: socket.socket) -> int:
    """Wait until a cell is there, before its strategy is; return the number of its process, 0 where it is not sent.

    Raises:
        Gone: if none comes.
    """
    mine.settimeout(_START_TIMEOUT)
    try:
        greeting, ancillary, *_ = mine.recvmsg(len(wire.GREETING), socket.CMSG_SPACE(_CREDENTIALS.size))
    except OSError:
        greeting, ancillary = b"", []
    finally:
        mine.settimeout(EVERY)
    if greeting != wire.GREETING:
        raise Gone
    sent = [data for _, kind, data in ancillary if kind == getattr(socket, "SCM_CREDENTIALS", None)]
    return int(_CREDENTIALS.unpack(sent[0])[0]) if sent else 0
