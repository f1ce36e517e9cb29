"""`ServerPatience`: log now and then what requests wait for while a server gives no answers.

A dead server is tried again for a minute, and a slow one may take its time: the user is to know which of the two.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

_LOG = logging.getLogger(__name__)
TROUBLED, SLOW = 2.0, 30.0
"""Seconds without any answer after which a line is due: when requests have failed, and when they only take long."""
AGAIN = 10.0
"""Seconds from one line to the next, at least."""
_LOOK = 1.0


@dataclass(slots=True, eq=False)
class Waiting:
    """One request that is not answered yet."""

    since: float
    """Its beginning, by the monotonic clock."""
    trouble: str = ""
    """The fault of its last try; empty during the first one."""
    tries: int = 1
    """Tries begun so far."""
    until: float = 0.0
    """The approximate end of its last try if all fail, by the monotonic clock."""

    def failed(self, trouble: str, until: float) -> None:
        """Note that a try failed and another one follows."""
        self.trouble, self.until = trouble, until
        self.tries += 1


class ServerPatience:
    """Watches the requests of one client."""

    def __init__(self, where: str, *, most: int, timeout: float) -> None:
        """Begin with none.

        Args:
            where: the server, as messages call it.
            most: the most tries of a request.
            timeout: seconds that a try may take.
        """
        self._where, self._most, self._timeout = where, most, timeout
        self._lock = threading.Lock()
        self._requests: dict[Waiting, None] = {}
        self._news = self._said = float("-inf")
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def request(self) -> Iterator[Waiting]:
        """Count a request among the waiting ones until it is answered or has failed."""
        waiting = Waiting(time.monotonic())
        with self._lock:
            self._requests[waiting] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="patience", daemon=True)
                self._thread.start()
        try:
            yield waiting
        finally:
            with self._lock:
                del self._requests[waiting]

    def answered(self) -> None:
        """Note that the server has answered a request."""
        with self._lock:
            self._news = time.monotonic()

    def close(self) -> None:
        """Log nothing any more."""
        self._closed.set()

    def line(self, now: float) -> str:
        """Return the line to log at this moment of the monotonic clock; empty if none is due."""
        with self._lock:
            if not self._requests or now - self._said < AGAIN:
                return ""
            silent = now - max(self._news, min(request.since for request in self._requests))
            failing = [request for request in self._requests if request.trouble]
            if silent < (TROUBLED if failing else SLOW):
                return ""
            self._said = now
            count = len(self._requests)
            requests = "1 request waits" if count == 1 else f"{count} requests wait"
            if not failing:
                return (
                    f"waiting for {self._where}: no answer for {silent:.0f} s; {requests}, "
                    f"each for {self._timeout:g} s at most before it is tried again"
                )
            last = max(failing, key=lambda request: request.until)
            seconds = max(1.0, last.until - now)
            return (
                f"waiting for {self._where}: {last.trouble}; try {last.tries} of {self._most}, "
                f"given up in about {seconds:.0f} s; {requests}"
            )

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK):
            if line := self.line(time.monotonic()):
                _LOG.info(line)
