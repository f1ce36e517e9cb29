"""The thread that starts every box of this process."""

from __future__ import annotations

import functools
import os
import queue
import subprocess
import threading
from concurrent.futures import Future


class Starter:
    """A thread that starts all boxes of this process.

    A box is to die with its parent, and to the kernel the parent is the *thread* that started it: one of a
    pool's own would take its boxes down when it ends. This one lives as long as the process.
    """

    def __init__(self) -> None:
        self._wanted: queue.SimpleQueue[tuple[list[str], int, Future[subprocess.Popen[bytes]]]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="bubblewrap-starter", daemon=True).start()

    def start(self, argv: list[str], descriptor: int) -> subprocess.Popen[bytes]:
        """Start a program with an empty environment and one more file descriptor."""
        promise: Future[subprocess.Popen[bytes]] = Future()
        self._wanted.put((argv, descriptor, promise))
        return promise.result()

    def _serve(self) -> None:
        while True:
            argv, descriptor, promise = self._wanted.get()
            try:
                # A session of its own: a Ctrl-C is for us, and we end the boxes.
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={},
                    cwd="/",
                    close_fds=True,
                    pass_fds=(descriptor,),
                    start_new_session=True,
                    bufsize=0,
                )
            except BaseException as error:  # noqa: BLE001 - it belongs to the thread that asked
                promise.set_exception(error)
            else:
                promise.set_result(process)


def starter() -> Starter:
    """Return this process's: a fork has no threads but the one that forked."""
    return _starter(os.getpid())


@functools.cache
def _starter(_: int) -> Starter:
    return Starter()
