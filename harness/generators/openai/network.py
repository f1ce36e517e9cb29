"""`HttpNetwork`: connections that keep to a deadline and a size whatever the other side does, and that can be closed.

A time-out of a socket begins anew with every byte, so a server that trickles outlasts it; and nothing wakes a thread
that waits for one. Here every wait is for the socket, the deadline of the whole request, and the end, together.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import select
import socket
import ssl
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import httpcore

T = TypeVar("T")
_Address = tuple[Any, ...]
_CONNECT = 10.0
"""Seconds to a connection."""
_LOOK = 0.1
"""Seconds between checks whether a name was resolved: the library that does it cannot be woken."""
_STATUS = b"HTTP/1."
"""The beginning of every reply."""
_CODINGS = ("gzip", "x-gzip", "deflate")
_ANY_HEADER = 32 + zlib.MAX_WBITS
"""Tells zlib to take both kinds."""


class NetworkClosed(Exception):
    """Raised in threads that wait when the network is closed, and in those that come later."""


class TooLarge(Exception):
    """Raised for a reply that is larger than it may be."""


class HttpNetwork(httpcore.NetworkBackend):
    """Connections of many threads, each of which does one request at a time, see `begin`."""

    def __init__(self) -> None:
        """Open nothing but the pipe that wakes waiting threads."""
        self._closed = threading.Event()
        self._bell = os.eventfd(0)
        weakref.finalize(self, os.close, self._bell)
        self._of_thread = threading.local()

    def begin(self, seconds: float, most: int) -> None:
        """Limit the calling thread, from now on, to so many seconds of waiting and bytes of reading.

        Beyond them, reads and writes raise ``TimeoutError`` or `TooLarge`; `NetworkClosed` when the network is closed.
        """
        self._of_thread.until, self._of_thread.left = time.monotonic() + seconds, most
        self._of_thread.fresh = False

    @property
    def fresh(self) -> bool:
        """Whether the calling thread has opened a connection since `begin`, or heard a byte on one that was there."""
        return bool(self._of_thread.fresh)

    def allow(self, more: int) -> None:
        """Let the calling thread read so many bytes more."""
        self._of_thread.left += more

    def close(self) -> None:
        """Wake every waiting thread with `NetworkClosed`; at once, from any thread, any number of times."""
        self._closed.set()
        os.eventfd_write(self._bell, 1)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Return a connection to the first of a host's addresses that takes one."""
        self._of_thread.fresh = True
        reason = "the name has no address"
        for family, address in self._addresses(host, port):
            handle = socket.socket(family, socket.SOCK_STREAM)
            try:
                self._connect(handle, address)
                handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return _Stream(handle, self)
            except OSError as error:
                handle.close()
                # The deadline of the request, not of one address, is over.
                self.check()
                reason = os.strerror(error.errno) if error.errno else str(error)
            except BaseException:
                handle.close()
                raise
        raise httpcore.ConnectError(reason)

    def check(self) -> None:
        """See that the calling thread may go on.

        Raises:
            TimeoutError: if its time is over.
            NetworkClosed: if the network is closed.
        """
        if self._closed.is_set():
            raise NetworkClosed
        if time.monotonic() > self._of_thread.until:
            raise TimeoutError

    def count(self, read: int) -> None:
        """Note that the calling thread has read so many bytes.

        Raises:
            TooLarge: if they are more than it may read.
        """
        self._of_thread.left -= read
        self._of_thread.fresh = self._of_thread.fresh or read > 0
        if self._of_thread.left < 0:
            raise TooLarge

    def attempt(self, handle: socket.socket, work: Callable[[], T], event: int, failure: type[Exception]) -> T:
        """Do what a socket may not be ready for; wait until it is.

        Args:
            handle: the socket, which does not block.
            work: the operation.
            event: what to wait for, ``POLLIN`` or ``POLLOUT``.
            failure: what an error of the socket becomes.
        """
        while True:
            self.check()
            try:
                return work()
            except ssl.SSLWantReadError:
                awaited = select.POLLIN
            except ssl.SSLWantWriteError:
                awaited = select.POLLOUT
            except BlockingIOError:
                awaited = event
            except OSError as error:
                raise failure(str(error)) from error
            self._wait(handle, awaited, self._of_thread.until)

    def _wait(self, handle: socket.socket, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(handle, event)
        poll.register(self._bell, select.POLLIN)
        events = poll.poll(max(0.0, until - time.monotonic()) * 1000)
        self.check()
        if not events:
            raise TimeoutError("timed out")

    def _connect(self, handle: socket.socket, address: _Address) -> None:
        handle.setblocking(False)
        try:
            handle.connect(address)
        except BlockingIOError:
            self._wait(handle, select.POLLOUT, min(self._of_thread.until, time.monotonic() + _CONNECT))
            if (code := handle.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) != 0:
                raise OSError(code, os.strerror(code)) from None

    def _addresses(self, host: str, port: int) -> list[tuple[socket.AddressFamily, _Address]]:
        with contextlib.suppress(OSError, UnicodeError):
            return _looked_up(host, port, socket.AI_NUMERICHOST)
        answers: queue.SimpleQueue[list[tuple[socket.AddressFamily, _Address]] | Exception] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put(_looked_up(host, port))
            except (OSError, UnicodeError) as error:
                answers.put(error)

        threading.Thread(target=work, daemon=True).start()
        while True:
            self.check()
            with contextlib.suppress(queue.Empty):
                answer = answers.get(timeout=_LOOK)
                if isinstance(answer, Exception):
                    raise httpcore.ConnectError(str(answer)) from answer
                return answer


class _Stream(httpcore.NetworkStream):
    """One connection, plain or TLS."""

    def __init__(self, handle: socket.socket, network: HttpNetwork) -> None:
        self._handle, self._network = handle, network
        self._fresh, self._spoilt = True, False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._network.attempt(
            self._handle, lambda: self._handle.recv(max_bytes), select.POLLIN, httpcore.ReadError
        )
        self._network.count(len(data))
        # An unrequested second reply would be taken for the answer to the next request.
        self._spoilt = self._spoilt or _STATUS in (data[1:] if self._fresh else data)
        self._fresh = False
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        unsent = memoryview(buffer)
        self._fresh = True
        while unsent:
            sent = self._network.attempt(
                self._handle, functools.partial(self._handle.send, unsent), select.POLLOUT, httpcore.WriteError
            )
            unsent = unsent[sent:]

    def close(self) -> None:
        self._handle.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            secured = ssl_context.wrap_socket(
                self._handle, server_hostname=server_hostname, do_handshake_on_connect=False
            )
        except (OSError, ValueError) as error:
            # Within TLS there is no second one, as a proxy behind https would have it.
            self.close()
            raise httpcore.ConnectError(str(error)) from error
        try:
            self._network.attempt(secured, secured.do_handshake, select.POLLIN, httpcore.ConnectError)
        except BaseException:
            secured.close()
            raise
        return _Stream(secured, self._network)

    def get_extra_info(self, info: str) -> Any:
        """Return the pool's question about an idle connection: whether there is something to read, or it has ended."""
        if info == "ssl_object":
            return self._handle if isinstance(self._handle, ssl.SSLSocket) else None
        if info != "is_readable":
            return None
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return self._spoilt or bool(poll.poll(0))


def unpacked(data: bytes, coding: str, most: int) -> bytes:
    """Return the body of a reply without its compression.

    Args:
        data: the body.
        coding: what ``Content-Encoding`` says.
        most: bytes that it may have.

    Raises:
        TooLarge: if it has more.
        ValueError: if it is compressed in another way than was asked for, or is no whole.
    """
    coding = coding.strip().lower()
    if coding in _CODINGS:
        unpacking = zlib.decompressobj(_ANY_HEADER)
        try:
            data = unpacking.decompress(data, most + 1)
        except zlib.error as error:
            raise ValueError(f"is no {coding}") from error
        if len(data) <= most and not unpacking.eof:
            raise ValueError(f"is half a {coding}")
    elif coding not in ("", "identity"):
        raise ValueError(f"is packed as nobody asked for ({coding!r})")
    if len(data) > most:
        raise TooLarge
    return data


def _looked_up(host: str, port: int, flags: int = 0) -> list[tuple[socket.AddressFamily, _Address]]:
    return [
        (address[0], address[4]) for address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    ]
