"""Image builds: equal contents are built once, other contents change the image, and no image contains answers."""

import contextlib
import dataclasses
import importlib
import io
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.sandbox.docker import DockerSandbox, images
from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Environment, Limits
from tests.helpers.cli import run_cli
from tests.helpers.sets import make_set
from tests.sandbox.docker.conftest import NAME
from tests.sandbox.docker.standin import GUEST, run
from tests.sandbox.robust import until

ROOT = Path(__file__).resolve().parents[3]
PLAIN = Environment(name=NAME, library={"ours.py": b"x = 1\n"}, tree={"a.py": b"y = 2\n"})


def fresh(**fields: Any) -> Environment:
    """Return an environment that has no image yet."""
    library = {"sandbox/guest/__main__.py": GUEST, "ours.py": f"x = {uuid.uuid4().hex!r}\n".encode()}
    return Environment(name=NAME, library=library, **fields)


@pytest.mark.parametrize(
    ("change", "another"),
    [
        ({"name": "other"}, False),
        ({"tree": {"a.py": b"y = 3\n"}}, False),
        ({"variables": (("A", "1"),)}, False),
        ({"library": {"ours.py": b"x = 2\n"}}, True),
        ({"library": {"theirs.py": b"x = 1\n"}}, True),
        ({"requirements": ("iniconfig==2.0.0",)}, True),
        ({"project": "iniconfig==2.0.0"}, True),
        ({"programs": ("hello",)}, True),
    ],
    ids=str,
)
def test_an_image_changes_with_its_contents(change: Mapping[str, Any], another: bool) -> None:
    changed = dataclasses.replace(PLAIN, **change)
    assert (images.tag(changed, "sha256:1") != images.tag(PLAIN, "sha256:1")) is another
    attributes = {"Config": {"Labels": {"ctxbench.key": images.tag(changed, "sha256:1"), "ctxbench.wheels": ""}}}
    plain = {"Config": {"Labels": {"ctxbench.key": images.tag(PLAIN, "sha256:1"), "ctxbench.wheels": ""}}}
    # The key of stored outcomes changes with everything that a job can read, including the tree.
    assert (images.key(attributes, changed) != images.key(plain, PLAIN)) is ("name" not in change)


def test_a_different_base_or_guest_changes_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    here = images.tag(PLAIN, "sha256:1")
    assert images.tag(PLAIN, "sha256:2") != here
    code = images.code()
    assert {"Dockerfile", "sandbox/__init__.py", "sandbox/errors.py", "sandbox/guest/__main__.py"} <= set(code)
    assert not any("__pycache__" in path or path.startswith("sandbox/docker") for path in code)
    monkeypatch.setattr(images, "code", lambda: {**code, "sandbox/guest/__main__.py": b"pass\n"})
    assert images.tag(PLAIN, "sha256:1") != here


def test_equal_inputs_are_packed_to_equal_bytes_without_the_tree(tmp_path: Path) -> None:
    def packed(environment: Environment) -> bytes:
        data = io.BytesIO()
        images._pack(data, {**images.code(), **images._library(environment)}, tmp_path)
        return data.getvalue()

    (tmp_path / "a-1-py3-none-any.whl").write_bytes(b"wheel")
    environment = Environment(name="a", library={"ours.py": b"x = 1\n"}, tree={"a.py": b"THE ANSWER"})
    assert packed(environment) == packed(dataclasses.replace(environment, name="b"))
    assert b"THE ANSWER" not in packed(environment)
    with tarfile.open(fileobj=io.BytesIO(packed(environment))) as tar:
        assert {"library/ours.py", "wheels/a-1-py3-none-any.whl", "Dockerfile"} <= set(tar.getnames())


@pytest.mark.parametrize("path", ["/etc/passwd", "../a.py", "a/../../b.py", "./a.py", "a//b.py"])
def test_a_library_module_cannot_be_put_outside_its_folder(path: str) -> None:
    with pytest.raises(ValueError, match="not a path of a module"):
        images._library(Environment(name="a", library={path: b""}))


@pytest.mark.parametrize("name", ["", "hello; reboot", "$(id)", "a b", "-y", "../x.deb"])
def test_a_program_must_be_a_debian_package_name(name: str) -> None:
    with pytest.raises(SandboxUnavailable, match="not a Debian package"):
        images._programs(Environment(name="a", programs=(name,)))


