"""The ``pypi`` source: sdists on the package index that pip uses, unpacked without running their code."""

from __future__ import annotations

import ast
import contextlib
import functools
import html.parser
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

from ctxbench.bench.files import explained, sha256_file
from ctxbench.bench.repositories.sources import Destination, PypiSource, Unreachable, check_sha256

if TYPE_CHECKING:
    import httpx

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".zip")
_PYPI = "https://pypi.org/simple"
T = TypeVar("T")
PAUSES = (0.5, 2.0)


def fetch(source: PypiSource, to: Destination) -> date | None:
    """Download an sdist, check its hash and unpack it. Return the day of upload; None if the index states none.

    Raises:
        Unreachable: if no configured index, page or folder delivers the sdist, or none is configured.
        InputFault: if only sdists with other hashes than the manifest's are offered, or the archive is invalid.
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
                to.unpack(archive, strip=True)
                return offer.uploaded
        other = other or (offer.filename, digest)
    if other:
        check_sha256(other[0], source.sha256, other[1], where=str(source))
    raise Unreachable(", ".join(reasons) or "pip is configured to use no index", where=str(source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The package indexes that this machine uses, and the settings of their connections."""

    indices: tuple[str, ...]
    """Addresses of the indexes' simple APIs (PEP 503), in the order to query."""
    links: tuple[str, ...] = ()
    """Folders or pages with archives (pip's ``find-links``)."""
    certificates: str | None = None
    proxy: str | None = None
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Offer:
    """A file, such as an sdist, on a package index or in a folder."""

    filename: str
    url: str
    sha256: str
    """SHA-256 of the file; empty if the index does not state it."""
    uploaded: date | None = None
    """Day of upload; None if the index does not state it."""


