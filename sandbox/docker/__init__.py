"""The back end that runs boxes as Docker containers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxbench.sandbox import wheels
from ctxbench.sandbox.docker import images
from ctxbench.sandbox.docker.engine import ANSWER_SECONDS, Client, answers, connected
from ctxbench.sandbox.docker.images import BUILDS, sweep
from ctxbench.sandbox.docker.launcher import DockerLauncher
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.ownership import exclusive_lock
from ctxbench.sandbox.persistent import RESIDENT, Conversation, conversation
from ctxbench.sandbox.types import Environment, Limits, Pool, Report

__all__ = ["DockerSandbox", "answers"]


class DockerSandbox:
    """The back end that runs boxes as containers of one Docker engine (see `sandbox.types.Sandbox`)."""

    def __init__(self, cache: Path, *, base_image: str = images.OFFICIAL, runtime: str = "") -> None:
        """Store the settings, without any I/O.

        Args:
            cache: folder for wheels and notes, used by no other program.
            base_image: image that boxes are built on.
            runtime: name of the engine's container runtime; empty for its default.
        """
        self.cache, self.runtime = cache, runtime
        self.name = f"docker(runtime={runtime})" if runtime else "docker"
        self.base_image = base_image or images.OFFICIAL
        self.base: str | None = None
        """Id of the base image, kept once known, so that an unreachable registry is queried only once."""

    def prepare(self, environment: Environment, report: Report) -> str:
        """Build an environment's image if missing. Return the digest of everything a job can see."""
        with self.connected() as client:
            image = self._image(client, environment)
            if image is None:
                self.base = self.base or images.base_id(client, self.base_image, report)
                image = self._build(client, environment, self.base, report)
            return images.key(image, environment)

    @contextlib.contextmanager
    def open(self, environment: Environment, *, limits: Limits, width: int = 1, reuse: int = 1) -> Iterator[Pool]:
        """Open a pool of containers of a prepared environment. Stopped boxes of dead processes are removed first."""
        from ctxbench.sandbox.pool import open_pool  # noqa: PLC0415

        with self.connected() as client:
            sweep(client)
        with (
            self.launcher(environment, limits) as launcher,
            open_pool(launcher, environment, limits, width=width, reuse=reuse) as pool,
        ):
            yield pool

    @contextlib.contextmanager
    def converse(self, environment: Environment, *, limits: Limits) -> Iterator[Conversation]:
        """Open a persistent box (see `sandbox.types.Sandbox.converse`)."""
        with (
            self.launcher(environment, limits, first=RESIDENT) as launcher,
            conversation(launcher, environment, limits) as talk,
        ):
            yield talk

    @contextlib.contextmanager
    def launcher(self, environment: Environment, limits: Limits, *, first: str = "") -> Iterator[DockerLauncher]:
        """Yield a launcher for a prepared environment's boxes.

        Args:
            first: Python module that runs as the first process; empty for the guest.

        Raises:
            SandboxUnavailable: if the image is missing, or no engine answers.
        """
        with self.connected() as client:
            image = self._image(client, environment)
            if image is None:
                raise SandboxUnavailable(
                    "the image is missing", where=environment.name, cure="run the same command again"
                )
            key = images.key(image, environment)
            yield DockerLauncher(client, image, environment, limits, key, self.runtime, first=first)

    def connected(self, seconds: float = ANSWER_SECONDS) -> contextlib.AbstractContextManager[Client]:
        """Yield a client of the Docker engine (see `engine.connected`)."""
        return connected(seconds)

    @property
    def _notes(self) -> Path:
        return self.cache / "docker"

    def _image(self, client: Client, environment: Environment) -> dict[str, Any] | None:
        base = self.base or images.local_base(client, self.base_image)
        return images.find(client, images.tag(environment, base)) if base else None

    def _build(self, client: Client, environment: Environment, base: str, report: Report) -> dict[str, Any]:
        python = images.base_python(client, base, self._notes)
        folder = wheels.fetch(environment.requirements, environment.project, self.cache, report, python)
        # Build one image at a time. A process that waited finds the same image, or shared layers of a similar image.
        with exclusive_lock(self._notes / BUILDS):
            image = images.find(client, images.tag(environment, base))
            return image or images.build(client, environment, base, folder, report)
