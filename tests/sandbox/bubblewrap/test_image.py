"""Images that `prepare` builds: installed once, readable by every user, and without the answers."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxbench.sandbox.bubblewrap import BubblewrapSandbox, host
from ctxbench.sandbox.bubblewrap.image import layout, make, variables
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Environment, Limits
from tests.helpers.tiny_wheels import tiny_wheel
from tests.sandbox.bubblewrap.conftest import Driver


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Restrict pip to a folder of wheels."""
    folder = tmp_path / "index"
    folder.mkdir()
    folder.chmod(0o755)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def quiet(_: str) -> None:
    """Discard the report."""


@pytest.mark.slow
def test_requirements_can_be_imported_and_the_project_cannot(
    index: Path, run_as: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"alpha/__init__.py": "def main():\n    import alpha\n    print('alpha says', alpha.__file__)\n"}
    wheels = run_as.folder / "index"
    tiny_wheel(wheels, "alpha", files=files)
    tiny_wheel(wheels, "own", "2.0", requires=["beta"])
    tiny_wheel(wheels, "beta")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    code = (
        "import importlib.metadata as m, importlib.util as u; "
        "print([(d.name, d.version) for d in m.distributions()], u.find_spec('own'), m.entry_points(name='own-says'))"
    )
    found = run_as(
        environment={"requirements": ["alpha"], "project": "own==2.0"},
        jobs=[["python3", "-c", code], ["alpha-says"], ["own-says"]],
    )["outcomes"]
    assert "('alpha', '1.0')" in found[0]["output"] and "('beta', '1.0')" in found[0]["output"]
    assert "('own', '2.0')" in found[0]["output"] and "] None " in found[0]["output"]
    assert "EntryPoint(name='own-says', value='own:main'" in found[0]["output"]
    assert found[1]["output"] == "alpha says /ctxbench/site/alpha/__init__.py\n"
    assert found[2]["exit_code"] != 0 and "ModuleNotFoundError" in found[2]["output"]


@pytest.mark.slow
def test_an_image_is_built_once_and_then_needs_no_network(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_wheel(index, "alpha")
    environment = Environment(name="one", requirements=("alpha",))
    said: list[str] = []
    first = BubblewrapSandbox(tmp_path / "cache").prepare(environment, said.append)
    assert said == ["fetching wheels for alpha", "installing 1 wheels"]
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert BubblewrapSandbox(tmp_path / "cache").prepare(environment, said.append) == first
    assert len(said) == 2
    with BubblewrapSandbox(tmp_path / "cache").open(environment, limits=Limits()) as pool:
        assert pool.image == first


@pytest.mark.slow
def test_concurrent_preparations_build_an_image_once(index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha")
    environment = Environment(name="one", requirements=("alpha",))
    said: list[str] = []
    with ThreadPoolExecutor(5) as pool:
        every = pool.map(lambda _: BubblewrapSandbox(tmp_path / "c").prepare(environment, said.append), range(5))
        assert len(set(every)) == 1
    assert len(said) == 2 and not list((tmp_path / "c").rglob("*.part"))


@pytest.mark.slow
def test_the_digest_depends_only_on_what_a_job_finds(index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha")
    box = BubblewrapSandbox(tmp_path / "cache")

    def digest(**more: object) -> str:
        return box.prepare(Environment(**{"name": "a", **more}), quiet)  # type: ignore[arg-type]

    plain = digest()
    assert len(plain) == 64 and digest(name="b") == plain
    others = [
        digest(requirements=("alpha",)),
        digest(tree={"a.py": b""}),
        digest(library={"a.py": b""}),
        digest(path=("src",)),
        digest(variables=(("A", "b"),)),
        digest(preload=("json",)),
    ]
    assert len({plain, *others}) == 7
    assert not [path for path in (tmp_path / "cache").rglob("a.py") if path.read_bytes() != b""]


@pytest.mark.slow
def test_every_user_can_read_an_image_whatever_the_umask(index: Path, tmp_path: Path) -> None:
    tiny_wheel(index, "alpha")
    before = os.umask(0o077)
    try:
        image = make(Environment(name="a", requirements=("alpha",), library={"lib/a.py": b""}), tmp_path, quiet)
    finally:
        os.umask(before)
    for folder in (image.packages, image.library, image.etc, image.bin, image.empty):
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                wanted = 0o755 if path.is_dir() or path.parent.name == "bin" else 0o644
                assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    assert list(image.packages.rglob("alpha/__pycache__/*.pyc")) and list(image.library.rglob("lib/__pycache__/*.pyc"))


def test_an_image_contains_only_the_guests_part_of_the_sandbox(tmp_path: Path) -> None:
    image = make(Environment(name="a"), tmp_path, quiet)
    names = {path.relative_to(image.library).parts[:2] for path in image.library.rglob("*.py")}
    assert names == {("sandbox", "__init__.py"), ("sandbox", "errors.py"), ("sandbox", "guest")}


@pytest.mark.parametrize("name", ["/etc/x.py", "../x.py", "a/../../x.py", "sandbox/guest/server.py", "sandbox.py"])
def test_a_library_file_outside_its_own_package_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="package with another name"):
        make(Environment(name="a", library={name: b""}), tmp_path, quiet)


def test_a_missing_program_is_reported_with_its_install_command(tmp_path: Path) -> None:
    environment = Environment(name="a", programs=("bash", "ctxbench-no-such-package", "-f=${Package}"))
    with pytest.raises(SandboxUnavailable, match=r"run `apt-get install ctxbench-no-such-package") as caught:
        BubblewrapSandbox(tmp_path).prepare(environment, quiet)
    assert "bash" not in str(caught.value)


def test_programs_are_part_of_the_digest(tmp_path: Path) -> None:
    held = host.programs(["bash"])
    assert len(held) == 1 and held[0].startswith("bash ")
    box = BubblewrapSandbox(tmp_path)
    assert box.prepare(Environment(name="a", programs=("bash",)), quiet) != box.prepare(Environment(name="a"), quiet)


def test_variables_of_an_environment_override_the_defaults() -> None:
    found = dict(variables(Environment(name="a", variables=(("LANG", "C"), ("MORE", "1")))))
    assert found["LANG"] == "C" and found["MORE"] == "1" and found["PYTHONHASHSEED"] == "0"


def test_a_missing_bwrap_is_reported_with_its_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        BubblewrapSandbox(tmp_path).prepare(Environment(name="a"), quiet)


def test_the_stage_folder_does_not_hide_bound_folders(tmp_path: Path) -> None:
    image = make(Environment(name="a"), tmp_path, quiet)
    made = layout(Environment(name="a"), image, Limits())
    assert not any(host.is_within(Path(source), [made.stage]) for source, _ in made.binds)
    assert host.stage([Path("/mnt/home/cache"), Path("/media/x")]) in ("/srv", "/opt")
    with pytest.raises(SandboxUnavailable, match="empty /mnt"):
        host.stage([Path("/mnt/a"), Path("/media/a"), Path("/srv/a"), Path("/opt/a")])
