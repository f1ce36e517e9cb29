"""The system-call filter of a box: the calls and arguments that a job may use. All others are refused.

It also blocks what a box could otherwise take from the whole machine without any limit: the pool of asynchronous I/O,
huge pages, the memory of compiled filters, and socket buffers beyond their default. It also blocks writing back the
machine's disks, and loading kernel modules for a kind of socket or a request of `ioctl`.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import seccomp
from .seccomp import (
    ALLOW,
    ALLOWED,
    ANY_BIT,
    AT_LEAST,
    EQUAL,
    ERROR,
    FIRST_ARGUMENT,
    LOAD,
    MASK,
    NEWEST,
    NUMBERS,
    RETURN,
    Line,
)

_UNIX, _INET, _INET6 = seccomp.FAMILIES
SOCKETS: dict[int, dict[int, tuple[int, ...]]] = {
    _UNIX: dict.fromkeys((1, 2, 3, 5), (0, 1)),
    _INET: {1: (0, 6), 2: (0, 1, 17)},
    _INET6: {1: (0, 6), 2: (0, 17)},
}
"""Families, their types, and the protocols of each type: the family's own, TCP, ICMP (without capabilities, an echo),
UDP. For all others the kernel would look for a module of the machine."""
SOCKET_TYPE = 0xF
"""Bits of `socket`'s second argument that are the type."""
MODULE_REQUESTS = (0x5423, 0x8940, 0x8941, 0x8980, 0x8981, 0x8982, 0x8983, 0x89A0, 0x89A1)
"""Requests of `ioctl` that load kernel modules: TIOCSETD, and a socket's for bridges, frame relay and VLANs."""
SOL_SOCKET = 1
IGNORED_OPTIONS = (7, 8)
"""SO_SNDBUF and SO_RCVBUF, which are hints: a machine may allow megabytes per socket, outside the box's memory."""
REFUSED_OPTIONS = (26, 50, 51, 52)
"""Filters on sockets: the whole machine has one small memory pool for compiled filters."""
HUGE_PAGES, HUGE_FILES = 0x40000, 0x4
"""MAP_HUGETLB of `mmap`, MFD_HUGETLB of `memfd_create`: such pages belong to the machine, set aside for others."""
REFUSED_PROCESS_OPTIONS = (22, 35, 62, 67)
"""Options of `prctl`: further filters (see `REFUSED_OPTIONS`), the memory layout, a processor core's other half, memory
that is merged with other processes'."""
_MERGEABLE = 12
_LOCKS_OF_FILES = (37, 38)
"""F_OFD_SETLK and F_OFD_SETLKW: the owner of such a lock is unknown, so the watchdog could not count it."""
_OF_A_PROCESS = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
"""Calls whose first argument is a process, 0 for the caller."""
_PROCESS, _PROCESS_OF_IO = 0, 1
"""PRIO_PROCESS, IOPRIO_WHO_PROCESS; others are groups and users."""
_ASK = 0xFFFFFFFF
"""Argument of `personality` that only asks for its value."""
_WHOLE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """A test of the low half of a system call's argument. All flags and numbers tested here are in that half."""

    argument: int
    among: tuple[int, ...] = ()
    apart_from: tuple[int, ...] = ()
    bits: int = 0
    """The test is true if any of these bits is set. Only one of `among`, `apart_from` and `bits` is given."""
    mask: int = _WHOLE
    """Bits that are compared with `among` or `apart_from`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: if all tests are true, the kernel answers a system call without making it."""

    call: str
    answer: int
    """Error number of the answer; 0 for success."""
    tests: tuple[ArgumentTest, ...] = ()


def _of_sockets(call: str) -> Iterator[Rule]:
    yield Rule(call, errno.EAFNOSUPPORT, (ArgumentTest(0, apart_from=tuple(SOCKETS)),))
    for family, types in SOCKETS.items():
        its = ArgumentTest(0, among=(family,))
        yield Rule(call, errno.ESOCKTNOSUPPORT, (its, ArgumentTest(1, apart_from=tuple(types), mask=SOCKET_TYPE)))
        for number, protocols in types.items():
            typed = ArgumentTest(1, among=(number,), mask=SOCKET_TYPE)
            yield Rule(call, errno.EPROTONOSUPPORT, (its, typed, ArgumentTest(2, apart_from=protocols)))


