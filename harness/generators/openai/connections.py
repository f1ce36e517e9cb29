"""`Connections`: a pool of them to one server, direct or through the environment's proxy. The only user of httpcore.

No redirect is followed, no cookie kept, no `.netrc` read: a request goes to the address that the spec says, with the
headers that it says, and nowhere else.
"""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

import httpcore

from ctxbench.bench.errors import InputFault
from ctxbench.harness.generators.openai.network import HttpNetwork, NetworkClosed, TooLarge, unpacked
from ctxbench.harness.generators.openai.settings import is_loopback

__all__ = ["Connections", "NetworkClosed", "TooLarge"]

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

    def post(self, path: str, body: bytes, *, seconds: float, largest: int) -> tuple[int, dict[str, str], bytes]:
        """Send a body and return status, headers (names in lower case) and body of the reply.

        Args:
            path: below the address, with its query.
            body: what is sent.
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
                    return self._exchange(path, body, largest)
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

    def _exchange(self, path: str, body: bytes, largest: int) -> tuple[int, dict[str, str], bytes]:
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
