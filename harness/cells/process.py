"""The trusted side of the cells' processes: the fork server, their temporary folders, and what they print."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import explained
from ctxbench.bench.visible import visible
from ctxbench.harness.cells import transport
from ctxbench.harness.cells.paths import private
from ctxbench.harness.cells.transport import BIND, END, ORDER, START
from ctxbench.sandbox.bubblewrap import host

_START_TIMEOUT = 120.0
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONHOME")
_SET_VARIABLES = {
    "LOGNAME": "cell",  # there is no table of users to look in
    # Sums split over threads can differ in the last bit, and threads do not survive a fork.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_PREFIX = "ctxbench-cells-"
_SURELY_LOCKED = 60.0
"""Seconds after which a living run has surely locked its folder."""
_USERS = 64
"""So many cells at once have a user each."""
MOST_OF_CELL = 1 << 16
"""Bytes shown of what one strategy prints for one sample."""
_PRINTED = "strategy: "
"""Begins each line of it."""
MOST = 1 << 22
"""Bytes shown in all."""


class ForkServer:
    """The process that cells are forked from. Safe to use from many threads at once."""

    def __init__(
        self,
        hidden: Sequence[Path],
        visible: Sequence[str],
        memory: int,
        tokenizer: Path | None = None,
        *,
        plain: bool = False,
    ) -> None:
        """Start it; each process of a cell may hold so many bytes of memory.

        No cell may read `hidden` paths; `visible` ones are in the cells' own view of the files, where they have one.
        Budgets are counted with the file `tokenizer`, if there is one. With `plain` its cells run nothing but the
        strategies of `transport.PLAIN`.

        Raises:
            MachineFault: if it cannot be started.
        """
        self._lock, self._bound = threading.Lock(), set[str]()
        self.scratch = Scratch()
        self._control, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ctxbench.harness.cells.server", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=2,  # the server's own words only: what strategies print goes elsewhere
            pass_fds=[theirs.fileno()],
            env=_environment(),
            start_new_session=True,
        )
        theirs.close()
        setup = {
            "scratch": str(self.scratch.path),
            "hidden": [str(Path(path).absolute()) for path in hidden],
            "visible": list(visible),
            "memory": memory,
            "tokenizer": str(tokenizer.absolute()) if tokenizer else "",
            "plain": plain,
            "users": [host.draw_uid() for _ in range(_USERS)],
            "private": any(map(private, visible)),
        }
        self.report = self._greet(setup)

    def _greet(self, setup: Mapping[str, Any]) -> dict[str, str]:
        try:
            self._control.settimeout(_START_TIMEOUT)
            transport.send(self._control, setup)
            report: dict[str, str] = transport.receive(self._control)[0]
            self._control.settimeout(None)
        except (OSError, EOFError, transport.Garbage) as error:
            self.close()
            raise MachineFault(
                f"the process that runs strategies did not start ({type(error).__name__})",
                cure="see its message above, then run the same command again",
            ) from None
        return report

    @property
    def separates(self) -> bool:
        """Whether its cells see no files but those that it was started with, because they have a view of their own."""
        return "namespaces" in self.report["isolation"]

    def start(self, job: int, channel: socket.socket, output: int) -> None:
        """Have a cell forked that takes its job from `channel` and prints to `output`.

        Raises:
            OSError: if the process is gone.
        """
        with self._lock:
            socket.send_fds(self._control, [ORDER.pack(START, job)], [channel.fileno(), output])

    def bind(self, spec: str) -> None:
        """Have a spec resolved once for all cells, where they run our own strategies only; again: nothing.

        Raises:
            OSError: if the process is gone.
        """
        with self._lock:
            if spec not in self._bound:
                self._bound.add(spec)
                raw = spec.encode()
                self._control.sendall(ORDER.pack(BIND, len(raw)) + raw)

    def end(self, job: int) -> None:
        """End a cell with all its processes.

        Raises:
            OSError: if the process is gone.
        """
        with self._lock:
            self._control.sendall(ORDER.pack(END, job))

    def ended(self, seconds: float) -> bool:
        """Return whether the process ends within some seconds."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """End the process and every cell, and remove their temporary folder."""
        self._control.close()
        if not self.ended(10):
            self.process.kill()
            self.process.wait()
        self.scratch.remove()


def _environment() -> dict[str, str]:
    """Return the server's environment: no keys, tokens or settings of ours; the same modules to import."""
    variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**variables, **_SET_VARIABLES, "PYTHONPATH": path}


class Scratch:
    """A folder that is this run's while the process lives: the lock on it ends with the process."""

    def __init__(self) -> None:
        """Make and lock the folder.

        Raises:
            MachineFault: if the disk is full.
        """
        sweep()
        with explained(tempfile.gettempdir()):
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def sweep() -> None:
    """Remove the folders of runs that have ended."""
    for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < _SURELY_LOCKED:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)


class Remarks:
    """Shows what strategies print, up to a limit. Safe to use from many threads at once."""

    def __init__(self) -> None:
        """Begin with the whole space free."""
        self._left, self._lock = MOST, threading.Lock()

    @contextlib.contextmanager
    def of_cell(self) -> Iterator[int]:
        """Yield a descriptor for a cell to print to; show the output on stderr at the end.

        It is a file in memory and no pipe, so that nobody has to read while the strategy works.
        """
        handle = _file()
        try:
            yield handle
        finally:
            raw = os.pread(handle, MOST_OF_CELL + 1, 0)
            os.close(handle)
            if raw:
                self._show(raw)

    def _show(self, raw: bytes) -> None:
        if self._left <= 0:
            return
        printed = visible(raw[:MOST_OF_CELL].decode("utf-8", "replace"))
        # Marked, so that no line of a strategy can be taken for one of ours.
        text = "".join(f"{_PRINTED}{line}\n" for line in printed.removesuffix("\n").split("\n"))
        with self._lock:
            if self._left <= 0:
                return
            self._left -= len(text)
            ended = self._left <= 0
        if len(raw) > MOST_OF_CELL:
            text += f"(the rest of what it printed, after {MOST_OF_CELL} bytes, is left out)\n"
        if ended:
            text += "(what strategies print is left out from here on: it is too much)\n"
        sys.stderr.write(text)
        sys.stderr.flush()


def _file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("remarks", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