RULES = (
    Rule("clone", errno.EPERM, (ArgumentTest(0, bits=seccomp.NAMESPACES),)),
    # Its flags are behind a pointer: report that the call does not exist, and C libraries use clone.
    Rule("clone3", errno.ENOSYS),
    *_of_sockets("socket"),
    *_of_sockets("socketpair"),
    Rule("ioctl", errno.EPERM, (ArgumentTest(1, among=MODULE_REQUESTS),)),
    Rule("setsockopt", 0, (ArgumentTest(1, among=(SOL_SOCKET,)), ArgumentTest(2, among=IGNORED_OPTIONS))),
    Rule("setsockopt", errno.EPERM, (ArgumentTest(1, among=(SOL_SOCKET,)), ArgumentTest(2, among=REFUSED_OPTIONS))),
    Rule("mmap", errno.EPERM, (ArgumentTest(3, bits=HUGE_PAGES),)),
    Rule("memfd_create", errno.EPERM, (ArgumentTest(1, bits=HUGE_FILES),)),
    Rule("madvise", errno.EINVAL, (ArgumentTest(2, among=(_MERGEABLE,)),)),
    Rule("prctl", errno.EPERM, (ArgumentTest(0, among=REFUSED_PROCESS_OPTIONS),)),
    Rule("fcntl", errno.EINVAL, (ArgumentTest(1, among=_LOCKS_OF_FILES),)),
    Rule("personality", errno.EPERM, (ArgumentTest(0, apart_from=(0, _ASK)),)),
    # Guest and supervisor have the same user: later jobs would inherit what is set for them.
    *(Rule(call, errno.EPERM, (ArgumentTest(0, apart_from=(0,)),)) for call in _OF_A_PROCESS),
    Rule("setpriority", errno.EPERM, (ArgumentTest(0, apart_from=(_PROCESS,)),)),
    Rule("setpriority", errno.EPERM, (ArgumentTest(1, apart_from=(0,)),)),
    Rule("ioprio_set", errno.EPERM, (ArgumentTest(0, apart_from=(_PROCESS_OF_IO,)),)),
    Rule("ioprio_set", errno.EPERM, (ArgumentTest(1, apart_from=(0,)),)),
    *(Rule(call, errno.ENOSYS) for call in ("io_setup", "io_submit", "io_getevents", "io_pgetevents")),
    # A box's files are in memory, so these calls would only write back the machine's disks.
    *(Rule(call, 0) for call in ("sync", "syncfs")),
)


def restrict(*, absent: Iterable[str] = ()) -> None:
    """Let this thread and its future children make only the system calls that a job may make, for good.

    Args:
        absent: further calls that fail with ENOSYS.

    Raises:
        OSError: if the kernel has no filters, or `NUMBERS` lacks this machine; nothing is refused then.
    """
    seccomp.install(program(*seccomp.machine(), absent))


def program(architecture: int, column: int, absent: Iterable[str] = ()) -> bytes:
    """Return the filter: rules, then allowed calls. Calls after `NEWEST` fail with ENOSYS, others with EPERM."""
    rules = [*(Rule(call, errno.ENOSYS) for call in absent), *RULES]
    lines: list[Line] = seccomp.opening(architecture)
    for call in dict.fromkeys(rule.call for rule in rules):
        if (number := NUMBERS[call][column]) is not None:
            block = [line for rule in rules if rule.call == call for line in _answered(rule)]
            lines += [(EQUAL, 0, len(block) + 1, number), *block, (RETURN, 0, 0, ALLOW)]
    for first, last in _ranges(column):
        lines += [(AT_LEAST, 0, 2, first), (AT_LEAST, 1, 0, last + 1), (RETURN, 0, 0, ALLOW)]
    lines += [(AT_LEAST, 0, 1, NEWEST + 1), (RETURN, 0, 0, ERROR | errno.ENOSYS), (RETURN, 0, 0, ERROR | errno.EPERM)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _answered(rule: Rule) -> list[Line]:
    """Return the lines that answer a call by a rule, or continue behind them."""
    block: list[Line] = [(RETURN, 0, 0, ERROR | rule.answer)]
    for test in reversed(rule.tests):
        block = [(LOAD, 0, 0, FIRST_ARGUMENT + 8 * test.argument), *_tested(test, len(block)), *block]
    return block


def _tested(test: ArgumentTest, length: int) -> list[Line]:
    """Return the lines that skip the next `length` lines unless a test is true."""
    if test.bits:
        return [(ANY_BIT, 0, length, test.bits)]
    values = test.among or test.apart_from
    hit, missed = (0, length) if test.among else (length, 0)
    behind = range(len(values) - 1, -1, -1)
    masked: list[Line] = [(MASK, 0, 0, test.mask)] if test.mask != _WHOLE else []
    return masked + [
        (EQUAL, remaining + hit, 0 if remaining else missed, value)
        for remaining, value in zip(behind, values, strict=True)
    ]


def _ranges(column: int) -> list[tuple[int, int]]:
    names = [name for group in ALLOWED.values() for name in group.split()]
    ranges: list[tuple[int, int]] = []
    for number in sorted(call_number for name in names if (call_number := NUMBERS[name][column]) is not None):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges
