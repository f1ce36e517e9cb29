"""`ModelServer`: one server of a model: its connections and secrets, what it lists, how it does. The only I/O here."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ctxbench.bench.concurrency import TREE_LOCK
from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.visible import visible
from ctxbench.harness.generators.openai.credentials import Credentials
from ctxbench.harness.generators.openai.faults import AGAIN, Problem, refused
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.harness.generators.openai.wire import Body, Garbled, dig, failure

if TYPE_CHECKING:
    from ctxbench.harness.generators.openai.connections import Connections

T = TypeVar("T")
Read = Callable[[Any, float], T]
"""A reply's JSON data and the seconds that it took -> the answer; raises `Garbled` if there is none."""
Reply = tuple[int, dict[str, str], bytes]
"""Status, headers with their names in lower case, and body."""
_QUOTED_CHARACTERS = 300
"""The most characters of a fault, which may quote a server."""
_LISTING = "/models"
_LISTING_SECONDS = 10.0
_LISTING_BYTES = 1 << 20
_AWAY = (408, 429, 502, 503, 504)
"""Statuses of a server, or of what stands before it, that answers nothing now."""


class ModelServer:
    """One server, asked from many threads. Who asks keeps to its limits; `servers.Servers` does."""

    def __init__(self, settings: OpenAISettings) -> None:
        """Prepare; nothing is opened, and no secret is read, before the first request."""
        self.settings = settings
        self.load = 0
        """Requests that it has now."""
        self.failures = 0
        """Tries in a row that gave no answer for a reason that may pass."""
        self.not_before = 0.0
        """When it may be asked again, as it said itself; by the monotonic clock."""
        self.lost = ""
        """Why the others get its requests; empty while it answers."""
        self.compared = False
        """Whether what it lists was compared since it was last lost; it gets no request before."""
        self.looks, self.look_at = 0, 0.0
        """How often it was looked after since it was lost, and when it is the next time."""
        self._lock = threading.Lock()
        self._closed = False
        self._connections: Connections | None = None
        self._credentials = Credentials()

    def post(self, path: str, body: Body, read: Read[T], largest: int) -> T | Problem:
        """Send a request once, and return its answer, or why there is none.

        Raises:
            InputFault: if a secret that the spec names is not there, or the environment's proxy cannot be used.
            MachineFault: if the server was closed before.
        """
        start = time.monotonic()
        reply = self._exchanged(path, body, self.settings.timeout, largest)
        if isinstance(reply, Problem):
            return reply
        status, headers, data = reply
        if not 200 <= status < 300:
            return refused(status, headers, self.scrub(data.decode("utf-8", "replace")), body, self.settings)
        return self._read(data, body, read, time.monotonic() - start)

    def listed(self) -> list[Any] | Problem:
        """Return what the server lists as its models, empty if it lists none; a problem if it answers nothing at all.

        Raises:
            InputFault: as `post`.
            MachineFault: as `post`.
        """
        reply = self._exchanged(_LISTING, None, _LISTING_SECONDS, _LISTING_BYTES)
        if isinstance(reply, Problem):
            return reply
        status, headers, data = reply
        if status in _AWAY:
            return refused(status, headers, self.scrub(data.decode("utf-8", "replace")), {}, self.settings)
        try:
            models = dig(json.loads(data), "data") if status == 200 else None
        except (ValueError, RecursionError):
            models = None
        return models if isinstance(models, list) else []

    def close(self) -> None:
        """Close every connection, from any thread: requests that wait for a reply fail at once."""
        with self._lock:
            self._closed = True
            connections, self._connections = self._connections, None
        if connections is not None:
            connections.close()

    def scrub(self, text: str) -> str:
        """Return the server's words without the secrets that were sent to it, which some repeat."""
        return self._credentials.scrub(text)

    def redacted(self, fault: CtxbenchError) -> CtxbenchError:
        """Return a fault that may quote the server, cut short and without secrets, fit to be stored and shown."""
        what = visible(" ".join(self.scrub(fault.what).split()))
        what = what if len(what) <= _QUOTED_CHARACTERS else f"{what[:_QUOTED_CHARACTERS]}…"
        return type(fault)(what, where=fault.where, cure=fault.cure)

    def _exchanged(self, path: str, body: Body | None, seconds: float, largest: int) -> Reply | Problem:
        # A finished run needs neither. anyio, which httpcore imports, parses its own source.
        with TREE_LOCK:
            import httpcore  # noqa: PLC0415

            from ctxbench.harness.generators.openai.connections import NetworkClosed, TooLarge  # noqa: PLC0415

        try:
            return self._sent(path, body, seconds, largest)
        except NetworkClosed:
            return Problem(fault=stopped(self.settings))
        except httpcore.ConnectError as error:
            return self._broken(f"no connection ({error})", away=True)
        except TimeoutError:
            return self._broken(f"no answer within {seconds:g} s", away=True)
        except TooLarge:
            return self._broken(f"the reply is larger than {largest >> 20} MiB")
        except (httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
            what = f"the request cannot be sent ({type(error).__name__})"
            return Problem(fault=InputFault(what, where=self.settings.where, cure="check the url and the key"))
        except (httpcore.ProtocolError, httpcore.NetworkError, httpcore.ProxyError) as error:
            return self._broken(f"the answer was cut off ({error or type(error).__name__})")
        except ValueError as error:
            return self._broken(f"the reply {error}")

    def _sent(self, path: str, body: Body | None, seconds: float, largest: int) -> Reply:
        connections = self._opened()
        query = f"?{self.settings.query}" if self.settings.query else ""
        # Half characters, which no server takes, are sent as question marks, as the store keeps them.
        data = (
            None
            if body is None
            else json.dumps(self._credentials.filled(body), ensure_ascii=False).encode("utf-8", "replace")
        )
        return connections.exchange(f"{path}{query}", data, seconds=seconds, largest=largest)

    def _opened(self) -> Connections:
        from ctxbench.harness.generators.openai.connections import Connections  # noqa: PLC0415 - as above

        with self._lock:
            if self._closed:
                raise stopped(self.settings)
            if self._connections is None:
                self._credentials = Credentials.read(self.settings, os.environ)
                self._connections = Connections(
                    self.settings.url,
                    {"Content-Type": "application/json", **self._credentials.headers},
                    width=self.settings.concurrency,
                    secret=bool(self._credentials.variables),
                    where=self.settings.where,
                )
            return self._connections

    def _read(self, data: bytes, body: Body, read: Read[T], seconds: float) -> T | Problem:
        """Return the answer in the body of a successful reply."""
        try:
            reply = json.loads(data.decode("utf-8-sig"))
            if (failed := failure(reply)) is not None:
                # Without a code it is the server's fault, and may pass.
                code = dig(failed, "error", "code")
                status = code if type(code) is int and 400 <= code < 600 else 502
                return refused(status, {}, self.scrub(json.dumps(failed)), body, self.settings)
            return read(reply, seconds)
        except Garbled as error:
            return self._broken(str(error))
        except (ValueError, RecursionError):
            begin = " ".join(self.scrub(data[:_QUOTED_CHARACTERS].decode("utf-8", "replace")).split())[:60]
            return self._broken(f"the reply is no JSON, it begins with {begin!r}" if begin else "the reply is empty")

    def _broken(self, what: str, *, away: bool = False) -> Problem:
        return Problem(fault=MachineFault(what, where=self.settings.where, cure=AGAIN), again=True, away=away)


def stopped(settings: OpenAISettings) -> MachineFault:
    """Return the fault of requests that come after the end."""
    return MachineFault("the generator was closed", where=settings.where, cure="run the same command again")
