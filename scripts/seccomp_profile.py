"""Write sandbox/docker/seccomp.json, the system calls that a container may make: python -m scripts.seccomp_profile.

They are those of the guest's own filter (`sandbox.guest.permitted`), and what the guest needs to install that:
images that are taken as they stand have no guest. Everything else fails with EPERM, so a call that a later kernel
adds is refused until somebody names it. What is left out on purpose, and why, stands in BLOCKED: a test checks that
none of it is allowed. Only the machine's own 64-bit ABI is there: a filter on `socket` can be passed by the 32-bit
`socketcall`, whose arguments a filter cannot read.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxbench.sandbox.guest import permitted, seccomp
from ctxbench.sandbox.guest.syscalls import ALLOWED

OUT = Path(__file__).resolve().parents[1] / "sandbox" / "docker" / "seccomp.json"

BLOCKED: dict[str, str] = {
    "other processes' memory and descriptors": """
        ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp""",
    "large and often broken parts of the kernel": "io_uring_setup io_uring_enter io_uring_register userfaultfd bpf",
    "asynchronous I/O, of which the machine has one pool": """
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
    "files past their names": "open_by_handle_at name_to_handle_at",
    "the processor's old modes, memory that cannot be read back": "modify_ldt memfd_secret",
    "placing memory on nodes": "mbind migrate_pages move_pages set_mempolicy get_mempolicy",
}

_JUDGED = {"clone", "socket", "socketpair", "setsockopt", "mmap", "memfd_create", "personality"}
"""Calls that are allowed with some arguments only, as `permitted.RULES` has it."""
_ENOSYS = 38


def profile() -> dict[str, Any]:
    """Return the profile as Docker reads it."""
    rules: list[dict[str, Any]] = [
        {"comment": why, "names": sorted(set(names.split()) - _JUDGED), "action": "SCMP_ACT_ALLOW"}
        for why, names in ALLOWED.items()
    ]
    rules += [_rule("for the guest's own filter", ["seccomp"]), *_by_argument()]
    rules += [
        _answer(
            "its flags are behind a pointer: say that there is none, and C libraries use clone", ["clone3"], _ENOSYS
        ),
        _answer("as on a kernel without it", ["io_setup", "io_submit", "io_getevents", "io_pgetevents"], _ENOSYS),
        _answer("nothing of a box is on a disk", ["sync", "syncfs"], 0),
    ]
    natives = [{"architecture": f"SCMP_ARCH_{name}", "subArchitectures": []} for name in ("X86_64", "AARCH64")]
    return {"defaultAction": "SCMP_ACT_ERRNO", "archMap": natives, "syscalls": rules}


def _by_argument() -> Iterator[dict[str, Any]]:
    """Yield what is allowed of the calls that are judged by their arguments; one of the rules must hold."""
    families = {name: value for name, value in vars(socket).items() if name in ("AF_UNIX", "AF_INET", "AF_INET6")}
    for name, family in families.items():
        for protocol in permitted.PROTOCOLS:
            kind = (_argument(0, family, "EQ"), _argument(2, protocol, "EQ"))
            yield _rule(f"sockets of {name}, protocol {protocol}", ["socket", "socketpair"], *kind)
    for why, call, argument, bits in (
        ("threads and processes in no new namespace", "clone", 0, seccomp.NAMESPACES),
        ("memory, but no huge pages", "mmap", 3, permitted.HUGE_PAGES),
        ("files in memory, but none of huge pages", "memfd_create", 1, permitted.HUGE_FILES),
    ):
        yield _rule(why, [call], {"index": argument, "value": bits, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"})
    for value in (0, 0xFFFFFFFF):
        yield _rule("ask for the personality", ["personality"], _argument(0, value, "EQ"))
    plain = _argument(1, permitted.SOL_SOCKET, "NE")
    yield _rule("options of protocols", ["setsockopt"], plain)
    of_sockets = _argument(1, permitted.SOL_SOCKET, "EQ")
    closed = {*permitted.IGNORED_OPTIONS, *permitted.REFUSED_OPTIONS}
    for option in sorted(set(range(max(closed))) - closed):
        yield _rule(f"option {option} of sockets", ["setsockopt"], of_sockets, _argument(2, option, "EQ"))
    yield _rule("later options of sockets", ["setsockopt"], of_sockets, _argument(2, max(closed), "GT"))
    for option in permitted.IGNORED_OPTIONS:
        where = {"args": [of_sockets, _argument(2, option, "EQ")]}
        yield {**_answer("buffers stay as they are", ["setsockopt"], 0), **where}


def _rule(why: str, names: list[str], *arguments: dict[str, Any]) -> dict[str, Any]:
    rule = {"comment": why, "names": names, "action": "SCMP_ACT_ALLOW"}
    return {**rule, "args": list(arguments)} if arguments else rule


def _answer(why: str, names: list[str], error: int) -> dict[str, Any]:
    return {"comment": why, "names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error}


def _argument(index: int, value: int, how: str) -> dict[str, Any]:
    return {"index": index, "value": value, "op": f"SCMP_CMP_{how}"}


def written() -> str:
    """Return the profile as text, a rule on a line."""
    whole = profile()
    rules = ",\n  ".join(json.dumps(rule) for rule in whole.pop("syscalls"))
    return f'{json.dumps(whole)[:-1]},\n "syscalls": [\n  {rules}\n ]}}\n'


if __name__ == "__main__":
    OUT.write_text(written(), encoding="utf-8")
    print(f"{OUT}: {sum(len(rule['names']) for rule in profile()['syscalls'])} calls allowed", file=sys.stderr)