@functools.cache
def configured() -> Configuration:
    """Return pip's configuration or, without pip, uv's default index.

    Raises:
        Unreachable: if pip is not installed, and uv has no configured default index.
    """
    try:
        # Isolated, so that a file called pip.py in the working directory is not run.
        command = [sys.executable, "-I", "-m", "pip", "config", "list"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        default = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
        if not default:
            raise Unreachable(
                "the package index is unknown: pip is not installed and UV_DEFAULT_INDEX is not set"
            ) from None
        return Configuration(indices=(default,))
    settings: dict[str, str] = {}
    for section in ("global.", "download.", ":env:."):
        lines = (line.removeprefix(section) for line in answer.stdout.splitlines() if line.startswith(section))
        settings |= {key: ast.literal_eval(value) for key, _, value in (line.partition("=") for line in lines)}
    indices = (settings.get("index-url", _PYPI), *settings.get("extra-index-url", "").split())
    return Configuration(
        indices=() if settings.get("no-index", "0").lower() in ("1", "true", "yes", "on", "y", "t") else indices,
        links=tuple(settings.get("find-links", "").split()),
        certificates=settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE"),
        proxy=settings.get("proxy") or None,
        seconds=float(settings.get("timeout") or settings.get("default-timeout") or 60),
    )


def normal(name: str) -> str:
    """Return a normalized project name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def offers(name: str, version: str, web: Web, configuration: Configuration, reasons: list[str]) -> Iterator[Offer]:
    """Yield the sdists of a release. Add to `reasons` why an index or folder has none."""
    for place, files in _listed(name, web, configuration, reasons):
        sdists = [offer for offer in files if _is_sdist(offer.filename, name, version)]
        if not sdists:
            reasons.append(f"{without_password(place)}: no sdist of version {version}")
        yield from sdists


def _listed(name: str, web: Web, configuration: Configuration, reasons: list[str]) -> Iterator[tuple[str, list[Offer]]]:
    pages = [*((place, place) for place in configuration.links)]
    pages += [(place, f"{place.rstrip('/')}/{normal(name)}/") for place in configuration.indices]
    for place, address in pages:
        try:
            yield place, list(_read(address, web))
        except Unreachable as error:
            reasons.append(f"{without_password(place)}: {error.what}")


def _read(address: str, web: Web) -> Iterable[Offer]:
    folder = _folder(address)
    if folder is None:
        return _parse(web.read(address, accept=_ACCEPT))
    try:
        return _of_folder(folder, address)
    except OSError as error:
        raise Unreachable(f"the file or folder cannot be read ({error.strerror})", where=address) from error


def _of_folder(folder: Path, address: str) -> Iterable[Offer]:
    if folder.is_dir():
        listing = folder / "index.html"
        if listing.is_file():
            return _parse(Page(listing.resolve().as_uri(), "text/html", listing.read_bytes()))
        return [Offer(path.name, path.resolve().as_uri(), "") for path in sorted(folder.iterdir())]
    if not folder.is_file():
        raise Unreachable("no such folder", where=address)
    kind = "json" if folder.suffix == ".json" else "html"
    return _parse(Page(folder.resolve().as_uri(), kind, folder.read_bytes()))


def _folder(address: str) -> Path | None:
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return None if parts.scheme in ("http", "https") else Path(address).expanduser()


def _parse(page: Page) -> list[Offer]:
    if page.type.endswith("json"):
        try:
            return [
                Offer(
                    file["filename"],
                    urljoin(page.url, file["url"]),
                    file["hashes"].get("sha256", ""),
                    _day(file.get("upload-time")),
                )
                for file in json.loads(page.body)["files"]
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unreachable("the index's answer does not follow PEP 691", where=page.url) from None
    links = _Links(page.url)
    links.feed(page.body.decode("utf-8", "replace"))
    return links.offers


def _day(timestamp: object) -> date | None:
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
    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.offers: list[Offer] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if not href:
            return
        if tag == "base":
            self._base = urljoin(self._base, href)
        elif tag == "a":
            url, _, fragment = urljoin(self._base, href).partition("#")
            filename = unquote(urlsplit(url).path.rpartition("/")[2])
            algorithm, _, value = fragment.partition("=")
            self.offers.append(Offer(filename, url, value if algorithm == "sha256" else ""))


@dataclass(frozen=True, slots=True)
class Page:
    """A page that lists the files of an index or a folder, with its address and content type."""

    url: str
    type: str
    body: bytes


class Web:
    """An HTTP client for package indexes. It remembers passwords from URLs by host."""

    def __init__(self, *, certificates: str | None = None, proxy: str | None = None, seconds: float = 60.0) -> None:
        """Create a client.

        Args:
            certificates: file or folder with certificates of trusted authorities; None for the system's.
            proxy: proxy for http and https; None for the environment's.
            seconds: timeout of each connection attempt, read and write.
        """
        bundle = Path(certificates) if certificates else None
        self._context = ssl.create_default_context(
            cafile=str(bundle) if bundle and bundle.is_file() else None,
            capath=str(bundle) if bundle and bundle.is_dir() else None,
        )
        self._proxy, self._seconds = proxy, seconds
        self._passwords: dict[str, tuple[str, str]] = {}

    def read(self, url: str, *, accept: str) -> Page:
        """Download the page at `url`. `accept` lists the accepted content types.

        Raises:
            Unreachable: if the page cannot be fetched.
        """

        def whole(answer: httpx.Response) -> Page:
            kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return Page(str(answer.url), kind, b"".join(answer.iter_raw()))

        return self._try(url, accept, whole)

    def save(self, url: str, path: Path) -> None:
        """Download a URL, or copy a local file, to the file `path`.

        Raises:
            Unreachable: if the content cannot be fetched completely.
            MachineFault: if the disk is full.
        """
        local = _folder(url)
        if local is not None:
            if not local.is_file():
                raise Unreachable("no such file", where=url)
            with explained(path):
                shutil.copyfile(local, path)
            return

        def stream(answer: httpx.Response) -> None:
            with explained(path), path.open("wb") as out:
                for chunk in answer.iter_raw():
                    out.write(chunk)

        self._try(url, "*/*", stream)

    def _try(self, url: str, accept: str, use: Callable[[httpx.Response], T]) -> T:
        import httpx  # noqa: PLC0415 - only where something is fetched

        address, auth = without_password(url), self._password(url)
        # Request the bytes as the index stores them: an encoded answer has another hash.
        headers = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "ctxbench"}
        reason = ""
        for pause in (*PAUSES, None):
            try:
                with httpx.stream(
                    "GET",
                    address,
                    headers=headers,
                    auth=auth,
                    proxy=self._proxy,
                    verify=self._context,
                    timeout=self._seconds,
                    follow_redirects=True,
                ) as answer:
                    if answer.is_success:
                        return use(answer)
                    reason, again = f"HTTP {answer.status_code} {answer.reason_phrase}", answer.is_server_error
            except httpx.RemoteProtocolError:
                reason, again = "the answer was cut off", True
            except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError) as error:
                reason, again = str(error) or type(error).__name__, isinstance(error, httpx.TimeoutException)
            if not again or pause is None:
                break
            time.sleep(pause)
        raise Unreachable(reason, where=address)

    def _password(self, url: str) -> tuple[str, str] | None:
        """Return the user and password for a URL's host, from the URL or from an earlier one on the same host."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        if parts.username:
            self._passwords[host] = unquote(parts.username), unquote(parts.password or "")
        return self._passwords.get(host)


def without_password(url: str) -> str:
    """Remove user name and password from a URL."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
