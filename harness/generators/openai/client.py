"""`Client`: sends requests to a model's server, and retries them until an answer or a permanent failure."""

from __future__ import annotations

import contextlib
import email.utils
import json
import logging
import math
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ctxbench.bench.concurrency import TREE_LOCK
from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.escaping import visible
from ctxbench.harness.generators.base import TooLong
from ctxbench.harness.generators.openai.settings import OFFICIAL_KEY, Credentials, OpenAISettings
from ctxbench.harness.generators.openai.wire import ROOM, SHORT, SHORTER, Body, Garbled, dig, failure, renamed

if TYPE_CHECKING:
    from ctxbench.harness.generators.openai.connections import Connections


_READ = 2000
LONGEST_WAIT = 300.0
AGAIN = "check the server's log or status page, then run the same command again"
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:model|sequence|context|prompt) length"
    r"|longer than the (?:maximum|model)|inputs`? must have less than|max_new_tokens`? must be|too many tokens"
    r"|(?:prompt|input) is too long|input tokens? (?:count )?(?:\(\d+\) )?exceed",
    re.I,
)
_TOO_LONG_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_FILTER_CODES = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_FILTERED = re.compile(r"content (?:policy|filter|management)|moderation|flagged", re.I)
_NO_CREDIT = ("insufficient_quota",)
_REFUSED = re.compile(
    r"unsupported|not supported|not support|deprecated|unrecogni[sz]ed|not permitted|forbidden"
    r"|unknown (?:field|parameter|argument|name)",
    re.I,
)
_AGAIN = (408, 409, 424, 425, 429)
"""Statuses to retry besides 5xx: timeout, conflict, failure behind a gateway (TGI, Azure), too early, too many.
"""
_ELSEWHERE = (301, 302, 303, 307, 308)
_NO_ROOM = re.compile(r"model output limit was reached", re.I)
_CODES = (*_TOO_LONG_CODES, *_FILTER_CODES, *_NO_CREDIT)
_OTHER_ENDPOINT = re.compile(r"not a chat model|is a chat model|chat[ _]template|v1/(?:chat/)?completions", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The reason why one try of a request got no answer."""

    fault: CtxbenchError
    again: bool = False
    wait: float = 0.0
    instead: Body | None = None
    """The same request with ``max_completion_tokens``, if the server refuses ``max_tokens``; otherwise None."""
    turned_away: bool = False
    """Whether the server refuses the key, the model or the address, and therefore every request."""


def refused(status: int, headers: Mapping[str, str], text: str, body: Body, settings: OpenAISettings) -> Problem:
    """Return the problem for a reply whose status is not 2xx. `text` is the reply without secrets."""
    message, code = _message_and_code(text)
    where = settings.where

    def machine(what: str, cure: str, **more: Any) -> Problem:
        return Problem(fault=MachineFault(f"{what}: {message}", where=where, cure=cure), **more)

    def user(what: str, cure: str) -> Problem:
        return Problem(fault=InputFault(f"{what}: {message}", where=where, cure=cure), turned_away=True)

    if status == 402 or (status == 429 and code in _NO_CREDIT):
        return machine(
            f"the account has no credit left (status {status})", "top up the account, then run the same command again"
        )
    if status in _AGAIN or status >= 500:
        seconds = server_pause(headers)
        cure = f"lower concurrency={settings.concurrency}, or run the same command later" if status == 429 else AGAIN
        soon = seconds <= LONGEST_WAIT
        return machine(
            f"the server cannot answer now (status {status})", cure, again=soon, wait=seconds if soon else 0.0
        )
    if status in (400, 403) and (code in _FILTER_CODES or _filtered(status, text, message)):
        cure = "use a service that lets the model answer; the sample stays missing"
        return machine(f"a content filter refuses the prompt (status {status})", cure)
    if status in (401, 403):
        name = settings.key_variable
        cure = (
            f"export a valid key as {name}"
            if name
            else f"name the variable with the key, for example key_env={OFFICIAL_KEY}"
        )
        return user(f"the key is not accepted (status {status}{'' if name else ', none was sent'})", cure)
    if status in _ELSEWHERE:
        to = headers.get("location", "another address")
        return user(f"the server redirects (status {status}) to {to}", "set url= to the address of the models")
    if status < 400:
        return machine(f"the reply has status {status} instead of 200", AGAIN, again=True)
    if (fault := _unfit(status, text, body, settings)) is not None:
        return fault
    if _OTHER_ENDPOINT.search(message):
        other = "completions" if settings.chat else "chat"
        return user(f"the model is not served at this endpoint (status {status})", f"set endpoint={other}")
    if status in (404, 405):
        cure = f"use a name from {settings.url}/models, and check the url"
        return user(f"the model or the address does not exist (status {status})", cure)
    return machine(
        f"the request is refused (status {status})",
        "correct the spec (endpoint=, extra=, tools=), and run the command again",
    )


def _unfit(status: int, text: str, body: Body, settings: OpenAISettings) -> Problem | None:
    message, code = _message_and_code(text)
    where = settings.where
    if status == 413 or code in _TOO_LONG_CODES or _TOO_LONG.search(message):
        fault = TooLong(f"the prompt is too long for the model (status {status}): {message}", where=where, cure=SHORTER)
        return Problem(fault=fault)
    if _NO_ROOM.search(message) and not settings.thinking:
        return Problem(
            fault=InputFault(f"the model had no tokens left for its answer: {message}", where=where, cure=ROOM)
        )
    if field := _refused_field(text, message, body):
        cure = f"""set extra='{{"{field}": null}}' to let the server decide"""
        cure = "leave tools=on out to send tools as text" if field == "tools" else cure
        refused_ = InputFault(f"the model does not accept {field}: {message}", where=where, cure=cure)
        # The token limit's other name has the same meaning.
        return Problem(fault=refused_, instead=renamed(body) if field == SHORT else None)
    return None


def _filtered(status: int, text: str, message: str) -> bool:
    return bool(_FILTERED.search(message)) or (status == 403 and text.lstrip().startswith("<"))


def _refused_field(text: str, message: str, body: Body) -> str:
    data = _json(text)
    fields = [dig(data, "error", "param"), *(dig(data, *at, "detail", 0, "loc", -1) for at in ((), ("message",)))]
    if not _REFUSED.search(f"{message} {dig(data, 'error', 'code')}"):
        return ""
    for field in body:
        named = re.search(rf"['\"`]{re.escape(field)}['\"`]|: {re.escape(field)}\b", message)
        if field not in ("model", "messages", "prompt") and (field in fields or named):
            return field
    return ""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _message_and_code(text: str) -> tuple[str, str]:
    data = _json(text)
    error = dig(data, "error")
    for words in (
        dig(error, "message"),
        error,
        dig(data, "message"),
        dig(data, "detail", 0, "msg"),
        dig(data, "message", "detail", 0, "msg"),
        dig(data, "detail"),
        # The reply may be a proxy's HTML page, so remove tags.
        re.sub(r"<[^>]*>", " ", text) if text.lstrip().startswith("<") else text,
    ):
        if isinstance(words, str) and words.strip():
            break
    else:
        words = "no reason given"
    codes = [dig(at, key) for at in (error, dig(error, "innererror"), data) for key in ("code", "type")]
    code = next((candidate for candidate in codes if candidate in _CODES), "")
    return " ".join(words[:_READ].split()), code


def server_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds to wait according to ``retry-after``, which may be a number or a date; 0 without either."""
    words = headers.get("retry-after", "").strip()
    try:
        seconds = float(words)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(words).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return seconds if seconds > 0 and math.isfinite(seconds) else 0.0


_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Read = Callable[[Any, float], T]
"""(JSON data of a reply, seconds until the reply) -> the answer; raises `Garbled` if there is no answer."""
LARGEST = 8 << 20
"""Maximum bytes of a reply. An answer of a million tokens is smaller."""
NEXT_LINE_AFTER = 10.0
_QUOTED_CHARACTERS = 300
_LONGEST = 30.0
"""Maximum seconds between tries, unless the server asks for more."""


class Client:
    """A client that sends the requests of many threads, at most `OpenAISettings.concurrency` at once."""

    def __init__(self, settings: OpenAISettings, environment: Mapping[str, str] | None = None) -> None:
        self._settings, self._environment = settings, environment
        self._changed = threading.Condition()
        self._free = settings.concurrency
        self._not_before = 0.0
        self._closed = threading.Event()
        self._connections: Connections | None = None
        self._credentials = Credentials()
        self._said = float("-inf")  # time at which the last line was logged
        self._long = False  # whether the model accepts only the long name of the token limit
        self._answered = False  # whether the service has accepted key, model and address
        self._reached = False  # whether anything ever answered at the address

    def post(self, path: str, body: Body, read: Read[T], *, largest: int = LARGEST) -> T:
        """Send one request until it is answered or fails permanently.

        A try is repeated after a temporary status (such as 429 or 5xx), a failed connection, a timeout or an unusable
        reply, at most `OpenAISettings.retries` times. If nothing ever answered at the address, a connection
        error is final, except a timeout. The pauses double, up to 30 s, unless the server asks for a longer pause.

        Args:
            read: converts the reply into an answer.
            largest: maximum bytes of the reply.

        Raises:
            InputFault: if every request would fail, because the key, the model, the address or a setting is wrong.
            MachineFault: if this request failed, or the client was closed.
        """
        body = renamed(body) if self._long else body
        tries = 0
        while True:
            with self._slot():
                outcome = self._try(path, body, read, largest)
            if not isinstance(outcome, Problem):
                self._answered = True
                return outcome
            if outcome.instead is not None:
                self._long, body = True, outcome.instead
                continue
            self._pause(outcome.wait)
            seconds = max(outcome.wait, _backoff(self._settings.backoff, tries))
            if not outcome.again or tries >= self._settings.retries:
                raise self._redacted(self._final(outcome, tries)) from None
            tries += 1
            self._say(outcome.fault, tries, seconds)
            if self._closed.wait(seconds):
                raise self._stopped()

    def close(self) -> None:
        """Close every connection. Any thread may call this. Pending and waiting requests fail at once."""
        with self._changed:
            self._closed.set()
            connections, self._connections = self._connections, None
            self._changed.notify_all()
        if connections is not None:
            connections.close()

    def scrub(self, text: str) -> str:
        """Remove secrets from a server's text, because some servers repeat the secrets that they receive."""
        return self._credentials.scrub(text)

    @contextlib.contextmanager
    def _slot(self) -> Iterator[None]:
        with self._changed:
            while not self._closed.is_set() and (self._free < 1 or self._not_before > time.monotonic()):
                self._changed.wait(self._not_before - time.monotonic() if self._free else None)
            if self._closed.is_set():
                raise self._stopped()
            self._free -= 1
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def _say(self, fault: CtxbenchError, tries: int, seconds: float) -> None:
        now = time.monotonic()
        if tries < 2 or now - self._said < NEXT_LINE_AFTER:
            return
        self._said = now
        most = 1 + self._settings.retries
        what = self._redacted(fault).what
        _LOG.info("waiting for %s: %s; try %d of %d in %.0f s", self._settings.where, what, tries + 1, most, seconds)

    def _try(self, path: str, body: Body, read: Read[T], largest: int) -> T | Problem:
        start = time.monotonic()
        try:
            reply = self._exchanged(path, body, largest)
            if isinstance(reply, Problem):
                return reply
            status, headers, data = reply
            if not 200 <= status < 300:
                return refused(status, headers, self.scrub(data.decode("utf-8", "replace")), body, self._settings)
            return self._read(data, body, read, time.monotonic() - start)
        except CtxbenchError as fault:
            raise self._redacted(fault) from None

    def _exchanged(self, path: str, body: Body, largest: int) -> tuple[int, dict[str, str], bytes] | Problem:
        connections = self._opened()

        # Imported only here, because a finished run sends no requests.
        import httpx  # noqa: PLC0415

        from ctxbench.harness.generators.openai.connections import NetworkClosed, TooLarge, reason  # noqa: PLC0415

        settings = self._settings
        try:
            # Lone surrogates are sent as question marks, as in the store. No server accepts them.
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            reply = connections.exchange(path, data, seconds=settings.timeout, largest=largest)
            self._reached = True
            return reply
        except NetworkClosed:
            return Problem(fault=self._stopped())
        except TimeoutError:
            return self._broken(f"the server sent no answer within {settings.timeout:g} s")
        except TooLarge:
            return self._broken(f"the reply is larger than {largest >> 20} MiB")
        except httpx.ConnectError as error:
            broken = self._broken(f"the server cannot be reached ({reason(error)})")
            if self._reached or self._closed.is_set():
                return broken
            # Nothing has ever answered at this address, so the address is probably wrong.
            cure = "check the address and that the server runs, then run the same command again"
            return Problem(fault=MachineFault(broken.fault.what, where=settings.where, cure=cure))
        except httpx.ConnectTimeout as error:
            return self._broken(f"the server cannot be reached ({reason(error)})")
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            what = f"the request cannot be sent ({type(error).__name__})"
            return Problem(fault=InputFault(what, where=settings.where, cure="check the url and the key"))
        except httpx.TransportError as error:
            self._reached = True
            return self._broken(f"the answer was cut off ({reason(error)})")
        except ValueError as error:
            return self._broken(f"the reply {error}")

    def _opened(self) -> Connections:
        # httpx imports anyio, which parses its own source, so the parser's lock is needed.
        with self._changed, TREE_LOCK:
            if self._closed.is_set():
                raise self._stopped()
            if self._connections is None:
                from ctxbench.harness.generators.openai.connections import Connections  # noqa: PLC0415

                variables = os.environ if self._environment is None else self._environment
                self._credentials = Credentials.read(self._settings, variables)
                self._connections = Connections(
                    self._settings.url,
                    {"Content-Type": "application/json", **self._credentials.headers},
                    secret=bool(self._settings.variables),
                    where=self._settings.where,
                )
            return self._connections

    def _read(self, data: bytes, body: Body, read: Read[T], seconds: float) -> T | Problem:
        try:
            reply = json.loads(data.decode("utf-8-sig"))
            if (failed := failure(reply)) is not None:
                # A failure without a code counts as a failure of the server, and is retried.
                code = dig(failed, "error", "code")
                status = code if type(code) is int and 400 <= code < 600 else 502
                return refused(status, {}, self.scrub(json.dumps(failed)), body, self._settings)
            return read(reply, seconds)
        except Garbled as error:
            return self._broken(str(error))
        except (ValueError, RecursionError):
            begin = " ".join(self.scrub(data[:_QUOTED_CHARACTERS].decode("utf-8", "replace")).split())[:60]
            return self._broken(f"the reply is not JSON; it begins with {begin!r}" if begin else "the reply is empty")

    def _final(self, problem: Problem, tries: int) -> CtxbenchError:
        fault = problem.fault
        if problem.turned_away and self._answered:
            # The service accepted this key, model and address before, so the refusal is temporary.
            fault = MachineFault(
                fault.what, where=fault.where, cure=f"run the same command again; if the fault repeats, {fault.cure}"
            )
        if not (problem.again and tries):
            return fault
        return type(fault)(f"{fault.what} ({tries + 1} tries)", where=fault.where, cure=fault.cure)

    def _redacted(self, fault: CtxbenchError) -> CtxbenchError:
        """Return a fault that may quote the server, shortened and without secrets, so that it is safe to store."""
        what = visible(" ".join(self.scrub(fault.what).split()))
        what = what if len(what) <= _QUOTED_CHARACTERS else f"{what[:_QUOTED_CHARACTERS]}…"
        return type(fault)(what, where=fault.where, cure=fault.cure)

    def _broken(self, what: str) -> Problem:
        return Problem(fault=MachineFault(what, where=self._settings.where, cure=AGAIN), again=True)

    def _stopped(self) -> MachineFault:
        return MachineFault("the generator was closed", where=self._settings.where, cure="run the same command again")


def _backoff(first: float, tries: int) -> float:
    return min(_LONGEST, first * 2.0 ** min(tries, 16)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
