"""Code that all sources share: their tables in a manifest, the destination of a fetch, errors, safe unpacking."""

from __future__ import annotations

import contextlib
import errno
import gzip
import lzma
import os
import re
import shutil
import signal
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Literal, get_args

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained
from ctxbench.bench.home import Home

Report = Callable[[str], None]
MAX_BYTES = 1 << 30
MAX_MEMBERS = 100_000
_MAX_HEADER = 1 << 20
"""Maximum size in bytes of a member's long name or extended header, which `tarfile` reads into memory."""
_MAX_DICTIONARY = 256 << 20
"""Maximum memory in bytes for an xz stream. ``xz -9`` needs 65 MiB."""
_LONG_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError)
"""Exceptions for invalid archives. `zipfile` raises RuntimeError for encryption and unknown compression."""
_TRUST = "if you trust the archive, unpack it yourself and use the folder as a local source"


class Unreachable(MachineFault):
    """Raised when a source cannot be reached, or does not have the wanted version."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a value in a manifest, for `Annotated`. Pydantic runs the check."""

    check: Callable[[Any], Any]
    """Function that returns the checked value, or raises a ValueError that describes the error."""
    first: bool = False
    """Whether the check runs before the value is converted to its type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - only where a manifest is read

        if self.first:
            return core_schema.no_info_before_validator_function(self.check, handler(source))
        return core_schema.no_info_after_validator_function(self.check, handler(source))


def matches(pattern: str, what: str) -> Check:
    """Return a check that `pattern` matches a whole string. Its error states that the string is not `what`."""
    expression = re.compile(pattern)

    def check(value: str) -> str:
        if not expression.fullmatch(value):
            raise ValueError(f"{value!r} is not {what}")
        return value

    return Check(check)


def cure(text: str) -> dict[str, str]:
    """Return the metadata of a manifest's field: advice on how to correct a wrong value."""
    return {"description": text}


def _filled(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError(f"{value!r} is blank")
    return value


STRICT = {"extra": "forbid", "strict": True}
"""Pydantic's settings for a manifest's tables: no other keys, no values of another type."""
Filled = Annotated[str, Check(_filled)]
Place = Annotated[Path, Check(_filled, first=True)]
Version = Annotated[str, matches(r"[A-Za-z0-9][A-Za-z0-9.+!~_-]{0,99}", "a version")]
_Hash = Annotated[str, matches(r"[0-9a-f]{64}", "a sha256")]
_Commit = Annotated[str, matches(r"[0-9a-f]{40}", "a full commit")]
_Url = Annotated[str, matches(r"(https?|ssh|git|file)://(?![^/]*:[^/@]*@)\S+", "a repository's URL without password")]
_Project = Annotated[str, matches(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "a project name")]
_Package = Annotated[str, matches(r"[a-z0-9][a-z0-9+.-]+", "a Debian source package")]
_COMMIT = "write its 40 hexadecimal digits; `git ls-remote URL REF` shows those of a tag or branch"
_HASH = "write the 64 hexadecimal digits that `sha256sum FILE` prints"
_VERSION = cure("leave `version` out; ctxbench uses the manifest's version")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A commit of a git repository."""

    __pydantic_config__ = STRICT

    kind: Literal["git"] = "git"
    url: _Url = field(metadata=cure("write an https, ssh, git or file URL without a password"))
    commit: _Commit = field(metadata=cure(_COMMIT))
    """The commit's hash: 40 hexadecimal digits. Git checks that the content has this hash."""

    def __str__(self) -> str:
        return f"git+{self.url}@{self.commit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PypiSource:
    """A release's sdist on the package index that pip uses."""

    __pydantic_config__ = STRICT

    kind: Literal["pypi"] = "pypi"
    name: _Project = field(metadata=cure("write the project's name on the package index"))
    version: Version = field(default="", metadata=_VERSION)
    sha256: _Hash = field(metadata=cure(_HASH + " for the sdist"))

    def __str__(self) -> str:
        return f"pypi:{self.name}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianSource:
    """A Debian source package's upstream tarball, without Debian's patches."""

    __pydantic_config__ = STRICT

    kind: Literal["debian"] = "debian"
    package: _Package = field(metadata=cure("write the source package's name; `apt-cache showsrc NAME` finds it"))
    version: Version = field(default="", metadata=_VERSION)
    sha256: _Hash = field(metadata=cure(_HASH + " for the .orig.tar file"))

    def __str__(self) -> str:
        return f"debian:{self.package}={self.version}" if self.version else f"debian:{self.package}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSource:
    """A folder or archive on this machine."""

    __pydantic_config__ = STRICT

    kind: Literal["local"] = "local"
    path: Place = field(metadata=cure("write a folder or an archive, relative to the manifest's folder"))
    sha256: _Hash = field(default="", metadata=cure(_HASH + " for an archive, or leave it out"))
    """SHA-256 of the archive, or the folder's `bench.repositories.local.digest`; empty to accept any content."""

    def __str__(self) -> str:
        return f"local:{self.path}"


Source = GitSource | PypiSource | DebianSource | LocalSource


@dataclass(frozen=True, slots=True)
class OfKind:
    """A marker for `Annotated`: a table's ``kind`` selects the dataclass."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - only where a manifest is read

        return core_schema.tagged_union_schema(
            {kind.__dataclass_fields__["kind"].default: handler.generate_schema(kind) for kind in get_args(source)},
            discriminator="kind",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The folders that a fetch writes to, and a list of the parts of the source that it left out."""

    tree: Path
    """Empty folder that becomes the repository's root."""
    scratch: Path
    """Empty folder for downloads. Removed afterwards."""
    home: Home
    report: Report
    left_out: list[str] = field(default_factory=list)

    def unpack(self, archive: Path, *, strip: bool) -> None:
        """Unpack an archive into `tree` with the function `unpack`, and record its dropped links."""
        self.skip_links(unpack(archive, self.tree, strip=strip))

    def skip_links(self, count: int) -> None:
        """Record that `count` links or devices were dropped."""
        if count:
            self.left_out.append(f"{count} link{'s' * (count != 1)}")


def check_sha256(name: str, expected: str, actual: str, *, where: str) -> None:
    """Check that the file or folder `name` has the expected SHA-256.

    Raises:
        InputFault: if the hashes differ.
    """
    if expected != actual:
        raise InputFault(
            f"the sha256 of {name} is {actual}, but the manifest expects {expected}",
            where=where,
            cure="nothing was kept; if the manifest is wrong, correct its sha256, otherwise do not trust this source",
        )


def run_program(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], seconds: float, source: object
) -> str:
    """Run a program without a terminal and return its stdout.

    Raises:
        MachineFault: if the disk is full.
        Unreachable: if the program is not installed, fails, or takes longer than `seconds`.
    """
    try:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Unreachable(f"{arguments[0]} is not installed", where=str(source)) from None
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{arguments[0]} took longer than {seconds:.0f} s", where=str(source)) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        if "No space left on device" in err:
            raise MachineFault(
                "the disk is full", where=str(folder), cure="free some space, then run the same command again"
            )
        lines = [line.strip() for line in err.splitlines() if line.strip()]
        raise Unreachable(" ".join(lines[-3:]) or f"{arguments[0]} failed", where=str(source))
    return out


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    kind: str
    """``file``, ``folder`` or ``other`` (links, devices)."""
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, tree: Path, *, strip: bool) -> int:
    """Unpack a tar (plain, gz, bz2 or xz) or zip archive into `tree`. Return the number of dropped links and devices.

    Args:
        strip: remove the top folder that all members share, as in sdists.

    Raises:
        InputFault: if the archive is invalid, has a member outside `tree`, or exceeds `MAX_MEMBERS` or `MAX_BYTES`.
    """
    try:
        with _opened(archive) as members:
            top = _shared_top(members) if strip else 0
            for member in members:
                parts = _parts(member.name, archive)[top:]
                if member.kind == "file" and parts:
                    _write(member, tree.joinpath(*parts))
            return sum(member.kind == "other" for member in members)
    except _BROKEN as error:
        raise InputFault(
            f"the file is not a complete archive ({error or type(error).__name__})",
            where=str(archive),
            cure="use a complete .tar, .tar.gz, .tar.bz2, .tar.xz or .zip file",
        ) from None


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[list[_Member]]:
    with explained(archive):
        zipped = zipfile.is_zipfile(archive) and not tarfile.is_tarfile(archive)
    if zipped:
        with zipfile.ZipFile(archive) as file:
            yield _within_limits(((_zip_member(file, info), info.file_size) for info in file.infolist()), archive)
    else:
        _check_dictionary(archive)
        with tarfile.open(archive, tarinfo=_ShortHeader) as tar:
            yield _within_limits(((_tar_member(tar, info), info.size) for info in tar), archive)


