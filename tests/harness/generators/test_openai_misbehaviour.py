"""A misbehaving server affects only the request that it misbehaves on, within that request's time limit."""

import functools
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.harness.generators.base import Response, TooLong, accounted
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.write import clean
from tests.harness.generators import test_openai
from tests.harness.generators.test_openai import ask
from tests.harness.generators.test_openai_run import Bench, right
from tests.helpers.misbehaviour import (
    KEY,
    MISBEHAVIOURS,
    Body,
    Misbehaviour,
    Outcome,
    Play,
    Whole,
    good,
    hostile,
    reply,
)

RETRIES, LANES = 1, 8
FIRST_LINE = 4
"""The line of the first sample of a run."""


model: Any = functools.partial(test_openai.model, retries=RETRIES, timeout=20.0, key_env="SERVER_KEY")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)


def test_there_are_many_misbehaviours_with_unique_names() -> None:
    assert len(MISBEHAVIOURS) >= 50
    assert [name for name, times in Counter(one.name for one in MISBEHAVIOURS).items() if times > 1] == []


SLOW = [one for one in MISBEHAVIOURS if one.slow]
"""Misbehaviours whose answer does not end within the time limit."""


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in MISBEHAVIOURS if not one.slow])
def test_each_misbehaviour_affects_only_its_request(one: Misbehaviour) -> None:
    assert_met(one)


@pytest.mark.slow
def test_answers_that_do_not_end_in_time_affect_only_their_request() -> None:
    with ThreadPoolExecutor(len(SLOW)) as threads:
        waiting = {one.name: threads.submit(assert_met, one) for one in SLOW}
    assert len(waiting) >= 7
    assert {name: fault for name, met in waiting.items() if (fault := met.exception())} == {}


@pytest.mark.parametrize("begun", [b"H", b"HTTP/", b"HTTP/1"])
def test_no_request_receives_a_second_answer_that_has_just_begun(begun: bytes) -> None:
    planted = reply(good("planted"))
    served: set[threading.Thread] = set()

    def choose(body: Body) -> Play:
        sound = reply(good(body["prompt"].upper()))
        if threading.current_thread() in served:  # each thread serves one connection
            return Whole(planted.removeprefix(begun) + sound)
        served.add(threading.current_thread())
        return Whole(sound + begun)

    with hostile(choose) as server, model(server) as made:
        answers = [made.generate([ask(text)])[0] for text in ("a", "b", "c")]
        assert [found.text for found in answers if isinstance(found, Response)] == ["A", "B", "C"]
        assert len(server.calls) == 3


def assert_met(one: Misbehaviour) -> None:
    """Send one request that the server misbehaves on, then two that it answers; check the outcome of each."""

    def choose(body: Body) -> Play:
        return one.play if "odd" in body["prompt"] else Whole(reply(good(body["prompt"].upper())))

    with hostile(choose) as server, model(server, timeout=1.0 if one.slow else 20.0) as made:
        begin = time.monotonic()
        try:
            [outcome] = made.generate([ask("odd")])
        except InputFault as fault:
            outcome = fault
        assert time.monotonic() - begin < 15  # no request waits for ever, but a busy machine needs some seconds
        asked = len(server.calls)
        assert_is(outcome, one)
        tries = 1 + RETRIES * (one.outcome is Outcome.AGAIN)
        assert asked == tries
        # Later requests receive their own answers.
        if not one.slow:
            answers = [found.text for found in made.generate([ask("a"), ask("b")]) if isinstance(found, Response)]
            assert answers == ["A", "B"]
        assert not any(b"cookie" in head.lower() for head in server.heads)
        assert KEY not in f"{outcome!r} {outcome} {made.served} {made.version}"
        assert all(len(who) < 400 and who.isprintable() for who in made.served)


def assert_is(outcome: Response | CtxbenchError, one: Misbehaviour) -> None:
    if one.outcome is Outcome.ANSWER:
        assert isinstance(outcome, Response) and accounted(outcome), outcome
        assert one.words in clean(outcome.text) and KEY[:16] not in outcome.text
        assert clean(outcome.text) == one.words or "key" in one.name or not one.words
        return
    kinds = {Outcome.TOO_LONG: TooLong, Outcome.SETTING: InputFault}
    assert type(outcome) is kinds.get(one.outcome, MachineFault), outcome
    line = str(outcome)
    assert one.words in line and "\n" not in line and len(line) < 700 and clean(line) == line and line.isprintable()
    assert KEY[:16] not in line


@pytest.mark.slow
def test_a_run_with_misbehaviours_on_every_second_sample_is_finished_later(tmp_path: Path) -> None:
    met = [one for one in MISBEHAVIOURS if not one.slow]
    settled, healed = threading.Event(), threading.Event()
    fine: list[int] = []

    def choose(body: Body) -> Play:
        number = int(body["prompt"].rstrip(" =").rpartition("_")[2])
        if number % 2 and not healed.is_set():
            # Before its first answer, a service that refuses every request counts as a wrong setting and ends the run.
            settled.wait(60)
            return met[number // 2].play
        fine.append(number)
        if len(fine) > LANES // 2:
            # This request comes from a thread that has already received an answer.
            settled.set()
        return Whole(reply(good(right(body["prompt"], body))))

    how = f"backoff=0.001, retries=1, concurrency={LANES}, timeout=30, whole=off, key_env=SERVER_KEY"
    with hostile(choose) as server:
        bench = Bench(tmp_path, server, repos=1, samples=2 * len(met))
        first = bench.run(how)
        failed = {int(fault.sample_id.rpartition("L")[2]) - FIRST_LINE for fault in first.faults}
        wanted = {2 * at + 1 for at, one in enumerate(met) if one.outcome is not Outcome.ANSWER}
        assert failed == wanted and len(first.faults) == first.missing == len(wanted)
        assert first.model_failed == 1  # the empty answer
        refused = [fault for fault in first.faults if fault.kind != "machine"]
        # A prompt over the model's window is a fault of its strategy.
        assert all("sent a prompt that the model cannot read" in fault.message for fault in refused), refused
        assert len(refused) == sum(one.outcome is Outcome.TOO_LONG for one in met)
        [table] = run_tables(bench.store)
        assert list(table.metrics["em"]).count(1.0) >= len(met)
        [(kept,)] = bench.rows("SELECT count(*) FROM generation")
        assert kept == first.scored + first.model_failed
        assert bench.rows("SELECT count(*), max(tokens_in) < 1000000 FROM generation WHERE tokens_in >= 0") == [
            (kept, 1)
        ]
        healed.set()
        asked = len(server.calls)
        second = bench.run(how)
        assert (second.missing, second.new, len(server.calls) - asked) == (0, first.missing, first.missing)
    bench.store.close()
    files = [path.read_bytes() for path in bench.home.root.rglob("*") if path.is_file()]
    assert files and not [data for data in files if KEY.encode() in data or KEY[:20].encode() in data]
