"""Several processes at once: only one works on a run, and different runs share their answers."""

import itertools
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from ctxbench.bench.home import Home
from ctxbench.harness.store.database import read_url
from tests.harness.store import postgres_server
from tests.helpers.extras import missing
from tests.helpers.openai_server import Server, serving
from tests.helpers.plain_user import PROGRAM
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow
SAMPLES = 60


class Shared:
    """One home, one database, one server, and several processes with the same run."""

    def __init__(self, home: Home, database: str) -> None:
        self.home, self.database = home, database
        self.go_on = threading.Event()

    def answer(self, _: str, __: Any) -> str:
        """Answer once all processes are at work."""
        assert self.go_on.wait(120)
        return "apply_tax(cart_1, rate)"

    def start(self, server: Server, strategy: str = "lc.repocoder(iterations=1)") -> subprocess.Popen[str]:
        command = ["run", "--samples", "demo", "--strategy", strategy, "--home", str(self.home.root)]
        command += ["--generator", f"openai(model=tiny, url={server.url}, endpoint=completions, concurrency=4)"]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command, "--db", self.database],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: str) -> list[Any]:
        """Return the first column of a query's rows, or nothing if the database does not exist yet."""
        if self.database.startswith("sqlite") and not Path(self.database.removeprefix("sqlite:///")).exists():
            return []
        engine = create_engine(read_url(self.database))
        try:
            with engine.connect() as connection:
                return list(connection.scalars(text(question)))
        except Exception as error:
            if "no such table" in str(error) or "does not exist" in str(error):
                return []
            raise
        finally:
            engine.dispose()

    def at_work(self, many: int) -> None:
        """Let the server answer as soon as this many processes have begun."""
        wait_for(lambda: len(self.ask("SELECT id FROM attempt")) == many)
        self.go_on.set()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def ended_well(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0 and f"scored {SAMPLES}  model-failed 0  missing 0" in out, err


def most(server: Server) -> int:
    """Return the maximum number of requests with the same prompt."""
    return max(Counter(str(call["prompt"]) for call in server.calls).values())


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shared]:
    home = Home(tmp_path / "home")
    make_set(home, per_repo=SAMPLES // 2)
    if request.param == "sqlite":
        yield Shared(home, home.database)
        return
    folder = postgres_server.binaries()
    if folder is None:
        missing("no PostgreSQL server is installed: shared runs are not tested in it here")
    with postgres_server.running(folder) as port:
        postgres_server.execute(postgres_server.url(port), "CREATE DATABASE ctx")
        yield Shared(home, postgres_server.shown(postgres_server.url(port, "ctx")))


def test_a_second_process_is_told_which_process_works_on_the_run(shared: Shared) -> None:
    with serving(answer=shared.answer) as server:
        first = shared.start(server)
        wait_for(lambda: len(server.calls) == 4)
        _, refusal = (second := shared.start(server)).communicate(timeout=120)
        assert second.returncode == 1 and f"process {first.pid} on " in refusal and "is working on this run" in refusal
        assert "Traceback" not in refusal
        shared.at_work(1)
        ended_well(first)
        assert len(server.calls) == SAMPLES and most(server) == 1


def test_the_next_process_continues_the_run_of_a_killed_one(shared: Shared) -> None:
    with serving(answer=shared.answer) as server:
        killed = shared.start(server)
        wait_for(lambda: len(server.calls) == 4)
        shared.at_work(1)
        wait_for(lambda: len(shared.ask("SELECT sample_id FROM result")) > 0)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        stored = len(shared.ask("SELECT id FROM generation"))
        on_their_way = len(server.calls) - stored
        ended_well(shared.start(server))
        # Only requests that the killed process had not stored are sent again.
        assert len(server.calls) <= SAMPLES + on_their_way
    assert len(shared.ask("SELECT sample_id FROM result")) == SAMPLES


def test_concurrent_runs_share_the_answer_that_is_stored_first(shared: Shared) -> None:
    """The model never repeats an answer. Both runs score the stored answer, whichever run asked first."""
    numbers = itertools.count()
    with serving(answer=lambda *_: f"apply_tax(cart_{next(numbers)}, rate)") as server:
        processes = [shared.start(server, f"lc.infile(limit={limit})") for limit in (5000, 6000)]
        for process in processes:
            ended_well(process)
        assert SAMPLES <= len(server.calls) <= 2 * SAMPLES
    assert len(shared.ask("SELECT id FROM generation")) == SAMPLES
    runs = shared.ask("SELECT DISTINCT run_id FROM result ORDER BY run_id")
    first, second = (
        shared.ask(f"SELECT value FROM score WHERE run_id = '{run}' AND metric = 'es' ORDER BY sample_id, profile")
        for run in runs
    )
    assert first == second and len(first) >= SAMPLES
