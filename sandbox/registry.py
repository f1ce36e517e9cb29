"""Chooses this machine's back end for untrusted code."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ctxbench.sandbox.errors import SandboxError, SandboxUnavailable
from ctxbench.sandbox.types import Sandbox

NAMES = ("docker", "bubblewrap")
"""Names of the back ends, in the order of preference."""
_SECONDS = 5.0
_RUNTIME = re.compile(r"docker\(runtime=([A-Za-z0-9][A-Za-z0-9._-]*)\)")
SPELLINGS = "docker, docker(runtime=NAME) or bubblewrap"
_GVISOR = (
    "install gVisor (gvisor.dev/docs/user_guide/install), then `sudo runsc install && sudo systemctl restart docker`"
)


@dataclass(frozen=True, slots=True)
class BackEndName:
    """A parsed name of a back end."""

    back_end: str
    runtime: str = ""


def read_name(name: str) -> BackEndName | None:
    """Parse a back end's name; None if there is no such back end."""
    if name in NAMES:
        return BackEndName(name)
    match = _RUNTIME.fullmatch(name)
    return BackEndName("docker", match[1]) if match else None


def open_sandbox(name: str | None, cache: Path, base_image: str | None = None) -> Sandbox:
    """Return the named back end. Without a name, try Docker and then bubblewrap.

    Args:
        name: one of `NAMES`, or ``docker(runtime=NAME)`` for a container runtime such as gVisor's ``runsc``.
        cache: folder that only the sandbox uses.
        base_image: base of Docker images; by default CTXBENCH_BASE_IMAGE or the official Python image.

    Raises:
        SandboxUnavailable: if the named back end does not exist or cannot be used here, or none can.
    """
    named = BackEndName("") if name is None else read_name(name)
    if named is None:
        raise SandboxUnavailable(f"no sandbox is called {name!r}", where="--sandbox", cure=f"use {SPELLINGS}")
    base_image = base_image or os.environ.get("CTXBENCH_BASE_IMAGE", "")
    docker = docker_fault() if named.back_end != "bubblewrap" else None
    if docker is None and named.runtime:
        docker = runtime_fault(named.runtime)
    if named.back_end == "docker" and docker is not None:
        raise docker
    if named.back_end != "bubblewrap" and docker is None:
        from ctxbench.sandbox.docker import DockerSandbox  # noqa: PLC0415 - imports Docker's SDK

        return DockerSandbox(cache, base_image=base_image, runtime=named.runtime)
    from ctxbench.sandbox.bubblewrap import BubblewrapSandbox  # noqa: PLC0415 - not needed where Docker is

    if (other := bubblewrap_fault(cache)) is None:
        return BubblewrapSandbox(cache)
    if named.back_end == "bubblewrap" or docker is None:
        raise other
    raise SandboxUnavailable(
        f"untrusted code cannot be run on this machine: {docker}; {other}",
        where="sandbox",
        cure="install Docker or bubblewrap; `ctxbench doctor` shows what is missing",
    )


def docker_fault() -> SandboxError | None:
    """Return why Docker cannot be used here; None if Docker answers in time."""
    try:
        from ctxbench.sandbox.docker.engine import connected  # noqa: PLC0415 - imports Docker's SDK when it connects

        with connected(_SECONDS):
            return None
    except ImportError:
        return SandboxUnavailable("Docker's SDK is not installed", where="docker", cure="run `pip install docker`")
    except SandboxError as fault:
        return fault


def runtimes() -> list[str]:
    """Return the names of Docker's container runtimes.

    Raises:
        SandboxUnavailable: if Docker does not answer.
    """
    from ctxbench.sandbox.docker.engine import connected, engine_faults  # noqa: PLC0415 - imports Docker's SDK when it connects

    with connected(_SECONDS) as client, engine_faults(SandboxUnavailable, "docker"):
        return sorted(client.api.info().get("Runtimes") or {})


def runtime_fault(name: str) -> SandboxError | None:
    """Return why a container runtime cannot be used; None if Docker has it."""
    try:
        present = runtimes()
    except SandboxError as fault:
        return fault
    if name in present:
        return None
    cure = (
        _GVISOR
        if name == "runsc"
        else f"use --sandbox 'docker(runtime={present[-1]})'"
        if present
        else "check `docker info`, or restart the engine"
    )
    return SandboxUnavailable(
        f"the engine has no runtime {name!r}; its runtimes are {', '.join(present) or 'none'}",
        where="docker",
        cure=cure,
    )


def bubblewrap_fault(cache: Path) -> SandboxError | None:
    """Return why bubblewrap's boxes do not work here; None if a test box worked."""
    from ctxbench.sandbox.bubblewrap import available  # noqa: PLC0415 - not needed where Docker is

    return available(cache)
