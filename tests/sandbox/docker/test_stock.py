"""Removal of leftover containers: only stopped boxes of dead ctxbench processes are removed."""

import contextlib
import io
import subprocess
import sys
import uuid
from collections.abc import Iterator
from unittest.mock import patch

import docker
import pytest
from docker.errors import NotFound

from ctxbench.sandbox.docker import DockerSandbox, images
from ctxbench.sandbox.docker.box import DockerBox
from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.ownership import owner
from ctxbench.sandbox.types import Environment, Limits

pytestmark = pytest.mark.slow


@pytest.fixture
def image(engine: Client) -> Iterator[str]:
    """Yield the id of an empty image."""
    made, _ = engine.images.build(fileobj=io.BytesIO(f"FROM scratch\nLABEL test={uuid.uuid4()}\n".encode()), rm=True)
    yield str(made.id)
    engine.api.remove_image(made.id, force=True)


def test_opening_a_pool_removes_only_stopped_boxes_of_dead_processes(
    image: str, engine: Client, docker_sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No environment is prepared under this name, so opening fails, but only after leftovers are removed.
    monkeypatch.setattr(images, "REPOSITORY", f"ctxbench-test-{uuid.uuid4().hex[:12]}")
    unprepared = Environment(name="never built")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        labels = {"dead": owner(child.pid), "ours": owner(), "unreadable": "none", "another's": ""}
        made = {
            name: str(engine.api.create_container(image, ["/x"], labels={"ctxbench.owner": text} if text else {})["Id"])
            for name, text in labels.items()
        }

        def left() -> set[str]:
            there = {one["Id"] for one in engine.api.containers(all=True)}
            return {name for name, id_ in made.items() if id_ in there}

        def opened() -> None:
            with (
                pytest.raises(SandboxUnavailable, match="the image is missing; run the same command again"),
                docker_sandbox.open(unprepared, limits=Limits()),
            ):
                pytest.fail("a pool was opened")

        try:
            opened()
            assert left() == set(made)
            child.kill()
            child.wait()
            opened()
            assert left() == set(made) - {"dead"}
        finally:
            child.kill()
            for id_ in made.values():
                with contextlib.suppress(NotFound):
                    engine.api.remove_container(id_, force=True)


def test_boxes_on_a_remote_engine_are_not_removed() -> None:
    remote = docker.DockerClient("tcp://127.0.0.1:9", version="1.41")
    try:
        with patch.object(remote.api, "containers", side_effect=AssertionError("it was asked for its boxes")):
            images.sweep(remote)
    finally:
        remote.close()


def test_a_running_box_is_not_removed(box: DockerBox, engine: Client) -> None:
    with patch.object(images, "alive", lambda label: label != owner()):
        images.sweep(engine)
    assert engine.api.inspect_container(box.name)["State"]["Running"]
