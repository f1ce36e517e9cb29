"""Runs with a server that fails midway: answers are kept, faults get no score, and no answered prompt is sent again."""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators import base, openai
from ctxbench.harness.generators.base import Capabilities, Generator
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.results import Status
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.run.batching import GIVE_UP
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies.api import Prompt
from tests.helpers.cells import open_inline
from tests.helpers.databases import open_for_test
from tests.helpers.openai_server import OPENAI, VLLM, Fault, Server, serving
from tests.helpers.sets import make_set

SAMPLES = 40
assert openai  # imported for its name


class Coder(Scripted):
    """A generator that measures one bit for every text."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [1.0] * len(prompts)


def right(prompt: str, _: object) -> str:
    """Answer with the reference."""
    return f"apply_tax(cart_{prompt.rstrip().removesuffix('=').rstrip().rpartition('_')[2]}, rate)"


class Bench:
    """A home with a set of samples, 40 by default, and runs of them with a server."""

    def __init__(self, tmp_path: Path, server: Server, *, repos: int = 2, samples: int = SAMPLES) -> None:
        self.home, self.server = Home(tmp_path / "home"), server
        self.set = make_set(self.home, repos=repos, per_repo=samples // repos)
        self.store = open_for_test(self.home.database)

    def run(self, how: str = "", choices: RunOptions | None = None) -> RunSummary:
        def resolve(spec: str) -> Generator:
            return Coder(lambda _: "", version="c") if spec == "incontext" else base.resolve(spec)

        [summary] = run(
            self.home,
            self.store,
            self.set,
            strategies=["lc.infile"],
            generator=f"openai:tiny@{self.server.url}({how or 'backoff=0.05, concurrency=4'})",
            choices=choices,
            cells=open_inline,
            resolve=resolve,
        )
        return summary

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.store.reading() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def assert_complete(self, summary: RunSummary) -> None:
        assert (summary.scored, summary.model_failed, summary.missing) == (SAMPLES, 0, 0)
        [table] = run_tables(self.store)
        assert set(table.status) == {Status.SCORED} and table.metrics["em"] == (1.0,) * SAMPLES
        assert self.rows("SELECT count(*), count(DISTINCT prompt_digest) FROM generation") == [(SAMPLES, SAMPLES)]
        asked = len(self.server.calls)
        assert self.run().new == 0 and len(self.server.calls) == asked


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with serving(answer=right, delay=0.01) as server:
        made = Bench(tmp_path, server)
        yield made
        made.store.close()


def kill(server: Server, after: int, back: float | None) -> threading.Thread:
    """Stop the server after so many answers, and start it again some seconds later."""

    def work() -> None:
        until = time.monotonic() + 20
        while server.answered < after and time.monotonic() < until:
            time.sleep(0.002)
        server.stop()
        if back is not None:
            time.sleep(back)
            server.start()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_server_that_comes_back_leaves_no_sample_missing(bench: Bench) -> None:
    killer = kill(bench.server, after=15, back=0.4)
    summary = bench.run()
    killer.join(30)
    assert fault_of([summary]) is None and summary.faults == ()
    # Only interrupted requests were sent again.
    assert SAMPLES <= len(bench.server.calls) <= SAMPLES + 4
    bench.assert_complete(summary)


@pytest.mark.slow
def test_a_second_run_requests_only_what_a_lost_server_left(bench: Bench) -> None:
    how = "backoff=0.001, retries=1, concurrency=4"
    killer = kill(bench.server, after=15, back=None)
    first = bench.run(how)
    killer.join(30)
    assert 15 <= first.scored < SAMPLES and first.model_failed == 0 and first.missing == SAMPLES - first.scored
    assert isinstance(fault_of([first]), MachineFault) and {fault.kind for fault in first.faults} == {"machine"}
    # All answers are kept, even those of unfinished samples.
    [(kept,)] = bench.rows("SELECT count(*) FROM generation")
    assert kept >= first.scored
    bench.server.start()
    asked = len(bench.server.calls)
    second = bench.run(how)
    assert len(bench.server.calls) - asked == SAMPLES - kept
    assert (second.scored, second.missing, second.new) == (SAMPLES, 0, SAMPLES - first.scored)
    assert bench.run(how).new == 0 and len(bench.server.calls) - asked == SAMPLES - kept


@pytest.mark.slow
def test_the_served_model_is_a_remark_of_the_run(bench: Bench) -> None:
    bench.server.shape = OPENAI
    bench.run()
    bench.server.shape = VLLM
    bench.run()
    [table] = run_tables(bench.store)
    assert table.run.remarks == ("Answered by tiny (fp_1).",)


def test_a_missing_key_stores_no_run_and_stops_an_unfinished_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVER_KEY", raising=False)
    with pytest.raises(InputFault, match="SERVER_KEY is not set"):
        bench.run("key_env=SERVER_KEY")
    assert not run_tables(bench.store)
    monkeypatch.setenv("SERVER_KEY", "sk-5Zq8-secret")
    bench.server.faults = [Fault(status=400)]
    assert bench.run("key_env=SERVER_KEY", RunOptions(limit=4)).missing == 1
    monkeypatch.delenv("SERVER_KEY")
    with pytest.raises(InputFault, match="SERVER_KEY is not set"):
        bench.run("key_env=SERVER_KEY", RunOptions(limit=4))
    assert [len(table.sample) for table in run_tables(bench.store)] == [4]


def test_a_key_is_not_stored_in_the_home(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-5Zq8-secret"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    bench.server.faults = [Fault(status=400, text=f'{{"error": {{"message": "Bearer {key} is odd"}}}}')] * 3
    summary = bench.run("key_env=OPENAI_API_KEY")
    assert summary.missing == 3 and "Bearer … is odd" in str(fault_of([summary]))
    assert bench.server.headers[0]["Authorization"] == f"Bearer {key}"
    bench.store.close()
    kept = [path for path in bench.home.root.rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if key.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_run_whose_prompts_are_all_cut_stops_without_scores(bench: Bench) -> None:
    bench.server.cuts = 2
    lost = bench.run("backoff=0.001, concurrency=2")
    assert (lost.scored, lost.model_failed, lost.missing) == (0, 0, SAMPLES)
    assert "silently cut the prompt" in str(fault_of([lost])) and len(bench.server.calls) <= 2 * (GIVE_UP + 1)
    assert bench.rows("SELECT count(*) FROM generation") == [(0,)]
    bench.server.cuts = 0
    bench.assert_complete(bench.run())
