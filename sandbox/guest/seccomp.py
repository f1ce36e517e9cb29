"""A system-call filter: no looking into other processes, no shared kernel objects, no namespaces, few sockets.

It closes what Landlock leaves open: other families of sockets, files opened by handle, and memory,
queues or keys by which one job could leave a note for a later one. The 64-bit calls only: another
architecture's would pass by the filter, so a process that makes one is killed.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import socket
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .syscalls import NUMBERS

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, MASK, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
KILL, ERROR, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
ARCHITECTURE, NUMBER, FIRST_ARGUMENT = 4, 0, 16
"""Offsets in ``struct seccomp_data``; of an argument the low half, which both machines store first."""
_X32 = 0x40000000
NAMESPACES = 0x7E020000
"""Every ``CLONE_NEW…`` that `clone` knows."""
FAMILIES = (int(socket.AF_UNIX), int(socket.AF_INET), int(socket.AF_INET6))
"""Families of sockets that a job may have."""
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""What the kernel calls a machine, and its column of `NUMBERS`."""

Line = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRule:
    """A call that is judged by one of its arguments."""

    call: str
    argument: int
    """Which one, from 0; its low half is looked at."""
    passed: tuple[int, ...] = ()
    """Values with which it goes through."""
    pretended: tuple[int, ...] = ()
    """Values with which it is answered as done, and is not."""
    error: int = errno.EPERM
    """What any other value is answered with."""
    all_bits: tuple[int, ...] = ()
    """Instead of `passed` and `pretended`: it goes through unless its argument has all of these bits."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict(
    refused: Iterable[str],
    *,
    absent: Iterable[str] = (),
    families: Sequence[int] | None = None,
    judged: Sequence[ArgumentRule] = (),
    newest: int | None = None,
) -> None:
    """Filter the calls of this thread and its future children, for good.

    Args:
        refused: calls that fail with EPERM.
        absent: calls that fail with ENOSYS, as on a kernel without them.
        families: the only families of sockets there are, and no new namespaces; None leaves both alone.
        judged: calls that pass with some arguments only.
        newest: the number from which on calls are absent too, whatever a later kernel makes of them; None for none.

    Raises:
        OSError: if the kernel or the machine has no such filter; nothing is refused then.
    """
    install(program(*machine(), refused, absent, families, judged, newest))


def refusal(refused: Iterable[str]) -> bytes:
    """Return the program of a filter by which calls fail with EPERM, to be installed by any number of processes.

    Raises:
        OSError: if there is no table of calls for this machine.
    """
    return program(*machine(), refused)


def machine() -> tuple[int, int]:
    """Return what the kernel calls this machine, and its column of `NUMBERS`.

    Raises:
        OSError: if there is no table of calls for it, or for programs of 32 bits as this one.
    """
    name = platform.machine()
    # What the personality of `setarch` makes the kernel say; the calls of a program of 64 bits stay the same.
    name = {"i686": "x86_64", "armv8l": "aarch64"}.get(name, name)
    if not sys.platform.startswith("linux") or name not in MACHINES or sys.maxsize < 1 << 32:
        raise OSError(errno.ENOSYS, f"no table of system calls for {name} with {sys.maxsize.bit_length() + 1} bits")
    return MACHINES[name]


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def install(code: bytes) -> None:
    """Filter the calls of this thread and its future children by a program, for good.

    Raises:
        OSError: if the kernel has no filters; nothing is refused then.
    """
    libc = _libc()
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0
    ):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def program(
    architecture: int,
    column: int,
    refused: Iterable[str],
    absent: Iterable[str] = (),
    families: Sequence[int] | None = None,
    judged: Sequence[ArgumentRule] = (),
    newest: int | None = None,
) -> bytes:
    """Return the filter: another architecture ends the process, a listed call fails, the rest goes through."""
    lines = opening(architecture)
    if newest is not None:
        lines += [(AT_LEAST, 0, 1, newest), (RETURN, 0, 0, ERROR | errno.ENOSYS)]
    for error, names in ((errno.EPERM, refused), (errno.ENOSYS, absent)):
        for number in sorted(_numbers(names, column)):
            lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | error)]
    rules = list(judged)
    if families is not None:
        [clone] = _numbers(["clone"], column)
        lines += _namespaces(clone)
        rules.append(ArgumentRule(call="socket", argument=0, passed=tuple(families), error=errno.EAFNOSUPPORT))
    for rule in rules:
        for number in _numbers([rule.call], column):
            lines += _judged(number, rule)
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def opening(architecture: int) -> list[Line]:
    """Return how every filter begins: another architecture ends the process; then the call's number is at hand."""
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, _X32),
        (RETURN, 0, 0, ERROR | errno.EPERM),
    ]


def _numbers(names: Iterable[str], column: int) -> list[int]:
    return [number for name in names if (number := NUMBERS[name][column]) is not None]


def _namespaces(number: int) -> list[Line]:
    return [
        (EQUAL, 0, 4, number),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (ANY_BIT, 0, 1, NAMESPACES),
        (RETURN, 0, 0, ERROR | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]


def _judged(number: int, rule: ArgumentRule) -> list[Line]:
    block: list[Line] = [(LOAD, 0, 0, FIRST_ARGUMENT + 8 * rule.argument)]
    for verdict, values in ((ALLOW, rule.passed), (ERROR, rule.pretended)):
        for value in values:
            block += [(EQUAL, 0, 1, value), (RETURN, 0, 0, verdict)]
    block += [(ANY_BIT, 0, len(rule.all_bits) - at, bit) for at, bit in enumerate(rule.all_bits)]
    block.append((RETURN, 0, 0, ERROR | rule.error))
    if rule.all_bits:
        block.append((RETURN, 0, 0, ALLOW))
    return [(EQUAL, 0, len(block), number), *block]
