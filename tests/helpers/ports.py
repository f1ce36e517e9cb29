"""Ports for servers that must be told theirs before they start."""

import contextlib
import secrets
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 32768
"""The first port of the kernel's own choice, where it does not say."""


def free_port() -> int:
    """Return a port of this machine that nothing listens on.

    It lies below those that the kernel gives to whoever asks for any, so that no other test is given it meanwhile.
    """
    lowest = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else _LOWEST
    while True:
        port = secrets.choice(range(lowest // 2, lowest))
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
