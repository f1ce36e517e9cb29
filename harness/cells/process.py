"""The trusted side of the fork server: start the process, send it orders, end it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import MachineFault
from ctxbench.harness.cells import transport
from ctxbench.harness.cells.scratch import Scratch
from ctxbench.harness.cells.transport import END, ORDER, START

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


class ForkServer:
    """The process that cells are forked from. Safe to use from many threads at once."""

    def __init__(self, hidden: Sequence[Path], visible: Sequence[str], memory: int) -> None:
        """Start it.

        Args:
            hidden: paths that no cell may read.
            visible: the paths in the cells' own view of the files, where they have one.
            memory: bytes that each process of a cell may hold.

        Raises:
            MachineFault: if it cannot be started.
        """
        self._lock = threading.Lock()
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
        setup = {"hidden": [str(Path(path).absolute()) for path in hidden], "visible": list(visible), "memory": memory}
        self.report = self._greet({"scratch": str(self.scratch.path), **setup})

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

    def start(self, job: int, channel: socket.socket, output: int) -> None:
        """Have a cell forked that takes its job from `channel` and prints to `output`.

        Raises:
            OSError: if the process is gone.
        """
        with self._lock:
            socket.send_fds(self._control, [ORDER.pack(START, job)], [channel.fileno(), output])

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
