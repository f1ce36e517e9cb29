"""`ModelServer`: a model's server with its connections, its secrets and its limit of requests. The only I/O here."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
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


class ModelServer:
    """A server that is asked from many threads, each of which takes a `slot` for a request."""

    def __init__(self, settings: OpenAISettings) -> None:
        """Prepare; nothing is opened, and no secret is read, before the first request."""
        self.settings = settings
        self._changed = threading.Condition()
        self._free = settings.concurrency
        self._not_before = 0.0
        self._closed = False
        self._connections: Connections | None = None
        self._credentials = Credentials()

    @contextlib.contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until the server may get one more request, which it gets inside of this.

        Raises:
            MachineFault: when the server is closed.
        """
        with self._changed:
            while not self._closed and (self._free < 1 or self._not_before > time.monotonic()):
                self._changed.wait(self._not_before - time.monotonic() if self._free else None)
            if self._closed:
                raise stopped(self.settings)
            self._free -= 1
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Hold back all requests for the seconds that the server asked of one: more would only prolong it."""
        with self._changed:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def post(self, path: str, body: Body, read: Read[T], largest: int) -> T | Problem:
        """Send a request once, and return its answer, or why there is none.

        Raises:
            InputFault: if a secret that the spec names is not there, or the environment's proxy cannot be used.
            MachineFault: if the server was closed before.
        """
        start = time.monotonic()
        reply = self._exchanged(path, body, largest)
        if isinstance(reply, Problem):
            return reply
        status, headers, data = reply
        if not 200 <= status < 300:
            return refused(status, headers, self.scrub(data.decode("utf-8", "replace")), body, self.settings)
        return self._read(data, body, read, time.monotonic() - start)

    def close(self) -> None:
        """Close every connection, from any thread: requests that wait for a reply fail at once."""
        with self._changed:
            self._closed = True
            connections, self._connections = self._connections, None
            self._changed.notify_all()
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

    def _exchanged(self, path: str, body: Body, largest: int) -> Reply | Problem:
        # A finished run needs neither. anyio, which httpcore imports, parses its own source.
        with TREE_LOCK:
            import httpcore  # noqa: PLC0415

            from ctxbench.harness.generators.openai.connections import NetworkClosed, TooLarge  # noqa: PLC0415

        try:
            return self._sent(path, body, largest)
        except NetworkClosed:
            return Problem(fault=stopped(self.settings))
        except httpcore.ConnectError as error:
            return self._broken(f"no connection ({error})")
        except TimeoutError:
            return self._broken(f"no answer within {self.settings.timeout:g} s")
        except TooLarge:
            return self._broken(f"the reply is larger than {largest >> 20} MiB")
        except (httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
            what = f"the request cannot be sent ({type(error).__name__})"
            return Problem(fault=InputFault(what, where=self.settings.where, cure="check the url and the key"))
        except (httpcore.ProtocolError, httpcore.NetworkError, httpcore.ProxyError) as error:
            return self._broken(f"the answer was cut off ({error or type(error).__name__})")
        except ValueError as error:
            return self._broken(f"the reply {error}")

    def _sent(self, path: str, body: Body, largest: int) -> Reply:
        connections = self._opened()
        query = f"?{self.settings.query}" if self.settings.query else ""
        # Half characters, which no server takes, are sent as question marks, as the store keeps them.
        data = json.dumps(self._credentials.filled(body), ensure_ascii=False).encode("utf-8", "replace")
        return connections.exchange(f"{path}{query}", data, seconds=self.settings.timeout, largest=largest)

    def _opened(self) -> Connections:
        from ctxbench.harness.generators.openai.connections import Connections  # noqa: PLC0415 - as above

        with self._changed:
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

    def _broken(self, what: str) -> Problem:
        return Problem(fault=MachineFault(what, where=self.settings.where, cure=AGAIN), again=True)


def stopped(settings: OpenAISettings) -> MachineFault:
    """Return the fault of requests that come after the end."""
    return MachineFault("the generator was closed", where=settings.where, cure="run the same command again")
