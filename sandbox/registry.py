"""Chooses the back end that runs untrusted code on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.types import Sandbox

NAMES = ("docker", "bubblewrap")
"""In the order in which they are tried."""
_SECONDS = 5.0
"""An engine that takes longer to say that it is there is taken for hung."""


def open_sandbox(name: str | None, cache: Path, base_image: str | None = None) -> Sandbox:
    """Return a back end: the one named, else Docker where an engine answers, else bubblewrap where a box starts.

    Code that a model wrote is never run by a plain subprocess: where neither works, nothing is run.

    Args:
        name: one of `NAMES`, or None to choose.
        cache: a folder of the sandbox's own.
        base_image: what Docker images are built on; None for what CTXBENCH_BASE_IMAGE names, else the official
            Python image.

    Raises:
        SandboxUnavailable: if the one named, or both, cannot be used here.
    """
    if name not in (None, *NAMES):
        raise SandboxUnavailable(f"there is no sandbox {name!r}", where="--sandbox", cure=f"use {' or '.join(NAMES)}")
    docker = docker_fault() if name != "bubblewrap" else None
    if name == "docker" and docker is not None:
        raise docker
    if name != "bubblewrap" and docker is None:
        from sandbox.docker import DockerSandbox  # noqa: PLC0415 - imports Docker's SDK

        return DockerSandbox(cache, base_image=base_image or os.environ.get("CTXBENCH_BASE_IMAGE", ""))
    from sandbox.bubblewrap import BubblewrapSandbox  # noqa: PLC0415 - not needed where Docker is

    if (other := bubblewrap_fault(cache)) is None:
        return BubblewrapSandbox(cache)
    if name == "bubblewrap" or docker is None:
        raise other
    raise SandboxUnavailable(
        f"untrusted code cannot be run on this machine: {docker}; {other}",
        where="sandbox",
        cure="either will do; `ctxbench doctor` says what is missing",
    )


def docker_fault() -> SandboxError | None:
    """Return why no Docker engine can be used; None if one answers within seconds."""
    try:
        from sandbox.docker.engine import connected  # noqa: PLC0415 - imports Docker's SDK when it connects

        with connected(_SECONDS):
            return None
    except ImportError:
        return SandboxUnavailable("Docker's SDK is not installed", where="docker", cure="run `pip install docker`")
    except SandboxError as fault:
        return fault


def bubblewrap_fault(cache: Path) -> SandboxError | None:
    """Return why no box can be started under bubblewrap; None if one was."""
    from sandbox.bubblewrap.backend import available  # noqa: PLC0415 - not needed where Docker is

    return available(cache)
