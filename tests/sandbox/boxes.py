"""Boxes without processes: a script determines their answers, and they record all calls."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.guest import frames

GREETING = {"protocol": 1, "fault": "", "landlock": 7, "seccomp": True}
ENDED = {
    "ended": "exited",
    "exit_code": 0,
    "signal": None,
    "seconds": 0.1,
    "cpu_seconds": 0.1,
    "peak_bytes": 1,
    "out_of_memory": False,
    "left_out": 0,
}


def outcome(output: bytes = b"", result: bytes | None = None, **changes: object) -> bytes:
    sizes = [len(output), 0, -1 if result is None else len(result)]
    return frames.frame(frames.OUTCOME, {**ENDED, "sizes": sizes, **changes}, [output, result or b""])


@dataclass
class ScriptedBox:
    """Answers each frame at once as `answer` decides. If `answer` raises an exception, the box is lost."""

    number: int
    answer: Callable[[ScriptedBox, bytes, dict[str, Any]], bytes]
    seen: list[bytes] = field(default_factory=list)
    ends: int = 0
    _data: bytearray = field(default_factory=bytearray)
    _waiting: threading.Condition = field(default_factory=threading.Condition)

    def send(self, data: bytes, deadline: float) -> None:
        if self.ends:
            raise SandboxLost("it was ended")
        kind, _ = frames.HEADER.unpack(data[:5])
        head, _ = frames.split(data[5:])
        self.seen.append(kind)
        answer = self.answer(self, kind, head)
        with self._waiting:
            self._data += answer
            self._waiting.notify_all()

    def receive(self, deadline: float) -> bytes:
        with self._waiting:
            while not self._data:
                if self.ends or not self._waiting.wait(max(0.0, deadline - time.monotonic())):
                    raise SandboxLost("it was ended" if self.ends else "it is late")
            taken = bytes(self._data[:7])  # in odd pieces
            del self._data[:7]
            return taken

    def end(self) -> str:
        with self._waiting:
            self.ends += 1
            self._waiting.notify_all()
        return "" if self.ends > 1 else "last words"


def usual(box: ScriptedBox, kind: bytes, head: dict[str, Any]) -> bytes:
    """Answer as a well-behaved guest. A job's output is the box's number."""
    if kind == frames.SETTINGS:
        return frames.frame(frames.GREETING, GREETING)
    if kind == frames.TREE:
        return frames.frame(frames.READY, {"fault": ""})
    return outcome(str(box.number).encode()) + frames.frame(frames.END, {"trouble": ""})


class ScriptedLauncher:
    """Starts scripted boxes and records them in `boxes`."""

    image = "scripted"

    def __init__(self, answer: Callable[[ScriptedBox, bytes, dict[str, Any]], bytes] = usual) -> None:
        self.answer = answer
        self.boxes: list[ScriptedBox] = []
        self.faults: list[BaseException] = []
        self._numbers = itertools.count(1)

    def start(self) -> ScriptedBox:
        if self.faults:
            raise self.faults.pop(0)
        box = ScriptedBox(next(self._numbers), self.answer)
        self.boxes.append(box)
        return box

    @property
    def running(self) -> int:
        return sum(not box.ends for box in self.boxes)
