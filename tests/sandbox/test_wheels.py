"""`sandbox.wheels` resolves and fetches wheels. Only the tests marked `network` use the network."""

import base64
import csv
import hashlib
import io
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxbench.sandbox import wheels
from ctxbench.sandbox.errors import SandboxUnavailable
from tests.helpers.tiny_wheels import tiny_wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Restrict pip to a local folder of wheels."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def quiet(_: str) -> None:
    """Ignore a progress message."""


@pytest.mark.slow
def test_a_lock_contains_all_dependencies_but_not_the_project(index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha", requires=["beta_two>=1"])
    tiny_wheel(index, "beta_two", "1.5")
    tiny_wheel(index, "own", "2.0", requires=["gamma"])
    tiny_wheel(index, "gamma", "0.1")
    said: list[str] = []
    locked = wheels.lock(["alpha"], "own==2.0", tmp_path / "cache", said.append)
    assert locked == ("alpha==1.0", "beta-two==1.5", "gamma==0.1")
    assert said == ["resolving alpha, own==2.0"]
    assert wheels.lock([], "", tmp_path / "cache", quiet) == ()


@pytest.mark.slow
def test_locked_wheels_are_fetched_without_the_index(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_wheel(index, "alpha")
    tiny_wheel(index, "own", "2.0")
    cache = tmp_path / "cache"
    locked = wheels.lock(["alpha"], "own==2.0", cache, quiet)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    said: list[str] = []
    folder = wheels.fetch(locked, "own==2.0", cache, said.append)
    assert [name for name, _ in wheels.wheels(folder)] == ["alpha-1.0-py3-none-any.whl", "own-2.0-py3-none-any.whl"]
    assert not said
    assert not list((cache / "wheels").glob("*.part"))
    with pytest.raises(SandboxUnavailable, match="choose a version that has wheels"):
        wheels.fetch(["alpha==1.0"], "", cache, quiet)


@pytest.mark.slow
def test_a_projects_wheel_is_reduced_to_its_metadata(index: Path, tmp_path: Path) -> None:
    code = {"own/__init__.py": "answer = 42\n", "own.pth": "import own\n", "own-2.0.data/purelib/more.py": "x = 1\n"}
    tiny_wheel(index, "own", "2.0", requires=["alpha"], files=code)
    tiny_wheel(index, "alpha")
    folder = wheels.fetch([], "own==2.0", tmp_path / "cache", quiet)
    with zipfile.ZipFile(folder / "own-2.0-py3-none-any.whl") as made:
        names = sorted(made.namelist())
        assert names == [f"own-2.0.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")]
        rows = list(csv.reader(io.StringIO(made.read("own-2.0.dist-info/RECORD").decode())))
        for name, digest, size in rows:
            if name.endswith("/RECORD"):
                assert (digest, size) == ("", "")
                continue
            raw = made.read(name)
            assert int(size) == len(raw)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
        assert sorted(name for name, _, _ in rows) == names
        assert b"42" not in b"".join(made.read(name) for name in names)
    assert (folder / "alpha-1.0-py3-none-any.whl").is_file()


def test_a_project_wheel_without_a_record_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "own-1-py3-none-any.whl"
    with zipfile.ZipFile(bad, "w") as wheel:
        wheel.writestr("own-1.dist-info/METADATA", "Name: own\n")
    with pytest.raises(SandboxUnavailable, match="no RECORD"):
        wheels.strip(bad, tmp_path / "out.whl")


@pytest.mark.slow
def test_markers_are_resolved_for_the_requested_python(index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha", requires=['old; python_version < "3.10"', 'new; python_full_version >= "3.99"'])
    tiny_wheel(index, "old")
    tiny_wheel(index, "new")
    assert wheels.lock(["alpha"], "", tmp_path, quiet) == ("alpha==1.0",)
    assert wheels.lock(["alpha"], "", tmp_path, quiet, "3.9") == ("alpha==1.0", "old==1.0")
    assert wheels.lock(["alpha"], "", tmp_path, quiet, "3.99") == ("alpha==1.0", "new==1.0")
    assert wheels.fetch(["alpha"], "", tmp_path, quiet, "3.9") != wheels.fetch(["alpha"], "", tmp_path, quiet)


@pytest.mark.parametrize(
    "text",
    [
        "-r /etc/passwd",
        "--index-url=http://localhost/",
        "-e .",
        "./alpha",
        "/tmp/alpha-1.0-py3-none-any.whl",
        "alpha @ file:///etc/passwd",
        "alpha @ https://localhost/alpha.whl",
        "git+https://localhost/alpha",
        "alpha beta",
        "alpha\n--pre",
        "",
        "alpha[x]/../y",
    ],
)
def test_options_paths_and_urls_are_refused_as_requirements(text: str, index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha")
    for wanted, project in (([text], ""), (["alpha"], text or " ")):
        with pytest.raises(SandboxUnavailable, match="write it as"):
            wheels.lock(wanted, project, tmp_path, quiet)


@pytest.mark.slow
def test_plain_requirements_are_accepted(index: Path, tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma", "delta"):
        tiny_wheel(index, name)
    plain = ["alpha", "beta==1.0", "Gamma>=0.5,<2", 'delta[x]~=1.0; python_version > "3"']
    assert wheels.lock(plain, "", tmp_path, quiet) == ("alpha==1.0", "beta==1.0", "delta==1.0", "gamma==1.0")


@pytest.mark.slow
def test_a_source_archive_is_never_built(index: Path, tmp_path: Path) -> None:
    (index / "alpha-1.0.tar.gz").write_bytes(b"its setup.py would be run")
    with pytest.raises(SandboxUnavailable, match="a version that has wheels") as caught:
        wheels.fetch(["alpha"], "", tmp_path / "cache", quiet)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("alpha: ")


@pytest.mark.slow
def test_a_version_conflict_is_an_error(index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha", requires=["beta==1.0"])
    tiny_wheel(index, "beta", "2.0")
    tiny_wheel(index, "beta", "1.0")
    with pytest.raises(SandboxUnavailable, match=r"^alpha.*choose a version that has wheels"):
        wheels.lock(["alpha", "beta==2.0"], "", tmp_path, quiet)


@pytest.mark.slow
def test_a_folder_with_a_requirements_name_is_not_installed(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_wheel(index, "alpha")
    (tmp_path / "here" / "alpha").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert wheels.lock(["alpha"], "", tmp_path, quiet) == ("alpha==1.0",)


def test_a_missing_pip_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SandboxUnavailable, match="ensurepip"):
        wheels.fetch(["alpha"], "", tmp_path, quiet)


@pytest.mark.slow
def test_parallel_fetches_of_the_same_wheels_share_one_folder(index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha")
    said: list[str] = []
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: wheels.fetch(["alpha"], "", tmp_path / "cache", said.append), range(6)))
    assert len(set(found)) == 1 and said == ["fetching wheels for alpha"]


@pytest.mark.network
def test_a_real_package_is_locked_and_fetched(tmp_path: Path) -> None:
    locked = wheels.lock(["iniconfig"], "toolz==1.0.0", tmp_path, quiet)
    assert len(locked) == 1 and locked[0].startswith("iniconfig==")
    folder = wheels.fetch(locked, "toolz==1.0.0", tmp_path, quiet)
    with zipfile.ZipFile(folder / "toolz-1.0.0-py3-none-any.whl") as made:
        assert all(name.startswith("toolz-1.0.0.dist-info/") for name in made.namelist())


@pytest.mark.network
def test_compiled_wheels_are_chosen_for_the_other_python(tmp_path: Path) -> None:
    other = "3.12" if sys.version_info[:2] != (3, 12) else "3.11"
    folder = wheels.fetch(["markupsafe"], "", tmp_path, quiet, other)
    names = [name for name, _ in wheels.wheels(folder)]
    assert len(names) == 1 and f"cp{other.replace('.', '')}" in names[0] and "manylinux" in names[0]
