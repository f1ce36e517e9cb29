"""Every misbehaviour of a server is met by the request that it happens to, within its time, and by no other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from bench.errors import CtxbenchError, InputFault, MachineFault
from harness.generators import openai
from harness.generators.base import Response, TooLong, accounted
from harness.generators.openai.generator import OpenAI
from harness.store.rows import clean
from tests.harness.generators.test_openai import ask
from tests.helpers.misbehaviour import (
    KEY,
    MISBEHAVIOURS,
    Body,
    HostileServer,
    Misbehaviour,
    Outcome,
    Play,
    good,
    hostile,
    reply,
)

RETRIES = 1


@contextmanager
def model(server: HostileServer, **changes: Any) -> Iterator[OpenAI]:
    given = {"model": "tiny", "url": f"http://127.0.0.1:{server.port}", "backoff": 0.001, "retries": RETRIES}
    with closing(openai.openai(**{**given, "timeout": 20.0, "key_env": "SERVER_KEY", **changes})) as made:
        yield made


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)


def test_there_are_many_and_each_has_a_name_of_its_own() -> None:
    assert len(MISBEHAVIOURS) >= 50
    assert [name for name, times in Counter(one.name for one in MISBEHAVIOURS).items() if times > 1] == []


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in MISBEHAVIOURS])
def test_a_request_that_meets_it(one: Misbehaviour) -> None:
    def choose(body: Body) -> Play:
        return one.play if "odd" in body["prompt"] else reply(good(body["prompt"].upper()))

    with hostile(choose) as server, model(server, timeout=1.0 if one.slow else 20.0) as made:
        begin = time.monotonic()
        try:
            [outcome] = made.generate([ask("odd")])
        except InputFault as fault:
            outcome = fault
        assert time.monotonic() - begin < 15  # nothing waits for ever; a loaded machine takes its time
        asked = len(server.calls)
        assert_is(outcome, one)
        assert asked == 1 + RETRIES * (one.outcome is Outcome.AGAIN) or one.name == "always a little less room"
        assert asked < 20
        # Who asks next is answered, and with its own answer.
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
