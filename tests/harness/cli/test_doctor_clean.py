"""`ctxbench doctor --clean`: what killed processes really left goes, what living ones have stays."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxbench.sandbox import leftovers
from ctxbench.sandbox.docker.engine import connected
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.ownership import owner
from tests.helpers.cli import run_cli
from tests.helpers.extras import missing

Only = Callable[[list[str]], None]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Only:
    """Let a test find what has some words in it: what other tests have just left is theirs to find."""
    real = leftovers.find

    def limit(words: list[str]) -> None:
        monkeypatch.setattr(
            leftovers, "find", lambda home: (each for each in real(home) if any(word in each.what for word in words))
        )

    return limit


def test_cleaning_removes_what_a_killed_build_left(tmp_path: Path, only: Only) -> None:
    home = tmp_path / "home"
    only([str(home)])
    code = """
import sys, time
from pathlib import Path
from ctxbench.sandbox.ownership import once
once(Path(sys.argv[1]) / "cache/sandbox/envs/abc", lambda folder: (print(folder, flush=True), time.sleep(600)))
"""
    builder = subprocess.Popen([sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, text=True)
    assert builder.stdout
    part = Path(builder.stdout.readline().strip()).parent
    os.utime(part, (0, 0))
    living = run_cli("doctor", "--clean", "--home", str(home))
    assert living.code == 0 and str(part) not in living.out and part.is_dir()
    builder.kill()
    builder.communicate()
    dead = run_cli("doctor", "--clean", "--home", str(home))
    assert dead.code == 0 and f"removed folder {part}" in dead.out and not part.exists()
    again = run_cli("doctor", "--clean", "--home", str(home))
    assert again.code == 0 and str(part) not in again.out


@pytest.fixture
def image() -> Iterator[str]:
    """Give an empty image to start containers from; nothing runs in them."""
    with contextlib.ExitStack() as engine:
        try:
            client = engine.enter_context(connected(20))
        except SandboxUnavailable:
            missing("no Docker engine answers")
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as tar:
            entry = tarfile.TarInfo("etc/empty")
            tar.addfile(entry, io.BytesIO())
        name, tag = "ctxbench-doctor-test", str(os.getpid())
        client.api.import_image_from_data(context.getvalue(), repository=name, tag=tag)
        engine.callback(client.api.remove_image, f"{name}:{tag}", force=True)
        yield f"{name}:{tag}"


def test_containers_of_dead_owners_are_removed_and_those_of_living_ones_stay(image: str, only: Only) -> None:
    import docker

    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    client = docker.from_env()
    made = []
    try:
        for labels in (
            {"ctxbench.owner": owner(child.pid)},
            {"ctxbench.owner": owner()},
            {"ctxbench.owner": "none"},
            {},
        ):
            made += [client.api.create_container(image, ["/none"], labels=labels)["Id"]]
        only([each[:12] for each in made])
        first = run_cli("doctor", "--clean")
        assert first.code == 0 and not any(each[:12] in first.out for each in made)
        child.kill()
        child.wait()
        second = run_cli("doctor", "--clean")
        assert f"removed container {made[0][:12]}" in second.out
        left = {each["Id"] for each in client.api.containers(all=True)}
        assert made[0] not in left and set(made[1:]) <= left
    finally:
        child.kill()
        child.wait()
        for each in made:
            try:
                client.api.remove_container(each, force=True)
            except docker.errors.NotFound:
                continue
        client.close()


def test_stopped_steps_of_builds_are_removed_when_they_are_old(
    image: str, only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    import docker

    client = docker.from_env()
    made = []
    try:
        labels = {"ctxbench.image": "parts"}
        step = client.api.create_container(image, ["/bin/sh", "-c", "make"], labels=labels)["Id"]
        box = client.api.create_container(image, ["/none"], labels=labels)["Id"]
        made = [step, box]
        only([each[:12] for each in made])
        assert step[:12] not in run_cli("doctor", "--clean").out
        now = time.time()
        monkeypatch.setattr("ctxbench.sandbox.leftovers.time.time", lambda: now + 7200)
        out = run_cli("doctor", "--clean").out
        assert f"removed half-built image's container {step[:12]}" in out and box[:12] not in out
    finally:
        for each in made:
            try:
                client.api.remove_container(each, force=True)
            except docker.errors.NotFound:
                continue
        client.close()
