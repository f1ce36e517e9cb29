"""Reading commands work without write access: for a plain user on another user's files, and on a read-only mount."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.registry import open_sandbox
from tests.helpers import plain_user
from tests.helpers.cli import run_cli
from tests.helpers.extras import missing, needed
from tests.helpers.sandboxes import cache
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow


def made(root: Path) -> tuple[str, str]:
    """Fill a home with a sample set and two runs; return the ids of the runs."""
    make_set(Home(root), per_repo=3)
    ids = []
    for strategy in ("lc.infile", "lc.repocoder(iterations=1)"):
        done = run_cli(
            *("run", "--samples", "demo", "--strategy", strategy, "--generator", "scripted(mode=echo)"),
            *("--home", str(root)),
        )
        assert done.code == 0, done.err
        ids.append(done.out.split()[0])
    return ids[0], ids[1]


@contextlib.contextmanager
def closed(root: Path) -> Iterator[None]:
    """Make a folder read-only for all users but root."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Create a folder that every user can enter; the test runner's own temporary folders are private."""
    with tempfile.TemporaryDirectory(prefix="ctxbench-read-only-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def runs(place: Path) -> Iterator[tuple[Path, str, str]]:
    """Create a read-only home with two runs; return it and the ids of the runs."""
    root = place / "home"
    first, second = made(root)
    (place / "predictions.jsonl").write_text('{"id": "1", "prompt": "x", "prediction": "y", "ground_truth": "y"}\n')
    with closed(root):
        yield root, first, second


def everything(root: Path) -> dict[str, int]:
    """Return the files of a home and the size of each in bytes."""
    return {str(path): path.stat().st_size for path in root.rglob("*") if path.is_file()}


COMMANDS = (
    "leaderboard --home HOME",
    "leaderboard --format json --home HOME",
    "compare FIRST SECOND --home HOME",
    "runs --home HOME",
    "runs FIRST --home HOME",
    "samples list --home HOME",
    "samples show demo --home HOME",
    "samples show demo shop0/shop/pay.py#L4 --home HOME",
    "strategy list",
    "report --out OUT/report.html --home HOME",
    "results export FIRST --format ctxbench --out OUT/out.jsonl --home HOME",
    "diagnose FIRST --home HOME",
    "score PLACE/predictions.jsonl --profile all --language python",
    "doctor --home HOME",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_plain_user_can_read_the_home_of_another_user(command: str, place: Path, runs: tuple[Path, str, str]) -> None:
    root, first, second = runs
    with tempfile.TemporaryDirectory() as out:
        os.chmod(out, 0o777)
        words = {"HOME": str(root), "FIRST": first, "SECOND": second, "OUT": out, "PLACE": str(place)}
        argv = [re.sub("HOME|FIRST|SECOND|OUT|PLACE", lambda word: words[word[0]], one) for one in command.split()]
        before = everything(root)
        done = plain_user.run(*argv)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert done.stdout.strip() or command.startswith("report ")
    assert everything(root) == before


def test_a_command_that_cannot_write_is_a_one_line_fault(runs: tuple[Path, str, str]) -> None:
    arguments = ("run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "scripted(text=x)")
    done = plain_user.run(*arguments, "--home", str(runs[0]))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.fullmatch(r"ctxbench: .*results.db: .*--db\n", done.stderr)


def test_the_dashboard_shows_the_home_of_another_user(runs: tuple[Path, str, str]) -> None:
    needed("streamlit", "dashboard")
    argv = ["dashboard", "--port", "0", "--home", str(runs[0])]
    with plain_user.start(*argv) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[0]
            until = time.monotonic() + 60
            while True:
                try:
                    with urllib.request.urlopen(f"{url}/_stcore/health") as answer:
                        assert answer.status == 200
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < until
                    time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def on_a_read_only_mount(root: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command as root while a folder is mounted read-only."""
    if os.geteuid():
        missing("only root can mount a folder read-only")
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99; shift; exec "$@"'
    command = [sys.executable, "-c", plain_user.PROGRAM, *argv, "--home", str(root)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(root), *command], capture_output=True, text=True, check=False
    )
    if done.returncode == 99:
        missing(f"no folder can be mounted read-only here: {done.stderr}")
    return done


def test_root_can_read_a_read_only_mount(runs: tuple[Path, str, str]) -> None:
    root, first, _ = runs
    done = on_a_read_only_mount(root, "runs", first)
    assert done.returncode == 0 and first in done.stdout, done.stderr


@pytest.mark.parametrize(
    "strategy", ["lc.infercom(encoder=hashed)", pytest.param("engine(ripgrep)", marks=pytest.mark.network)]
)
def test_a_share_only_reads_the_home_if_its_cache_is_elsewhere(
    strategy: str, runs: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _, _ = runs
    if strategy.startswith("engine"):
        try:
            open_sandbox("bubblewrap", cache())
        except SandboxUnavailable as unavailable:
            missing(str(unavailable))
    argv = ["run", "--samples", "demo", "--strategy", strategy, "--generator", "scripted(mode=echo)", "--shard", "0/1"]
    # Docker keeps images outside the cache, so it writes nothing there if it has the image already.
    argv += ["--sandbox", "bubblewrap", "--out", str(tmp_path / "shards"), "--db", f"sqlite:///{tmp_path / 'part.db'}"]
    before = everything(root)
    done = on_a_read_only_mount(root, *argv)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "read-only file system" in done.stderr.lower() and "CTXBENCH_CACHE=FOLDER" in done.stderr, done.stderr
    monkeypatch.setenv("CTXBENCH_CACHE", str(tmp_path / "cache"))
    done = on_a_read_only_mount(root, *argv)
    assert done.returncode == 0 and "scored 6  model-failed 0  missing 0" in done.stdout, done.stderr
    assert everything(root) == before and any((tmp_path / "cache").iterdir())


@pytest.fixture
def database(place: Path, runs: tuple[Path, str, str], tmp_path: Path) -> Iterator[Path]:
    """Copy the database into a folder of its own."""
    folder = place / tmp_path.name
    folder.mkdir()
    shutil.copyfile(runs[0] / "results.db", folder / "results.db")
    yield folder / "results.db"
    shutil.rmtree(folder)


def finished(done: subprocess.CompletedProcess[str], run: str) -> int:
    assert done.returncode == 0, done.stderr
    return next(int(one["finished"]) for one in json.loads(done.stdout) if one["run"] == run)


@contextlib.contextmanager
def written(database: Path, run: str) -> Iterator[None]:
    """Keep a writer connected whose latest change is only in the log: it deleted the last result of a run."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for trigger in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger[0]}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("DELETE FROM result_fact WHERE key = (SELECT max(key) FROM result WHERE run_id = ?)", (run,))
        yield


def test_changes_of_a_concurrent_writer_are_seen(database: Path, runs: tuple[Path, str, str]) -> None:
    _, first, _ = runs
    argv = ("runs", "--format", "json", "--db", f"sqlite:///{database}")
    with written(database, first), closed(database.parent):
        assert finished(plain_user.run(*argv), first) == 5
        assert finished(plain_user.run(*argv), first) == 5


def test_a_log_that_cannot_be_read_is_named(database: Path, runs: tuple[Path, str, str]) -> None:
    _, first, _ = runs
    copy = database.parent / "copy"
    with written(database, first):
        copy.mkdir()
        for name in ("results.db", "results.db-wal"):
            shutil.copyfile(database.parent / name, copy / name)
    with closed(copy):
        done = plain_user.run("runs", "--format", "json", "--db", f"sqlite:///{copy}/results.db")
        assert finished(done, first) == 6
        assert (
            done.stderr
            == f"{copy}/results.db: the log of the database cannot be read, so the newest results may be missing\n"
        )
