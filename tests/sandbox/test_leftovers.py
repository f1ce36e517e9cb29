"""`sandbox.leftovers` finds the leftovers of killed processes, and nothing that a living process uses."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ctxbench.sandbox.leftovers import find, half_written
from tests.helpers.extras import missing

_LONG_AGO = 0.0
"""A time before any process of this machine started."""


def aged(path: Path, when: float = _LONG_AGO, *, folder: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        path.mkdir()
        (path / "inside").write_text("x")
    else:
        path.write_text("x")
    os.utime(path, (when, when))
    return path


def names(home: Path) -> set[str]:
    return {each.what.partition(" ")[2] for each in half_written(home)}


def test_half_written_folders_and_files_are_found(tmp_path: Path) -> None:
    half = [
        aged(tmp_path / "samples/.mine.ab12cd.part"),
        aged(tmp_path / "samples/mine/.samples.jsonl.ab12cd.part", folder=False),
        aged(tmp_path / "repos/fire/.1.2-0123456789.part"),
        aged(tmp_path / "cache/sandbox/wheels/.ctxbench-ab12cd.part"),
        aged(tmp_path / ".results.json.ab12cd.part", folder=False),
    ]
    kept = [
        aged(tmp_path / "repos/fire/1.2-0123456789/.github.part"),  # a file of the repository
        aged(tmp_path / "samples/whole.part"),
        aged(tmp_path / "samples/.hidden"),
    ]
    assert names(tmp_path) == {str(path) for path in half}
    for each in half_written(tmp_path):
        each.remove()
    assert not [path for path in half if path.exists()] and all(path.exists() for path in kept)
    assert names(tmp_path) == set()


def test_young_paths_and_paths_of_living_processes_are_not_leftovers(tmp_path: Path) -> None:
    code = "import tree_sitter, sys; print(1, flush=True); sys.stdin.read()"
    aged(tmp_path / "samples/.new.ab12cd.part", time.time() - 60)
    old = aged(tmp_path / "samples/.old.ab12cd.part", time.time() - 7200)
    writer = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout and writer.stdout.readline() == "1\n"
    # The process is younger than the folder, so it cannot have created the folder.
    assert str(old) in names(tmp_path) or _others_are_older(old)
    now = aged(tmp_path / "samples/.now.ab12cd.part", time.time() + 1)
    later = time.time() + 7200
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxbench.sandbox.leftovers.time.time", lambda: later)
        assert str(now) not in names(tmp_path)
        writer.communicate("")
        assert str(now) in names(tmp_path) or _others_are_older(now)


def _others_are_older(path: Path) -> bool:
    """Return whether another process that may write to a home is older than a path. Such a path is kept."""
    from ctxbench.sandbox.leftovers import _writers

    return any(start <= path.lstat().st_mtime for start in _writers())


def test_an_old_sample_set_without_a_successor_is_restored(tmp_path: Path) -> None:
    aged(tmp_path / "samples/.mine.ab12cd.old")
    aged(tmp_path / "samples/.other.ab12cd.old")
    (tmp_path / "samples/other").mkdir()
    for each in half_written(tmp_path):
        each.remove()
    assert sorted(os.listdir(tmp_path / "samples")) == ["mine", "other"]
    assert (tmp_path / "samples/mine/inside").read_text() == "x"


def test_trees_with_unusual_names_depths_and_modes_are_removed(tmp_path: Path) -> None:
    part = aged(tmp_path / "repos/odd/.k-1.part")
    deep = part
    for _ in range(100):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (part / "tree").mkdir()
    (part / "tree" / "-rf\n\x1b[31m").write_text("x")
    (part / "link").symlink_to("/etc/passwd")
    for path in (deep, part / "tree", part):
        path.chmod(0o500)
    os.utime(part, (0, 0))
    for each in half_written(tmp_path):
        each.remove()
    assert not part.exists() and Path("/etc/passwd").exists()


@pytest.mark.slow
def test_scratch_folders_of_killed_processes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import os, sys, time, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from ctxbench.harness.cells.process import scratch_folder\n"
        "with scratch_folder() as path: os.utime(path, (0, 0)); print(path, flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    made = holder.stdout.readline().strip()
    other = aged(tmp_path / "somebody-elses")
    assert not [each for each in find(tmp_path / "home") if made in each.what]
    holder.kill()
    holder.communicate()
    found = [each for each in find(tmp_path / "home") if str(tmp_path) in each.what]
    assert [each.what for each in found] == [f"folder {made}"]
    found[0].remove()
    assert not Path(made).exists() and other.exists()


def test_leftovers_of_other_users_are_not_listed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        missing("only root can make what is another user's")
    path = aged(tmp_path / "samples/.theirs.ab12cd.part")
    os.chown(path, 54321, 54321)
    assert names(tmp_path) == set()
