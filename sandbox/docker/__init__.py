"""Boxes that are Docker containers.

engine    the client, and its errors in one line
images    the base image; images built once for equal content, listed, pruned
launcher  all flags of a box
box       frames over the attached stream, and the end of a box
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxbench.sandbox import wheels
from ctxbench.sandbox.docker import images
from ctxbench.sandbox.docker.engine import ANSWER_SECONDS, Client, answers, connected
from ctxbench.sandbox.docker.images import BUILDS, sweep, touch
from ctxbench.sandbox.docker.launcher import DockerLauncher
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.ownership import exclusive_lock
from ctxbench.sandbox.persistent import RESIDENT, Conversation, conversation
from ctxbench.sandbox.types import Environment, Limits, Pool, Report

__all__ = ["DockerSandbox", "answers"]


class DockerSandbox:
    """A back end that runs jobs in containers of one Docker engine."""

    def __init__(self, cache: Path, *, base_image: str = images.OFFICIAL, runtime: str = "") -> None:
        """Store the settings. Nothing is read or written yet.

        Args:
            cache: a folder for wheels and notes, used by no other program.
            runtime: the engine's name of the runtime for boxes; empty for its default.
        """
        self.cache, self.runtime = cache, runtime
        self.name = f"docker(runtime={runtime})" if runtime else "docker"
        self.base_image = base_image or images.OFFICIAL
        self.base: str | None = None
        """Id of the base image once it is known, so that an unreachable registry is queried only once."""

    def prepare(self, environment: Environment, report: Report) -> str:
        """Build an environment's image if missing. Return the digest of everything that a job finds."""
        with self.connected() as client:
            image = self._image(client, environment)
            if image is None:
                self.base = self.base or images.base_id(client, self.base_image, report)
                image = self._build(client, environment, self.base, report)
            return images.key(image, environment)

    @contextlib.contextmanager
    def open(self, environment: Environment, *, limits: Limits, width: int = 1, reuse: int = 1) -> Iterator[Pool]:
        """Open a pool of containers of a prepared environment, after removing the stopped boxes of killed pools."""
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
        """Open a living box of a prepared environment; see `sandbox.types.Sandbox.converse`."""
        with (
            self.launcher(environment, limits, first=RESIDENT) as launcher,
            conversation(launcher, environment, limits) as talk,
        ):
            yield talk

    @contextlib.contextmanager
    def launcher(self, environment: Environment, limits: Limits, *, first: str = "") -> Iterator[DockerLauncher]:
        """Yield a launcher of boxes of a prepared environment. `first` is their first module, by default the guest.

        Raises:
            SandboxUnavailable: if the image is missing, or no engine answers.
        """
        with self.connected() as client:
            image = self._image(client, environment)
            if image is None:
                raise SandboxUnavailable(
                    "the image is not built", where=environment.name, cure="prepare the environment first"
                )
            touch(self._notes, image)
            key = images.key(image, environment)
            yield DockerLauncher(client, image, environment, limits, key, self.runtime, first=first)

    def connected(self, seconds: float = ANSWER_SECONDS) -> contextlib.AbstractContextManager[Client]:
        """Yield a client of the engine; see `engine.connected`."""
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
        # One build at a time. A process that waited finds the same image, or the shared layers of a similar one.
        with exclusive_lock(self._notes / BUILDS):
            image = images.find(client, images.tag(environment, base))
            return image or images.build(client, environment, base, folder, report)
