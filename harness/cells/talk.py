"""One conversation of the trusted side with a cell, against the clock; every answer is suspected."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

from bench.errors import InputFault
from harness.cells import wire
from harness.cells.base import StrategyFault


class Talk:
    """One conversation with a cell, against the clock."""

    def __init__(self, channel: socket.socket, deadline: float, spec: str, sample: str) -> None:
        """Talk over `channel` until `deadline` on the monotonic clock."""
        self._channel, self._deadline, self.spec, self._sample = channel, deadline, spec, sample

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand still: what is done on this side is not the strategy's time."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._deadline += time.monotonic() - began

    def fault(self, what: str) -> StrategyFault:
        """Return the fault that this strategy committed."""
        return fault_of(self.spec, self._sample, what)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the next one.

        Raises:
            InputFault: if the cell says that the spec is wrong.
            StrategyFault: if it says that the strategy raised, is late, or talks nonsense.
        """
        try:
            self._channel.settimeout(max(0.001, self._deadline - time.monotonic()))
            with or_gone():
                wire.send(self._channel, message)
                answer = wire.receive(self._channel)
        except TimeoutError:
            raise self.fault("gave no answer in time") from None
        except wire.Garbage as error:
            raise self.fault(f"sent garbage ({error})") from None
        if "error" in answer or "fault" in answer:
            raise self._reported(answer)
        return answer

    def _reported(self, answer: dict[str, Any]) -> InputFault:
        try:
            first, second, third = (wire.checked(part, str) for part in answer.get("error") or answer["fault"])
        except (TypeError, ValueError, KeyError):
            return self.fault("sent garbage instead of an error")
        if "fault" in answer:
            return InputFault(first, where=second, cure=third)
        fault = self.fault(f"raised {first}: {second}")
        fault.traceback = third
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


def fault_of(spec: str, sample: str, what: str) -> StrategyFault:
    """Return the one-line fault of a strategy on a sample."""
    return StrategyFault(
        f"the strategy {what}", where=f"{spec} on {sample}", cure=f"try it with `ctxbench strategy check {spec!r}`"
    )
