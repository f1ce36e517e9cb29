"""From what the user names, ``pypi:NAME==VERSION`` and the like, to a source with its hash."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import debian, pypi
from ctxbench.bench.repositories.sources import (
    GitSource,
    LocalSource,
    PypiSource,
    Report,
    Source,
    Unreachable,
)

FORMS = "pypi:NAME==VERSION, debian:NAME, debian:NAME=VERSION, git+URL@COMMIT, or the path of a folder or an archive"
_PYPI = re.compile(r"pypi:([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.+!_-]*)")
_DEBIAN = re.compile(r"debian:([a-z0-9][a-z0-9+.-]+)(?:=([A-Za-z0-9][A-Za-z0-9.+~:-]*))?")
_GIT = re.compile(r"git\+((?:https?|ssh|git|file)://\S+)@([0-9a-f]{40})")
_ARCHIVE = re.compile(r"^(.*?)(?:-(\d[\w.+!]*))?(\.orig)?\.(tar(\.\w+)?|tgz|zip)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSource:
    """A source that was named, before anything of it was fetched."""

    name: str
    """What its manifest is called unless the user says otherwise."""
    version: str
    """Empty if only its files tell."""
    source: Source
    wheel: bool = False
    """Whether the package index has wheels of it."""


def manifest_name(text: str) -> str:
    """Return a name that a manifest may have, as like a text as possible."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")
    return plain[:100] or "repository"


def check(ref: str) -> str:
    """Return the name that a reference gives its manifest; nothing is fetched.

    Raises:
        InputFault: if it has none of the forms.
    """
    match = _PYPI.fullmatch(ref)
    if match:
        return manifest_name(match.group(1))
    match = _DEBIAN.fullmatch(ref)
    if match:
        return manifest_name(re.sub(r"^(?:lib)?(.+?)-java$", r"\1", match.group(1)))
    match = _GIT.fullmatch(ref)
    if match:
        return manifest_name(match.group(1).rstrip("/").rpartition("/")[2].removesuffix(".git"))
    if re.match(r"(pypi|debian|git\+\w+):", ref):
        raise InputFault(f"{ref!r} is not whole", cure=_whole(ref))
    path = Path(ref).expanduser()
    if not path.exists():
        raise InputFault(f"{ref!r} is no source, and there is no such file or folder", cure=f"give {FORMS}")
    archive = _ARCHIVE.match(path.name)
    resolved = path.resolve()
    return manifest_name(archive.group(1) if path.is_file() and archive else resolved.name)


def _whole(ref: str) -> str:
    if ref.startswith("pypi:"):
        return "give pypi:NAME==VERSION, as `pip index versions NAME` lists the versions"
    if ref.startswith("git+"):
        return "give git+URL@COMMIT with the commit's 40 hexadecimal digits; `git ls-remote URL REF` shows them"
    return "give debian:NAME or debian:NAME=VERSION with the name of a source package"


def resolve(ref: str, home: Home, report: Report) -> NamedSource:
    """Return the origin that a reference means, with the hash that its place has for it now.

    Raises:
        InputFault: if it has none of the forms, or there is no such release.
        MachineFault: if the place cannot be reached.
    """
    name = check(ref)
    if match := _PYPI.fullmatch(ref):
        return _pypi(name, match.group(1), match.group(2))
    if match := _DEBIAN.fullmatch(ref):
        source = debian.latest(match.group(1), match.group(2) or "", home, report)
        return NamedSource(name=name, version=source.version, source=source)
    if match := _GIT.fullmatch(ref):
        commit = match.group(2)
        return NamedSource(name=name, version=commit[:12], source=GitSource(url=match.group(1), commit=commit))
    path = Path(ref).expanduser().resolve()
    if path.is_dir():
        return NamedSource(name=name, version="", source=LocalSource(path=path))
    archive, digest = _ARCHIVE.match(path.name), sha256_file(path)
    # What it holds is not known before it is unpacked, to a folder that has the version in its name.
    version = (archive.group(2) if archive else "") or digest[:12]
    return NamedSource(name=name, version=version, source=LocalSource(path=path, sha256=digest))


def _pypi(name: str, project: str, version: str) -> NamedSource:
    configuration = pypi.configured()
    web = pypi.Web(certificates=configuration.certificates, proxy=configuration.proxy, seconds=configuration.seconds)
    reasons: list[str] = []
    offer = next(pypi.offers(project, version, web, configuration, reasons), None)
    if offer is None:
        raise Unreachable(
            f"no sdist of it is offered: {', '.join(reasons) or 'pip is configured to use no index'}",
            where=f"pypi:{project}=={version}",
            cure=f"see the versions with `pip index versions {project}`, or give the path of a copy",
        )
    digest = offer.sha256
    if not digest:
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "sdist"
            web.save(offer.url, archive)
            digest = sha256_file(archive)
    return NamedSource(
        name=name,
        version=version,
        source=PypiSource(name=project, version=version, sha256=digest),
        wheel=pypi.has_wheel(project, version, web, configuration),
    )
