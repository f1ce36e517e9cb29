"""Fixtures for a real Docker engine, and for boxes that run a stand-in for the guest."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.docker.box import DockerBox
from ctxbench.sandbox.docker.engine import Client, answers, connected
from ctxbench.sandbox.docker.launcher import DockerLauncher
from ctxbench.sandbox.types import Environment, Limits
from tests.helpers.extras import missing
from tests.sandbox.docker.standin import GUEST

NAME = f"test-docker-{os.getpid()}"
"""The name of all environments in these tests. Their images are found and removed by it."""


@pytest.fixture(scope="session")
def engine() -> Iterator[Client]:
    """Yield the engine's client. Afterwards remove the images that tests have tagged."""
    if not answers():
        missing("no Docker engine answers")
    with connected() as client:
        yield client
        for image in client.api.images(filters={"label": f"ctxbench.name={NAME}"}):
            for tag in image["RepoTags"] or []:
                if tag != "<none>:<none>":
                    client.api.remove_image(tag, force=True)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sandbox")


@pytest.fixture(scope="session")
def docker_sandbox(engine: Client, cache: Path) -> DockerSandbox:
    return DockerSandbox(cache, base_image=os.environ.get("CTXBENCH_BASE_IMAGE", ""))


@pytest.fixture(scope="session")
def environment() -> Environment:
    """Return an environment whose guest runs the Python code that it is sent.

    Its library contains the name. Otherwise all test workers would share one image, and the first worker to
    finish would remove it.
    """
    library = {"sandbox/guest/__main__.py": GUEST, "name.txt": NAME.encode()}
    return Environment(name=NAME, library=library, tree={"answer.py": b"SECRET = 1\n"}, variables=(("LIMIT", "3"),))


@pytest.fixture(scope="session")
def launcher(docker_sandbox: DockerSandbox, environment: Environment) -> Iterator[DockerLauncher]:
    docker_sandbox.prepare(environment, lambda _: None)
    with docker_sandbox.launcher(environment, Limits(memory=128 << 20, disk=8 << 20, inodes=500)) as launcher:
        yield launcher


@pytest.fixture
def box(launcher: DockerLauncher) -> Iterator[DockerBox]:
    made = launcher.start()
    yield made
    made.end()
