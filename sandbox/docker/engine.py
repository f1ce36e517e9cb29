"""The Docker engine's client, whose errors become one line with a cure."""

from __future__ import annotations

import contextlib
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxbench.sandbox.errors import SandboxError, SandboxUnavailable

Client = Any
ANSWER_SECONDS = 120.0
"""Timeout in seconds for one answer of the engine. A busy machine starts boxes slowly."""
_CONNECTIONS = 64
_FOLDER = Path(__file__).absolute().parent
START = f"sh {shlex.quote(str(_FOLDER / 'docker_engine.sh'))}"
"""Command that installs and starts an engine on Debian, as root."""
DEBIAN_BASE = f"sh {shlex.quote(str(_FOLDER / 'debian_base.sh'))}"
"""Command that builds a base image from Debian packages, as root."""
_START = f"start Docker (on Debian as root: `{START}`), or use bubblewrap"
_CURES = (
    ("permission denied", "join the group docker and log in again (`sudo usermod -aG docker $USER`), or run as root"),
    (
        "no space left",
        "free disk space: `docker image prune --all --filter label=ctxbench.image`, `docker system prune`",
    ),
    ("no such file", _START),
    ("connection refused", _START),
    ("timed out", "check the containers (docker ps), or restart the engine"),
)


@contextlib.contextmanager
def connected(seconds: float = ANSWER_SECONDS) -> Iterator[Client]:
    """Yield a client of the Docker engine at ``DOCKER_HOST`` or, if that is not set, at the local socket.

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
    """Connect to the engine's socket once, because the SDK leaves its socket open if connecting fails."""
    named = docker.from_env(version="1.41")  # with a version, the client does not connect yet
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
    """Return whether a Docker engine answers."""
    try:
        with connected():
            return True
    except SandboxError:
        return False


@contextlib.contextmanager
def engine_faults(kind: type[SandboxError], where: str) -> Iterator[None]:
    """Raise errors of the Docker SDK and its connection as errors of the class `kind`, with a cure."""
    from docker.errors import DockerException  # noqa: PLC0415 - the SDK takes 0.2 s to import
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

    try:
        yield
    except (DockerException, HTTPError, OSError) as error:  # requests' faults are OSErrors
        raise fault(error, kind, where) from error


def fault(
    error: Exception, kind: type[SandboxError], where: str, cure: str = "see the engine's log (journalctl -u docker)"
) -> SandboxError:
    """Return an exception of the Docker SDK as an error of class `kind`. `cure` is used if no better one is known."""
    message = " ".join(str(getattr(error, "explanation", None) or error).split())
    low = message.lower()
    cure = next((own_cure for sign, own_cure in _CURES if sign in low), cure)
    message = message.removeprefix("Error while fetching server API version: ")
    return kind(message[:400].rstrip(". "), where=where, cure=cure)


def absent(error: Exception) -> bool:
    """Return whether an error of the engine says that a container or image does not exist."""
    return getattr(error, "status_code", None) == 404
