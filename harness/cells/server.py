"""The fork server of cells: ``python -m ctxbench.harness.cells.server FD`` forks one process per job."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import mmap
import os
import pkgutil
import resource
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

from ctxbench import strategies
from ctxbench.bench import apis, languages
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.harness.cells import cell, kernel, protocol
from ctxbench.harness.cells.kernel import Namespaces
from ctxbench.harness.cells.protocol import GREETING, ORDER, RESERVE, START
from ctxbench.sandbox.guest import landlock, seccomp
from ctxbench.sandbox.guest.seccomp import REFUSED_TO_JOBS, ArgumentRule
from ctxbench.strategies import layout

_SYSTEM = ("/dev", "/proc", "/sys")
"""Folders hidden from cells, except `_SYSTEM_SHOWN`. From a disk device or kernel memory, root could read answers."""
_SYSTEM_SHOWN = (
    *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")),
    *(f"/proc/{name}" for name in ("cpuinfo", "version", "filesystems")),
    "/sys/devices/system/cpu",
)
_FURNISHING = ("mount", "unshare", "setns")
"""System calls that set up a cell's namespaces. The cell itself may not use them."""
_REFUSED_CALLS = (
    *sorted(REFUSED_TO_JOBS - {*_FURNISHING}),
    # With these calls, a cell could reach a container engine's socket or escape in other ways.
    *("socket", "pidfd_open", "pidfd_send_signal", "process_mrelease", "mknod", "mknodat"),
    # With these calls, a cell could leave data for a later cell.
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
    # With these calls, a cell could notice which files or resources another cell uses.
    *("inotify_init", "inotify_init1", "inotify_add_watch", "mincore", "fadvise64", "preadv2", "sysinfo"),
    # With these calls, a cell could slow down other cells.
    *("io_setup", "sync", "syncfs", "setpriority", "getpriority", "ioprio_set", "ioprio_get"),
    *("sched_setparam", "sched_setscheduler", "sched_setattr"),
)
_REFUSED_WITHOUT_NAMESPACES = (
    # Without namespaces, cells share files, and Landlock does not protect the files' times, rights and owners.
    *("utime", "utimes", "futimesat", "utimensat", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown"),
    *("fchownat", "statfs", "fstatfs", *_FURNISHING),
)
_DUPFD, _GETFD, _SETFD, _GETFL, _SETFL, _DUPFD_CLOEXEC, _ADD_SEALS, _GET_SEALS = 0, 1, 2, 3, 4, 1030, 1033, 1034
_LOCKS = (6, 7, 37, 38)
"""Numbers of ``F_SETLK``, ``F_SETLKW`` and their variants for open file descriptions."""
_TERMINAL, _SIZE, _AVAILABLE, _NON_BLOCKING, _NOT_CLOSED, _CLOSED = 0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451
_JUDGED = (
    # Other cells would see a lock on a shared file. A cell's writable files are private to it, so every lock is
    # reported as taken.
    ArgumentRule(
        call="fcntl",
        argument=1,
        passed=(_DUPFD, _GETFD, _SETFD, _GETFL, _SETFL, _DUPFD_CLOEXEC, _ADD_SEALS, _GET_SEALS),
        pretended=_LOCKS,
        error=errno.EINVAL,
    ),
    ArgumentRule(call="flock", argument=1, passed=(), pretended=tuple(range(16))),
    # Pass only the requests that Python makes. A cell may not type into terminals or change file attributes.
    ArgumentRule(
        call="ioctl",
        argument=1,
        passed=(_TERMINAL, _SIZE, _AVAILABLE, _NON_BLOCKING, _NOT_CLOSED, _CLOSED),
        error=errno.ENOTTY,
    ),
    # Shared memory counts for no process after the processes that wrote to it have ended.
    ArgumentRule(call="mmap", argument=3, all_bits=(mmap.MAP_SHARED, mmap.MAP_ANONYMOUS)),
    # Pass all advice except dropping cached file pages, which would slow down other readers.
    ArgumentRule(call="madvise", argument=2, passed=(*range(20), *range(22, 26))),
)
_ABSENT = ("clone3", "memfd_create")
"""System calls that fail as on an older kernel. Files in memory do not count towards any process's size."""
_OTHERS = ("prlimit64", "sched_setaffinity", "sched_getaffinity", "getpgid", "getsid")
"""System calls about a process. Without namespaces, a process in a cell may use them only about itself."""
_NEWEST = 449
"""The last permitted number of a system call. Later calls (Linux 5.17 and newer) offer other ways to set times, rights
and attributes."""
_LIMITS = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 1 << 29))
_PROCESSES = 1024
"""Maximum number of processes per cell. It applies only with namespaces, where other cells' processes do not count."""
_HANDLES = 1 << 10


