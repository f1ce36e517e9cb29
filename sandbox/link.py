"""The pool's connection to one box: sends settings, files and jobs, and validates the answers."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxbench.sandbox.errors import MachineShort, SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.guest import frames
from ctxbench.sandbox.types import Box, Call, Command, Ended, Environment, Job, Limits, Outcome

GREETING_SECONDS = 120.0
TREE_SECONDS = 60.0
GRACE_SECONDS = 20.0
"""Seconds to wait for an outcome after the job's own limit. Then the box counts as lost."""
_HEAD = 1 << 16
_CURE = "run the command again; if the error persists, run `ctxbench doctor`"
_ROOM = "free some memory, or run fewer jobs at once"


class Link:
    """A connection to one box."""

    def __init__(self, box: Box, limits: Limits) -> None:
        self._box, self._limits, self._buffer = box, limits, bytearray()
        self._most = limits.output + limits.result + _HEAD
        self.jobs = 0

    def greet(self, environment: Environment) -> dict[str, Any]:
        """Send the settings and return the guest's greeting once it is ready.

        Raises:
            SandboxLost: if the box was lost.
            SandboxUnavailable: if the environment does not work in the box, or system calls cannot be filtered.
        """
        deadline = time.monotonic() + GREETING_SECONDS
        names = ("memory", "file_bytes", "processes", "open_files", "output", "result")
        limits = {name: value for name, value in dataclasses.asdict(self._limits).items() if name in names}
        settings = {"limits": limits, "preload": list(environment.preload), "path": list(environment.path)}
        self._box.send(frames.frame(frames.SETTINGS, settings), deadline)
        greeting, _ = self._receive(frames.GREETING, deadline)
        self._refuse(greeting)
        if not greeting.get("seccomp"):
            raise SandboxUnavailable(
                "no filter of system calls can be installed", where="the box", cure="see `ctxbench doctor`"
            )
        return greeting

    def plant(self, tree: bytes) -> None:
        """Send a frame from `tree_frame` and wait until the frame's files are written.

        Raises:
            SandboxLost: if the box was lost.
            SandboxUnavailable: if the files cannot be written.
        """
        deadline = time.monotonic() + TREE_SECONDS
        self._box.send(tree, deadline)
        self._refuse(self._receive(frames.READY, deadline)[0])

    def run(self, job: Job) -> Outcome:
        """Run a job and return its outcome.

        Raises:
            SandboxLost: if the box was lost, no outcome came, or the machine ran out of memory and killed the job.
            SandboxError: if the job cannot be started.
        """
        self.jobs += 1
        deadline = time.monotonic() + job.seconds + GRACE_SECONDS
        self._box.send(job_frame(job), deadline)
        head, body = self._receive(frames.OUTCOME, deadline)
        if "fault" in head:
            raise SandboxError(str(head["fault"]), where="a job", cure=str(head.get("cure", "")))
        try:
            outcome = _outcome(head, body)
        except (KeyError, TypeError, ValueError) as error:
            raise SandboxLost(f"the box sent a malformed outcome ({error})", cure=_CURE) from None
        shortage = head.get("shortage")
        if shortage == "box":
            raise MachineShort("the machine was out of memory while a job ran", cure=_ROOM)
        if shortage == "machine" and _was_killed(outcome):
            # The count covers all processes of the machine. A job without a memory group may have used up the memory
            # itself; the next jobs will show.
            raise SandboxLost("a job was killed while the machine was out of memory", cure=_ROOM)
        return outcome

    def finish(self) -> str:
        """Wait until the box has cleaned up after its last job. Return the box's error, or an empty text.

        Raises:
            SandboxLost: if the box was lost.
        """
        return str(self._receive(frames.END, time.monotonic() + GRACE_SECONDS)[0].get("trouble", "no reason given"))

    def end(self) -> str:
        """End the box. Return why it had already ended or cannot be removed; otherwise an empty text."""
        return self._box.end()

    def _receive(self, kind: bytes, deadline: float) -> tuple[dict[str, Any], memoryview]:
        frame_kind, length = frames.HEADER.unpack(self._take(frames.HEADER.size, deadline))
        if frame_kind == frames.END != kind and length < _HEAD:
            raise SandboxLost(f"the job has no outcome: {self._trouble(self._take(length, deadline))}", cure=_CURE)
        if frame_kind != kind or length > self._most:
            raise SandboxLost(f"the box sent {frame_kind!r} of {length} bytes instead of {kind!r}", cure=_CURE)
        try:
            return frames.split(self._take(length, deadline))
        except frames.FrameError as error:
            raise SandboxLost(f"the box sent {error}", cure=_CURE) from None

    def _take(self, size: int, deadline: float) -> bytes:
        while len(self._buffer) < size:
            self._buffer += self._box.receive(deadline)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    @staticmethod
    def _trouble(data: bytes) -> str:
        try:
            return str(frames.split(data)[0].get("trouble"))
        except frames.FrameError:
            return "no reason given"

    @staticmethod
    def _refuse(answer: dict[str, Any]) -> None:
        if answer.get("fault"):
            raise SandboxUnavailable(
                str(answer["fault"]), where="the environment", cure="correct the environment's packages or its files"
            )


