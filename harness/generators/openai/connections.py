"""`Connections`: requests to one server, direct or through the environment's proxy. The only user of httpx.

Each request has a connection of its own, so that no reply can be taken for another request's. Redirects are not
followed, cookies not kept, `.netrc` not read: a transport of httpx does none of these, unlike its clients.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import socket
import threading
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from ctxbench.bench.errors import InputFault
from ctxbench.harness.generators.openai.settings import is_loopback

_CONNECT = 10.0
"""Seconds to a connection."""


class NetworkClosed(Exception):
    """Raised in threads that wait when the connections are closed, and in those that come later."""


class TooLarge(Exception):
    """Raised for a reply that is larger than it may be."""


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose look-ups of names hold up no exit, as threads of a pool would."""

    async def getaddrinfo(self, *address: Any, **options: Any) -> Any:
        addresses: concurrent.futures.Future[Any] = concurrent.futures.Future()
        addresses.set_running_or_notify_cancel()

        def look_up() -> None:
            try:
                addresses.set_result(socket.getaddrinfo(*address, **options))
            except (OSError, UnicodeError) as error:
                addresses.set_exception(error)

        threading.Thread(target=look_up, daemon=True).start()
        return await asyncio.wrap_future(addresses, loop=self)


class Connections:
    """Requests to one address from many threads, which an event loop in a thread of its own sends."""

    def __init__(self, url: str, headers: Mapping[str, str], *, secret: bool, where: str) -> None:
        """Start the loop; no connection is opened.

        Args:
            url: the address, without user, query and fragment.
            headers: of every request.
            secret: whether requests hold what no other machine may read.
            where: the server, for messages.

        Raises:
            InputFault: if the environment names a proxy that cannot be used.
        """
        self._url = url
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "ctxbench",
            "Connection": "close",
            **headers,
        }
        try:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
            self._transport = httpx.AsyncHTTPTransport(proxy=_proxy(urlsplit(url), secret), limits=limits)
        except (ValueError, ImportError, httpx.InvalidURL):
            # The address of a proxy may hold a password: it is not repeated.
            cure = "correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or name the server in NO_PROXY"
            raise InputFault("the environment's proxy cannot be used", where=where, cure=cure) from None
        self._lock = threading.Lock()
        self._closed = False
        self._loop = _Loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai", daemon=True)
        self._thread.start()

    def exchange(self, path: str, body: bytes, *, seconds: float, largest: int) -> tuple[int, dict[str, str], bytes]:
        """Send a body and return status, headers (names in lower case) and body of the reply.

        Args:
            path: below the address.
            body: what is posted.
            seconds: until the whole reply must be there.
            largest: bytes that its body may have.

        Raises:
            TimeoutError: if it is not there in time.
            TooLarge: if it has more.
            NetworkClosed: if the connections were closed.
            ValueError: if its body is compressed.
            httpx.TransportError: if the connection or the reply is broken.
        """
        with self._lock:
            if self._closed:
                raise NetworkClosed
            reply = asyncio.run_coroutine_threadsafe(self._exchanged(path, body, seconds, largest), self._loop)
        try:
            return reply.result()
        except concurrent.futures.CancelledError:
            raise NetworkClosed from None
        finally:
            reply.cancel()

    def close(self) -> None:
        """End all requests under way and close every connection, at once, from any thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _exchanged(
        self, path: str, body: bytes, seconds: float, largest: int
    ) -> tuple[int, dict[str, str], bytes]:
        streams: list[Any] = []

        async def trace(event: str, info: dict[str, Any]) -> None:
            if event.endswith("connect_tcp.complete"):
                streams.append(info["return_value"])

        request = httpx.Request(
            "POST",
            f"{self._url}{path}",
            headers=self._headers,
            content=body,
            extensions={"timeout": {"connect": _CONNECT}, "trace": trace},
        )
        try:
            async with asyncio.timeout(seconds):
                reply = await self._transport.handle_async_request(request)
                data = await _body(reply, largest)
        finally:
            # httpcore leaves a connection open whose TLS was cancelled half way.
            for stream in streams:
                await stream.aclose()
        return reply.status_code, dict(reply.headers.items()), data

    async def _end(self) -> None:
        requests = asyncio.all_tasks() - {asyncio.current_task()}
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
        await self._transport.aclose()


async def _body(reply: httpx.Response, largest: int) -> bytes:
    data = bytearray()
    try:
        coding = reply.headers.get("content-encoding", "identity")
        if coding.strip().lower() not in ("", "identity"):
            raise ValueError(f"is packed as nobody asked for ({coding!r})")
        async for part in reply.aiter_raw():
            data += part
            if len(data) > largest:
                raise TooLarge
    finally:
        await reply.aclose()
    return bytes(data)


def reason(error: httpx.TransportError) -> str:
    """Return what went wrong in the operating system's words if it says so, otherwise in the library's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def _proxy(address: SplitResult, secret: bool) -> str | None:
    """Return the proxy that the environment names for an address; None if there is none, or it is not to be used.

    A proxy could read what goes over plain http, and cannot reach this machine.

    Raises:
        ValueError: if it is no address.
    """
    if is_loopback(address.hostname or "") or (address.scheme == "http" and secret):
        return None
    proxies = urllib.request.getproxies()
    named = proxies.get(address.scheme) or proxies.get("all")
    if not named or urllib.request.proxy_bypass(address.netloc):
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if not proxy.hostname or proxy.port == 0:
        raise ValueError("no host, or no port")
    return proxy.geturl()
