"""The seam between the pool and a back end: a running box is two streams of bytes and an end."""

from __future__ import annotations

from typing import Protocol

NETWORK = {"net/ipv4/tcp_rmem": "4096 131072 262144", "net/ipv4/tcp_wmem": "4096 16384 262144"}
"""Settings of a box's own network, below ``/proc/sys``: the least, first and largest buffers of a socket, in bytes.
They are memory of the machine's that a box's limit may not count."""


class Box(Protocol):
    """One running box; its first process is `sandbox.guest`, which reads and writes frames."""

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` to the guest's stdin.

        Raises:
            SandboxLost: if the box has ended, or `deadline` (of `time.monotonic`) passed.
        """
        ...

    def receive(self, deadline: float) -> bytes:
        """Return the next bytes of the guest's stdout, at least one, at most 64 KiB.

        Raises:
            SandboxLost: if the box has ended, or `deadline` passed.
        """
        ...

    def end(self) -> str:
        """Kill the box with everything in it, leave nothing of it behind, say why it had ended if it had.

        May be called again, from any thread; never raises.
        """
        ...


class Launcher(Protocol):
    """Starts boxes of one image under one set of limits."""

    image: str

    def start(self) -> Box:
        """Start a box and return at once; the guest greets when it is ready.

        Raises:
            SandboxLost: if the machine cannot start one now.
        """
        ...
