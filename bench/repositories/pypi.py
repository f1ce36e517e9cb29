"""The ``pypi`` source: the sdist of a release, unpacked; no code of the package is run.

No index address is written here: pip is asked for it, whose defaults, configuration files and environment variables
are merged by pip itself. Pages are read as PEP 691 JSON or PEP 503 HTML, with retries on time-outs and 5xx only,
through proxies and with certificates as the machine has them.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import html.parser
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.bench.files import explained, sha256_file
from ctxbench.bench.repositories.sources import Destination, PypiSource, Unreachable, check_sha256, unpack

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".zip")
# Asked in another process: importing pip here would cost half a second and patch this one.
_ASK_PIP = """
import json, os
from pip._internal.commands import create_command
options = create_command("download").parse_args(["x"])[0]
print(json.dumps({
    "index": [] if options.no_index else [options.index_url, *options.extra_index_urls],
    "links": options.find_links,
    "certificates": options.cert or os.environ.get("REQUESTS_CA_BUNDLE"),
    "proxy": options.proxy or None,
    "seconds": options.timeout,
}))
"""
T = TypeVar("T")
PAUSES = (0.5, 2.0)
"""Seconds before the second and the third try."""
_CHUNK = 1 << 18


def fetch(source: PypiSource, to: Destination) -> date | None:
    """Download the sdist from the configured index, compare its hash, unpack it.

    Returns:
        The day on which it was uploaded, if the index says it.

    Raises:
        Unreachable: if no configured place offers it.
        InputFault: if the sdists offered have another hash than the manifest's.
    """
    configuration = configured()
    web = Web(certificates=configuration.certificates, proxy=configuration.proxy, seconds=configuration.seconds)
    reasons: list[str] = []
    other: tuple[str, str] | None = None
    for offer in offers(source.name, source.version, web, configuration, reasons):
        digest = offer.sha256
        if not digest or digest == source.sha256:
            archive = to.scratch / "sdist"
            try:
                web.save(offer.url, archive)
            except Unreachable as error:
                reasons.append(str(error))
                continue
            digest = sha256_file(archive)
            if digest == source.sha256:
                dropped = unpack(archive, to.tree, strip=True)
                if dropped:
                    to.report(f"{source}: {dropped} links left out")
                return offer.uploaded
        other = other or (offer.filename, digest)
    if other:
        check_sha256(other[0], source.sha256, other[1], where=str(source))
    raise Unreachable(", ".join(reasons) or "pip is configured to use no index", where=str(source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The package index that this machine uses."""

    indices: tuple[str, ...]
    """Simple-API addresses, in the order to ask."""
    links: tuple[str, ...] = ()
    """Folders or pages that hold archives themselves (pip's ``find-links``)."""
    certificates: str | None = None
    proxy: str | None = None
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Offer:
    """One sdist that an index offers."""

    filename: str
    url: str
    sha256: str
    """Empty if the index does not say."""
    uploaded: date | None = None
    """None if the index does not say."""


@functools.cache
def configured() -> Configuration:
    """Ask pip for its configuration; without a pip, take uv's default index.

    Raises:
        Unreachable: if there is neither.
    """
    for python in (sys.executable, "python3", "python"):
        try:
            # Isolated, so that a file called pip.py in the working directory is not run.
            answer = subprocess.run(
                [python, "-I", "-c", _ASK_PIP], capture_output=True, text=True, timeout=120, check=True
            )
            settings = json.loads(answer.stdout)
        except (OSError, subprocess.SubprocessError, json.JSONDecodeError):
            continue
        return Configuration(
            indices=tuple(settings["index"]),
            links=tuple(settings["links"]),
            certificates=settings["certificates"],
            proxy=settings["proxy"],
            seconds=float(settings["seconds"]),
        )
    # The installers' own settings, not ours: hence read here and not in the command line.
    default = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    if not default:
        raise Unreachable("no pip is installed to say where the package index is")
    return Configuration(indices=(default,))


