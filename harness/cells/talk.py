"""One conversation of the trusted side with a cell, against the clock and its bounds; every answer is suspected."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

from harness.cells import bounds, wire
from harness.cells.base import StrategyFault
from harness.cells.bounds import Account, Bounds, Excess


class Talk:
    """One conversation with a cell, against the clock."""

    def __init__(
        self,
        channel: socket.socket,
        deadline: float,
        spec: str,
        sample: str,
        *,
        limits: Bounds | None = None,
        cure: str = "",
    ) -> None:
        """Talk over `channel` until `deadline` on the monotonic clock, in the thread that makes this.

        Args:
            channel: to the cell.
            deadline: when the strategy must be done, `paused` time not counted.
            spec: the strategy, for messages.
            sample: what it works on, for messages.
            limits: what it may use.
            cure: of its faults; empty: that it be checked.
        """
        self._channel, self._deadline, self.spec, self._sample = channel, deadline, spec, sample
        self._cure = cure
        self.account = Account(limits or Bounds())

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand still: what is done on this side is not the strategy's time."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._deadline += time.monotonic() - began

    @contextlib.contextmanager
    def suspecting(self) -> Iterator[None]:
        """Make the strategy answer for what it sent or used, if that is refused inside."""
        try:
            yield
        except wire.Garbage as error:
            raise self.fault(f"sent garbage ({error})") from None
        except Excess as error:
            raise self.fault(f"went beyond its bounds ({error})") from None

    def fault(self, what: str, *, cure: str = "") -> StrategyFault:
        """Return the fault that this strategy committed; `cure` is its own, where it has one."""
        return fault_of(self.spec, self._sample, what, cure=cure or self._cure)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the next one.

        Raises:
            StrategyFault: if the cell says that the strategy raised, is late, talks nonsense or has gone beyond its
                bounds.
        """
        try:
            with self.suspecting(), or_gone():
                self._channel.settimeout(max(0.001, self._deadline - time.monotonic()))
                self.account.take("sent", wire.send(self._channel, message))
                answer, size = wire.receive(self._channel, most=bounds.MESSAGE, until=self._deadline)
                self.account.take("received", size)
                self.account.check_time()
                if "error" in answer:
                    raise self._raised(wire.fields(answer, "error")["error"])
        except TimeoutError:
            raise self.fault("gave no answer in time") from None
        return answer

    def _raised(self, report: object) -> StrategyFault:
        kind, message, trace = three_texts(report)
        fault = self.fault(f"raised {kind[: bounds.WORD]}: {message}")
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
    cure = cure or f"try it with `ctxbench strategy check {spec!r}`"
    return StrategyFault(f"the strategy {what}", where=f"{spec} on {sample}", cure=cure)


def three_texts(report: object) -> tuple[str, str, str]:
    """Return what a cell reports, each text cut to what is kept of it: two for a line, and one behind them.

    Raises:
        Garbage: if it is no list of three texts.
    """
    texts = [wire.checked(one, str) for one in wire.items(report, 3, "parts")]
    if len(texts) < 3:
        raise wire.Garbage("a report of fewer than three texts")
    return texts[0][: bounds.SENTENCE], texts[1][: bounds.SENTENCE], texts[2][: bounds.TEXT]
