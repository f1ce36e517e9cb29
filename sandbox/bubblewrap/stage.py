"""``python -I -S -B stage.py JSON``: joins the control group, mounts file systems, drops root, and starts bwrap.

bwrap cannot do this itself:

- Its tmpfs has no limit on inodes, and an empty file costs kernel memory.
- The socket limits must be set before processes in the box could change them.
- It must not run as root: a box of uid 0 has no limit on processes and owns files of ``/proc/sys``. But an unprivileged
  uid cannot enter a home such as ``/root``, where the interpreter may be. So the box's files are bound first.

For a plain user, this program does the same in a new user namespace. It imports only the standard library.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import struct
import sys
from typing import Any

_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _BIND, _REC, _PRIVATE = 2, 4, 4096, 16384, 1 << 18
_INET, _DATAGRAM, _SIOCSIFFLAGS, _UP = 2, 2, 0x8914, 0x1
_OF_A_USER = (("max_inotify_instances", 16), ("max_inotify_watches", 8192))
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Stage a box as the JSON in the first argument specifies. On an error, print it and exit with 125."""
    try:
        _become(json.loads(sys.argv[1]))
    except OSError as error:
        sys.stderr.write(f"the box could not be staged: {error}\n")
        sys.exit(125)


def _become(spec: dict[str, Any]) -> None:
    """Create the namespaces, run bwrap in a child that is the first process of its namespace, and wait for it.

    When the first process of a pid namespace dies, the kernel kills all others. So nothing survives while bwrap starts.
    """
    _enter(spec["uid"])
    _die_with_parent()
    if os.getppid() != spec["parent"]:
        sys.exit(125)
    lifeline, write_end = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            os.close(write_end)
            _exec(spec, lifeline)
        except OSError as error:
            sys.stderr.write(f"the box could not be staged: {error}\n")
            sys.stderr.flush()
        finally:
            os._exit(125)
    os.closerange(0, 3)  # the box's streams: readers must see their end with the box
    os.write(spec["status"], str(first).encode())
    os.close(spec["status"])
    code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    os._exit(128 - code if code < 0 else code)


def _exec(spec: dict[str, Any], lifeline: int) -> None:
    os.close(spec["status"])
    # A box finds the same handlers however the harness was started: background jobs of a shell ignore interrupts.
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    for path in spec["groups"]:
        _write(path, "0")
    _connect(spec["settings"])
    uid = spec["uid"]
    _mount(None, "/", None, _REC | _PRIVATE)
    stage = spec["stage"]
    _mount("tmpfs", stage, "tmpfs", _NOSUID | _NODEV, "size=256k,nr_inodes=100,mode=755")
    for source, name in spec["binds"]:
        _bind(source, f"{stage}/{name}")
    owner = "" if uid is None else f",uid={uid},gid={uid}"
    for name, options in spec["tmpfs"]:
        os.mkdir(f"{stage}/{name}")  # noqa: PTH102 - pathlib costs each box some milliseconds
        _mount("tmpfs", f"{stage}/{name}", "tmpfs", _NOSUID | _NODEV, options + owner)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _die_with_parent()  # the change of user has cleared it
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(125)  # its parent died before it asked
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))  # see `sandbox.guest.confine`
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores these, and a program inherits that
    os.umask(0o022)
    os.chdir("/")
    os.execve(spec["argv"][0], spec["argv"], {})  # noqa: S606 - no shell is wanted


def _die_with_parent() -> None:
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "death signal")


def _enter(uid: int | None) -> None:
    if uid is not None:
        _check(_libc.unshare(_NEWNS | _NEWPID | _NEWNET), "mount namespace")
        return
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEWNS | _NEWPID | _NEWNET | _NEWUSER), "user namespace")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {user} 1")
    _write("/proc/self/gid_map", f"0 {group} 1")
    # All boxes of a plain user have the same uid, so a single box may use only a part of the user's limits.
    for name, most in _OF_A_USER:
        _write(f"/proc/sys/user/{name}", str(most))


def _connect(settings: list[list[str]]) -> None:
    """Bring up the loopback, the box's only network interface, and limit its sockets."""
    # Importing Python's socket module would cost each box some milliseconds.
    handle = _libc.socket(_INET, _DATAGRAM, 0)
    fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _UP))
    os.close(handle)
    for path, text in settings:
        _write(path, text)


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.mkdir(target)  # noqa: PTH102
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    _mount(source, target, None, _BIND | _REC)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    raw = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _check(_libc.mount(raw[0], raw[1], raw[2], ctypes.c_ulong(flags), raw[3]), f"mount on {target}")


def _check(result: int, what: str) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


if __name__ == "__main__":
    main()
