"""`Client`: requests that are tried until they are answered or have failed for good."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from ctxbench.bench.errors import CtxbenchError, MachineFault
from ctxbench.harness.generators.openai.faults import Problem
from ctxbench.harness.generators.openai.server import ModelServer, Read, stopped
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.harness.generators.openai.wire import LONG, Body, renamed

_LOG = logging.getLogger(__name__)
TROUBLED, SLOW = 2.0, 30.0
"""Seconds without any answer after which a line is due: when requests have failed, and when they only take long."""
NEXT_LINE_AFTER = 10.0
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
    """Logs now and then what the requests of one client wait for while a server gives no answers.

    A dead server is tried again for a minute, and a slow one may take its time: the user is to know which of the two.
    """

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
            if not self._requests or now - self._said < NEXT_LINE_AFTER:
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


T = TypeVar("T")
LARGEST = 8 << 20
"""The most bytes of a reply, uncompressed: an answer of a million tokens has fewer."""
_LONGEST = 30.0
"""The most seconds between tries, unless the server asks for more."""
_STEPS = 16
"""The most requests instead of one that the server does not take: halving a limit of tokens takes fewer."""


class Client:
    """Sends requests from many threads, at most `OpenAISettings.concurrency` at once."""

    def __init__(self, settings: OpenAISettings) -> None:
        """Prepare; nothing is opened, and no secret is read, before the first request."""
        self._settings, self._server = settings, ModelServer(settings)
        self._closed = threading.Event()
        self._patience = ServerPatience(settings.where, most=1 + settings.retries, timeout=settings.timeout)
        self._long = False  # whether the model takes the limit of tokens by its long name only
        self._answered = False  # whether the service has accepted key, model and address

    def post(self, path: str, body: Body, read: Read[T], *, largest: int = LARGEST) -> T:
        """Send one request until it is answered or has failed for good.

        These are tried again: status 429 and 5xx, no connection, no answer in time, a reply that was cut off or is no
        answer. The pauses between tries double.

        Args:
            path: below the server's address.
            body: of the request.
            read: turns the reply into an answer.
            largest: the most bytes that the reply may have.

        Raises:
            InputFault: if no request would be answered: a wrong key, model or address.
            MachineFault: if this request failed; also, within a second, when the client is closed.
        """
        with self._patience.request() as waiting:
            return self._answer(path, renamed(body) if self._long else body, read, largest, waiting)

    def close(self) -> None:
        """Close every connection, from any thread: requests that wait for a reply or a try fail at once."""
        self._closed.set()
        self._patience.close()
        self._server.close()

    def scrub(self, text: str) -> str:
        """Return the server's words without the secrets that were sent to it, which some servers repeat."""
        return self._server.scrub(text)

    def _answer(self, path: str, body: Body, read: Read[T], largest: int, waiting: Waiting) -> T:
        tries = steps = 0
        server = self._server
        while True:
            with server.slot():
                began = time.monotonic()
                outcome = self._try(path, body, read, largest)
            if not isinstance(outcome, Problem):
                self._answered = True
                self._patience.answered()
                return outcome
            if outcome.instead is not None and steps < _STEPS:
                # Each of these asks for less than the one before, or by another name.
                self._long = self._long or (LONG in outcome.instead and LONG not in body)
                body, steps = outcome.instead, steps + 1
                continue
            server.pause(outcome.wait)
            if not outcome.again or tries >= self._settings.retries:
                raise server.redacted(self._final(outcome, tries)) from None
            now = time.monotonic()
            pauses = [_backoff(self._settings.backoff, number) for number in range(tries, self._settings.retries)]
            pauses[0] = max(pauses[0], outcome.wait)
            waiting.failed(server.redacted(outcome.fault).what, now + sum(pauses) + len(pauses) * (now - began))
            if self._closed.wait(pauses[0]):
                raise stopped(self._settings)
            tries += 1

    def _try(self, path: str, body: Body, read: Read[T], largest: int) -> T | Problem:
        try:
            return self._server.post(path, body, read, largest)
        except CtxbenchError as fault:
            raise self._server.redacted(fault) from None

    def _final(self, problem: Problem, tries: int) -> CtxbenchError:
        """Return the final fault of a problem after so many further tries."""
        fault = problem.fault
        if problem.turned_away and self._answered:
            # The service has accepted this key, model and address before, and will again.
            fault = MachineFault(fault.what, where=fault.where, cure=f"{fault.cure}, if it stays so")
        if not (problem.again and tries):
            return fault
        return type(fault)(f"{fault.what} ({tries + 1} tries)", where=fault.where, cure=fault.cure)


def _backoff(first: float, tries: int) -> float:
    """Return the seconds before the next try: doubled each time, and up to a half less at random.

    The random part keeps requests that failed together from coming back together; it affects nothing stored.
    """
    return min(_LONGEST, first * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
