"""Writes sandbox/docker/seccomp.json, the system calls that a container may make: python -m scripts.seccomp_profile.

The profile allows the calls that the guest's own filter allows (`sandbox.guest.permitted`), and those that install this
filter. It also protects images without a guest. Other calls fail, by default with EPERM, so a call of a later kernel is
refused until it is added here. BLOCKED lists the calls that must never be allowed, with reasons; a test checks it. Only
the machine's own 64-bit ABI is allowed, because the 32-bit `socketcall` bypasses a filter on `socket`: a filter cannot
read its arguments. Comparisons use only an argument's low half, because Docker's filter compares 64 bits although the
kernel reads only 32 of an `int`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from ctxbench.sandbox.guest import permitted, seccomp
from ctxbench.sandbox.guest.seccomp import ALLOWED

OUT = Path(__file__).resolve().parents[1] / "sandbox" / "docker" / "seccomp.json"

BLOCKED: dict[str, str] = {
    "other processes' memory and descriptors": """
        ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp""",
    "large and often broken parts of the kernel": "io_uring_setup io_uring_enter io_uring_register userfaultfd bpf",
    "asynchronous I/O, which uses one pool of the machine": """
        io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy""",
    "the machine's disks": "sync syncfs",
    "new namespaces and mounts": """
        unshare setns mount umount2 mount_setattr move_mount open_tree fsopen fsconfig fsmount fspick pivot_root
        chroot""",
    "keys, which are not namespaced": "add_key keyctl request_key",
    "shared memory and queues that outlive a job": """
        shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
        mq_timedsend mq_timedreceive mq_notify mq_getsetattr""",
    "the machine itself": """
        reboot kexec_load kexec_file_load init_module finit_module delete_module swapon swapoff acct quotactl
        quotactl_fd settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog vhangup
        iopl ioperm""",
    "observation of the machine": "perf_event_open fanotify_init fanotify_mark lookup_dcookie",
    "access to files by handle instead of name": "open_by_handle_at name_to_handle_at",
    "the processor's old modes, memory that cannot be read back": "modify_ldt memfd_secret",
    "the placement of memory on NUMA nodes": "mbind migrate_pages move_pages set_mempolicy get_mempolicy",
}

_JUDGED = {"clone", "socket", "socketpair", "setsockopt", "ioctl", "mmap", "memfd_create", "personality"}
"""Calls that are allowed with some arguments only, as in `permitted.RULES`."""
_ENOSYS = 38
_BITS = 32
_WHOLE = (1 << _BITS) - 1


def profile() -> dict[str, Any]:
    """Return the profile in Docker's format."""
    rules: list[dict[str, Any]] = [
        {"comment": why, "names": sorted(set(names.split()) - _JUDGED), "action": "SCMP_ACT_ALLOW"}
        for why, names in ALLOWED.items()
    ]
    rules += [_rule("for the guest's own filter", ["seccomp"]), *_by_argument()]
    rules += [
        _answer(
            "clone3's flags are behind a pointer: C libraries use clone if the call does not exist",
            ["clone3"],
            _ENOSYS,
        ),
        _answer("as on a kernel without AIO", ["io_setup", "io_submit", "io_getevents", "io_pgetevents"], _ENOSYS),
        _answer("a box has no files on a disk", ["sync", "syncfs"], 0),
    ]
    natives = [{"architecture": f"SCMP_ARCH_{name}", "subArchitectures": []} for name in ("X86_64", "AARCH64")]
    return {"defaultAction": "SCMP_ACT_ERRNO", "archMap": natives, "syscalls": rules}


def _by_argument() -> Iterator[dict[str, Any]]:
    """Yield the rules for calls that depend on their arguments. A call is allowed if one rule matches."""
    for family, types in permitted.SOCKETS.items():
        for number, protocols in types.items():
            for protocol in protocols:
                kind = _argument(0, family), _argument(1, number, permitted.SOCKET_TYPE), _argument(2, protocol)
                yield _rule(
                    f"sockets of family {family}, type {number}, protocol {protocol}", ["socket", "socketpair"], *kind
                )
    for why, call, argument, bits in (
        ("threads and processes in no new namespace", "clone", 0, seccomp.NAMESPACES),
        ("memory, but no huge pages", "mmap", 3, permitted.HUGE_PAGES),
        ("files in memory, but not in huge pages", "memfd_create", 1, permitted.HUGE_FILES),
    ):
        yield _rule(why, [call], _argument(argument, 0, bits))
    for value in (0, _WHOLE):
        yield _rule("reading the personality", ["personality"], _argument(0, value))
    for request in _all_but(1, permitted.MODULE_REQUESTS):
        yield _rule("requests that load no modules", ["ioctl"], request)
    for level in _all_but(1, [permitted.SOL_SOCKET]):
        yield _rule("options of protocols", ["setsockopt"], level)
    of_sockets = _argument(1, permitted.SOL_SOCKET)
    for option in _all_but(2, [*permitted.IGNORED_OPTIONS, *permitted.REFUSED_OPTIONS]):
        yield _rule("options of sockets", ["setsockopt"], of_sockets, option)
    for ignored in permitted.IGNORED_OPTIONS:
        where = {"args": [of_sockets, _argument(2, ignored)]}
        yield {**_answer("ignored: buffers keep their sizes", ["setsockopt"], 0), **where}


def _rule(why: str, names: list[str], *arguments: dict[str, Any]) -> dict[str, Any]:
    rule = {"comment": why, "names": names, "action": "SCMP_ACT_ALLOW"}
    return {**rule, "args": list(arguments)} if arguments else rule


def _answer(why: str, names: list[str], error: int) -> dict[str, Any]:
    return {"comment": why, "names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error}


def _argument(index: int, value: int, mask: int = _WHOLE) -> dict[str, Any]:
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}


def _all_but(index: int, values: Collection[int]) -> Iterator[dict[str, Any]]:
    """Yield conditions, one per first differing bit. One holds unless the argument is one of the values."""
    for bit in reversed(range(_BITS)):
        beginnings = {value >> bit for value in values}
        for other in sorted({beginning ^ 1 for beginning in beginnings} - beginnings):
            yield _argument(index, other << bit, _WHOLE >> bit << bit)


def written() -> str:
    """Return the seccomp profile as JSON text, one rule per line."""
    whole = profile()
    rules = ",\n  ".join(json.dumps(rule) for rule in whole.pop("syscalls"))
    return f'{json.dumps(whole)[:-1]},\n "syscalls": [\n  {rules}\n ]}}\n'


if __name__ == "__main__":
    OUT.write_text(written(), encoding="utf-8")
    print(f"{OUT}: {sum(len(rule['names']) for rule in profile()['syscalls'])} calls allowed", file=sys.stderr)
