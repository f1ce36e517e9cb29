"""The line to the server: bounded, patient with what passes, quick to give up on what does not. The only I/O here."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from bench.errors import CtxbenchError, InputFault, MachineFault
from harness.generators.openai.faults import AGAIN, Problem, refused
from harness.generators.openai.replies import Garbled, dig, failure
from harness.generators.openai.settings import BEARER, Settings
from harness.generators.openai.wire import LONG, Body, renamed

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Read = Callable[[Any, float], T]
"""A reply's JSON data and the seconds that it took -> what it says; raises `Garbled` for what is no answer."""
_CONNECT = 10.0
_SHOWN = 60
"""Characters of what is no answer that a fault repeats."""
_LONGEST = 30.0
"""Seconds between tries, unless the server asks for more."""


class Client:
    """Sends requests from many threads, at most `Settings.concurrency` at once."""

    def __init__(self, settings: Settings) -> None:
        """Prepare; nothing is opened, and the key is not read, before the first request."""
        self._settings = settings
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._http: httpx.Client | None = None
        self._key = ""
        self._not_before = 0.0
        self._long = False  # whether the server takes the limit of tokens by its long name only

    def post(self, path: str, body: Body, read: Read[T]) -> T:
        """Send one request until it is answered or cannot be.

        Tried again, after pauses that double: status 429 and 5xx, no connection, no answer in time, a reply that was
        cut off or is no answer. Nothing else is.

        Args:
            path: below the server's address.
            body: what is sent.
            read: what makes an answer of the reply.

        Raises:
            InputFault: if no request would be answered: a wrong key, model or address.
            MachineFault: if this one was not.
        """
        tries = 0
        if self._long:
            body = renamed(body)
        with self._slots:
            while True:
                self._pause(self._not_before - time.monotonic())
                found = self._try(path, body, read)
                if not isinstance(found, Problem):
                    return found
                if found.instead is not None:
                    # Each asks for less than the one before, or by another name, and so they come to an end.
                    self._long = self._long or (LONG in found.instead and LONG not in body)
                    body = found.instead
                    continue
                if not found.again or tries >= self._settings.retries:
                    raise _after(found.fault, tries) if found.again else found.fault
                if found.wait:
                    # What one is told holds for all: a hundred that ask on keep the door shut.
                    with self._lock:
                        self._not_before = max(self._not_before, time.monotonic() + found.wait)
                self._pause(max(found.wait, _backoff(self._settings.backoff, tries)))
                tries += 1

    def close(self) -> None:
        """Close every connection; who waits between tries gives up."""
        self._closed.set()
        with self._lock:
            http, self._http = self._http, None
        if http is not None:
            http.close()

    def _try(self, path: str, body: Body, read: Read[T]) -> T | Problem:
        import httpx  # noqa: PLC0415 - a finished run does without it

        start = time.monotonic()
        try:
            status, headers, text = self._send(path, body, start + self._settings.timeout)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return self._broken(f"no connection ({self._scrub(str(error)) or 'timed out'})")
        except (httpx.TimeoutException, TimeoutError):
            return self._broken(f"no answer within {self._settings.timeout:g} s")
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError) as error:
            what = f"the request cannot be sent ({type(error).__name__})"
            return Problem(fault=InputFault(what, where=self._settings.where, cure="check the url and the key"))
        except httpx.HTTPError as error:
            return self._broken(f"the answer was cut off ({self._scrub(str(error)) or type(error).__name__})")
        except RuntimeError:
            # httpx says so of a client that another thread has closed.
            if not self._closed.is_set():
                raise
            return Problem(fault=self._stopped())
        if not 200 <= status < 300:
            return refused(status, headers, self._scrub(text), body, self._settings)
        try:
            reply = json.loads(text)
            if (failed := failure(reply)) is not None:
                # Without a code it is a fault of the server's, and may pass.
                code = dig(failed, "error", "code")
                status = code if type(code) is int and 400 <= code < 600 else 502
                return refused(status, headers, self._scrub(json.dumps(failed)), body, self._settings)
            return read(reply, time.monotonic() - start)
        except Garbled as error:
            return self._broken(str(error))
        except (ValueError, RecursionError):
            begin = " ".join(self._scrub(text[:_SHOWN]).split())
            return self._broken(f"the reply is no JSON, it begins with {begin!r}" if begin else "the reply is empty")

    def _send(self, path: str, body: Body, until: float) -> tuple[int, dict[str, str], str]:
        """Send once and read the whole reply, by `until`: a time-out of httpx's own begins anew with every byte."""
        http = self._opened()
        # Half characters, which no server takes, go out as the question marks that the store keeps.
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        parts = []
        query = f"?{self._settings.query}" if self._settings.query else ""
        with http.stream("POST", f"{self._settings.url}{path}{query}", content=data) as reply:
            for part in reply.iter_bytes():
                parts.append(part)
                if time.monotonic() > until:
                    raise TimeoutError
            headers = {name.lower(): value for name, value in reply.headers.items()}
        return reply.status_code, headers, b"".join(parts).decode("utf-8", "replace")

    def _opened(self) -> httpx.Client:
        import httpx  # noqa: PLC0415 - a finished run does without it

        with self._lock:
            if self._closed.is_set():
                raise self._stopped()
            if self._http is None:
                self._key = self._read_key()
                width = self._settings.concurrency
                name = self._settings.key_header
                key = {name: f"Bearer {self._key}" if name == BEARER else self._key} if self._key else {}
                self._http = httpx.Client(
                    headers={"Content-Type": "application/json", **self._settings.headers, **key},
                    limits=httpx.Limits(max_connections=width, max_keepalive_connections=width),
                    timeout=httpx.Timeout(self._settings.timeout, connect=min(_CONNECT, self._settings.timeout)),
                )
            return self._http

    def _read_key(self) -> str:
        """Return the key; servers of one's own mostly want none."""
        name = self._settings.key_env
        key = os.environ.get(name, "").strip()
        if not key and self._settings.official:
            raise InputFault(f"{name} is not set", where=self._settings.where, cure=f"export {name}=… and run again")
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise InputFault(f"{name} holds no key", where=self._settings.where, cure="check for blanks and line ends")
        return key

    def _scrub(self, text: str) -> str:
        """Return a server's words without the key, which some repeat."""
        return text.replace(self._key, "…") if self._key else text

    def _broken(self, what: str) -> Problem:
        return Problem(fault=MachineFault(what, where=self._settings.where, cure=AGAIN), again=True)

    def _stopped(self) -> MachineFault:
        return MachineFault("the generator was closed", where=self._settings.where, cure="run the same command again")

    def _pause(self, seconds: float) -> None:
        if seconds > 0 and self._closed.wait(seconds):
            raise self._stopped()


def _after(fault: CtxbenchError, tries: int) -> CtxbenchError:
    """Return the fault that is left after so many tries more than one."""
    return type(fault)(f"{fault.what} ({tries + 1} tries)", where=fault.where, cure=fault.cure) if tries else fault


def _backoff(first: float, tries: int) -> float:
    """Return the seconds before the next try: doubled each time, and up to a half less by chance.

    Chance keeps those that failed together from coming back together; it decides nothing that is stored.
    """
    return min(_LONGEST, first * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