class _ShortHeader(tarfile.TarInfo):
    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        # This runs before the header's data is read. Overriding `frombuf` has no effect from Python 3.13 on.
        if self.type in _LONG_HEADERS and self.size > _MAX_HEADER:
            raise tarfile.ReadError(f"a header of {self.size >> 20} MiB is too large")
        member: tarfile.TarInfo | None = super()._proc_member(archive)  # type: ignore[misc]
        return member


def _check_dictionary(archive: Path) -> None:
    with explained(archive), archive.open("rb") as stream:
        start = stream.read(1 << 12)
    if start.startswith(b"\xfd7zXZ"):
        lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_DICTIONARY).decompress(start, max_length=1)


def _within_limits(members: Iterable[tuple[_Member, int]], archive: Path) -> list[_Member]:
    listed: list[_Member] = []
    size = 0
    for member, length in members:
        listed.append(member)
        size += length
        if len(listed) > MAX_MEMBERS:
            raise InputFault(f"the archive has more than {MAX_MEMBERS} members", where=str(archive), cure=_TRUST)
        if size > MAX_BYTES:
            raise InputFault(f"the archive unpacks to more than {MAX_BYTES >> 20} MiB", where=str(archive), cure=_TRUST)
    return listed


def _zip_member(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    # The upper half of the external attributes is the Unix mode: 0o12 in its type bits is a link.
    link = (info.external_attr >> 28) == 0o12
    kind = "other" if link else "folder" if info.is_dir() else "file"
    return _Member(info.filename, kind, lambda: file.open(info))


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    kind = "file" if info.isreg() else "folder" if info.isdir() else "other"
    return _Member(info.name, kind, lambda: tar.extractfile(info))


def _parts(name: str, archive: Path) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise InputFault(
            f"the archive's member {name!r} lies outside the target folder",
            where=str(archive),
            cure="nothing was kept; do not trust this archive",
        )
    return path.parts


def _shared_top(members: list[_Member]) -> int:
    paths = [PurePosixPath(member.name).parts for member in members if member.kind == "file"]
    shared = {parts[0] for parts in paths if parts}
    return int(len(shared) == 1 and all(len(parts) > 1 for parts in paths))


def _write(member: _Member, target: Path) -> None:
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        stream = _stream(member)
        if stream is not None:
            with stream, target.open("wb") as out:
                shutil.copyfileobj(stream, out)


def _stream(member: _Member) -> IO[bytes] | None:
    try:
        return member.open()
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise zipfile.BadZipFile("a member lies before the file's beginning") from None
        raise
