"""Fixtures that open real back ends."""

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctxbench.sandbox import wheels
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.registry import open_sandbox
from ctxbench.sandbox.types import Environment, Report, Sandbox
from tests.helpers.extras import missing

BACK_ENDS = ("docker", "bubblewrap")


def cache() -> Path:
    """Return the folder of images for tests, shared by all workers and runs."""
    folder = Path(tempfile.gettempdir()) / f"ctxbench-test-sandbox-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} is another user's")
    return folder


@contextmanager
def locked() -> Iterator[Path]:
    with (cache() / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield cache()


def lock_wheels(requirements: Sequence[str], project: str) -> tuple[str, ...]:
    with locked() as folder:
        return wheels.lock(requirements, project, folder, lambda _: None)


class Locked:
    """A back end whose images are built by one test worker at a time."""

    def __init__(self, inner: Sandbox) -> None:
        self.inner, self.name, self.open, self.converse = inner, inner.name, inner.open, inner.converse

    def prepare(self, environment: Environment, report: Report) -> str:
        try:
            with locked():
                return self.inner.prepare(environment, report)
        except SandboxUnavailable as unavailable:
            # Only a missing program skips the test: Debian 13, for example, no longer has JDK 17.
            if "not installed on this machine" in unavailable.what:
                missing(str(unavailable))
            raise


def real(name: str) -> Sandbox:
    """Return the back end called `name`, or act as `missing`."""
    try:
        with locked() as folder:
            return Locked(open_sandbox(name, folder))
    except SandboxUnavailable as unavailable:
        missing(str(unavailable))


@pytest.fixture(scope="session")
def docker_sandbox() -> Sandbox:
    return real("docker")


@pytest.fixture(scope="session")
def bubblewrap_sandbox() -> Sandbox:
    return real("bubblewrap")


@pytest.fixture(scope="session", params=BACK_ENDS)
def real_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    sandbox: Sandbox = request.getfixturevalue(f"{request.param}_sandbox")
    return sandbox
