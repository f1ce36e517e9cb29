"""The core install is small, and every dependency is pinned in the constraint file."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MB = 160


def core() -> dict[str, Distribution]:
    """Return the distributions that `pip install ctxbench` installs, by name."""
    found: dict[str, Distribution] = {}
    wanted = ["ctxbench"]
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        needs = [Requirement(text) for text in found[name].requires or ()]
        wanted += [need.name.lower() for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


def test_core_install_is_under_its_limit() -> None:
    size = sum(
        path.stat().st_size
        for dist in core().values()
        for file in dist.files or ()
        if (path := Path(str(dist.locate_file(file)))).is_file()
    )
    assert size / 1e6 < LIMIT_MB


def test_core_install_has_no_heavy_packages() -> None:
    assert not {"torch", "scipy", "pandas", "transformers", "streamlit"} & set(core())


def test_every_direct_dependency_is_pinned_to_a_tested_version() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints" / "cpu.txt").read_text(), re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *extras["dev"]]:
        need = Requirement(text)
        assert need.name in pins, need.name
        assert need.specifier.contains(pins[need.name]), text


def test_ctxbench_is_the_only_installed_top_level_package() -> None:
    assert (distribution("ctxbench").read_text("top_level.txt") or "").split() == ["ctxbench"]
    for room in ("bench", "harness", "sandbox", "strategies", "dashboard"):
        assert (ROOT / "ctxbench" / room).resolve() == ROOT / room
        assert not any(path.is_symlink() for path in (ROOT / room).rglob("*"))


def test_every_extra_named_in_messages_or_pages_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    code = [path for room in ("bench", "harness", "strategies", "dashboard") for path in (ROOT / room).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in [*pages, *code]]
    named = {
        name
        for text in texts
        for group in re.findall(r"pip install '(?:ctxbench|\.)\[([\w,]+)\]", text)
        for name in group.split(",")
    }
    assert {"dashboard", "hf"} <= named <= set(extras)


def messages(file: Path) -> Iterator[str]:
    """Yield the strings in a file that a user may see: all but docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


@pytest.mark.slow
def test_messages_do_not_name_files_or_commands_of_a_checkout() -> None:
    files = [
        path
        for room in ("bench", "harness", "sandbox", "strategies", "dashboard")
        for path in (ROOT / room).rglob("*.py")
    ]
    only_here = re.compile(
        r"\bmake (dashboard|setup|engine|docs|test|unit)\b|\bscripts/|constraints/|pip install -e '|own: README"
    )
    # Messages to the guest in a box or to a suite's tests do not reach a user.
    quoted = [
        f"{file.relative_to(ROOT)}: {text}"
        for file in files
        if "codereval-tests" not in file.parts
        for text in messages(file)
        if only_here.search(text)
    ]
    assert not quoted


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from the sdist and install it in an empty environment; return a user's folder beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / "source" / name, follow_symlinks=False)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, capture_output=True)
    python = str(folder / "venv" / "bin" / "python")

    def call(*command: str) -> None:
        done = subprocess.run(command, cwd=folder / "source", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    call(python, "-m", "pip", "install", "-q", "--no-compile", "setuptools>=77")
    call(python, "-c", "from setuptools import build_meta; build_meta.build_sdist('dist')")
    [sdist] = (folder / "source" / "dist").iterdir()
    call(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(sdist))
    [wheel] = folder.glob("*.whl")
    # Modules are compiled when they are imported, and most never are.
    call(python, "-m", "pip", "install", "-q", "--no-compile", "-c", "constraints/cpu.txt", str(wheel))
    shutil.rmtree(folder / "source")
    for name in ("strategies", "bench", "harness", "sandbox", "dashboard"):
        (folder / "own" / name).mkdir(parents=True)
        (folder / "own" / name / "__init__.py").write_text("raise RuntimeError('this is the user's own')\n")
    return folder / "own"


def installed(outside: Path, *arguments: str, code: int = 0) -> str:
    """Run the installed `ctxbench` in the user's folder; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CTXBENCH_", "PYTHON"))}
    command = [str(outside.parent / "venv" / "bin" / "ctxbench"), *arguments]
    done = subprocess.run(command, cwd=outside, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.network
@pytest.mark.slow
def test_the_wheel_works_beside_folders_named_like_its_packages(outside: Path) -> None:
    (outside / "strategies" / "mine.py").write_text(
        "from ctxbench import Context, strategy\n\n\n@strategy('mine')\ndef mine(query, repo):\n"
        '    """Show nothing."""\n    return Context.ranked([])\n'
    )
    installed(outside, "samples", "build", "demo", "--kind", "line", "--repo", "fasta2a", "--per-repo", "3")
    chosen = ["--strategy", "lc.repocoder", "--strategy", "strategies/mine.py@mine", "--generator", "incontext"]
    assert "scored 3" in installed(outside, "run", "--samples", "demo", *chosen)
    rows = json.loads(installed(outside, "leaderboard", "--format", "json"))
    assert {row["strategy"] for row in rows} == {"lc.repocoder", "mine.py@mine"}
    assert "ctxbench-2-lite" in installed(outside, "results", "import", "--reference", "ctxbench-2-lite")
    assert "pip install 'ctxbench[dashboard]'" in installed(outside, "dashboard", code=1)


@pytest.mark.network
@pytest.mark.slow
def test_doctor_prints_a_command_for_each_missing_item(outside: Path) -> None:
    found = subprocess.run(
        [str(outside.parent / "venv" / "bin" / "ctxbench"), "doctor"],
        cwd=outside,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    cures = [line.split(" -> ")[1] for line in found if " -> " in line]
    gaps = [
        line
        for line, cure in zip(found, [*found[1:], ""], strict=True)
        if line.startswith("missing") and " -> " not in cure
    ]
    assert cures and not gaps
    for cure in cures:
        # A shell can parse the line: a command, followed by an explanation.
        subprocess.run(["sh", "-n", "-c", cure], check=True)
        program = cure.split()[0]
        assert (
            program in {"pip", "hf", "apt-get", "sudo", "sh", "docker", "echo", "export", "ctxbench", "sysctl"}
            or Path(program).exists()
        ), cure
