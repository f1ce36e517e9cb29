"""A system-call filter for cells: no new sockets, no looking into other processes, no shared kernel objects.

It closes what Landlock leaves open: UDP and Unix sockets (a container engine's socket among them),
files opened by handle, and memory, queues, keys or attributes by which one cell could leave a note
for a later one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_ARCHITECTURE, _NUMBER = 4, 0
"""Offsets in ``struct seccomp_data``."""
_X32 = 0x40000000

_X86_64 = {
    "socket": 41,
    "shmget": 29,
    "shmat": 30,
    "semget": 64,
    "msgget": 68,
    "ptrace": 101,
    "mount": 165,
    "setxattr": 188,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "mq_open": 240,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "pidfd_getfd": 438,
}
_AARCH64 = {
    "socket": 198,
    "shmget": 194,
    "shmat": 196,
    "semget": 190,
    "msgget": 186,
    "ptrace": 117,
    "mount": 40,
    "setxattr": 5,
    "lsetxattr": 6,
    "fsetxattr": 7,
    "mq_open": 180,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "unshare": 97,
    "perf_event_open": 241,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "bpf": 280,
    "userfaultfd": 282,
    "io_uring_setup": 425,
    "pidfd_getfd": 438,
}
_TABLES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict() -> None:
    """Refuse the listed calls with EPERM to this thread and its future children, for good.

    Raises:
        OSError: if the kernel or the architecture has no such filter; nothing is refused then.
    """
    table = _TABLES.get(platform.machine()) if sys.platform.startswith("linux") else None
    if table is None:
        raise OSError(errno.ENOSYS, "no system-call table for this machine")
    code = _program(*table)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0
    ):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _program(architecture: int, calls: dict[str, int]) -> bytes:
    """Return the filter: another architecture ends the process, a listed call fails, the rest goes through."""
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, len(calls) + 1, 0, _X32),
    ]
    numbers = sorted(calls.values())
    lines += [(_EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