@pytest.mark.slow
def test_equal_inputs_are_built_once(docker_sandbox: DockerSandbox, engine: Client) -> None:
    said: list[str] = []
    environment = fresh()
    key = docker_sandbox.prepare(environment, said.append)
    assert any("building" in line for line in said)
    said.clear()
    another = dataclasses.replace(environment, tree={"a.py": b"1\n"})
    assert docker_sandbox.prepare(environment, said.append) == key
    assert docker_sandbox.prepare(another, said.append) != key
    assert DockerSandbox(docker_sandbox.cache / "elsewhere").prepare(environment, said.append) == key
    assert said == []


@pytest.mark.slow
def test_processes_that_want_the_same_image_build_it_once(docker_sandbox: DockerSandbox, cache: Path) -> None:
    environment = fresh()
    code = f"""
from pathlib import Path
from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.types import Environment
environment = Environment(name={environment.name!r}, library={dict(environment.library)!r})
print(DockerSandbox(Path({str(cache)!r}), base_image={docker_sandbox.base_image!r}).prepare(environment, print))
"""
    three = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=300)[0].splitlines() for process in three]
    assert len({lines[-1] for lines in said}) == 1
    assert sum(line.startswith("building") for lines in said for line in lines) == 1


@pytest.mark.slow
def test_an_environment_must_be_prepared_before_it_is_opened(docker_sandbox: DockerSandbox) -> None:
    with (
        pytest.raises(SandboxUnavailable, match="the image is missing; run the same command again"),
        docker_sandbox.launcher(fresh(), Limits()),
    ):
        pass


@pytest.mark.slow
def test_a_failed_build_says_why_in_one_line_and_leaves_no_container(
    docker_sandbox: DockerSandbox, engine: Client, tmp_path: Path
) -> None:
    (tmp_path / "broken-1.0-py3-none-any.whl").write_bytes(b"no zip file")
    base = images.base_id(engine, docker_sandbox.base_image, lambda _: None)
    environment = fresh()
    with pytest.raises(SandboxUnavailable, match="cannot be built") as caught:
        images.build(engine, environment, base, tmp_path, lambda _: None)
    assert "\n" not in str(caught.value) and "broken" in str(caught.value)
    assert images.find(engine, images.tag(environment, base)) is None
    # Another test's build may be between two steps. A container of the failed build would stay.
    before = {container["Id"] for container in left(engine)}
    until(lambda: not {container["Id"] for container in left(engine)} & before, 60)


def left(engine: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.api.containers(
        all=True, filters={"label": "ctxbench.image", "status": ["exited", "created"]}
    )
    return [one for one in found if "ctxbench.owner" not in one["Labels"]]


@pytest.mark.slow
@pytest.mark.network
def test_a_killed_build_leaves_no_container(docker_sandbox: DockerSandbox, engine: Client, cache: Path) -> None:
    program = f"no-such-{uuid.uuid4().hex}"
    code = f"""
from pathlib import Path
from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.types import Environment
environment = Environment(name={NAME!r}, programs=({program!r},))
DockerSandbox(Path({str(cache)!r}), base_image={docker_sandbox.base_image!r}).prepare(environment, print)
"""

    def building() -> bool:
        found = engine.api.containers(all=True, filters={"label": "ctxbench.image=sandbox"})
        for one in found:
            with contextlib.suppress(importlib.import_module("docker").errors.NotFound):
                if f"PROGRAMS={program}" in engine.api.inspect_container(one["Id"])["Config"]["Env"]:
                    return True
        return False

    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL) as process:
        until(building, 120)
        process.kill()
    until(lambda: not building(), 120)


def run_in(sandbox: DockerSandbox, environment: Environment, code: str) -> Any:
    with sandbox.launcher(environment, Limits()) as launcher:
        box = launcher.start()
        try:
            return run(box, code)
        finally:
            box.end()


