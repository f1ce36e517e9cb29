"""One conversation of the trusted side with a cell, within its time and bounds; no message of it is trusted."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

from ctxbench.harness.cells import bounds, transport, wire
from ctxbench.harness.cells.base import StrategyFault
from ctxbench.harness.cells.bounds import Account, Excess, StrategyBounds
from ctxbench.harness.cells.clock import EVERY, Clock

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
        """Talk over `channel`, in the calling thread.

        Args:
            channel: to the cell.
            clock: of the cell.
            spec: the strategy, for messages.
            sample: the sample, for messages.
            limits: of the strategy.
            cure: of its faults; empty for the usual one, to check it.
        """
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
                answer, size = transport.receive(self._channel, most=bounds.MESSAGE, look=self._clock.look)
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
    return texts[0][: bounds.SENTENCE], texts[1][: bounds.SENTENCE], texts[2][: bounds.TEXT]


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
