"""Read URLs: retries on time-outs and 5xx only, proxies and certificates as the machine has them."""

from __future__ import annotations

import base64
import http.client
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.bench.files import explained
from ctxbench.bench.sources.base import Unreachable

T = TypeVar("T")
PAUSES = (0.5, 2.0)
"""Seconds before the second and the third try."""
_CHUNK = 1 << 18


class _Cut(Exception):
    """The body ended before its announced length."""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer."""

    url: str
    """After redirects."""
    type: str
    body: bytes


class Web:
    """A client for one fetch."""

    def __init__(self, *, certificates: str | None = None, proxy: str | None = None, seconds: float = 60.0) -> None:
        """Make a client.

        Args:
            certificates: a bundle of authorities; None for the system's (OpenSSL honours SSL_CERT_FILE by itself).
            proxy: for http and https; None for the environment's.
            seconds: how long to wait for an answer.
        """
        bundle = Path(certificates) if certificates else None
        context = ssl.create_default_context(
            cafile=str(bundle) if bundle and bundle.is_file() else None,
            capath=str(bundle) if bundle and bundle.is_dir() else None,
        )
        proxies = urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else None)
        self._opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=context))
        self._seconds = seconds
        self._tokens: dict[str, str] = {}

    def read(self, url: str, *, accept: str = "*/*") -> Page:
        """Return a page.

        Raises:
            Unreachable: if it cannot be had.
        """

        def whole(answer: Any) -> Page:
            body = answer.read()
            _check_length(answer, len(body))
            return Page(answer.url, answer.headers.get_content_type(), body)

        return self._try(url, accept, whole)

    def save(self, url: str, path: Path) -> None:
        """Write a body to a file.

        Raises:
            Unreachable: if it cannot be had whole.
            MachineFault: if the disk is full.
        """

        def stream(answer: Any) -> None:
            length = 0
            with explained(path):
                out = path.open("wb")
            with out:
                while chunk := answer.read(_CHUNK):
                    length += len(chunk)
                    with explained(path):
                        out.write(chunk)
                with explained(path):
                    out.flush()
            _check_length(answer, length)

        self._try(url, "*/*", stream)

    def _try(self, url: str, accept: str, use: Callable[[Any], T]) -> T:
        request = self._request(url, accept)
        reason = ""
        for pause in (*PAUSES, None):
            try:
                with self._opener.open(request, timeout=self._seconds) as answer:
                    return use(answer)
            except urllib.error.HTTPError as error:
                reason, again = f"HTTP {error.code} {error.reason}", error.code >= 500
                error.close()
            except urllib.error.URLError as error:
                reason, again = str(error.reason), isinstance(error.reason, TimeoutError)
            except (_Cut, http.client.IncompleteRead):
                reason, again = "the body was cut off", True
            except (OSError, http.client.HTTPException) as error:
                reason, again = str(error) or type(error).__name__, isinstance(error, TimeoutError)
            if not again or pause is None:
                break
            time.sleep(pause)
        raise Unreachable(reason, where=without_password(url))

    def _request(self, url: str, accept: str) -> urllib.request.Request:
        parts = urllib.parse.urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        request = urllib.request.Request(without_password(url), headers={"Accept": accept, "User-Agent": "ctxbench"})  # noqa: S310
        if parts.username:
            user, password = urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or "")
            self._tokens[host] = base64.b64encode(f"{user}:{password}".encode()).decode()
        if host in self._tokens:
            # Unredirected: a password goes to its own host, the index's files included, and to no other.
            request.add_unredirected_header("Authorization", f"Basic {self._tokens[host]}")
        return request


def without_password(url: str) -> str:
    """Return the URL without user name and password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _check_length(answer: Any, length: int) -> None:
    announced = answer.headers.get("Content-Length")
    if announced and announced.isdigit() and int(announced) != length and not answer.headers.get("Content-Encoding"):
        raise _Cut
