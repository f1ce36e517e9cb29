"""Runs in real processes that are killed: finally they store the same rows as an undisturbed run."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from tests.helpers.plain_user import PROGRAM
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow
KILLS = 6
_UNEQUAL = {"strategy_seconds", "generator_seconds", "seconds", "key", "number"}
_ACCOUNTS = {"pack", "attempt", "construction", "outcome", "fault", "schema_number"}


class Bench:
    def __init__(self, tmp_path: Path, name: str, per_repo: int = 30) -> None:
        self.home = Home(tmp_path / name)
        # The home variable marks every process of this run, cells included.
        self.mark = tmp_path / name / "user"
        self.mark.mkdir(parents=True)
        make_set(self.home, repos=2, per_repo=per_repo)
        self.database = self.home.root / "results.db"

    def start(self, *more: str, delay: float = 0.15) -> subprocess.Popen[str]:
        command = ["run", "--samples", "demo", "--strategy", "lc.repocoder(iterations=1)"]
        command += ["--generator", f"scripted(mode=echo, delay={delay})", "--home", str(self.home.root), *more]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command],
            env={**os.environ, "HOME": str(self.mark)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, *more: str, delay: float = 0.15) -> tuple[int, str, str]:
        process = self.start(*more, delay=delay)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def finished(self) -> int:
        return self.count("result")

    def count(self, table: str) -> int:
        if not self.database.exists():
            return 0
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        try:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0
        finally:
            connection.close()

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """Return all rows in a fixed order, without times and records of attempts."""
        connection = sqlite3.connect(self.database)
        connection.row_factory = sqlite3.Row
        # Fact tables contain numbers that depend on the order of insertion. Views show the names instead.
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE '%_fact'"
        tables = [row[0] for row in connection.execute(query)]
        found = {}
        for table in sorted(set(tables) - _ACCOUNTS):
            read = connection.execute(f"SELECT * FROM {table}")
            found[table] = sorted(
                (tuple(row[key] for key in row.keys() if key not in _UNEQUAL) for row in read),  # noqa: SIM118
                key=repr,
            )
        connection.close()
        return found

    def processes(self) -> list[int]:
        """Return the live processes of this run."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"HOME={self.mark}".encode() in environment.split(b"\0") and state != "Z":
                found.append(int(folder.name))
        return found

    def gone(self, seconds: float = 10) -> bool:
        """Wait until no process of this run is alive."""
        until = time.monotonic() + seconds
        while self.processes() and time.monotonic() < until:
            time.sleep(0.1)
        return not self.processes()


@pytest.mark.long
def test_a_run_killed_repeatedly_ends_like_an_undisturbed_run(tmp_path: Path) -> None:
    whole, killed = (Bench(tmp_path, name, per_repo=150) for name in ("whole", "killed"))
    code, out, err = whole.finish()
    assert code == 0, err
    chance = random.Random("moments")
    seen, alive, landed = [], [], 0
    for number in range(KILLS):
        process = killed.start()
        # Kill alternately during the start and after some samples, so that slow machines make progress, too.
        more = number % 2 * chance.choice([1, 2, 6])
        wanted = killed.finished() + more
        until = time.monotonic() + (60 if more else chance.uniform(0.2, 3))
        while process.poll() is None and time.monotonic() < until and (killed.finished() < wanted or not more):
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 0.1))
        landed += process.poll() is None
        alive.append(len(killed.processes()))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        seen.append(killed.finished())
    assert landed == KILLS, "every kill hits a run at work"
    assert seen == sorted(seen) and len(set(seen)) > 2
    assert max(alive) > 2, "cells and worker processes are seen"
    assert killed.gone(), "a killed run leaves no process"
    code, again, err = killed.finish()
    assert code == 0 and again == out, err
    assert killed.rows() == whole.rows()


def test_the_first_answers_survive_a_kill(tmp_path: Path) -> None:
    """Answers are stored as they arrive, before the whole batch (16 for this model) is answered."""
    bench = Bench(tmp_path, "first")
    process = bench.start(delay=1.0)
    while process.poll() is None and not bench.count("generation"):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 0 < bench.count("generation") <= 8
    kept = set(bench.rows()["generation"])
    code, out, err = bench.finish(delay=1.0)
    assert code == 0 and "scored 60" in out, err
    assert kept < set(bench.rows()["generation"]) and bench.count("generation") == 60


def test_a_full_disk_prints_one_line_and_keeps_finished_samples(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "full")
    script = (
        "import resource, sys; from ctxbench.harness.cli.main import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2); main()"
    )
    command = ["run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "scripted(text=x, delay=0.02)"]

    def ended_in(room: int) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", script, str(room), *command, "--home", str(bench.home.root)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    ended = ended_in(250_000)
    assert ended.returncode == 1, ended
    [line] = [line for line in ended.stderr.splitlines() if line.startswith("ctxbench: ")]
    assert "disk" in line and "run the same command again" in line and "Traceback" not in ended.stderr
    kept = bench.finished()
    ended = ended_in(99_000_000)
    assert ended.returncode == 0 and "scored 60" in ended.stdout and kept <= 60, ended.stderr
