"""The fork server of cells: ``python -m harness.cells.server FD``.

A fresh, single-threaded interpreter that never holds a sample. It gives up what it must not have,
then makes one process a job: the job itself comes over the cell's own channel, past this process.
It leaves no process behind and goes when the trusted side does, however that ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pkgutil
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import strategies
from bench.files import explained
from bench.languages.outline import outline
from bench.types import Language
from harness.cells import wire
from harness.cells.cell import work
from harness.cells.wire import ORDER, START
from sandbox.guest import landlock, seccomp

_SYSTEM = ("/dev", "/proc", "/sys")
"""Closed to cells but for what follows: a disk's device or the kernel's memory holds every answer, for root."""
_SYSTEM_SHOWN = (
    *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")),
    *(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "version", "filesystems", "sys")),
    "/sys/devices/system",
    "/sys/fs/cgroup",
)
_REFUSED_CALLS = (
    # A container engine's socket, and other ways out.
    *("socket", "ptrace", "mount", "unshare", "setns", "perf_event_open", "open_by_handle_at", "bpf", "kcmp"),
    *("process_vm_readv", "process_vm_writev", "userfaultfd", "io_uring_setup", "pidfd_getfd"),
    # Memory, queues, keys and attributes: one cell could leave a note there for a later one.
    *("shmget", "shmat", "semget", "msgget", "mq_open", "add_key", "request_key", "keyctl"),
    *("setxattr", "lsetxattr", "fsetxattr"),
)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Server:
    """The jobs under way and what they may see."""

    def __init__(self, control: socket.socket, scratch: Path, hidden: list[Path]) -> None:
        """Confine this process; see `wire` for what is said on `control`."""
        self._control, self._scratch = control, scratch
        self._cells: dict[int, int] = {}
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        # Worked out once: a cell sees less than this process, and no temporary folder of another cell.
        self._readable = [*landlock.visible([*hidden, scratch, *map(Path, _SYSTEM)]), *_SYSTEM_SHOWN]
        self.report = self._confine()

    def _confine(self) -> dict[str, str]:
        report = {"isolation": "process", "landlock": "0", "syscalls": "open"}
        with contextlib.suppress(OSError):
            landlock.restrict([*self._readable, "/proc"], ["/dev/null", str(self._scratch)])
            report |= {"isolation": "process+landlock", "landlock": str(landlock.abi())}
        with contextlib.suppress(OSError):
            seccomp.restrict(_REFUSED_CALLS)
            report["syscalls"] = "filtered"
        return report

    def serve(self) -> None:
        """Take orders until the trusted side is gone."""
        while True:
            raw, channels, _, _ = socket.recv_fds(self._control, ORDER.size, 1)
            while raw and len(raw) < ORDER.size:
                raw += self._control.recv(ORDER.size - len(raw))
            if not raw:
                break
            order, job = ORDER.unpack(raw)
            if order == START:
                self._start(job, channels[0])
            else:
                self._end(job)
        for job in list(self._cells):
            self._end(job)

    def _start(self, job: int, channel: int) -> None:
        folder = self._scratch / str(job)
        try:
            folder.mkdir(mode=0o700)
            pid = os.fork()
        except OSError as error:
            # No strategy's fault: with the server gone, the trusted side reports the machine.
            sys.exit(f"no process for a strategy can be made ({error.strerror}); free memory, processes or disk space")
        if pid == 0:
            self._become_cell(channel, folder)
        os.close(channel)
        self._cells[job] = pid

    def _become_cell(self, channel: int, folder: Path) -> NoReturn:
        """Do one job in this new process; nothing of it survives."""
        try:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            self._control.close()
            tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
            if self.report["isolation"] == "process+landlock":
                landlock.restrict([*self._readable, f"/proc/{os.getpid()}"], ["/dev/null", str(folder)])
            work(socket.socket(fileno=channel))
        finally:
            os._exit(0)

    def _end(self, job: int) -> None:
        pid = self._cells.pop(job, None)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._end_orphans()
        shutil.rmtree(self._scratch / str(job), ignore_errors=True)

    def _end_orphans(self) -> None:
        """End processes that a cell left behind: as the subreaper, this process has become their parent."""
        known = set(self._cells.values())
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        while True:
            try:
                orphans = {int(word) for word in children.read_text(encoding="ascii").split()} - known
            except OSError:
                return
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _load_builtins() -> None:
    """Import our own strategies and the parsers once, instead of in every cell; foreign ones in their cells."""
    for module in pkgutil.iter_modules(strategies.__path__):
        importlib.import_module(f"strategies.{module.name}")
    for language in Language:
        outline("", language)


def main() -> None:
    """Set up as the trusted side says, answer with what confinement was reached, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trusted side decides when work ends
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    setup: dict[str, Any] = wire.receive(control)[0]
    scratch = Path(setup["scratch"])
    _load_builtins()
    with explained(scratch):
        server = Server(control, scratch, [Path(path) for path in setup["hidden"]])
    gc.freeze()
    wire.send(control, server.report)
    try:
        server.serve()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
