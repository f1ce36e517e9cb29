"""Runs one job: reads it in place of the guest, starts it, watches it, and reports its outcome.

A supervisor is forked for every job and ends with it. So the job's files, arguments and tests are never in the memory
that a later job is forked from.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from typing import Any

from . import capture, child, files, frames
from .confine import Confinement
from .watchdog import SECONDS, Machine, MemoryGroup, Watchdog

_IN = 0
_LAST = 1 << 20
"""Maximum bytes of output that are read after a job's end if a process that it started goes on."""
_WORDS = 1000


class Supervisor:
    """The process that runs and watches one job."""

    def __init__(self, bounds: Confinement, group: MemoryGroup | None) -> None:
        """Fork the job's own process, which waits. The job is not read yet."""
        self._bounds = bounds
        self._memory: MemoryGroup | Machine = group or Machine()
        self._whose = "box" if group else "machine"
        self._watchdog = Watchdog(bounds.limits.open_files, None if group else bounds.limits.memory)
        self._output, self._said = capture.Output(bounds.limits.output), os.pipe()
        self._result, self._answered = capture.Result(bounds.limits.result), os.pipe()
        self._channel, theirs = socket.socketpair()
        self._clean = os.fork()
        if self._clean == 0:
            child.become(theirs, self._said[1], bounds)
        theirs.close()

    def run(self, data: bytes) -> bytes:
        """Run the job in a frame's payload; return the frame of its outcome."""
        head, content = frames.split(data)
        try:
            files.write(self._bounds.folder, head["files"], content)
        except (OSError, ValueError) as error:
            return _fault(
                f"the job's files cannot be written: {error}", "send fewer files, or give the pool a larger disk"
            )
        try:
            child.confirmed(self._channel)
        except child.NotReady as error:
            raise RuntimeError(f"{error}: {self._words()}") from None
        kills, hits = self._memory.kills(), self._memory.hits()
        try:
            self._start(head["action"])
        except child.NotReady:
            return _fault(
                f"the job's function cannot be called: {self._words()}", "add the function's module to the library"
            )
        began = time.monotonic()
        ended = self._watch(began + head["seconds"])
        took = time.monotonic() - began
        starved = self._memory.kills() > kills
        exceeded = self._watchdog.killed or (starved and self._memory.was_full(hits))
        result = self._result.whole
        tail = self._output.tail
        return frames.frame(
            frames.OUTCOME,
            {
                **ended,
                "seconds": took,
                "out_of_memory": exceeded,
                # The level, box or machine, whose processes the kernel killed because the machine, and not the box, ran
                # out of memory.
                "shortage": self._whose if starved and not exceeded else "",
                "left_out": self._output.left_out,
                "sizes": [len(self._output.head), len(tail), -1 if result is None else len(result)],
            },
            [bytes(self._output.head), tail, result or b""],
        )

    def _start(self, action: dict[str, Any]) -> None:
        if action["run"] == "call":
            child.start(self._channel, action, self._answered[1])
        else:
            child.start(self._channel, action)
        for handle in (self._said[1], self._answered[1]):
            os.close(handle)

    def _watch(self, deadline: float) -> dict[str, Any]:
        """Wait for the job's process to end, or for the deadline; read its output meanwhile."""
        late = False
        handle = os.pidfd_open(self._clean)
        poll = select.poll()
        captures: dict[int, capture.Output | capture.Result] = {
            self._said[0]: self._output,
            self._answered[0]: self._result,
        }
        for readable in (handle, *captures):
            os.set_blocking(readable, False)
            poll.register(readable, select.POLLIN)
        # Polled for no event: it only reports that the pool, and so the receiver of this outcome, is gone.
        poll.register(_IN, 0)
        gone, looked = False, time.monotonic()
        while not gone:
            now = time.monotonic()
            seconds = deadline - now
            if seconds <= 0:
                late = True
                break
            if now - looked >= SECONDS:
                looked = now
                self._watchdog.look()
            for readable_end, _ in poll.poll(min(seconds, SECONDS) * 1000 + 1):
                if readable_end == _IN:
                    raise EOFError("the pool is gone")
                if readable_end == handle:
                    gone = True
                elif not capture.drain(readable_end, captures[readable_end]):
                    poll.unregister(readable_end)
        ending = self._reap()
        for readable, into in captures.items():
            capture.drain(readable, into, _LAST)
        return {**ending, "ended": "timed-out", "exit_code": None, "signal": None} if late else ending

    def _reap(self) -> dict[str, Any]:
        """End the job's process and its group; return how it ended and the resources that it used."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                end(self._clean, signal.SIGKILL)
        _, status, usage = os.wait4(self._clean, 0)
        used = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024}
        if os.WIFSIGNALED(status):
            return {**used, "ended": "killed", "exit_code": None, "signal": os.WTERMSIG(status)}
        return {**used, "ended": "exited", "exit_code": os.waitstatus_to_exitcode(status), "signal": None}

    def _words(self) -> str:
        """Return the last output of a job's process that failed before the job started."""
        os.set_blocking(self._said[0], False)
        capture.drain(self._said[0], self._output)
        return (bytes(self._output.head) + self._output.tail).decode("utf-8", "replace").strip()[-_WORDS:]


def _fault(what: str, cure: str) -> bytes:
    return frames.frame(frames.OUTCOME, {"fault": what, "cure": cure})