@pytest.mark.slow
@pytest.mark.network
def test_an_image_has_a_projects_requirements_and_metadata_but_not_its_code(docker_sandbox: DockerSandbox) -> None:
    environment = fresh(requirements=("six==1.17.0",), project="iniconfig==2.0.0")
    docker_sandbox.prepare(environment, lambda _: None)
    code = """
import importlib.metadata, six
value = [importlib.metadata.version("iniconfig"), six.__version__, six.__file__, six.__cached__.endswith(".pyc")]
try:
    import iniconfig
except ImportError:
    value.append("its code is not there")
"""
    assert run_in(docker_sandbox, environment, code) == [
        "2.0.0", "1.17.0", "/ctxbench/site/six.py", True, "its code is not there",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.network
def test_programs_are_installed(docker_sandbox: DockerSandbox) -> None:
    environment = fresh(programs=("hello",))
    docker_sandbox.prepare(environment, lambda _: None)
    code = "import subprocess; value = subprocess.check_output('hello').decode()"
    assert run_in(docker_sandbox, environment, code) == "Hello, world!\n"
    with pytest.raises(SandboxUnavailable, match="no-such-package-of-debian"):
        docker_sandbox.prepare(fresh(programs=("no-such-package-of-debian",)), lambda _: None)


_EMPTY = 'from ctxbench.harness.store import open_store; open_store("sqlite:////data/results.db").close()'
_HEALTH = """
import time, urllib.request
for _ in range(300):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8501/_stcore/health").read().decode())
        break
    except OSError:
        time.sleep(0.2)
"""


@contextlib.contextmanager
def built(engine: Client, sandbox: DockerSandbox, target: str) -> Iterator[str]:
    """Build a target of the Dockerfile, yield its tag, and remove the image afterwards."""
    base, tag = images.base_id(engine, sandbox.base_image, lambda _: None), f"{NAME}:{target}"
    named: dict[str, Any] = {"target": target, "tag": tag, "buildargs": {"BASE_IMAGE": base}}
    engine.images.build(path=str(ROOT), rm=True, forcerm=True, **named)
    try:
        yield tag
    finally:
        engine.api.remove_image(tag, force=True)


@pytest.mark.slow
def test_the_sandbox_image_builds_and_imports_the_guest(docker_sandbox: DockerSandbox, engine: Client) -> None:
    with built(engine, docker_sandbox, "sandbox") as image:
        check = ["-c", "import sandbox.guest, sandbox.errors; print(6)"]
        said = engine.containers.run(image, check, entrypoint=["python3"], remove=True, network_mode="none")
        assert said == b"6\n"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.network
def test_the_dashboard_image_serves_its_pages(docker_sandbox: DockerSandbox, engine: Client) -> None:
    docker = importlib.import_module("docker")
    with built(engine, docker_sandbox, "dashboard") as image:
        with pytest.raises(docker.errors.ContainerError, match="no runs are stored"):
            engine.containers.run(image, ["leaderboard"], remove=True, network_mode="none")
        served = f"ctxbench run --help >/dev/null && python3 -c '{_EMPTY}' && exec ctxbench dashboard --host 0.0.0.0"
        container = engine.containers.run(image, ["-c", served], entrypoint=["sh"], detach=True, network_mode="none")
        try:
            assert container.exec_run(["python3", "-c", _HEALTH]).output == b"ok\n", container.logs()
        finally:
            container.remove(force=True)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.network
def test_parts_of_a_run_from_separate_containers_merge_into_one_run(
    docker_sandbox: DockerSandbox, engine: Client, tmp_path: Path
) -> None:
    home, command = Home(tmp_path / "home"), ["--samples", "demo", "--strategy", "lc.infile", "--generator"]
    make_set(home, per_repo=3)
    with built(engine, docker_sandbox, "worker") as image:
        for index in range(2):
            parts = tmp_path / f"parts{index}"
            parts.mkdir()
            parts.chmod(0o777)
            mounts = [f"{home.root}:/data:ro", f"{parts}:/parts"]
            part = ["run", *command, "scripted(text=x)", "--shard", f"{index}/2", "--out", "/parts"]
            said = engine.containers.run(image, part, remove=True, network_mode="none", volumes=mounts)
            assert b"scored 3  model-failed 0  missing 0" in said
        merged = run_cli("merge", "--home", str(home.root), str(tmp_path / "parts0"), str(tmp_path / "parts1"))
        assert merged.code == 0 and "new 6  already there 0  faults 0  missing 0" in merged.out
