"""Reading during a run: neither the run nor the reader waits or fails, and every visible sample is complete."""

import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.results import RunTable, Status
from ctxbench.harness.store import Store
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.store import open_reader, version
from ctxbench.harness.store.work import RunWork, faults_of, run_works
from tests.dashboard.browser import app
from tests.harness.store import postgres_server
from tests.harness.store.postgres_server import shown
from tests.helpers.extras import missing
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow

ROUNDS, READING_S, QUIET_S = 2, 2.5, 2.0
"""Number of rounds, seconds with the reader in each round, and seconds without it, for comparison."""
PATIENCE = 60.0
REPOS, PER_REPO = 30, 50
SAMPLES = REPOS * PER_REPO
"""More samples than the run can finish in time. A batch of 16 takes 0.4 s."""


class Run:
    """A real `ctxbench run` in a separate process, which is stopped by an interrupt as with Ctrl-C."""

    def __init__(self, home: Home, database: str) -> None:
        # Tests that a shell starts in the background inherit an ignored interrupt, so the handler is restored.
        program = (
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
            "from ctxbench.harness.cli.main import main; main()"
        )
        words = ["run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "scripted(mode=echo, delay=0.4)"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *words, "--home", str(home.root), "--db", database, "--workers", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        _, output = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output


class Reader:
    """A reader that queries like the dashboard and records what it saw."""

    def __init__(self, store: Store, url: str) -> None:
        self._store, self._url = store, url
        self.finished = 0
        self.reads = 0
        self.slowest = 0.0
        self.stamps: set[str] = set()

    def look(self) -> int:
        began = time.monotonic()
        self.stamps.add(version(self._store, self._url))
        (work,) = run_works(self._store)
        assert not faults_of(self._store, work.id)
        self._check_work(work)
        (table,) = run_tables(self._store)
        self._check_table(table)
        self.reads += 1
        self.slowest = max(self.slowest, time.monotonic() - began)
        return self.finished

    def count(self) -> int:
        (work,) = run_works(self._store)
        self._check_work(work)
        return self.finished

    def _check_work(self, work: RunWork) -> None:
        assert work.planned == SAMPLES and work.finished >= self.finished
        assert work.attempts[-1].ended is None
        self.finished = work.finished

    def _check_table(self, table: RunTable) -> None:
        """Check that each sample with a result is complete."""
        scored = [at for at, status in enumerate(table.status) if status is Status.SCORED]
        assert len(table.sample) == SAMPLES and len(scored) >= self.finished
        self.finished = len(scored)
        assert all(status in (Status.SCORED, Status.INFRA_FAILED) for status in table.status)
        for name, column in table.metrics.items():
            assert all(column[at] is not None for at in scored), name
        for column in (table.context_tokens, table.calls, table.seconds):
            assert all(column[at] is not None for at in scored)


def check_reads_during_run(home: Home, database: str, page: Callable[[], None]) -> None:
    """Run and read at the same time, and check both."""
    make_set(home, repos=REPOS, per_repo=PER_REPO)
    run = Run(home, database)
    try:
        store = _when_begun(database, run)
        with store:
            reader = Reader(store, database)
            alone, beside = _rounds(reader, page)
        assert run.process.poll() is None, run.process.communicate()
    finally:
        code, output = run.stop()
    assert code == 130 and "locked" not in output and "Traceback" not in output, (code, output)
    assert reader.finished > 0 and statistics.mean(alone) > 0
    rates = statistics.mean(beside), statistics.mean(alone)
    print(
        f"samples a second beside a reader {rates[0]:.1f}, alone {rates[1]:.1f}; {reader.reads} reads, "
        f"the slowest {reader.slowest:.2f} s"
    )
    assert rates[0] > 0.5 * rates[1], rates
    with open_reader(database) as store:
        (work,) = run_works(store)
    attempt = work.attempts[-1]
    # A process that needs more than two seconds to stop, as on a slow disk, is killed before it records its end.
    assert attempt.ended is None or (attempt.reason, attempt.finished) == ("interrupted", work.finished), attempt
    assert work.finished >= reader.finished


def _when_begun(database: str, run: Run) -> Store:
    """Open the database as soon as the run has stored a sample."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert run.process.poll() is None, run.process.communicate()
        try:
            store = open_reader(database)
        except InputFault:
            time.sleep(0.2)
            continue
        if any(work.finished for work in run_works(store)):
            return store
        store.close()
        time.sleep(0.2)
    raise AssertionError("the run stored nothing")


def _rounds(reader: Reader, page: Callable[[], None]) -> tuple[list[float], list[float]]:
    """Return the samples that the run stored per second, in each pause and in each round with the reader."""
    alone, beside = [], []
    for _ in range(ROUNDS):
        beside.append(_rate(reader, lambda: _read(reader, READING_S, page)))
        alone.append(_rate(reader, lambda: time.sleep(QUIET_S)))
    return alone, beside


def _rate(reader: Reader, what: Callable[[], None]) -> float:
    before, began = reader.count(), time.monotonic()
    what()
    return (reader.count() - before) / (time.monotonic() - began)


def _read(reader: Reader, seconds: float, page: Callable[[], None]) -> None:
    page()
    end, states = time.monotonic() + seconds, len(reader.stamps) + 2
    while time.monotonic() < end or len(reader.stamps) < states:
        assert time.monotonic() < end + PATIENCE, "the reader sees one state again and again"
        reader.look()
        time.sleep(0.25)


def test_sqlite_and_the_pages_can_be_read_during_a_run(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    def pages() -> None:
        for name in ("runs", "leaderboard"):
            page = app(name, home.root)
            assert not page.exception and not page.error, (page.exception, page.error)

    check_reads_during_run(home, home.database, pages)


@pytest.fixture
def server() -> Iterator[str]:
    folder = postgres_server.binaries()
    if folder is None:
        missing("no PostgreSQL server is installed: reading while a run writes is not tested in it here")
    with postgres_server.running(folder) as port:
        yield shown(postgres_server.url(port))


def test_postgresql_can_be_read_during_a_run(tmp_path: Path, server: str) -> None:
    check_reads_during_run(Home(tmp_path / "home"), server, lambda: None)
