"""Fills, empties and inspects a job's folders, whatever the job has put into them."""

from __future__ import annotations

import fcntl
import itertools
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_NAMES = itertools.count()
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
"""FS_IOC_GETFLAGS and FS_IOC_SETFLAGS, on x86-64 and ARM64."""
_FLAGS = struct.Struct("=Q")


def make(folders: Iterable[str]) -> None:
    """Create folders that only this user may enter."""
    for folder in folders:
        Path(folder).mkdir(mode=0o700)


def write(folder: str, listing: list[list[Any]], content: memoryview) -> None:
    """Write files below a folder; scripts, which start with ``#!``, are executable.

    Args:
        folder: the folder.
        listing: path and size of each file, in order.
        content: the bytes of all files, joined.

    Raises:
        OSError: if a file cannot be written, for example because the disk is full.
        ValueError: if a path leads out of the folder, or bytes are missing.
    """
    folders = {""}
    for path, size in listing:
        parent, _, name = path.rpartition("/")
        if not name or {"..", "."} & set(path.split("/")) or path.startswith("/"):
            raise ValueError(f"a file cannot be called {path!r}")
        if parent not in folders:
            Path(folder, parent).mkdir(parents=True, exist_ok=True)
            folders.add(parent)
        if len(content) < size:
            raise ValueError(f"{path}: bytes are missing")
        mode = 0o755 if bytes(content[: min(2, size)]) == b"#!" else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(f"{folder}/{path}", flags, mode), "wb", buffering=0) as file:
            unwritten = content[:size]
            while unwritten:
                unwritten = unwritten[file.write(unwritten) :]
        content = content[size:]


def empty(folder: str) -> None:
    """Remove everything in a folder, whatever its depth, permissions or names; the folder itself stays.

    Inner folders are first made accessible and moved up into this folder, so that no path is deep.

    Raises:
        OSError: if an entry cannot be removed.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        waiting = _flatten(top, top)
        while waiting:
            name = waiting.pop()
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                waiting += _flatten(inner, top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def state(folder: str) -> tuple[int, int]:
    """Return a folder's mode and its chattr flags; flags are 0 if its file system has none."""
    return stat.S_IMODE(os.stat(folder).st_mode), _flags(folder)  # noqa: PTH116 - this module uses os throughout


def settle(folder: str, mode: int, flags: int) -> None:
    """Restore a folder's mode and flags, zero its times and remove extended attributes: jobs could leave data there.

    Raises:
        OSError: if a step fails.
    """
    os.chmod(folder, mode)  # noqa: PTH101 - as above
    for name in os.listxattr(folder):
        os.removexattr(folder, name)
    if _flags(folder) != flags:
        _flags(folder, _SET_FLAGS, flags)
    os.utime(folder, (0, 0))


def _flags(folder: str, request: int = _GET_FLAGS, flags: int = 0) -> int:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return int(_FLAGS.unpack(fcntl.ioctl(handle, request, _FLAGS.pack(flags)))[0])
    except OSError:
        if request == _SET_FLAGS:
            raise
        return 0
    finally:
        os.close(handle)


def _flatten(inner: int, top: int) -> list[bytes]:
    """Remove the files of `inner`, move its folders to `top`, and return their names there."""
    moved = []
    with os.scandir(inner) as entries:
        names = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in names:
        if not is_folder:
            os.unlink(name, dir_fd=inner)
            continue
        _open_up(name, inner)
        new = b".ctxbench-%d-%d" % (os.getpid(), next(_NAMES))
        os.rename(name, new, src_dir_fd=inner, dst_dir_fd=top)
        moved.append(new)
    return moved


def _open_up(name: bytes, inner: int) -> None:
    # It is not a link: no process is left that could have changed it since it was listed.
    if stat.S_IMODE(os.stat(name, dir_fd=inner, follow_symlinks=False).st_mode) & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=inner)


def used(folder: str) -> tuple[int, int]:
    """Return the blocks and inodes in use in a folder's file system, including those of files without a name."""
    status = os.statvfs(folder)
    return status.f_blocks - status.f_bfree, status.f_files - status.f_ffree
