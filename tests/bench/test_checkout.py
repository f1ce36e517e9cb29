"""Checkouts are complete or absent, read-only, fetched once by concurrent callers, and intact after a kill."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import checkout, manifest
from ctxbench.bench.repositories.manifest import RepoManifest
from tests.helpers.repositories import manifest_of
from tests.helpers.threads import together
from tests.helpers.trees import write_tree


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    (folder / "pkg").mkdir(parents=True)
    (folder / "a.py").write_text("x = 1\n")
    (folder / "pkg" / "b.py").write_text("y = 1\n")
    return folder


def load(folder: Path, *sources: str, head: str = "") -> RepoManifest:
    tables = "".join(f'[[source]]\nkind = "local"\n{source}\n' for source in sources)
    return manifest_of(folder, tables, head=head)


def quiet(_: str) -> None:
    pass


def kept(home: Home) -> list[str]:
    return sorted(p.name for p in (home.repos / "demo").iterdir() if p.name != ".lock")


def test_a_fetched_checkout_is_found(tmp_path: Path, home: Home, copy: Path) -> None:
    wanted = load(tmp_path, 'path = "copy"')
    assert checkout.find(wanted, home) is None
    found = checkout.fetch(wanted, home, report=quiet)
    assert found == checkout.find(wanted, home) == checkout.cached_checkout(home, "demo", found.key)
    assert found.root == home.repos / "demo" / found.key and found.source == f"local:{copy}"
    assert sorted(p.relative_to(found.root).as_posix() for p in found.root.rglob("*.py")) == ["a.py", "pkg/b.py"]
    record = json.loads((home.repos / "demo" / f"{found.key}.json").read_text())
    assert (record["files"], record["bytes"]) == (2, 12) and len(record["digest"]) == 64


def test_a_checkout_is_read_only(tmp_path: Path, home: Home, copy: Path) -> None:
    root = checkout.fetch(load(tmp_path, 'path = "copy"'), home, report=quiet).root
    modes = {p.relative_to(root).as_posix(): p.stat().st_mode & 0o777 for p in (root, *root.rglob("*"))}
    assert modes == {".": 0o555, "pkg": 0o555, "a.py": 0o444, "pkg/b.py": 0o444}


def test_links_caches_and_the_home_itself_are_not_copied(tmp_path: Path, copy: Path) -> None:
    home = Home(copy / "pkg" / "myhome")
    (copy / "link.py").symlink_to("/etc/passwd")
    (copy / "up").symlink_to("..")
    (copy / ".git").mkdir()
    (copy / ".git" / "c.py").write_text("")
    wanted = load(tmp_path, 'path = "copy"')
    root = checkout.fetch(wanted, home, report=quiet).root
    assert sorted(p.relative_to(root).as_posix() for p in root.rglob("*")) == ["a.py", "pkg", "pkg/b.py"]
    assert checkout.find(wanted, home) is not None


def copied(tmp_path: Path, home: Home, path: str = "copy") -> list[str]:
    root = checkout.fetch(load(tmp_path, f'path = "{path}"'), home, report=quiet).root
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


def test_ignored_files_are_not_copied(tmp_path: Path, home: Home, copy: Path) -> None:
    # No rule can include a file of an ignored folder again.
    ignored = {
        "secret.py": "",
        "local/keys.py": "",
        "local/.gitignore": "!keys.py\n",
        "pkg/secret.py": "",
        "pkg/made/deep.py": "",
        "pkg/x.log": "",
    }
    stays = {"pkg/made.py": "", "pkg/keep/x.log": "", "made/a.py": "", "pkg/straße.py": ""}
    rules = {
        ".gitignore": "# ours\nsecret.py\n/local/\n*.log\n\n",
        "pkg/.gitignore": "made/\n",
        "pkg/keep/.gitignore": "!*.log",
    }
    write_tree(copy, {**ignored, **stays, **rules})
    assert copied(tmp_path, home) == sorted(["a.py", "pkg/b.py", *stays, *rules])


def test_ignore_rules_of_the_enclosing_repository_apply_to_a_folder(tmp_path: Path, home: Home, copy: Path) -> None:
    write_tree(tmp_path, {".git/HEAD": "", ".gitignore": "secret.py\n/copy/pkg/\n", "copy/secret.py": ""})
    assert copied(tmp_path, home) == ["a.py"]
    # A path that names an ignored folder or a nested repository is copied nevertheless.
    assert copied(tmp_path, home, "copy/pkg") == ["b.py"]
    write_tree(copy, {".git/HEAD": ""})
    assert copied(tmp_path, home) == ["a.py", "pkg/b.py", "secret.py"]


def test_ignore_rules_around_the_home_do_not_apply_to_a_copy(tmp_path: Path, copy: Path) -> None:
    write_tree(tmp_path, {"work/.git/HEAD": "", "work/.gitignore": "*.py\n"})
    assert copied(tmp_path, Home(tmp_path / "work" / "home")) == ["a.py", "pkg/b.py"]


def test_a_changed_folder_becomes_a_new_checkout(tmp_path: Path, home: Home, copy: Path) -> None:
    wanted = load(tmp_path, 'path = "copy"')
    first = checkout.fetch(wanted, home, report=quiet)
    (copy / "a.py").write_text("x = 2\n")
    assert checkout.find(wanted, home) is None
    second = checkout.fetch(wanted, home, report=quiet)
    assert first.key != second.key and (first.root / "a.py").read_text() == "x = 1\n"


def test_a_wrong_hash_ends_the_fetch_and_keeps_nothing(tmp_path: Path, home: Home, copy: Path) -> None:
    wanted = load(tmp_path, f'path = "copy"\nsha256 = "{"0" * 64}"', 'path = "."')
    with pytest.raises(InputFault) as caught:
        checkout.fetch(wanted, home, report=quiet)
    assert "0" * 64 in str(caught.value) and "nothing was kept" in str(caught.value)
    assert kept(home) == []


def test_an_unreachable_source_is_followed_by_the_next(tmp_path: Path, home: Home, copy: Path) -> None:
    said: list[str] = []
    found = checkout.fetch(load(tmp_path, 'path = "none"', 'path = "copy"'), home, report=said.append)
    assert found.source.endswith("copy") and any("cannot be fetched" in line for line in said)


def test_if_all_sources_are_unreachable_each_reason_is_listed(tmp_path: Path, home: Home) -> None:
    with pytest.raises(MachineFault) as caught:
        checkout.fetch(load(tmp_path, 'path = "none"', 'path = "nil"'), home, report=quiet)
    message = str(caught.value)
    assert "none (no such file" in message and "nil (no such file" in message and "[[source]]" in message


@pytest.mark.parametrize(
    ("head", "make", "words"),
    [('source_dir = "src"\n', "a.py", "source_dir"), ("", None, "contains no file")],
    ids=["no-source-dir", "empty"],
)
def test_an_incomplete_tree_is_refused(tmp_path: Path, home: Home, head: str, make: str | None, words: str) -> None:
    (tmp_path / "copy").mkdir()
    if make:
        (tmp_path / "copy" / make).write_text("")
    with pytest.raises(InputFault, match=words):
        checkout.fetch(load(tmp_path, 'path = "copy"', head=head), home, report=quiet)
    assert kept(home) == []


def test_a_full_disk_is_a_fault_and_leaves_no_files(
    tmp_path: Path, home: Home, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, target: Path, **_: object) -> None:
        target.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    wanted = load(tmp_path, 'path = "copy"', 'path = "copy"')
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(MachineFault, match="the disk is full"):
        checkout.fetch(wanted, home, report=quiet)
    assert kept(home) == []
    monkeypatch.undo()
    assert checkout.fetch(wanted, home, report=quiet).root.is_dir()


def test_a_home_that_is_a_file_is_a_fault(tmp_path: Path, copy: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises((InputFault, MachineFault), match="file"):
        checkout.fetch(load(tmp_path, 'path = "copy"'), Home(tmp_path / "home"), report=quiet)


def test_leftovers_without_a_marker_are_fetched_again(tmp_path: Path, home: Home, copy: Path) -> None:
    wanted = load(tmp_path, 'path = "copy"')
    found = checkout.fetch(wanted, home, report=quiet)
    (home.repos / "demo" / f"{found.key}.json").unlink()
    (found.root / "a.py").chmod(0o644)
    (found.root / "a.py").write_text("half")
    part = home.repos / "demo" / f".{found.key}.part"
    (part / "tree" / "sub").mkdir(parents=True)
    (part / "tree" / "sub").chmod(0o555)
    assert checkout.find(wanted, home) is None
    assert (checkout.fetch(wanted, home, report=quiet).root / "a.py").read_text() == "x = 1\n"
    assert kept(home) == sorted([found.key, f"{found.key}.json"])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "demo"}'])
def test_a_checkout_with_a_damaged_marker_is_fetched_again(tmp_path: Path, home: Home, copy: Path, text: str) -> None:
    wanted = load(tmp_path, 'path = "copy"')
    found = checkout.fetch(wanted, home, report=quiet)
    (home.repos / "demo" / f"{found.key}.json").write_text(text)
    assert checkout.find(wanted, home) is None
    assert checkout.fetch(wanted, home, report=quiet) == found


def test_threads_fetch_a_repository_once(tmp_path: Path, home: Home, copy: Path) -> None:
    wanted = load(tmp_path, 'path = "copy"')
    said: list[str] = []
    found: list[checkout.Checkout] = []
    gate = threading.Barrier(8)

    def ask() -> None:
        gate.wait()
        found.append(checkout.fetch(wanted, home, report=said.append))

    together(8, ask)
    assert len(found) == 8 and len(set(found)) == 1
    assert sum("fetching" in line for line in said) == 1


FETCH = """
import sys
from pathlib import Path
from ctxbench.bench.repositories import checkout, manifest
from ctxbench.bench.home import Home
print(checkout.fetch(manifest.load(sys.argv[1]), Home(Path(sys.argv[2])), report=lambda _: None).root)
"""


def start(folder: Path, home: Home) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, str(folder / "demo.toml"), str(home.root)]
    root = Path(manifest.__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)


@pytest.mark.slow
def test_processes_fetch_a_repository_once(tmp_path: Path, home: Home, copy: Path) -> None:
    load(tmp_path, 'path = "copy"')
    processes = [start(tmp_path, home) for _ in range(3)]
    roots = {process.communicate(timeout=60)[0] for process in processes}
    assert len(roots) == 1 and all(process.returncode == 0 for process in processes)
    assert len(kept(home)) == 2


@pytest.mark.slow
def test_a_fetch_after_a_killed_fetch_succeeds(tmp_path: Path, home: Home, copy: Path) -> None:
    for number in range(1000):
        (copy / "pkg" / f"f{number}.py").write_text(f"x = {number}\n")
    wanted = load(tmp_path, 'path = "copy"')
    process = start(tmp_path, home)
    deadline = time.monotonic() + 30
    while not list(home.repos.glob("demo/.*.part/tree/*")) and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert [name for name in kept(home) if name.endswith(".part")], "killed too late to show anything"
    assert checkout.find(wanted, home) is None
    found = checkout.fetch(wanted, home, report=quiet)
    assert len(list(found.root.rglob("*.py"))) == 1002
    assert kept(home) == sorted([found.key, f"{found.key}.json"])
