"""Landlock: a process gives up the right to most files, for itself and its children.

It works on Linux only, without privileges. It does *not* cover everything: names, sizes and times of files stay visible
(`stat` is not restricted), open file descriptors keep working, and UDP and Unix sockets are not covered before recent
kernels. That is why `sandbox.guest.seccomp` exists too.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import stat
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH, _GET_VERSION = 1, 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_BY_ABI = ((1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1)
"""All file rights of version 1, 2, 3, 4, and 5 or later."""
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NETWORK = 0b11
"""Binding and connecting TCP sockets."""
_SCOPES = 0b11
"""Abstract Unix sockets, and signals to processes outside."""


def abi() -> int:
    """Return the kernel's version of Landlock; 0 without it."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_GET_VERSION))))


def visible(hidden: Iterable[Path]) -> list[str]:
    """Return paths that together contain everything but `hidden`; folders that contain hidden paths are split up.

    Links are left out, because they might lead into what is hidden; their targets are listed by the real path. Whatever
    is created later beside a hidden path is hidden too.
    """
    secret = {Path(os.path.realpath(path)) for path in hidden}
    split = {parent for path in secret for parent in path.parents}
    paths: list[str] = []
    waiting = [Path("/")]
    while waiting:
        path = waiting.pop()
        if path in secret:
            continue
        if path not in split:
            paths.append(str(path))
            continue
        with contextlib.suppress(OSError):
            waiting += [path / entry.name for entry in os.scandir(path) if not entry.is_symlink()]
    return sorted(paths)


def restrict(readable: Sequence[str], writable: Sequence[str], *, tcp: bool = False) -> None:
    """Limit reads by this thread and its future children to both lists of paths, and writes to `writable`, for good.

    From Landlock version 4 on, TCP is refused unless `tcp`. From version 6 on, signals to processes outside and their
    abstract sockets are refused.

    Raises:
        OSError: if the kernel has no Landlock, or refuses; nothing is restricted then.
    """
    handle = ruleset(readable, writable, tcp=tcp)
    try:
        enforce(handle)
    finally:
        os.close(handle)


def ruleset(
    readable: Sequence[str], writable: Sequence[str], *, tcp: bool = False, listable: Sequence[str] = ()
) -> int:
    """Return a descriptor of the rules of `restrict`, which any number of processes can apply to themselves.

    Below `listable` only the names in folders may be read. An exec closes the descriptor. A rule applies to the folder
    that has the path now, not to a later one.

    Raises:
        OSError: if the kernel has no Landlock, or refuses.
    """
    version = abi()
    if not version:
        raise OSError("no Landlock here")
    handled = _ALL_BY_ABI[min(version, len(_ALL_BY_ABI)) - 1]
    attributes = struct.pack("=QQQ", handled, 0 if tcp else _NETWORK, _SCOPES)
    size = 8 if version < 4 else 16 if version < 6 else 24
    handle = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in readable:
            _allow(handle, path, (_EXECUTE | _READ_FILE | _READ_DIR) & handled)
        for path in writable:
            _allow(handle, path, handled & ~_IOCTL_DEV)
        for path in listable:
            _allow(handle, path, _READ_DIR)
    except BaseException:
        os.close(handle)
        raise
    return handle


def enforce(handle: int) -> None:
    """Apply the rules of a descriptor to this thread and its future children, for good.

    Raises:
        OSError: if the kernel refuses; nothing is restricted then.
    """
    if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    _call(_RESTRICT_SELF, ctypes.c_int(handle), ctypes.c_uint32(0))


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone meanwhile, or not accessible: it stays refused
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            access &= _FOR_FILES
        rule = struct.pack("=Qi", access, handle)
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc().syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