class Server:
    """The server that forks cells, and confines the cells and its own process."""

    def __init__(
        self,
        control: socket.socket,
        scratch: Path,
        hidden: list[Path],
        visible: list[str],
        memory: int,
        *,
        users: list[int | None],
        private: bool,
    ) -> None:
        """Confine this process, which gets its orders from `control` in the form of `protocol.ORDER`.

        Cells run as `users` in turn; None means this process's user. `private`: only the owner can read some `visible`
        paths.
        """
        self._control, self._scratch, self._memory = control, scratch, memory
        self._cells: dict[int, tuple[int, Path]] = {}
        self._hidden = [*hidden, scratch]
        self._namespaces: Namespaces | None = None
        self._rules: int | None = None
        self._users = users
        self._last_filter = b""
        """System-call filter that refuses `_FURNISHING` to a cell with namespaces."""
        self._reads_all = False
        """Whether cells may read root's private files. Hidden files are not in the view of cells."""
        self.report = {"isolation": "process", "landlock": "0", "syscalls": "open"}
        self._confine(visible, private)

    def _confine(self, visible: list[str], private: bool) -> None:
        _limit()
        kernel.bound_privileges()
        secret = {form for path in self._hidden for form in (str(path), os.path.realpath(path))}
        words = ["process"]
        if kernel.granted(lambda: self._try_namespaces(visible, secret)):
            self._namespaces = Namespaces(visible, secret, str(self._scratch))
            words.append("namespaces")
        if self._namespaces is None:
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        if self._namespaces is None or self._namespaces.own_users:
            self._users = [None]
        if self._namespaces is None:
            kernel.drop_privileges(None)
        with contextlib.suppress(OSError):
            self._make_rules()
            self.report["landlock"] = str(landlock.abi())
            words.insert(1, "landlock")
        with contextlib.suppress(OSError):
            self._filter()
            self._last_filter = seccomp.refusal(_FURNISHING)
            self.report["syscalls"] = "filtered"
            # This needs the filter, which prevents opening files outside the view by a handle.
            self._reads_all = private and self._users != [None]
        self.report["isolation"] = "+".join(words)

    def _try_namespaces(self, visible: list[str], hidden: set[str]) -> None:
        """Set up a cell's namespaces once, in a short-lived process. Raise OSError if the kernel refuses."""
        trial = Namespaces(visible, hidden, str(self._scratch))
        uid = None if trial.own_users else self._users[0]

        def confine() -> None:
            trial.furnish(uid)
            kernel.drop_privileges(uid)

        if not kernel.granted(confine, trial.fork):
            raise OSError("a cell cannot have its own namespaces")

    def _make_rules(self) -> None:
        """Create the Landlock rules for cells. Cells may read less than this process, and no other cell's folder."""
        if self._namespaces is not None:
            # Every folder may be listed, because Python also looks for modules in folders with hidden files.
            visible = landlock.visible(self._hidden)
            self._rules = landlock.ruleset(visible, ["/dev/null", kernel.PARENT], listable=["/"])
            return
        self._readable = [*landlock.visible([*self._hidden, *map(Path, _SYSTEM)]), *_SYSTEM_SHOWN]
        landlock.restrict([*self._readable, "/proc"], ["/dev/null", str(self._scratch)])

    def _filter(self) -> None:
        refused, judged = list(_REFUSED_CALLS), list(_JUDGED)
        if self._namespaces is None:
            refused += _REFUSED_WITHOUT_NAMESPACES
            judged += [ArgumentRule(call=call, argument=0, passed=(0,)) for call in _OTHERS]
        seccomp.restrict(refused, absent=_ABSENT, families=(), judged=judged, newest=_NEWEST + 1)

    def serve(self) -> None:
        """Start and end cells as ordered over the socket, until ctxbench's process closes the socket."""
        while True:
            try:
                raw, handles, _, _ = socket.recv_fds(self._control, ORDER.size, 2)
            except ConnectionResetError:  # the trusted side ended before it had read everything
                break
            while raw and len(raw) < ORDER.size:
                raw += self._control.recv(ORDER.size - len(raw))
            if not raw:
                break
            order, job = ORDER.unpack(raw)
            if order == START:
                self._start(job, *handles)
            else:
                self._end(job)
        for job in list(self._cells):
            self._end(job)

    def _start(self, job: int, channel: int, output: int) -> None:
        folder = Path(kernel.FOLDER)
        try:
            if self._namespaces is None:
                # A cell cannot guess the name of another cell's folder.
                folder = self._scratch / secrets.token_hex(16)
                folder.mkdir(mode=0o700)
                pid = os.fork()
            else:
                pid = self._namespaces.fork()
        except OSError as error:
            # The strategy is not to blame. When the server ends, the trusted side reports a fault of the machine.
            sys.exit(
                f"the process for a strategy cannot be started ({error.strerror}); free memory, processes or disk space"
            )
        if pid == 0:
            self._become_cell(channel, output, folder, self._users[job % len(self._users)])
        os.close(channel)
        os.close(output)
        self._cells[job] = pid, folder

    def _become_cell(self, channel: int, output: int, folder: Path, uid: int | None) -> NoReturn:
        try:
            tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
            if self._namespaces is not None:
                self._namespaces.furnish(uid)
            channel = _keep_only(channel, output, self._rules)
            if self._namespaces is not None:
                _lower(resource.RLIMIT_NPROC, _PROCESSES)
            kernel.drop_privileges(uid, reads_all=self._reads_all)
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # not earlier, because a change of user clears it
            if self._rules is not None:
                landlock.enforce(self._rules)
                os.close(self._rules)
            elif self.report["landlock"] != "0":
                landlock.restrict([*self._readable, f"/proc/{os.getpid()}"], ["/dev/null", str(folder)])
            if self._namespaces is not None and self.report["syscalls"] == "filtered":
                seccomp.install(self._last_filter)
            _bound_memory(self._memory)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the trusted side has ended
                talk = socket.socket(fileno=channel)
                talk.send(GREETING)
                cell.work(talk)
        except OSError:
            traceback.print_exc()
        finally:
            os._exit(0)

    def _end(self, job: int) -> None:
        pid, folder = self._cells.pop(job, (0, Path()))
        if not pid:
            return
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if self._namespaces is None:
            self._end_orphans()
            shutil.rmtree(folder, ignore_errors=True)

    def _end_orphans(self) -> None:
        """End processes that a cell left behind. This process has become their parent, because it is the subreaper."""
        cells = {pid for pid, _ in self._cells.values()}
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        while True:
            try:
                orphans = {int(word) for word in children.read_text(encoding="ascii").split()} - cells
            except OSError:
                return
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def _keep_only(channel: int, output: int, rules: int | None) -> int:
    """Close the server's descriptors, which cells could use to send signals, and return the channel."""
    null = os.open(os.devnull, os.O_RDONLY)
    for number, handle in enumerate((null, output, output)):
        os.dup2(handle, number)
    start = 3
    for handle in sorted({channel} if rules is None else {channel, rules}):
        os.closerange(start, handle)
        start = handle + 1
    os.closerange(start, _HANDLES)
    return channel


