"""Unpack archives; nothing is written outside the target folder.

Only regular files are written. Links and devices are dropped: no snapshot reads them, and without a link
no later member can be led outside. A member whose *name* leaves the folder condemns the whole archive, and so
does one that is made to fill a disk or a memory: sizes are added up before anything is unpacked.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Self

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained

MAX_BYTES = 1 << 30
"""Of all members together, unpacked; the largest repositories of the benchmark have a tenth of it."""
MAX_MEMBERS = 100_000
_MAX_HEADER = 1 << 20
"""Bytes of a member's long name or extended header, which `tarfile` reads into memory whole."""
_MAX_DICTIONARY = 256 << 20
"""Bytes of memory that an xz stream may ask for; ``xz -9`` asks for 65 MiB."""
_LONG_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
_TRUST = "if you trust it, unpack it yourself and give the folder as a local source"


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    kind: str
    """``file``, ``folder`` or ``other`` (links, devices)."""
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, tree: Path, *, strip: bool) -> int:
    """Unpack a tar (any compression) or zip archive into `tree`.

    Args:
        archive: the file.
        tree: an existing folder.
        strip: leave out the one top folder that all members share, as sdists have it.

    Returns:
        How many members were dropped because they are links or devices.

    Raises:
        InputFault: if it is no whole archive, a member's name leaves the folder, it has more than `MAX_MEMBERS`
            members, or they unpack to more than `MAX_BYTES`.
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
            f"not a whole archive ({error or type(error).__name__})",
            where=str(archive),
            cure="give a .tar, .tar.gz, .tar.bz2, .tar.xz or .zip file; it may be cut off",
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
    """A header that is refused before a long one is read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type in _LONG_HEADERS and header.size > _MAX_HEADER:
            raise tarfile.ReadError(f"a header of {header.size >> 20} MiB")
        return header


def _check_dictionary(archive: Path) -> None:
    """Raise `lzma.LZMAError` if an xz archive asks for more memory than unpacking is worth."""
    with explained(archive), archive.open("rb") as stream:
        start = stream.read(1 << 12)
    if start.startswith(b"\xfd7zXZ"):
        lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_DICTIONARY).decompress(start, max_length=1)


def _within_limits(members: Iterable[tuple[_Member, int]], archive: Path) -> list[_Member]:
    """Return the members, given with their sizes, of an archive that is no larger than it may be."""
    listed: list[_Member] = []
    size = 0
    for member, length in members:
        listed.append(member)
        size += length
        if len(listed) > MAX_MEMBERS:
            raise InputFault(f"has more than {MAX_MEMBERS} members", where=str(archive), cure=_TRUST)
        if size > MAX_BYTES:
            raise InputFault(f"unpacks to more than {MAX_BYTES >> 20} MiB", where=str(archive), cure=_TRUST)
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
            f"its member {name!r} lies outside the folder it unpacks to",
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
