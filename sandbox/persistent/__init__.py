"""Persistent boxes, in which a program keeps running and answers messages."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxbench.sandbox.errors import SandboxError, SandboxLost
from ctxbench.sandbox.guest import frames
from ctxbench.sandbox.link import Link, tree_frame
from ctxbench.sandbox.types import Environment, Launcher, Limits

RESIDENT = "ctxbench_resident"
_END = b"\n"
_READY_SECONDS = 60.0
_CURE = "run the command again; if the error persists, run `ctxbench doctor`"


def with_resident(environment: Environment) -> Environment:
    """Return the environment with support for persistent boxes, to pass to `Sandbox.prepare` and `Sandbox.converse`."""
    source = Path(__file__).with_name("resident.py").read_bytes()
    return dataclasses.replace(environment, library={**environment.library, f"{RESIDENT}.py": source})


class Flooded(SandboxLost):
    """Raised when a program's message exceeds the limit."""


class Overdue(SandboxLost):
    """Raised when a program does not answer in time."""


class Conversation:
    """Messages to and from the program in one box, for one thread at a time. Answers are untrusted."""

    def __init__(self, launcher: Launcher, environment: Environment, limits: Limits) -> None:
        """Start the box with the environment's files in its working folder.

        Raises:
            SandboxLost: if the box cannot be started.
            SandboxUnavailable: if the environment does not work in the box.
        """
        self._box = launcher.start()
        self._link = Link(self._box, limits)
        self._limits, self._buffer, self._heard = limits, bytearray(), bytearray()
        try:
            self._link.greet(environment)
            if tree := tree_frame(environment):
                self._link.plant(tree)
        except BaseException as error:
            self._lose(error)
            raise

    def begin(self, function: str, arguments: Mapping[str, Any]) -> None:
        """Start the program.

        Args:
            function: ``module:function`` of the environment's library. It is called with a socket and `**arguments`.

        Raises:
            SandboxLost: if the box was lost.
        """
        head = {"function": function, "arguments": dict(arguments)}
        self._send(frames.frame(frames.JOB, head), time.monotonic() + _READY_SECONDS)

    def ask(self, message: bytes, seconds: float) -> bytes:
        """Send a message and return the program's answer. Both are one line, without a line end.

        Raises:
            Overdue: if the program does not answer within `seconds`.
            Flooded: if the answer exceeds `Limits.result`.
            SandboxLost: if the program ended, or the box was lost.
            ValueError: if the message has several lines.
        """
        if _END in message:
            raise ValueError("a message must be one line")
        deadline = time.monotonic() + seconds
        self._send(frames.HEADER.pack(b"A", len(message) + 1) + message + _END, deadline)
        while _END not in self._heard:
            if len(self._heard) > self._limits.result:
                raise Flooded(f"the program sent more than {self._limits.result} bytes at once", cure=_CURE)
            self._heard += self._words(deadline, seconds)
        answer, _, remainder = bytes(self._heard).partition(_END)
        self._heard = bytearray(remainder)
        if len(answer) > self._limits.result:
            raise Flooded(f"the program sent more than {self._limits.result} bytes at once", cure=_CURE)
        return answer

    def _words(self, deadline: float, seconds: float) -> bytes:
        kind, length = frames.HEADER.unpack(self._take(frames.HEADER.size, deadline, seconds))
        if length > 1 << 17:
            raise SandboxLost(f"the box sent {length} bytes at once", cure=_CURE)
        data = self._take(length, deadline, seconds)
        if kind == b"W":
            return data
        try:
            told = str(frames.split(data)[0].get("how", "no reason given"))
        except frames.FrameError:
            told = "no reason given"
        raise SandboxLost(f"the program ended: {told}", cure=_CURE)

    def _take(self, size: int, deadline: float, seconds: float) -> bytes:
        while len(self._buffer) < size:
            if time.monotonic() >= deadline:
                raise Overdue(f"the program did not answer in {seconds:g} seconds", cure=_CURE)
            try:
                self._buffer += self._box.receive(deadline)
            except SandboxLost as lost:
                if time.monotonic() >= deadline:
                    raise Overdue(f"the program did not answer in {seconds:g} seconds", cure=_CURE) from None
                raise self._explained(lost) from None
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _send(self, data: bytes, deadline: float) -> None:
        try:
            self._box.send(data, deadline)
        except SandboxLost as lost:
            raise self._explained(lost) from None

    def _explained(self, lost: SandboxLost) -> SandboxLost:
        why = self._box.end()
        return SandboxLost(f"{lost.what}: {why}" if why else lost.what, where=lost.where, cure=lost.cure or _CURE)

    def _lose(self, error: BaseException) -> None:
        why = self._box.end()
        if isinstance(error, SandboxError) and why:
            error.what = f"{error.what}: {why}"

    def end(self) -> None:
        """End the box. Any thread may call this, repeatedly."""
        self._box.end()


@contextlib.contextmanager
def conversation(launcher: Launcher, environment: Environment, limits: Limits) -> Iterator[Conversation]:
    """Open a conversation with a new box, which ends with the context."""
    talk = Conversation(launcher, environment, limits)
    try:
        yield talk
    finally:
        talk.end()
