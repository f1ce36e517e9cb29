"""`Connections`: sends requests to one server, directly or through the environment's proxy, with httpx."""

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


class NetworkClosed(Exception):
    """Raised by requests that `Connections.close` cancels, and by requests after it."""


class TooLarge(Exception):
    """Raised for a reply whose body has more bytes than allowed."""


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that looks up names in daemon threads, because a pool's threads would delay the exit."""

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
    """Connections to one server for many threads. An event loop in a thread of its own sends the requests."""

    def __init__(self, url: str, headers: Mapping[str, str], *, secret: bool, where: str) -> None:
        """Start the loop without opening a connection. With `secret`, a proxy must not read the requests."""
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
            # The proxy's address may contain a password, so the message does not repeat it.
            cure = "correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or name the server in NO_PROXY"
            raise InputFault("the environment's proxy cannot be used", where=where, cure=cure) from None
        self._lock = threading.Lock()
        self._closed = False
        self._loop = _Loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai", daemon=True)
        self._thread.start()

    def exchange(self, path: str, body: bytes, *, seconds: float, largest: int) -> tuple[int, dict[str, str], bytes]:
        """Post a body to a path of the server; return the reply's status, headers (names in lower case) and body.

        Raises:
            TimeoutError: if the whole reply takes longer than `seconds`.
            TooLarge: if the reply's body has more than `largest` bytes.
            NetworkClosed: if the connections are closed before the reply is complete.
            ValueError: if the reply's body is compressed.
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
        """Cancel all pending requests and close every connection at once. Any thread may call this."""
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
            # httpcore leaves a connection open if it was cancelled during the TLS handshake.
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
            raise ValueError(f"is compressed, although this was not requested ({coding!r})")
        async for part in reply.aiter_raw():
            data += part
            if len(data) > largest:
                raise TooLarge
    finally:
        await reply.aclose()
    return bytes(data)


def reason(error: httpx.TransportError) -> str:
    """Return the operating system's message for an error; without one, httpx's message or the error's class."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


def _proxy(address: SplitResult, secret: bool) -> str | None:
    """Return the environment's proxy; None for a server on this machine, or if secrets are sent over plain http."""
    if is_loopback(address.hostname or "") or (address.scheme == "http" and secret):
        return None
    proxies = urllib.request.getproxies()
    named = proxies.get(address.scheme) or proxies.get("all")
    if not named or urllib.request.proxy_bypass(address.netloc):
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if not proxy.hostname or proxy.port == 0:
        raise ValueError("the host is missing, or the port is 0")
    return proxy.geturl()
