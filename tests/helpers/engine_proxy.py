"""A door to a Docker engine that can be shut: a second address of the one engine that a machine has."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path


class EngineProxy:
    """Listens at a socket of its own and passes everything on to the engine's."""

    def __init__(self, path: Path, engine: str) -> None:
        """Take the path to listen at and that of the engine's socket."""
        self.path, self.engine = path, engine
        self.met = threading.Event()
        """Set by every new connection."""
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._listening: socket.socket | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.path}"

    def start(self) -> None:
        """Listen."""
        self.path.unlink(missing_ok=True)
        listening = self._listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.path))
        listening.listen(64)
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def stop(self) -> None:
        """Break every connection, and take no more."""
        listening, self._listening = self._listening, None
        if listening is None:
            return
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        self.path.unlink(missing_ok=True)
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.engine)
            with self._lock:
                self._ends |= {near, far}
            self.met.set()
            left = threading.Semaphore(0)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, target, left), daemon=True).start()
            threading.Thread(target=self._close, args=(near, far, left), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, left: threading.Semaphore) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        left.release()

    def _close(self, near: socket.socket, far: socket.socket, left: threading.Semaphore) -> None:
        """Close a connection when both of its directions have ended."""
        left.acquire()
        left.acquire()
        with self._lock:
            self._ends -= {near, far}
        near.close()
        far.close()
