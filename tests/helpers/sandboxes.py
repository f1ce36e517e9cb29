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
    """Return where images for tests are kept: one place for every worker, and from run to run."""
    folder = Path(tempfile.gettempdir()) / f"ctxbench-test-sandbox-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} is another user's")
    return folder


@contextmanager
def locked() -> Iterator[Path]:
    """Keep the cache to this worker."""
    with (cache() / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield cache()


def lock_wheels(requirements: Sequence[str], project: str) -> tuple[str, ...]:
    """Lock a project's requirements, one worker at a time."""
    with locked() as folder:
        return wheels.lock(requirements, project, folder, lambda _: None)


class Locked:
    """A back end whose images are made by one worker at a time."""

    def __init__(self, inner: Sandbox) -> None:
        self.inner, self.name, self.open, self.converse = inner, inner.name, inner.open, inner.converse

    def prepare(self, environment: Environment, report: Report) -> str:
        try:
            with locked():
                return self.inner.prepare(environment, report)
        except SandboxUnavailable as unavailable:
            # Of programs only: Debian 13, for example, has no JDK 17 any more.
            if "not installed on this machine" in unavailable.what:
                missing(str(unavailable))
            raise


def real(name: str) -> Sandbox:
    """Return a back end by name; where it is missing, skip or fail, as `missing` says."""
    try:
        with locked() as folder:
            return Locked(open_sandbox(name, folder))
    except SandboxUnavailable as unavailable:
        missing(str(unavailable))


@pytest.fixture(scope="session")
def docker_sandbox() -> Sandbox:
    """Return the Docker back end."""
    return real("docker")


@pytest.fixture(scope="session")
def bubblewrap_sandbox() -> Sandbox:
    """Return the bubblewrap back end."""
    return real("bubblewrap")


@pytest.fixture(scope="session", params=BACK_ENDS)
def real_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return each back end in turn."""
    sandbox: Sandbox = request.getfixturevalue(f"{request.param}_sandbox")
    return sandbox
