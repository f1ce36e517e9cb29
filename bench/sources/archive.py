"""Unpacking archives so that nothing is written outside the target folder.

Only regular files are written. Links and devices are dropped: no snapshot reads them, and without a link
no later member can be led outside. A member whose *name* leaves the folder condemns the whole archive.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from bench.errors import InputFault
from bench.files import explained

_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


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
        InputFault: if it is no whole archive, or a member's name leaves the folder.
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
            yield [_zip_member(file, info) for info in file.infolist()]
    else:
        with tarfile.open(archive) as tar:
            yield [_tar_member(tar, info) for info in tar.getmembers()]


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
        stream = member.open()
        if stream is not None:
            with stream, target.open("wb") as out:
                shutil.copyfileobj(stream, out)