@functools.cache
def guest_files() -> Mapping[str, bytes]:
    """Return the guest's files, by path in the box's library folder. Each process reads them once."""
    root = Path(__file__).resolve().parent
    paths = [root / "__init__.py", root / "errors.py", *sorted((root / "guest").rglob("*"))]
    return {
        f"sandbox/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts
    }


def tree_frame(environment: Environment) -> bytes:
    """Return the frame that sends an environment's files; empty without files.

    Raises:
        ValueError: if `check_paths` refuses a path.
    """
    if not environment.tree:
        return b""
    check_paths(environment.tree)
    return frames.frame(frames.TREE, {"files": frames.files_head(environment.tree)}, environment.tree.values())


def job_frame(job: Job) -> bytes:
    """Return the frame that sends a job.

    Raises:
        ValueError: if `check_paths` refuses a path, or the program, function or time limit is missing or wrong.
    """
    check_paths(job.files)
    if not 0 < job.seconds < math.inf:
        raise ValueError(f"a job cannot take {job.seconds} seconds")
    head = {"action": _action(job.action), "seconds": job.seconds, "files": frames.files_head(job.files)}
    return frames.frame(frames.JOB, head, job.files.values())


def _action(action: Command | Call) -> dict[str, Any]:
    if isinstance(action, Command):
        if not action.argv:
            raise ValueError("a command needs a program")
        return {"run": "program", "argv": list(action.argv)}
    if not all(action.function.partition(":")):
        raise ValueError(f"{action.function!r} is not `module:function`")
    return {"run": "call", "function": action.function, "arguments": dict(action.arguments)}


def check_paths(files: object) -> None:
    """Check that paths are relative and normalized.

    Raises:
        ValueError: if a path is absolute, not normalized, or contains NUL.
    """
    for path in files:  # type: ignore[attr-defined]
        if not path or "\0" in path or {"", ".", ".."} & set(path.split("/")):
            raise ValueError(f"a file cannot be called {path!r}")


def _outcome(head: dict[str, Any], body: memoryview) -> Outcome:
    first, last, size = head["sizes"]
    left_out = int(head["left_out"])
    output = bytes(body[:first]).decode("utf-8", "replace")
    if left_out:
        output += f"\n[{left_out} bytes are left out here]\n"
    output += bytes(body[first : first + last]).decode("utf-8", "replace")
    return Outcome(
        ended=Ended(head["ended"]),
        exit_code=_whole(head["exit_code"]),
        signal=_whole(head["signal"]),
        output=output,
        truncated=left_out > 0,
        result=None if size < 0 else _result(bytes(body[first + last :])),
        out_of_memory=bool(head["out_of_memory"]),
        seconds=float(head["seconds"]),
        cpu_seconds=float(head["cpu_seconds"]),
        peak_bytes=int(head["peak_bytes"]),
    )


def _was_killed(outcome: Outcome) -> bool:
    inner = outcome.result.get("signal") if isinstance(outcome.result, dict) else None
    return signal.SIGKILL in (outcome.signal, inner)


def _whole(value: object) -> int | None:
    return None if value is None else int(value)  # type: ignore[call-overload]


def _result(data: bytes) -> Any:
    try:
        value = json.loads(data, parse_constant=_number, parse_float=_number)
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # lone surrogates, which files and databases reject
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a JSON number")
    return value
