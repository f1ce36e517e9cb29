"""Choose the back end that runs untrusted code on this machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ctxbench.sandbox.errors import SandboxError, SandboxUnavailable
from ctxbench.sandbox.types import Sandbox

NAMES = ("docker", "bubblewrap")
"""In the order in which they are tried."""
_SECONDS = 5.0
"""An engine that takes longer to say that it is there is taken for hung."""
_RUNTIME = re.compile(r"docker\(runtime=([A-Za-z0-9][A-Za-z0-9._-]*)\)")
SPELLINGS = "docker, docker(runtime=NAME) or bubblewrap"
_GVISOR = (
    "install gVisor (gvisor.dev/docs/user_guide/install), then `sudo runsc install && sudo systemctl restart docker`"
)


@dataclass(frozen=True, slots=True)
class BackEndName:
    """What the name of a back end says."""

    back_end: str
    """One of `NAMES`."""
    runtime: str = ""
    """What the engine runs boxes with; empty for its own choice."""


def read_name(name: str) -> BackEndName | None:
    """Return what a back end's name says; None if there is no such name."""
    if name in NAMES:
        return BackEndName(name)
    match = _RUNTIME.fullmatch(name)
    return BackEndName("docker", match[1]) if match else None


def open_sandbox(name: str | None, cache: Path, base_image: str | None = None) -> Sandbox:
    """Return a back end: the one named, else Docker where an engine answers, else bubblewrap where a box starts.

    Code that a model wrote is never run by a plain subprocess: where neither works, nothing is run.

    Args:
        name: one of `NAMES`, ``docker(runtime=NAME)`` for a runtime of the engine's such as gVisor's ``runsc``, or
            None to choose.
        cache: a folder of the sandbox's own.
        base_image: what Docker images are built on; None for what CTXBENCH_BASE_IMAGE names, else the official
            Python image.

    Raises:
        SandboxUnavailable: if the one named, or both, cannot be used here.
    """
    named = BackEndName("") if name is None else read_name(name)
    if named is None:
        raise SandboxUnavailable(f"there is no sandbox {name!r}", where="--sandbox", cure=f"use {SPELLINGS}")
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
        cure="either will do; `ctxbench doctor` says what is missing",
    )


def docker_fault() -> SandboxError | None:
    """Return why no Docker engine can be used; None if one answers within seconds."""
    try:
        from ctxbench.sandbox.docker.engine import connected  # noqa: PLC0415 - imports Docker's SDK when it connects

        with connected(_SECONDS):
            return None
    except ImportError:
        return SandboxUnavailable("Docker's SDK is not installed", where="docker", cure="run `pip install docker`")
    except SandboxError as fault:
        return fault


def runtimes() -> list[str]:
    """Return the names of the engine's runtimes.

    Raises:
        SandboxUnavailable: if no engine answers.
    """
    from ctxbench.sandbox.docker.engine import connected, engine_faults  # noqa: PLC0415 - imports Docker's SDK when it connects

    with connected(_SECONDS) as client, engine_faults(SandboxUnavailable, "docker"):
        return sorted(client.api.info().get("Runtimes") or {})


def runtime_fault(name: str) -> SandboxError | None:
    """Return why boxes cannot be run with a runtime; None if the engine has it."""
    try:
        present = runtimes()
    except SandboxError as fault:
        return fault
    if name in present:
        return None
    cure = (
        _GVISOR
        if name == "runsc"
        else f"use one of them: --sandbox 'docker(runtime={present[-1] if present else 'runc'})'"
    )
    return SandboxUnavailable(
        f"the engine has no runtime {name!r}, but {', '.join(present) or 'none'}", where="docker", cure=cure
    )


def bubblewrap_fault(cache: Path) -> SandboxError | None:
    """Return why no box can be started under bubblewrap; None if one was."""
    from ctxbench.sandbox.bubblewrap import available  # noqa: PLC0415 - not needed where Docker is

    return available(cache)
