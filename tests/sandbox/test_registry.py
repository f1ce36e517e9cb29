"""`sandbox.registry` chooses Docker if it answers, otherwise bubblewrap if it works; otherwise it says what to do."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ctxbench.sandbox import registry
from ctxbench.sandbox.docker import engine
from ctxbench.sandbox.errors import SandboxUnavailable

DOCKER = SandboxUnavailable("no Docker engine answers", where="docker", cure="start Docker")
BUBBLEWRAP = SandboxUnavailable("bubblewrap is not installed", where="bubblewrap", cure="apt-get install bubblewrap")


@pytest.mark.parametrize(
    ("docker", "bubblewrap", "asked", "chosen"),
    [
        (None, None, None, "docker"),
        (None, BUBBLEWRAP, None, "docker"),
        (DOCKER, None, None, "bubblewrap"),
        (None, None, "docker", "docker"),
        (None, None, "bubblewrap", "bubblewrap"),
        (DOCKER, None, "bubblewrap", "bubblewrap"),
        (DOCKER, None, "docker", "start Docker"),
        (None, BUBBLEWRAP, "bubblewrap", "apt-get install"),
        (DOCKER, BUBBLEWRAP, None, "start Docker.*apt-get install.*doctor"),
        (None, None, "subprocess", "use docker, docker.runtime=NAME. or bubblewrap"),
        (None, None, "", "use docker, docker.runtime=NAME. or bubblewrap"),
        (None, None, "docker(runtime=)", "no sandbox is called"),
        (None, None, "docker(runtime=a b)", "no sandbox is called"),
        (None, None, "docker()", "no sandbox is called"),
        (None, None, "docker(hosts=tcp://a:1)", "no sandbox is called"),
        (None, None, "docker(runtime=a, runtime=b)", "no sandbox is called"),
        (None, None, "bubblewrap(runtime=runsc)", "no sandbox is called"),
        (DOCKER, None, "docker(runtime=runc)", "start Docker"),
    ],
)
def test_the_sandbox_is_chosen_by_request_and_availability(
    docker: SandboxUnavailable | None,
    bubblewrap: SandboxUnavailable | None,
    asked: str | None,
    chosen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "docker_fault", lambda: docker)
    monkeypatch.setattr(registry, "bubblewrap_fault", lambda _: bubblewrap)
    if chosen in registry.NAMES:
        assert registry.open_sandbox(asked, tmp_path).name == chosen
        return
    with pytest.raises(SandboxUnavailable, match=chosen) as caught:
        registry.open_sandbox(asked, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.fixture
def engine_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    def make_up(names: list[str]) -> None:
        monkeypatch.setattr(registry, "docker_fault", lambda: None)
        api = SimpleNamespace(info=lambda: {"Runtimes": {name: {} for name in names}})
        client = contextlib.nullcontext(SimpleNamespace(api=api))
        monkeypatch.setattr(engine, "connected", lambda *_: client)

    return make_up


def test_a_runtime_of_the_engine_is_used(engine_with: Callable[[list[str]], None], tmp_path: Path) -> None:
    engine_with(["runc", "runsc"])
    opened = registry.open_sandbox("docker(runtime=runsc)", tmp_path)
    assert opened.name == "docker(runtime=runsc)" and opened.runtime == "runsc"  # type: ignore[attr-defined]
    assert registry.open_sandbox(opened.name, tmp_path).name == opened.name
    assert registry.open_sandbox("docker", tmp_path).name == "docker"


@pytest.mark.parametrize(
    ("asked", "present", "cure"),
    [
        ("runsc", ["runc"], "no runtime 'runsc'; its runtimes are runc; install gVisor .* `sudo runsc install"),
        ("kata", ["io.containerd.runc.v2", "runc"], r"no runtime 'kata';.*--sandbox 'docker\(runtime=runc\)'"),
        ("kata", [], "no runtime 'kata'; its runtimes are none"),
    ],
)
def test_a_missing_runtime_is_an_error_that_says_what_to_do(
    engine_with: Callable[[list[str]], None], asked: str, present: list[str], cure: str, tmp_path: Path
) -> None:
    engine_with(present)
    with pytest.raises(SandboxUnavailable, match=cure) as caught:
        registry.open_sandbox(f"docker(runtime={asked})", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_engine_is_a_fault_with_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    fault = registry.docker_fault()
    assert fault is not None and "no Docker engine answers" in fault.what and fault.cure


@pytest.mark.slow
def test_a_hung_engine_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_SECONDS", 0.5)
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(tmp_path / "hung.sock"))
        engine.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/hung.sock")
        began = time.monotonic()
        fault = registry.docker_fault()
        assert fault is not None and fault.cure and time.monotonic() - began < 10


def test_the_base_image_is_passed_to_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "docker_fault", lambda: None)
    monkeypatch.delenv("CTXBENCH_BASE_IMAGE", raising=False)
    assert registry.open_sandbox("docker", tmp_path, "mine:1").base_image == "mine:1"  # type: ignore[attr-defined]
    monkeypatch.setenv("CTXBENCH_BASE_IMAGE", "theirs:1")
    assert registry.open_sandbox("docker", tmp_path).base_image == "theirs:1"  # type: ignore[attr-defined]
    assert registry.open_sandbox("docker", tmp_path, "mine:1").base_image == "mine:1"  # type: ignore[attr-defined]


def test_bubblewrap_is_available_only_if_a_box_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit\necho no namespaces here >&2\nexit 1\n'
    )
    broken.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fault = registry.bubblewrap_fault(tmp_path / "cache")
    assert fault is not None and fault.where == "bubblewrap" and fault.cure
    assert threading.active_count() < 20
