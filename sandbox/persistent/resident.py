"""``python3 -m ctxbench_resident``: first process of a persistent box. Connects the program's socket with the pool.

It never blocks while the program runs, so it can watch a program that reads no messages.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping

from sandbox.guest import capture, child, confine, frames, server
from sandbox.guest.supervisor import Supervisor
from sandbox.guest.watchdog import SECONDS

_IN, _OUT = 0, 1
_ASK, _WORDS, _ENDED = b"A", b"W", b"O"
_CHUNK = 1 << 16
_LAST = 600


class LivingGuest(server.Guest):
    """A guest whose job is a persistent program."""

    def _supervise(self, length: int) -> None:
        ProgramServer(self._bounds, self._group).live(frames.read(_IN, length))


class ProgramServer(Supervisor):
    """Supervisor of one persistent program."""

    def live(self, data: bytes) -> None:
        """Start the program that a frame describes, forward messages until it ends, and report how it ended."""
        head, _ = frames.split(data)
        child.confirmed(self._channel)
        mine, theirs = socket.socketpair()
        order = {"run": "serve", "function": head["function"], "arguments": head["arguments"]}
        try:
            child.start(self._channel, order, theirs.fileno())
            theirs.close()
            os.close(self._said[1])
            os.close(self._answered[1])
            os.set_blocking(_OUT, False)
            try:
                self._relay(mine)
            finally:
                os.set_blocking(_OUT, True)
            how = self._how()
        except child.NotReady:
            how = "it could not be started"
        words = self._words()[-_LAST:]
        frames.write(_OUT, frames.frame(_ENDED, {"how": f"{how}: {words}" if words else how}))

    def _relay(self, mine: socket.socket) -> None:
        relay, ended = Relay(mine), False
        handle, said = os.pidfd_open(self._clean), self._said[0]
        own = {handle, said}
        os.set_blocking(said, False)
        looked = time.monotonic()
        while not relay.done:
            if time.monotonic() - looked >= SECONDS:
                looked = time.monotonic()
                self._watchdog.look()
            poll = select.poll()
            for number, events in {**dict.fromkeys(own, select.POLLIN), **relay.events()}.items():
                poll.register(number, events)
            ready = dict(poll.poll(SECONDS * 1000))
            if said in ready and not capture.drain(said, self._output):
                own.discard(said)
            if handle in ready:
                ended = True
                own.discard(handle)
                _end_the_others()
            relay.move(ready, ended=ended)

    def _how(self) -> str:
        time.sleep(0.01)
        try:
            if os.waitid(os.P_PID, self._clean, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                os.kill(self._clean, signal.SIGKILL)
        except OSError:
            pass
        _end_the_others()
        killed = self._watchdog.killed
        _, status = os.waitpid(self._clean, 0)
        if killed:
            return "it exceeded the memory, sockets or locks of its box"
        if os.WIFSIGNALED(status):
            return f"signal {os.WTERMSIG(status)}"
        return f"exit code {os.waitstatus_to_exitcode(status)}"


class Relay:
    """A relay between pool and program. It reads messages from a side only after the other has received everything."""

    def __init__(self, program: socket.socket) -> None:
        """Forward messages of the program at the other end of this socket."""
        program.setblocking(False)
        self._program = program
        self._header, self._left = b"", 0
        self._asked = self._words = b""
        self._over = False

    @property
    def done(self) -> bool:
        """Whether the program's last message has reached the pool, and no frame is incomplete."""
        return self._over and not (self._words or self._header or self._left)

    def events(self) -> dict[int, int]:
        """Return the poll events to wait for, by file descriptor."""
        listens = not self._words and not self._over
        events = {
            _OUT: select.POLLOUT if self._words else 0,
            self._program.fileno(): (select.POLLIN if listens else 0) | (select.POLLOUT if self._asked else 0),
        }
        # Even if nothing is read from the pool, poll still reports that it is gone.
        return {_IN: 0 if self._asked else select.POLLIN} | {number: event for number, event in events.items() if event}

    def move(self, ready: Mapping[int, int], *, ended: bool) -> None:
        """Read and forward what is possible without waiting.

        Args:
            ready: poll events by file descriptor.
            ended: whether the program's process has ended.

        Raises:
            EOFError: if the pool is gone.
            ValueError: if the pool sends an unexpected frame.
        """
        program = self._program.fileno()
        if _OUT in ready:
            with contextlib.suppress(BlockingIOError):
                self._words = self._words[os.write(_OUT, self._words) :]
        if self._asked and program in ready:
            self._tell()
        if not self._words and not self._over and (ended or program in ready):
            self._listen(ended=ended)
        if _IN in ready:
            if not ready[_IN] & select.POLLIN:
                raise EOFError("the pool is gone")
            self._ask()

    def _tell(self) -> None:
        try:
            self._asked = self._asked[self._program.send(self._asked) :]
        except BlockingIOError:
            pass
        except OSError:
            self._asked = b""  # it has closed its socket: its end says more

    def _listen(self, *, ended: bool) -> None:
        try:
            words = self._program.recv(_CHUNK)
        except BlockingIOError:
            if not ended:
                return
            words = b""
        except OSError:
            words = b""
        if words:
            self._words = frames.HEADER.pack(_WORDS, len(words)) + words
        else:
            self._over, self._asked = True, b""

    def _ask(self) -> None:
        part = os.read(_IN, min(self._left, _CHUNK) or frames.HEADER.size - len(self._header))
        if not part:
            raise EOFError("the pool is gone")
        if self._left:
            self._left -= len(part)
            self._asked = b"" if self._over else part
            return
        self._header += part
        if len(self._header) == frames.HEADER.size:
            kind, self._left = frames.HEADER.unpack(self._header)
            self._header = b""
            if kind != _ASK:
                raise ValueError(f"a frame of kind {kind!r} arrived for a running program")


def _end_the_others() -> None:
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)


def main() -> None:
    """Run as a persistent box's first process until the pool's stream ends."""
    if os.getpid() != 1:
        sys.exit("this program must be the first process of a box; here it would kill every other process")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    confine.set_dumpable(False)
    header = frames.read_header(_IN)
    if header is None:
        return
    guest = LivingGuest(frames.split(frames.read(_IN, header[1]))[0])
    frames.write(_OUT, frames.frame(frames.GREETING, guest.prepare()))
    sys.exit(guest.serve() or None)


if __name__ == "__main__":
    main()
