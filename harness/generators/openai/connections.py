"""`Connections`: a pool of them to one server, direct or through the environment's proxy. The only user of httpcore.

No redirect is followed, no cookie kept, no `.netrc` read: a request goes to the address that the spec says, with the
headers that it says, and nowhere else.
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
import urllib.request
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

import httpcore

from ctxbench.bench.errors import InputFault
from ctxbench.harness.generators.openai.settings import is_loopback

T = TypeVar("T")
_Address = tuple[Any, ...]
_CONNECT = 10.0
"""Seconds to a connection."""
_LOOK = 0.1
"""Seconds between checks whether a name was resolved: the library that does it cannot be woken."""
_STATUS = b"HTTP/1."
"""The beginning of every reply."""
_STATUS_BEGUN = tuple(_STATUS[:length] for length in range(1, len(_STATUS)))
"""What the last bytes read are if a reply has begun whose beginning is not all there; JSON never ends so."""
_CODINGS = ("gzip", "x-gzip", "deflate")
_ANY_HEADER = 32 + zlib.MAX_WBITS
"""Tells zlib to take both kinds."""


class NetworkClosed(Exception):
    """Raised in threads that wait when the network is closed, and in those that come later."""


class TooLarge(Exception):
    """Raised for a reply that is larger than it may be."""


class HttpNetwork(httpcore.NetworkBackend):
    """Connections of many threads, each of which does one request at a time, see `begin`.

    They keep to a deadline and a size whatever the other side does, and can be closed. A time-out of a socket begins
    anew with every byte, so a server that trickles outlasts it; and nothing wakes a thread that waits for one. Here
    every wait is for the socket, the deadline of the whole request, and the end, together.
    """

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
        self._fresh, self._spoilt, self._begun = True, False, False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._network.attempt(
            self._handle, lambda: self._handle.recv(max_bytes), select.POLLIN, httpcore.ReadError
        )
        self._network.count(len(data))
        # An unrequested second reply would be taken for the answer to the next request.
        self._spoilt = self._spoilt or _STATUS in (data[1:] if self._fresh else data)
        self._fresh, self._begun = False, data.endswith(_STATUS_BEGUN)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not self._fresh and self._has_surplus():
            # The pool asks before it gives a connection away, but not if its last reply ends just then. A write error
            # it would pass over, and read on.
            raise httpcore.ReadError("the connection has ended, or said more than was asked for")
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
        return self._has_surplus() if info == "is_readable" else None

    def _has_surplus(self) -> bool:
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return self._spoilt or self._begun or bool(poll.poll(0))


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


_IDLE = 5.0
"""Seconds after which an idle connection is not used again; common servers close theirs about then."""
_AROUND = 1 << 17
"""Bytes of a reply around its body: status, headers, sizes of chunks."""
_PROXIES = {"http": 80, "socks5": 1080, "socks5h": 1080}
"""Kinds of proxies, and their default ports."""


class Connections:
    """Connections to one address; used by many threads, and ended by any."""

    def __init__(self, url: str, headers: Mapping[str, str], *, width: int, secret: bool, where: str) -> None:
        """Prepare; nothing is opened.

        Args:
            url: the address, without user, query and fragment.
            headers: of every request.
            width: connections at once.
            secret: whether requests hold what no other machine may read.
            where: the server, for messages.

        Raises:
            InputFault: if the environment names a proxy that cannot be used.
        """
        self._address = urlsplit(url)
        self._headers = [
            ("Host", self._address.netloc),
            ("Accept", "application/json"),
            ("Accept-Encoding", "gzip, deflate"),
            ("User-Agent", "ctxbench"),
            *headers.items(),
        ]
        self._network = HttpNetwork()
        self._lock = threading.Lock()
        self._under_way, self._closed = 0, threading.Event()
        try:
            self._pool = httpcore.ConnectionPool(
                proxy=_proxy(self._address, secret),
                # One for all: reading the trusted certificates takes long.
                ssl_context=httpcore.default_ssl_context() if self._address.scheme == "https" else None,
                max_connections=width,
                max_keepalive_connections=width,
                keepalive_expiry=_IDLE,
                network_backend=self._network,
            )
        except (ValueError, RuntimeError, ImportError):
            # The address of a proxy may hold a password: it is not repeated.
            cure = "correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or name the server in NO_PROXY"
            raise InputFault("the environment's proxy cannot be used", where=where, cure=cure) from None

    def exchange(self, path: str, body: bytes, *, seconds: float, largest: int) -> tuple[int, dict[str, str], bytes]:
        """Send a body and return status, headers (names in lower case) and body of the reply.

        Args:
            path: below the address, with its query.
            body: what is posted.
            seconds: until the whole reply must be there.
            largest: bytes that it may have, its compression undone.

        Raises:
            TimeoutError: if it is not there in time.
            TooLarge: if it has more.
            NetworkClosed: if the connections were closed.
            ValueError: if its body cannot be read.
            httpcore exceptions: as that library says.
        """
        with self._lock:
            if self._closed.is_set():
                raise NetworkClosed
            self._under_way += 1
        try:
            self._network.begin(seconds, _AROUND)
            while True:
                try:
                    return self._exchanged(path, body, largest)
                except (httpcore.RemoteProtocolError, httpcore.NetworkError):
                    # An idle connection that has ended meanwhile is no sign of a server's fault, and is gone now: the
                    # next one is tried, and when there is none a new one.
                    if self._network.fresh:
                        raise
        finally:
            with self._lock:
                self._under_way -= 1
                last = self._closed.is_set() and not self._under_way
            if last:
                self._pool.close()

    def close(self) -> None:
        """End all requests under way and close every connection, at once, from any thread."""
        with self._lock:
            self._closed.set()
            idle = not self._under_way
        self._network.close()
        # The thread that uses a connection closes it: another thread's socket may have its number by then.
        if idle:
            self._pool.close()

    def _exchanged(self, path: str, body: bytes, largest: int) -> tuple[int, dict[str, str], bytes]:
        address = self._address
        url = httpcore.URL(
            scheme=address.scheme, host=address.hostname or "", port=address.port, target=f"{address.path}{path}"
        )
        headers = [*self._headers, ("Content-Length", str(len(body)))]
        with self._pool.stream("POST", url, headers=headers, content=body) as reply:
            data = bytearray()
            for part in reply.iter_stream():
                self._network.allow(len(part))
                data += part
                if len(data) > largest:
                    raise TooLarge
        reply_headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reply.headers}
        return reply.status, reply_headers, unpacked(bytes(data), reply_headers.get("content-encoding", ""), largest)


def _proxy(address: SplitResult, secret: bool) -> httpcore.Proxy | None:
    """Return the proxy that the environment names for an address; None if it is asked straight.

    A proxy could read what goes over plain http, and cannot reach this machine.

    Raises:
        ValueError: if it cannot be used.
    """
    if is_loopback(address.hostname or "") or (address.scheme == "http" and secret):
        return None
    proxies = urllib.request.getproxies()
    named = proxies.get(address.scheme) or proxies.get("all")
    if not named or urllib.request.proxy_bypass(address.netloc):
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if proxy.scheme not in _PROXIES or not proxy.hostname:
        raise ValueError(proxy.scheme)
    url = httpcore.URL(scheme=proxy.scheme, host=proxy.hostname, port=proxy.port or _PROXIES[proxy.scheme], target="/")
    user = (unquote(proxy.username), unquote(proxy.password or "")) if proxy.username else None
    return httpcore.Proxy(url, auth=user)
