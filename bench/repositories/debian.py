"""The ``debian`` source: the upstream tarball of a source package, fetched by apt without root."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, locked, sha256_file, write_atomic
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.sources import (
    DebianSource,
    Destination,
    Report,
    Unreachable,
    check_sha256,
    run_program,
)

_SECONDS = 900.0
_LISTS_BYTES = 80_000_000
_SYSTEM = Path("/etc/apt")
_PACKAGE = re.compile(r"^Package: (\S+)$", re.MULTILINE)
_TARBALL = re.compile(r"^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.(?:gz|xz|bz2))$", re.MULTILINE)


def fetch(source: DebianSource, to: Destination) -> None:
    """Download a source package's ``.orig.tar``, check its hash and unpack it.

    Raises:
        Unreachable: if apt is missing, or the archive cannot be reached or no longer has this version.
        InputFault: if the tarball is invalid, or its hash differs from the manifest's.
        MachineFault: if the disk is full.
    """
    # apt cannot read its lists while another process writes them.
    with locked((to.home.cache / "apt").absolute()) as folder:
        apt = _Apt(folder, source, to)
        if apt.updated:
            try:
                archive = apt.download()
            except Unreachable:
                to.report("apt: the cached lists are out of date; reading them again")
                apt.update()
                archive = apt.download()
        else:
            apt.update()
            archive = apt.download()
    check_sha256(archive.name, source.sha256, sha256_file(archive), where=str(source))
    to.unpack(archive, strip=True)


def latest(package: str, version: str, home: Home, report: Report) -> DebianSource:
    """Return a package's `DebianSource`, with its tarball's hash, from the archive that apt uses.

    Args:
        version: upstream or Debian version; empty if there is only one upstream version.

    Raises:
        InputFault: if the archive has no such version, or several match.
        Unreachable: if apt or the package is missing, or the archive cannot be reached.
    """
    sought = DebianSource(package=package, version=version, sha256="")
    with locked((home.cache / "apt").absolute()) as folder, tempfile.TemporaryDirectory() as scratch:
        to = Destination(tree=Path(scratch), scratch=Path(scratch), home=home, report=report)
        apt = _Apt(folder, sought, to)
        if not apt.updated:
            apt.update()
        offers = apt.offers()
    sources = [
        DebianSource(package=package, version=upstream.rpartition("_")[2], sha256=digest)
        for debian_version, upstream, digest in offers
        if not version or version in (debian_version, upstream.rpartition("_")[2])
    ]
    versions = sorted({upstream.rpartition("_")[2] for _, upstream, _ in offers})
    if len({source.version for source in sources}) != 1:
        what = "no such version of the package" if version else "several versions of the package"
        cure = f"give one of {', '.join(f'debian:{package}={upstream}' for upstream in versions)}"
        raise InputFault(f"the archive has {what}", where=f"debian:{package}", cure=cure)
    return sources[0]


class _Apt:
    def __init__(self, folder: Path, source: DebianSource, to: Destination) -> None:
        self._folder, self._source, self._to = folder, source, to
        self._stamp = folder / "updated"
        self._configure()

    @property
    def updated(self) -> bool:
        return self._stamp.exists()

    def update(self) -> None:
        with explained(self._folder):
            free = shutil.disk_usage(self._folder).free
        if free < _LISTS_BYTES:
            # On a full disk, apt never ends, because it repeats the same write.
            raise MachineFault(
                f"the disk is full ({free // 10**6} MB free, apt's lists need {_LISTS_BYTES // 10**6} MB)",
                where=str(self._folder),
                cure="free some space, or choose another --home",
            )
        self._to.report("apt: reading the lists of source packages")
        failure: Unreachable | None = None
        try:
            self._run("apt-get", "-qq", "update")
        except Unreachable as error:
            # If one archive is broken, another may have the package.
            failure = error
        if failure and not any(self._folder.glob("lists/*_Sources*")):
            raise failure
        self._stamp.touch()

    def download(self) -> Path:
        package, offers = self._source.package, self.offers()
        of_version = [offer for offer in offers if offer[1].endswith(f"_{self._source.version}")]
        if not of_version:
            versions = ", ".join(sorted({version for version, _, _ in offers}))
            raise Unreachable(f"the archive now has only other versions ({versions})", where=str(self._source))
        same = [offer for offer in of_version if offer[2] == self._source.sha256] or of_version
        self._run("apt-get", "-qq", "source", "--download-only", "--tar-only", f"{package}={same[0][0]}")
        tarballs = sorted(self._to.scratch.glob("*.orig.tar.*"))
        if not tarballs:
            raise Unreachable("apt downloaded no upstream tarball", where=str(self._source))
        return tarballs[0]

    def offers(self) -> list[tuple[str, str, str]]:
        """Return (Debian version, NAME_UPSTREAM, SHA-256 of the upstream tarball) for each version of the package.

        Raises:
            Unreachable: if the archive has no such package. For a binary package, the message names the source package.
        """
        package = self._source.package
        offers = list(self._offers(self._run("apt-cache", "showsrc", "--only-source", package)))
        if not offers:
            # The name may belong to a binary package.
            sources = sorted(set(_PACKAGE.findall(self._run("apt-cache", "showsrc", package))))
            hint = f"; did you mean {' or '.join(sources)}?" if sources else ""
            raise Unreachable(f"the archive has no source package of that name{hint}", where=str(self._source))
        return offers

    def _offers(self, text: str) -> Iterator[tuple[str, str, str]]:
        for record in text.split("\n\n"):
            version = re.search(r"^Version: (\S+)$", record, re.MULTILINE)
            tarball = _TARBALL.search(record)
            if version and tarball:
                yield version.group(1), tarball.group(2).partition(".orig.tar.")[0], tarball.group(1)

    def _configure(self) -> None:
        for name in ("lists/partial", "cache/archives/partial", "parts"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        for name, text in _source_lists():
            write_atomic(self._folder / "parts" / name, text)
        # Only the Acquire settings are copied: the machine's hooks (`Post-Invoke`) must not run here.
        acquire = run_program(
            ["apt-config", "dump", "Acquire"],
            folder=self._folder,
            environment=dict(os.environ),
            seconds=60,
            source=self._source,
        )
        settings = {
            "Dir::Etc::main": os.devnull,
            "Dir::Etc::parts": os.devnull,
            "Dir::Etc::sourcelist": os.devnull,
            "Dir::Etc::sourceparts": self._folder / "parts",
            "Dir::State::lists": self._folder / "lists",
            "Dir::Cache": self._folder / "cache",
            # Without this setting, apt run as root switches to a user without write access here.
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
        }
        own = "".join(f'{key} "{value}";\n' for key, value in settings.items())
        write_atomic(self._folder / "apt.conf", acquire + own)

    def _run(self, *arguments: str) -> str:
        environment = dict(os.environ) | {"APT_CONFIG": str(self._folder / "apt.conf"), "LC_ALL": "C.UTF-8"}
        return run_program(
            arguments, folder=self._to.scratch, environment=environment, seconds=_SECONDS, source=self._source
        )


def _source_lists() -> Iterator[tuple[str, str]]:
    for path in (_SYSTEM / "sources.list", *sorted((_SYSTEM / "sources.list.d").glob("*"))):
        if not path.is_file() or path.suffix not in (".list", ".sources"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".sources":
            yield path.name, re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE | re.IGNORECASE)
        else:
            lines = re.findall(r"^deb(?:-src)?([ \t].*)$", text, flags=re.MULTILINE)
            yield path.name, "".join(f"deb-src{line}\n" for line in dict.fromkeys(lines))
