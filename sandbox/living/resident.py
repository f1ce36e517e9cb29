"""``python3 -m ctxbench_resident``: the first process of a living box. Standard library and our guest only.

A job is a program that stays: it is started as the guest starts jobs, confined in the same way and watched over by the
same watchdog, and gets a socket. What the pool says goes to that socket, what the program says goes to the pool in
frames of kind ``W``; what it prints is not passed on, but for the last words of one that ends.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time

from sandbox.guest import capture, child, confine, frames, server
from sandbox.guest.supervisor import Supervisor
from sandbox.guest.watchdog import SECONDS

_IN, _OUT = 0, 1
_ASK, _WORDS, _ENDED = b"A", b"W", b"O"
_CHUNK = 1 << 16
_LAST = 600
"""Characters of a program's last words that are passed on."""


class LivingGuest(server.Guest):
    """A guest whose jobs stay."""

    def _supervise(self, length: int) -> None:
        Resident(self._bounds, self._group).live(frames.read(_IN, length))


class Resident(Supervisor):
    """One program that stays."""

    def live(self, data: bytes) -> None:
        """Start what a frame says, and pass on messages until it ends."""
        head, _ = frames.split(data)
        child.confirmed(self._channel)
        mine, theirs = socket.socketpair()
        order = {"run": "serve", "function": head["function"], "arguments": head["arguments"]}
        try:
            child.start(self._channel, order, theirs.fileno())
            theirs.close()
            os.close(self._said[1])
            os.close(self._answered[1])
            self._relay(mine)
            how = self._how()
        except child.NotReady:
            how = "it could not be started"
        words = self._words()[-_LAST:]
        frames.write(_OUT, frames.frame(_ENDED, {"how": f"{how}: {words}" if words else how}))

    def _relay(self, mine: socket.socket) -> None:
        """Pass on messages both ways until the program ends or hangs up."""
        poll = select.poll()
        handle = os.pidfd_open(self._clean)
        said = self._said[0]
        os.set_blocking(said, False)
        for readable in (_IN, mine.fileno(), handle, said):
            poll.register(readable, select.POLLIN)
        looked = time.monotonic()
        while True:
            if time.monotonic() - looked >= SECONDS:
                looked = time.monotonic()
                self._watchdog.look()
            ready = {number for number, _ in poll.poll(SECONDS * 1000)}
            if said in ready and not capture.drain(said, self._output):
                poll.unregister(said)
            if mine.fileno() in ready and not self._pass_on(mine):
                return
            if handle in ready:
                while self._pass_on(mine, wait=False):
                    pass
                return
            if _IN in ready:
                self._ask(mine)

    def _pass_on(self, mine: socket.socket, *, wait: bool = True) -> bool:
        """Pass on the next words of the program; False at their end."""
        try:
            words = mine.recv(_CHUNK, 0 if wait else socket.MSG_DONTWAIT)
        except OSError:
            return False
        if words:
            frames.write(_OUT, frames.HEADER.pack(_WORDS, len(words)) + words)
        return bool(words)

    @staticmethod
    def _ask(mine: socket.socket) -> None:
        header = frames.read_header(_IN)
        if header is None:
            raise EOFError("the pool is gone")
        if header[0] != _ASK:
            raise ValueError(f"a frame of kind {header[0]!r} to a program that lives")
        try:
            mine.sendall(frames.read(_IN, header[1]))
        except OSError:
            return  # it has hung up: its end says more

    def _how(self) -> str:
        """End the program's process; return how it ended by itself."""
        time.sleep(0.01)
        try:
            if os.waitid(os.P_PID, self._clean, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                os.kill(self._clean, signal.SIGKILL)
        except OSError:
            pass
        killed = self._watchdog.killed
        _, status = os.waitpid(self._clean, 0)
        if killed:
            return "it went beyond the memory or sockets of its box"
        if os.WIFSIGNALED(status):
            return f"signal {os.WTERMSIG(status)}"
        return f"exit code {os.waitstatus_to_exitcode(status)}"


def main() -> None:
    """Be the first process of a living box until the pool's stream ends."""
    if os.getpid() != 1:
        sys.exit("this is the first process of a box; it would kill every other process here")
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
