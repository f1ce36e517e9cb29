"""`RemoteTalk`: an engine behind a server elsewhere, asked over HTTP, where others are asked in a box of the sandbox.

Nothing of it runs here, and nothing here can see what it does: it may remember what it was sent for other target files.
So it is asked only if its spec says ``remote=on``, and never shown a target file whole.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import json
import socket
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ctxbench.bench.errors import InputFault
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.living import Flooded, Overdue

_CURE = "see that its server is well, and run it again"
_PART = 1 << 16
_END_SECONDS = 5.0


def checked_url(url: object, where: str) -> str:
    """Return the address of a server.

    Raises:
        InputFault: if it is none, or could hold a secret: what a spec's file says is stored and shown.
    """
    text = url if isinstance(url, str) else ""
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        secret = parts.username is not None or parts.password is not None or parts.query or parts.fragment
        if parts.scheme in ("http", "https") and parts.hostname and not secret:
            return text
    raise InputFault(
        f"url = {text!r:.80} is no bare address of a server", where=where, cure='write url = "http://127.0.0.1:8000/"'
    )


class RemoteTalk:
    """Questions about one tree to a server; as `sandbox.living.Conversation`. No answer is trusted."""

    def __init__(self, url: str, tree: Mapping[str, str], most: int) -> None:
        """Send nothing yet.

        Args:
            url: of the server, to which every question is posted.
            tree: path -> text; it goes with the first question.
            most: bytes of an answer.
        """
        self._url, self._most, self._id = url, most, uuid.uuid4().hex
        self._files: Mapping[str, str] | None = tree

    def ask(self, message: bytes, seconds: float) -> bytes:
        """Return the server's answer to a question, both JSON objects.

        Raises:
            Overdue: if it is not there in that time.
            Flooded: if it is longer than the limit.
            SandboxLost: if there is no answer.
        """
        question: dict[str, Any] = {**json.loads(message), "tree": self._id}
        if self._files is not None:
            question["files"], self._files = dict(self._files), None
        request = urllib.request.Request(  # noqa: S310 - `checked_url`
            self._url, json.dumps(question).encode(), {"Content-Type": "application/json"}
        )
        deadline = time.monotonic() + seconds
        try:
            with _OPENER.open(request, timeout=seconds) as reply:
                return self._read(reply)
        except TimeoutError:
            raise Overdue(f"it gave no answer in {seconds:g} seconds", cure=_CURE) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it holds the answer, and so the connection
            if time.monotonic() >= deadline:
                raise Overdue(f"it gave no answer in {seconds:g} seconds", cure=_CURE) from None
            raise SandboxLost(f"{urlsplit(self._url).netloc} gave no answer ({error})", cure=_CURE) from None

    def _read(self, reply: http.client.HTTPResponse) -> bytes:
        heard = bytearray()
        while part := reply.read1(_PART):
            heard += part
            if len(heard) > self._most:
                raise Flooded(f"it said more than {self._most} bytes at once", cure=_CURE)
        return bytes(heard)

    def close(self) -> None:
        """Tell the server that the tree is not asked about any more."""
        if self._files is None:
            with contextlib.suppress(SandboxLost):
                self.ask(json.dumps({"call": "end"}).encode(), _END_SECONDS)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Sends a tree nowhere but where the user said."""

    def redirect_request(self, *_: object) -> None:
        """Follow none: the status is then an error."""


class _Punctual(io.RawIOBase):
    """What a server sends, up to a deadline; a socket's own timeout is for each part of it."""

    def __init__(self, line: socket.socket, deadline: float) -> None:
        self._line, self._parts, self._deadline = line, line.makefile("rb", buffering=0), deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._line.settimeout(left)
        return self._parts.readinto(buffer)

    def close(self) -> None:
        self._parts.close()
        super().close()


class _Timed(urllib.request.AbstractHTTPHandler):
    """Gives an exchange as a whole the time that urllib gives each of its parts."""

    def do_open(self, http_class: Any, req: urllib.request.Request, **how: Any) -> http.client.HTTPResponse:
        """Open a connection."""
        return super().do_open(functools.partial(_connection, http_class), req, **how)


class _Plain(_Timed, urllib.request.HTTPHandler):
    """For ``http://``."""


class _Secure(_Timed, urllib.request.HTTPSHandler):
    """For ``https://``."""


def _connection(kind: Any, host: str, timeout: float, **how: Any) -> http.client.HTTPConnection:
    connection: http.client.HTTPConnection = kind(host, timeout=timeout, **how)
    deadline = time.monotonic() + timeout

    def response(line: socket.socket, **how: Any) -> http.client.HTTPResponse:
        reply = http.client.HTTPResponse(line, **how)
        reply.fp = io.BufferedReader(_Punctual(line, deadline))
        return reply

    connection.response_class = response  # type: ignore[assignment]
    return connection


_OPENER = urllib.request.build_opener(_NoRedirect, _Plain, _Secure)
