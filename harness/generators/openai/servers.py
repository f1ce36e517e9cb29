"""`Servers`: the servers of one model; which gets the next try, which is lost, and whether all serve the same."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from posixpath import basename
from typing import Any

from ctxbench.bench.errors import CtxbenchError, InputFault
from ctxbench.bench.visible import visible
from ctxbench.harness.generators.openai.faults import Problem
from ctxbench.harness.generators.openai.server import ModelServer, stopped
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.harness.generators.openai.wire import dig

_LOG = logging.getLogger(__name__)
_FAILURES = 3
"""Tries in a row that a server leaves unanswered before the others get its requests; one, if it is not there at all."""
_FIRST_LOOK, _LONGEST = 0.5, 30.0
"""Seconds until a lost server is looked after, which double up to the second number."""
_NAMES = 5
"""The most models that a message names."""
_SIGNS = (("root",), ("max_model_len",), ("meta", "n_params"), ("meta", "size"))
"""Where servers say more of a model than its name: vLLM and SGLang of weights and window, llama.cpp of its size."""


class Servers:
    """The servers of one model, each with its own limit. Safe to use from many threads.

    A server that leaves requests unanswered is lost while others answer: they get its requests, and it is looked after
    until it lists the model again. Where none answers, all are tried as they come. None gets a request before what it
    lists was compared, at the start and whenever it was lost: it may have come with other weights.
    """

    def __init__(self, settings: OpenAISettings) -> None:
        """Prepare; nothing is opened."""
        self._settings = settings
        self._servers = tuple(map(ModelServer, settings.servers))
        self._changed, self._closed = threading.Condition(), threading.Event()
        self._starting = threading.Lock()
        self._checked = self._servers[0].compared = len(self._servers) == 1
        self._listings: dict[str, list[Any]] = {}
        """The models that a server listed first, the asked one among them, by its address."""
        self._watch: threading.Thread | None = None

    @contextlib.contextmanager
    def lease(self, tried: Collection[ModelServer]) -> Iterator[ModelServer]:
        """Give the least loaded server that answers, if possible none of those tried; wait until one has room.

        Raises:
            InputFault: if the servers do not serve the same model.
            MachineFault: when the servers are closed.
        """
        self._check()
        with self._changed:
            server = self._next(tried)
            server.load += 1
        try:
            yield server
        finally:
            with self._changed:
                server.load -= 1
                self._changed.notify_all()

    def answered(self, server: ModelServer) -> None:
        """Note that a server has answered a request."""
        with self._changed:
            server.failures = server.looks = 0
        # One that is not compared has answered what it got before it was lost.
        if server.lost and server.compared:
            self._back(server)

    def look(self, server: ModelServer) -> Problem | None:
        """See that a server serves the model before it gets a request; return why it does not get it.

        Raises:
            CtxbenchError: as `ModelServer.listed`.
        """
        if server.compared:
            return None
        listing = server.listed()
        with self._changed:
            problem = self._compare(server, listing)
            if problem is None:
                # Until it answers a request, one that it leaves unanswered is enough to lose it again.
                server.failures = _FAILURES - 1
            elif server.lost:
                why = server.redacted(problem.fault).what
                if problem is not listing and why != server.lost:
                    self._say(why)
                server.lost = why
        return problem

    def moves(self, server: ModelServer, problem: Problem, tried: Collection[ModelServer]) -> bool:
        """Note that a server left a request unanswered; return whether one that is not tried can have it at once."""
        now = time.monotonic()
        with self._changed:
            server.failures += 1
            # A pause that a server asks of one request holds for all: more requests would only prolong it.
            server.not_before = max(server.not_before, now + problem.wait if problem.wait else 0.0)
            gone = not problem.wait and (problem.away or problem.turned_away or server.failures >= _FAILURES)
            if gone and len(self._servers) > 1:
                server.compared = False
                self._changed.notify_all()
                if not server.lost:
                    self._lose(server, problem.fault)
            return any(
                other.compared and other not in tried and other.not_before <= now
                for other in self._servers
                if other is not server
            )

    def scrub(self, text: str) -> str:
        """Return a server's words without the secrets that were sent to any."""
        for server in self._servers:
            text = server.scrub(text)
        return text

    def close(self) -> None:
        """End all requests under way, at once, from any thread."""
        self._closed.set()
        for server in self._servers:
            server.close()
        with self._changed:
            self._changed.notify_all()

    def _next(self, tried: Collection[ModelServer]) -> ModelServer:
        """Wait for a server that may be asked. Called with the lock held."""
        while not self._closed.is_set():
            now = time.monotonic()
            answering = [server for server in self._servers if server.compared] or self._servers
            open_ = [server for server in answering if server.not_before <= now]
            candidates = [server for server in open_ if server not in tried] or open_
            free = [server for server in candidates if server.load < self._settings.concurrency]
            if free:
                # Where none answers, each has its turn.
                return min(free, key=lambda server: (server.load, server.failures))
            self._changed.wait(
                min((server.not_before - now for server in answering if server not in open_), default=None)
            )
        raise stopped(self._settings)

    def _check(self) -> None:
        """See before the first request which servers answer, and that they serve the same model."""
        with self._starting:
            if self._checked:
                return
            with ThreadPoolExecutor(len(self._servers)) as threads:
                listings = list(threads.map(ModelServer.listed, self._servers))
            for server, listing in zip(self._servers, listings, strict=True):
                problem = self._compare(server, listing)
                if problem is not None and problem is not listing:
                    raise problem.fault
                server.lost = server.redacted(problem.fault).what if problem is not None else ""
            self._checked = True
        lost = [server for server in self._servers if server.lost]
        self._say("; ".join(f"not {server.settings.url}: {server.lost}" for server in lost))
        with self._changed:
            for server in lost:
                self._look_later(server)

    def _compare(self, server: ModelServer, listing: list[Any] | Problem) -> Problem | None:
        """Note whether a server lists the same as all that listed something before; return why it may not be asked."""
        problem = listing if isinstance(listing, Problem) else self._mismatch(server.settings.url, listing)
        server.compared = problem is None
        return problem

    def _mismatch(self, url: str, models: list[Any]) -> Problem | None:
        for earlier in (*self._listings.items(), (url, models)):
            if what := difference(self._settings.model, earlier, (url, models)):
                cure = f"serve {self._settings.model} everywhere, or leave that address out"
                fault = InputFault(what, where=self._settings.where, cure=cure)
                return Problem(fault=fault, again=True, turned_away=True)
        if models:
            self._listings.setdefault(url, models)
        return None

    def _lose(self, server: ModelServer, fault: CtxbenchError) -> None:
        """Give a server's requests to the others. Called with the lock held."""
        server.lost = server.redacted(fault).what
        self._look_later(server)
        self._say(f"{server.settings.url} is lost ({server.lost}), the others get its requests")

    def _back(self, server: ModelServer) -> None:
        with self._changed:
            if not server.lost:
                return
            server.lost = ""
            self._changed.notify_all()
        self._say(f"{server.settings.url} is back")

    def _look_later(self, server: ModelServer) -> None:
        """Let a lost server be looked after in a while. Called with the lock held."""
        server.look_at = time.monotonic() + min(_LONGEST, _FIRST_LOOK * 2.0 ** min(server.looks, 16))
        server.looks += 1
        if self._watch is None:
            self._watch = threading.Thread(target=self._look_after, name="lost-servers", daemon=True)
            self._watch.start()

    def _look_after(self) -> None:
        """Look after lost servers until none is left."""
        while True:
            with self._changed:
                server = min((lost for lost in self._servers if lost.lost), key=lambda lost: lost.look_at, default=None)
                if server is None:
                    self._watch = None
                    return
            if self._closed.wait(max(0.0, server.look_at - time.monotonic())):
                return
            try:
                problem = self.look(server)
            except CtxbenchError as fault:
                problem = Problem(fault=fault)
            if problem is None:
                self._back(server)
                continue
            with self._changed:
                self._look_later(server)

    def _say(self, what: str) -> None:
        count = sum(not server.lost for server in self._servers)
        verb = "answers" if count == 1 else "answer"
        head = f"{self._settings.model}: {count} of {len(self._servers)} servers {verb}"
        _LOG.info("%s", f"{head}; {what}" if what else head)


def difference(model: str, first: tuple[str, list[Any]], second: tuple[str, list[Any]]) -> str:
    """Return in which way two servers do not serve the same model, in one line; empty if nothing tells them apart.

    Args:
        model: its name.
        first: an address, and what is listed there: entries as ``/v1/models`` has them.
        second: another.
    """
    entries: list[Any] = []
    for url, models in (first, second):
        names = [str(dig(entry, "id")) for entry in models]
        if names and model not in names:
            return f"{url} serves {', '.join(map(visible, names[:_NAMES]))} and not {model}"
        entries.append(next((entry for entry in models if dig(entry, "id") == model), {}))
    for sign in _SIGNS:
        values = [dig(entry, *sign) for entry in entries]
        # The same weights may lie in other folders.
        here, there = (basename(value.rstrip("/")) if isinstance(value, str) else value for value in values)
        if None not in (here, there) and here != there:
            name = ".".join(sign)
            return f"{first[0]} and {second[0]} serve different models as {model}: {name} is {here!r} and {there!r}"
    return ""
