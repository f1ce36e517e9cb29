"""Starts boxes under bwrap and ends them, with all their processes."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ctxbench.sandbox.bubblewrap import cgroups, host
from ctxbench.sandbox.bubblewrap.image import GUEST, BoxLayout
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Limits

_CHUNK = 64 * 1024
_LAST_WORDS = 4096
_PATIENCE = 5.0
"""Seconds to wait until killed processes are gone. The kernel needs milliseconds."""
_STAGE = Path(__file__).with_name("stage.py")
_F_SETPIPE_SZ = 1031


class BubblewrapBox:
    """A running box (see `sandbox.types.Box`)."""

    def __init__(self, process: subprocess.Popen[bytes], status: int, group: cgroups.ControlGroup) -> None:
        self._process, self._status, self._group = process, status, group
        assert process.stdin and process.stdout and process.stderr
        self._in, self._out, self._err = process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()
        for handle in (self._in, self._out, self._err, status):
            os.set_blocking(handle, False)
        self._words = b""
        self._ended: str | None = None
        self._ending, self._sending, self._receiving = threading.Lock(), threading.Lock(), threading.Lock()

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` to the guest's stdin (see `sandbox.types.Box.send`)."""
        unsent = memoryview(data)
        with self._sending:
            while unsent:
                self._wait(self._in, select.POLLOUT, deadline)
                try:
                    unsent = unsent[os.write(self._in, unsent[:_CHUNK]) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self._lost() from error

    def receive(self, deadline: float) -> bytes:
        """Return the next bytes of the guest's stdout (see `sandbox.types.Box.receive`)."""
        with self._receiving:
            while True:
                self._wait(self._out, select.POLLIN, deadline)
                try:
                    data = os.read(self._out, _CHUNK)
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self._lost() from error
                if not data:
                    raise self._lost()
                return data

    def end(self) -> str:
        """Kill the box and wait until its processes are gone (see `sandbox.types.Box.end`)."""
        with self._ending:
            if self._ended is None:
                self._ended = self._end()
            return self._ended

    def _end(self) -> str:
        reason = ""
        if self._process.poll() is not None:
            reason = self._story()
        self._kill()
        self._drain()
        self._group.remove()
        for lock, stream in ((self._sending, self._process.stdin), (self._receiving, self._process.stdout)):
            if lock.acquire(timeout=_PATIENCE):
                with contextlib.suppress(OSError):
                    assert stream
                    stream.close()
                lock.release()
        assert self._process.stderr
        self._process.stderr.close()
        os.close(self._status)
        return reason

    def _story(self) -> str:
        self._drain()
        words = self._words.decode("utf-8", "replace").strip()
        code = self._process.returncode
        how = f"signal {-code}" if code < 0 else f"signal {code - 128}" if code > 128 else f"exit code {code}"
        if self._group.killed_for_memory():
            how += ", out of memory"
        return f"its first process ended with {how}" + (f": {words}" if words else "")

    def _kill(self) -> None:
        """Kill the first process of the box's outer namespace, which ends all others, and then its parent."""
        first = None if self._process.returncode is not None else self._first()
        if first is not None:
            with contextlib.suppress(OSError), contextlib.closing(_Handle(first)) as handle:
                # The pid may have been reused, unless its parent is still our child.
                if _parent(first) == self._process.pid:
                    handle.kill(_PATIENCE)
        if self._process.returncode is None:
            # The process is not reaped yet, so its session id cannot have been reused.
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._group.kill()

    def _first(self) -> int | None:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        poll.poll(_PATIENCE * 1000)
        with contextlib.suppress(OSError, ValueError):
            return int(os.read(self._status, 64))
        return None

    def _wait(self, handle: int, event: int, deadline: float) -> None:
        """Wait until a stream is ready. Drain stderr meanwhile: a full pipe would block the guest."""
        poll = select.poll()
        poll.register(handle, event)
        poll.register(self._err, select.POLLIN)
        while True:
            if self._ended is not None:
                raise self._lost()
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                raise SandboxLost("the box did not answer in time", where="bubblewrap", cure="run the command again")
            readable = {number for number, _ in poll.poll(min(seconds, 1.0) * 1000)}
            if handle in readable:
                return
            if self._err in readable and not self._drain():
                poll.unregister(self._err)

    def _drain(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(self._err, _CHUNK):
                self._words += data[: _LAST_WORDS - len(self._words)]
            return False
        return True

    def _lost(self) -> SandboxLost:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        ended = self._process.returncode is not None and self._ended is None
        what = f"the box is gone: {self._story()}" if ended else "the box is gone"
        return SandboxLost(what, where="bubblewrap", cure="run the command again")


class _Handle:
    def __init__(self, pid: int) -> None:
        self._handle = os.pidfd_open(pid)

    def kill(self, seconds: float) -> None:
        signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        poll.poll(seconds * 1000)

    def close(self) -> None:
        os.close(self._handle)


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])


class BubblewrapLauncher:
    """A launcher of boxes with one layout (see `sandbox.types.Launcher`)."""

    def __init__(self, image: str, layout: BoxLayout, limits: Limits, command: Sequence[str] = GUEST) -> None:
        self.image = image
        self._layout, self._limits, self._command = layout, limits, command

    def start(self) -> BubblewrapBox:
        """Start a box without waiting for its guest (see `sandbox.types.Launcher.start`)."""
        group = cgroups.make(self._limits)
        status, theirs = os.pipe()
        try:
            spec = self._layout.specification(
                uid=host.draw_uid(), status=theirs, groups=group.folders, counters=group.counters, command=self._command
            )
            process = _started([str(host.interpreter()), "-I", "-S", "-B", str(_STAGE), spec], theirs)
        except (OSError, RuntimeError) as error:  # RuntimeError: Python is shutting down and no longer starts threads
            os.close(status)
            group.remove()
            raise SandboxLost(
                f"no box can be started: {error}", where="bubblewrap", cure="run the command again"
            ) from error
        finally:
            os.close(theirs)
        assert process.stdin
        with contextlib.suppress(OSError):
            fcntl.fcntl(process.stdin.fileno(), _F_SETPIPE_SZ, 1 << 20)
        return BubblewrapBox(process, status, group)


def _started(argv: list[str], descriptor: int) -> subprocess.Popen[bytes]:
    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=(descriptor,),
            start_new_session=True,  # a Ctrl-C is for this process, which ends the boxes
            bufsize=0,
        )

    return _starter(os.getpid()).submit(start).result()


@functools.cache
def _starter(_: int) -> ThreadPoolExecutor:
    """Return the thread that starts this process's boxes. A forked process needs its own thread.

    The kernel kills a box when the *thread* that started it ends, so a pool's worker threads cannot start boxes.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="bubblewrap-starter")