def normal(name: str) -> str:
    """Return a project name in its normal form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def offers(name: str, version: str, web: Web, configuration: Configuration, reasons: list[str]) -> Iterator[Offer]:
    """Yield the sdists of one release, nearest place first; why a place gave none goes to `reasons`."""
    for place, files in _listed(name, web, configuration, reasons):
        sdists = [offer for offer in files if _is_sdist(offer.filename, name, version)]
        if not sdists:
            reasons.append(f"{without_password(place)}: has no sdist of version {version}")
        yield from sdists


def has_wheel(name: str, version: str, web: Web, configuration: Configuration) -> bool:
    """Say whether some place offers a wheel of one release, for whatever machine."""
    wheels = (
        offer.filename.split("-")
        for _, files in _listed(name, web, configuration, [])
        for offer in files
        if offer.filename.endswith(".whl")
    )
    return any(len(parts) > 2 and normal(parts[0]) == normal(name) and parts[1] == version for parts in wheels)


def _listed(name: str, web: Web, configuration: Configuration, reasons: list[str]) -> Iterator[tuple[str, list[Offer]]]:
    """Yield each place that can be reached with the files that it has of a project, or of all."""
    pages = [*((place, place) for place in configuration.links)]
    pages += [(place, f"{place.rstrip('/')}/{normal(name)}/") for place in configuration.indices]
    for place, address in pages:
        try:
            yield place, list(_read(address, web))
        except Unreachable as error:
            reasons.append(f"{without_password(place)}: {error.what}")


def _read(address: str, web: Web) -> Iterable[Offer]:
    folder = _folder(address)
    if folder is not None and folder.is_dir():
        listing = folder / "index.html"
        if listing.is_file():
            return _parse(Page(listing.resolve().as_uri(), "text/html", listing.read_bytes()))
        return [Offer(path.name, path.resolve().as_uri(), "") for path in sorted(folder.iterdir())]
    if folder is not None and not folder.is_file():
        raise Unreachable("no such folder", where=address)
    return _parse(web.read(folder.resolve().as_uri() if folder else address, accept=_ACCEPT))


def _folder(address: str) -> Path | None:
    parts = urllib.parse.urlsplit(address)
    if parts.scheme == "file":
        return Path(urllib.request.url2pathname(parts.path))
    return None if parts.scheme in ("http", "https") else Path(address).expanduser()


def _parse(page: Page) -> list[Offer]:
    if page.type.endswith("json"):
        try:
            return [
                Offer(
                    file["filename"],
                    urllib.parse.urljoin(page.url, file["url"]),
                    file["hashes"].get("sha256", ""),
                    _day(file.get("upload-time")),
                )
                for file in json.loads(page.body)["files"]
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unreachable("the index's answer is not in the form of PEP 691", where=page.url) from None
    links = _Links(page.url)
    links.feed(page.body.decode("utf-8", "replace"))
    return links.offers


def _day(timestamp: object) -> date | None:
    """Return the day of a time as PEP 700 writes it."""
    with contextlib.suppress(ValueError):
        return date.fromisoformat(timestamp[:10]) if isinstance(timestamp, str) else None
    return None


def _is_sdist(filename: str, name: str, version: str) -> bool:
    for suffix in _SUFFIXES:
        if filename.endswith(suffix):
            stem, _, release = filename.removesuffix(suffix).rpartition("-")
            return normal(stem) == normal(name) and release == version
    return False


class _Links(html.parser.HTMLParser):
    """Collects the links of a PEP 503 page."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.offers: list[Offer] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if not href:
            return
        if tag == "base":
            self._base = urllib.parse.urljoin(self._base, href)
        elif tag == "a":
            url, _, fragment = urllib.parse.urljoin(self._base, href).partition("#")
            filename = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
            algorithm, _, value = fragment.partition("=")
            self.offers.append(Offer(filename, url, value if algorithm == "sha256" else ""))


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
