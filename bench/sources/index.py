"""The package index that this machine's pip is configured for: its address, and the sdists it offers.

No index address is written here: pip is asked for it, whose defaults, configuration files and
environment variables are merged by pip itself. Pages are read as PEP 691 JSON or PEP 503 HTML.
"""

from __future__ import annotations

import functools
import html.parser
import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.sources.base import Unreachable
from ctxbench.bench.sources.web import Page, Web, without_password

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
    pages = [*((place, place) for place in configuration.links)]
    pages += [(place, f"{place.rstrip('/')}/{normal(name)}/") for place in configuration.indices]
    for place, address in pages:
        try:
            sdists = [offer for offer in _read(address, web) if _is_sdist(offer.filename, name, version)]
        except Unreachable as error:
            reasons.append(f"{without_password(place)}: {error.what}")
            continue
        if not sdists:
            reasons.append(f"{without_password(place)}: has no sdist of version {version}")
        yield from sdists


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
                Offer(file["filename"], urllib.parse.urljoin(page.url, file["url"]), file["hashes"].get("sha256", ""))
                for file in json.loads(page.body)["files"]
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unreachable("the index's answer is not in the form of PEP 691", where=page.url) from None
    links = _Links(page.url)
    links.feed(page.body.decode("utf-8", "replace"))
    return links.offers


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
