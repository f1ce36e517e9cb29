"""Ports for servers that need their port number before they start."""

import contextlib
import secrets
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 32768
"""First port of the range that the kernel assigns, if the kernel does not report it."""


def free_port() -> int:
    """Return a free port below the range that the kernel assigns, so that no other test gets it meanwhile."""
    lowest = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else _LOWEST
    while True:
        port = secrets.choice(range(lowest // 2, lowest))
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
