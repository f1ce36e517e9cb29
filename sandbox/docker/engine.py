"""The engine's client, and its errors in one line with their cure."""

from __future__ import annotations

import contextlib
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxbench.sandbox.errors import SandboxError, SandboxUnavailable

Client = Any
"""A `docker.DockerClient`. The SDK has no types."""
ANSWER_SECONDS = 120.0
"""Seconds for one answer of the engine. A busy machine starts boxes slowly, and a hung engine never answers."""
_CONNECTIONS = 64
_FOLDER = Path(__file__).absolute().parent
START = f"sh {shlex.quote(str(_FOLDER / 'docker_engine.sh'))}"
"""Command that installs and starts an engine, as root on Debian."""
DEBIAN_BASE = f"sh {shlex.quote(str(_FOLDER / 'debian_base.sh'))}"
"""Command that builds a base image of Debian's packages, as root."""
_START = f"start Docker (on Debian as root: `{START}`), or use bubblewrap"
_CURES = (
    ("permission denied", "join its group and log in again (`sudo usermod -aG docker $USER`), or run as root"),
    ("no space left", "free disk space: `ctxbench image prune`, `docker system prune`"),
    ("no such file", _START),
    ("connection refused", _START),
    ("timed out", "check the engine's containers (docker ps), or restart it"),
)


@contextlib.contextmanager
def connected(seconds: float = ANSWER_SECONDS) -> Iterator[Client]:
    """Yield a client of the engine that Docker's settings name (``DOCKER_HOST``, the context). Close it afterwards.

    Raises:
        SandboxUnavailable: if no engine answers.
    """
    import docker  # noqa: PLC0415 - the SDK takes 0.2 s to import

    with engine_faults(SandboxUnavailable, "docker"):
        _knock(docker, seconds)
        client = docker.from_env(timeout=seconds, max_pool_size=_CONNECTIONS, version="auto")
    try:
        yield client
    finally:
        client.close()


def _knock(docker: Any, seconds: float) -> None:
    """Connect to the engine's socket once. On a failure, the SDK would leave its own socket open."""
    named = docker.from_env(version="1.41")  # with a version it does not connect yet
    path = getattr(named.api.adapters.get("http+docker://"), "socket_path", None)
    named.close()
    if path is None:
        return
    try:
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(seconds)
            knocking.connect(path)
    except OSError as error:
        raise OSError(f"no Docker engine answers at {path} ({error.strerror or error})") from error


def answers() -> bool:
    """Return whether an engine answers."""
    try:
        with connected():
            return True
    except SandboxError:
        return False


@contextlib.contextmanager
def engine_faults(kind: type[SandboxError], where: str) -> Iterator[None]:
    """Turn every error of the SDK and of its connection into `kind`: one line, with the cure."""
    from docker.errors import DockerException  # noqa: PLC0415 - the SDK takes 0.2 s to import
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

    try:
        yield
    except (DockerException, HTTPError, OSError) as error:  # requests' faults are OSErrors
        raise fault(error, kind, where) from error


def fault(
    error: Exception, kind: type[SandboxError], where: str, cure: str = "see the engine's log (journalctl -u docker)"
) -> SandboxError:
    """Return the sandbox's error for an exception of the SDK, with its known cure; `cure` is the default."""
    message = " ".join(str(getattr(error, "explanation", None) or error).split())
    low = message.lower()
    cure = next((own_cure for sign, own_cure in _CURES if sign in low), cure)
    message = message.removeprefix("Error while fetching server API version: ")
    return kind(message[:400].rstrip(". "), where=where, cure=cure)


def absent(error: Exception) -> bool:
    """Return whether the engine answered that the object does not exist."""
    return getattr(error, "status_code", None) == 404
