"""A launcher without a back end, for trusted test jobs only; see `bare_guest`."""

import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from ctxbench.sandbox.errors import SandboxLost

_ROOT = Path(__file__).resolve().parents[2]


class BareBox:
    def __init__(self, library: str, options: tuple[str, ...]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ctxbench-bare-")
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-B", "-m", "tests.helpers.bare_guest", self._folder.name, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": f"{_ROOT}:{library}"},
        )
        assert self.process.stdin and self.process.stdout
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._lock = threading.Lock()
        self._why: str | None = None

    def send(self, data: bytes, deadline: float) -> None:
        left = memoryview(data)
        while left:
            _, ready, _ = select.select([], [self._in], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise SandboxLost("the box accepts no input", cure="run the job again")
            try:
                left = left[os.write(self._in, left) :]
            except OSError as error:
                raise SandboxLost(f"the box is gone ({error})", cure="run the job again") from None

    def receive(self, deadline: float) -> bytes:
        ready, _, _ = select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise SandboxLost("the box sent nothing", cure="run the job again")
        data = os.read(self._out, 1 << 16)
        if not data:
            raise SandboxLost("the box is gone", cure="run the job again")
        return data

    def end(self) -> str:
        with self._lock:
            if self._why is None:
                self._why = self._end()
            return self._why

    def _end(self) -> str:
        ended = self.process.poll()
        self.process.kill()
        _, words = self.process.communicate()
        self._folder.cleanup()
        return "" if ended is None else f"it ended with {ended}: {words.decode()[-2000:]}"


class BareLauncher:
    """Starts plain guests. `library` is a folder on their import path."""

    image = "bare"

    def __init__(self, library: str = "", *options: str) -> None:
        self.library, self.options = library, options
        self.boxes: list[BareBox] = []

    def start(self) -> BareBox:
        box = BareBox(self.library, self.options)
        self.boxes.append(box)
        return box
