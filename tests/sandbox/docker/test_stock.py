"""Listing, pruning and sweeping: of ours, what nobody has a use for; of others', nothing."""

import contextlib
import io
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import docker
import pytest
from docker.errors import NotFound

from ctxbench.sandbox.docker import DockerSandbox, images
from ctxbench.sandbox.docker.box import DockerBox
from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.ownership import exclusive_lock, owner
from ctxbench.sandbox.types import Environment, Limits
from tests.helpers.cli import run_cli

pytestmark = pytest.mark.slow
BASE = "sha256:base"
Make = Callable[..., str]


@pytest.fixture
def make(engine: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Give a maker of empty images under a label and a name of this test's own, so that no real one is touched."""
    own = f"ctxbench-test-{uuid.uuid4().hex[:12]}"
    monkeypatch.setattr(images, "LABEL", own)
    monkeypatch.setattr(images, "REPOSITORY", own)
    monkeypatch.setattr("ctxbench.sandbox.docker.images.local_base", lambda *_: BASE)

    def make(name: str, *, tagged: bool = True, ours: bool = True, code: str = "", base: str = BASE) -> str:
        labels = {
            own if ours else "another": "sandbox",
            "test": own,
            "ctxbench.name": name,
            "ctxbench.code": code or images.code_digest(images.code()),
            "ctxbench.base": base,
        }
        text = "FROM scratch\n" + "".join(f"LABEL {key}={value}\n" for key, value in labels.items())
        tag = f"{own}:{name}" if tagged else None
        image, _ = engine.images.build(fileobj=io.BytesIO(text.encode()), tag=tag, rm=True, forcerm=True)
        return str(image.id)

    yield make
    for image in engine.api.images(filters={"label": f"test={own}"}):
        for name in image["RepoTags"] or [image["Id"]]:
            engine.api.remove_image(name, force=True)


def names(engine: Client, notes: Path) -> dict[str, bool]:
    return {each.name: each.current for each in images.stored(engine, notes, "base")}


def test_current_is_what_the_present_code_and_base_would_use(make: Make, engine: Client, tmp_path: Path) -> None:
    make("good")
    make("old-code", code="0" * 64)
    make("old-base", base="sha256:other")
    make("stage", tagged=False)
    make("not-ours", ours=False)
    assert names(engine, tmp_path) == {"good": True, "old-code": False, "old-base": False, "stage": False}
    gone, kept = images.prune(engine, tmp_path, "base")
    assert {each.name for each in gone} == {"old-code", "old-base", "stage"} and kept == []
    assert names(engine, tmp_path) == {"good": True}
    gone, kept = images.prune(engine, tmp_path, "base", everything=True)
    assert [each.name for each in gone] == ["good"] and kept == []
    assert len(engine.api.images(filters={"label": f"test={images.LABEL}"})) == 1


def test_an_image_with_a_box_stays(make: Make, engine: Client, tmp_path: Path) -> None:
    image = make("busy", code="0" * 64)
    box = engine.api.create_container(image, ["/x"], labels={"ctxbench.owner": "1:1"})["Id"]
    try:
        assert [each.boxes for each in images.stored(engine, tmp_path, "base")] == [1]
        gone, kept = images.prune(engine, tmp_path, "base", everything=True)
        assert gone == [] and len(kept) == 1 and "1 boxes use it" in kept[0]
    finally:
        engine.api.remove_container(box, force=True)
    assert images.prune(engine, tmp_path, "base", everything=True)[1] == []


def test_use_is_noted_and_forgotten_with_the_image(make: Make, engine: Client, tmp_path: Path) -> None:
    image = make("used")
    assert images.stored(engine, tmp_path, "base")[0].idle is None
    images.touch(tmp_path, {"Id": image})
    idle = images.stored(engine, tmp_path, "base")[0].idle
    assert idle is not None and 0 <= idle < 60
    images.prune(engine, tmp_path, "base", everything=True)
    assert list((tmp_path / "used").iterdir()) == []


def test_nothing_is_removed_while_something_is_built(make: Make, engine: Client, tmp_path: Path) -> None:
    import threading

    make("old", code="0" * 64)
    thread = threading.Thread(target=images.prune, args=(engine, tmp_path, "base"))
    with exclusive_lock(tmp_path / images.BUILDS):
        thread.start()
        thread.join(0.5)
        assert thread.is_alive() and names(engine, tmp_path) == {"old": False}
    thread.join(30)
    assert names(engine, tmp_path) == {}


def test_the_command_line_lists_and_prunes(make: Make, engine: Client) -> None:
    assert "no images yet" in run_cli("image", "list").err
    make("toolz-1.2.0")
    make("old", code="0" * 64)
    make("stage", tagged=False)
    listed = run_cli("image", "list")
    assert listed.code == 0
    lines = listed.out.splitlines()
    assert len(lines) == 2 and all("0 MB  built" in line and "used never" in line for line in lines)
    assert next(line for line in lines if "toolz" in line).endswith("current")
    assert next(line for line in lines if "old" in line).endswith("unused")
    assert "1 intermediate images of builds" in listed.err
    pruned = run_cli("image", "prune")
    assert pruned.code == 0 and pruned.out.splitlines()[-1] == "1 images and 1 intermediate images removed, 0 kept"
    assert run_cli("image", "prune", "--all").out.splitlines() == [
        "removed toolz-1.2.0 toolz-1.2.0",
        "1 images and 0 intermediate images removed, 0 kept",
    ]


def test_no_engine_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    for command in ("list", "prune"):
        result = run_cli("image", command)
        assert result.code == 1 and result.err.count("\n") == 1 and "no Docker engine answers" in result.err


def test_opening_a_pool_removes_stopped_boxes_of_killed_processes_and_no_others(
    make: Make, engine: Client, docker_sandbox: DockerSandbox
) -> None:
    image = make("left")
    # Its image is not prepared: what is swept is swept before.
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
                pytest.raises(SandboxUnavailable, match="prepare the environment first"),
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


def test_nothing_is_removed_on_an_engine_of_another_machine() -> None:
    remote = docker.DockerClient("tcp://127.0.0.1:9", version="1.41")
    try:
        with patch.object(remote.api, "containers", side_effect=AssertionError("it was asked for its boxes")):
            images.sweep(remote)
    finally:
        remote.close()


def test_a_running_box_is_left_to_end_by_itself(box: DockerBox, engine: Client) -> None:
    with patch.object(images, "alive", lambda label: label != owner()):
        images.sweep(engine)
    assert engine.api.inspect_container(box.name)["State"]["Running"]