def _limit() -> None:
    """Limit the resources of this process and its cells. If memory runs out, the kernel ends these processes first."""
    for which, value in _LIMITS:
        _lower(which, value)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _lower(which: int, value: int) -> None:
    _, current = resource.getrlimit(which)
    value = value if current == resource.RLIM_INFINITY else min(value, current)
    resource.setrlimit(which, (value, value))


def _bound_memory(most: int) -> None:
    _, current = resource.getrlimit(resource.RLIMIT_DATA)
    if current == resource.RLIM_INFINITY or current > most + RESERVE:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most + RESERVE))


def _load() -> None:
    """Import ctxbench's strategies and parsers once for all cells. A cell imports foreign strategies itself."""
    for module in pkgutil.iter_modules(strategies.__path__):
        importlib.import_module(f"ctxbench.strategies.{module.name}")
    for name in languages.names():
        # If a foreign language cannot be imported, the first sample that needs the language reports this.
        with contextlib.suppress(InputFault):
            languages.get(name).outline("")


def main() -> None:
    """Confine this process by the settings from the socket, report the resulting isolation, and carry out orders."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trusted side decides when work ends
    os.umask(0o022)  # cells must be able to enter the folders made for them
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # cells exit without flushing buffers
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    try:
        setup: dict[str, Any] = protocol.receive(control)[0]
    except (EOFError, ConnectionResetError):
        return  # the trusted side was interrupted before it asked for anything
    scratch = Path(setup["scratch"])
    _load()
    apis.ask_with(setup.get("templates", {}))
    if setup.get("tokenizer"):
        from ctxbench.bench.code_tokens import P50kBase  # noqa: PLC0415 - few runs need it

        layout.count_in(P50kBase(Path(setup["tokenizer"])))  # load it before the fork: cells cannot read the file
    with explained(scratch):
        server = Server(
            control,
            scratch,
            [Path(path) for path in setup["hidden"]],
            setup["visible"],
            setup["memory"],
            users=setup["users"],
            private=setup["private"],
        )
    gc.collect()
    gc.freeze()
    try:
        protocol.send(control, server.report)
        server.serve()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the trusted side was interrupted
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
