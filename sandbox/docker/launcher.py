"""Starts hardened containers, and defines their settings."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ctxbench.sandbox.docker.box import DockerBox, attached, remove
from ctxbench.sandbox.docker.engine import Client, engine_faults
from ctxbench.sandbox.errors import SandboxError, SandboxLost
from ctxbench.sandbox.ownership import owner
from ctxbench.sandbox.types import MIB, NETWORK, Environment, Limits

USERS = range(1_900_000, 1_901_024)
"""User ids of boxes, one per box, because the kernel applies many limits per user. Larger ids do not fit every tar."""
_MAPPED_USERS = range(50_000, 51_024)
_NAME_TAKEN = 409
VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/work",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": "/ctxbench/lib:/ctxbench/site",
}
_PYTHON = ("python3", "-s", "-P", "-B", "-m")
SHM = "/dev/shm"  # noqa: S108 - the box's own
_SHM = 16 * MIB


class DockerLauncher:
    """A launcher of boxes of one image (see `sandbox.types.Launcher`)."""

    def __init__(
        self,
        client: Client,
        attributes: Mapping[str, Any],
        environment: Environment,
        limits: Limits,
        image: str,
        runtime: str = "",
        *,
        first: str = "",
    ) -> None:
        """Store the settings.

        Args:
            attributes: the engine's data on the image.
            image: digest of everything that a job can see in its box.
            runtime: the engine's container runtime; empty for its default.
            first: Python module of the first process; empty for the guest.
        """
        self.image, self._runtime, self._first = image, runtime, first
        self._client, self._id, self._limits = client, attributes["Id"], limits
        self._variables = guest_variables(attributes["Config"]["Env"] or [], environment)

    def start(self) -> DockerBox:
        """Create a container, attach to it and start it."""
        return started(self._client, self._engine, self._settings)

    def _settings(self, user: int) -> dict[str, Any]:
        return {
            "image": self._id,
            "environment": self._variables,
            "hostname": "box",
            **({"entrypoint": [*_PYTHON, self._first]} if self._first else {}),
            # With `detach` false the engine closes stdin when our attached stream ends, even if this process is killed:
            # the guest reads the end of its stdin and exits, and auto_remove does the rest.
            "stdin_open": True,
            "detach": False,
            "labels": {"ctxbench.owner": owner()},
            "host_config": self._client.api.create_host_config(**hardened(self._limits, self._engine, user)),
        }

    @cached_property
    def _engine(self) -> EngineFacts:
        return EngineFacts.of(self._client, self._runtime)


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Properties of a Docker engine: its processors, the user ids of its boxes, and their runtime."""

    processors: int
    users: range
    runtime: str = ""
    """Runtime of the engine's containers, such as gVisor's ``runsc``; empty for the default."""

    @classmethod
    def of(cls, client: Client, runtime: str = "") -> EngineFacts:
        """Query an engine for its properties."""
        info = client.api.info()
        options = {part for option in info.get("SecurityOptions") or [] for part in option.split(",")}
        mapped = options & {"name=userns", "name=rootless"}
        return cls(int(info["NCPU"]), _MAPPED_USERS if mapped else USERS, runtime)


def started(client: Client, engine: EngineFacts, settings: Callable[[int], Mapping[str, Any]]) -> DockerBox:
    """Create a container, attach to it and start it. `settings` maps a user id to the container's settings.

    On an error, the container is removed.

    Raises:
        SandboxLost: if the engine fails.
        SandboxUnavailable: if the connection to the engine is not a plain socket.
    """
    with engine_faults(SandboxLost, "docker"):
        name, user = _created(client, engine, settings)
        try:
            # Attach before the start, or the first output is lost.
            stream = attached(client, name)
            try:
                client.api.start(name)
            except BaseException:
                stream.close()
                raise
        except BaseException:
            tidy(client, name)
            raise
    return DockerBox(client, name, stream, user)


def _created(client: Client, engine: EngineFacts, settings: Callable[[int], Mapping[str, Any]]) -> tuple[str, int]:
    """Create a container with an unused user id. The engine rejects a container name that is in use."""
    for user in random.sample(engine.users, len(engine.users)):
        parts = {"name": f"ctxbench-box-{user}", "user": f"{user}:{user}", **settings(user)}
        try:
            created = client.api.create_container(**parts)
        except Exception as error:
            if getattr(error, "status_code", None) != _NAME_TAKEN:
                raise
        else:
            return str(created["Id"]), user
    raise SandboxLost(
        f"the engine has {len(engine.users)} boxes, the maximum",
        where="docker",
        cure="run fewer jobs at once, or remove leftovers: `ctxbench doctor --clean`",
    )


def tidy(client: Client, name: str) -> None:
    """Remove a container because of another error, and ignore a failure to do so."""
    try:
        remove(client, name)
    except SandboxError:
        # The other error is more useful; `ctxbench doctor --clean` finds the container by its label.
        return


def guest_variables(image: list[str], environment: Environment) -> list[str]:
    """Return the guest's environment variables. A name without ``=`` removes one of the image's variables."""
    ours = {**VARIABLES, **dict(environment.variables)}
    theirs = {text.partition("=")[0] for text in image} | {"HOSTNAME"}
    return [f"{name}={value}" for name, value in ours.items()] + sorted(theirs - set(ours))


def hardened(limits: Limits, engine: EngineFacts, user: int) -> dict[str, Any]:
    """Return the container's host settings. The box runs as `user`."""
    from docker.types import LogConfig, Ulimit  # noqa: PLC0415 - the SDK takes 0.2 s to import

    return {
        "runtime": engine.runtime or None,
        "network_mode": "none",
        # Even without a network the engine would show the box the machine's name servers and domains.
        "dns": ["127.0.0.1"],
        "dns_search": ["."],
        "read_only": True,
        "tmpfs": {
            # Executable, because tests load compiled extensions and programs that they build there.
            "/work": in_memory("exec", limits.disk, limits.inodes, user),
            SHM: in_memory("noexec", _SHM, 1024, user),
        },
        "sysctls": {name.replace("/", "."): text for name, text in NETWORK.items()},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={_seccomp()}"],
        "pids_limit": limits.processes,
        "mem_limit": limits.memory,
        # Memory and swap together: no swap.
        "memswap_limit": limits.memory,
        "nano_cpus": int(min(limits.cpus, engine.processors) * 1e9),
        "ulimits": [
            Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            Ulimit(name="core", soft=1, hard=1),  # see `sandbox.guest.confine`
            Ulimit(name="sigpending", soft=1024, hard=1024),
            # The engine mounts /dev/mqueue, where any user may create queues, which outlive a job.
            Ulimit(name="msgqueue", soft=0, hard=0),
        ],
        "ipc_mode": "none",
        # The default driver writes all output of a box to the machine's disk.
        "log_config": LogConfig(type="none", config={}),
        # When the machine runs out of memory, the kernel kills a box before the harness.
        "oom_score_adj": 500,
        "auto_remove": True,
    }


def in_memory(execution: str, size: int, inodes: int, user: int) -> str:
    """Return mount options of a file system in memory. `execution` is ``exec`` or ``noexec``, `size` is in bytes."""
    return f"rw,{execution},nosuid,nodev,size={size},nr_inodes={inodes},mode=0700,uid={user},gid={user}"


@functools.cache
def _seccomp() -> str:
    """Return the seccomp profile as one line of JSON, because the engine takes the text rather than a path."""
    text = (Path(__file__).parent / "seccomp.json").read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))
