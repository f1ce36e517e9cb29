"""The generator `openai` with several servers of one model: load, limits, servers that are lost and come back."""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.generators import openai, registry
from ctxbench.harness.generators.base import Response
from ctxbench.harness.generators.openai import OpenAI
from ctxbench.harness.generators.openai.faults import Problem
from ctxbench.harness.generators.openai.servers import difference
from tests.harness.generators.test_openai import ask
from tests.harness.generators.test_openai_run import Bench, kill, right
from tests.helpers.openai_server import Fault, Server, rate_limited, serving


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serving()) for _ in range(2)]


@pytest.fixture
def lines() -> Iterator[queue.SimpleQueue[str]]:
    """What is said of the servers."""
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    handler = logging.Handler()
    handler.emit = lambda record: said.put(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("ctxbench.harness.generators.openai.servers")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield said
    logger.removeHandler(handler)
    logger.setLevel(before)


def model(servers: list[Server], **changes: Any) -> closing[OpenAI]:
    urls = ",".join(server.url for server in servers)
    given = {"model": "tiny", "url": urls, "backoff": 0.001, "retries": 3, "timeout": 10.0, "concurrency": 2}
    return closing(openai.openai(**{**given, **changes}))


def texts(made: OpenAI, count: int) -> list[str]:
    answers = made.generate([ask(f"x{number} = ") for number in range(count)])
    assert all(isinstance(answer, Response) for answer in answers), answers
    return [answer.text for answer in answers if isinstance(answer, Response)]


# Who is asked


def test_each_server_gets_as_many_at_once_as_it_may(servers: list[Server]) -> None:
    for server in servers:
        server.delay = 0.02
    with model(servers) as made:
        assert made.capabilities.batch_size == 4
        assert texts(made, 24) == ["answer"] * 24
    assert [server.most for server in servers] == [2, 2]
    assert sum(len(server.calls) for server in servers) == 24 and min(len(server.calls) for server in servers) >= 6


def test_a_slow_server_gets_less(servers: list[Server]) -> None:
    servers[0].delay, servers[1].delay = 0.2, 0.001
    with model(servers) as made:
        texts(made, 40)
    assert len(servers[0].calls) < len(servers[1].calls)


def test_a_pause_that_one_server_asks_for_is_that_servers(servers: list[Server]) -> None:
    servers[0].faults = [rate_limited(200)]
    with model(servers) as made:
        assert texts(made, 6) == ["answer"] * 6
        asked = len(servers[0].calls)
        assert texts(made, 6) == ["answer"] * 6
        assert len(servers[0].calls) == asked


def test_a_server_that_asks_for_too_long_a_pause_is_no_trap_for_requests(servers: list[Server]) -> None:
    servers[0].faults = [rate_limited(3600)] * 1000
    servers[1].delay = 0.01
    with model(servers) as made:
        assert texts(made, 12) == ["answer"] * 12
        servers[1].faults = [rate_limited(3600)] * 1000
        [fault] = made.generate([ask()])
    assert isinstance(fault, MachineFault) and "status 429" in str(fault) and "tries" not in str(fault)


# Servers that are lost


def test_a_lost_servers_requests_go_to_the_others_without_a_pause(
    servers: list[Server], lines: queue.SimpleQueue[str]
) -> None:
    with model(servers, retries=0, backoff=1000.0) as made:
        texts(made, 4)
        servers[0].stop()
        assert texts(made, 20) == ["answer"] * 20
    assert lines.get(timeout=10) == "tiny: 2 of 2 servers answer"
    said = lines.get(timeout=10)
    assert re.fullmatch(
        rf"tiny: 1 of 2 servers answers; {servers[0].url} is lost \(.+\), the others get its requests", said
    )


@pytest.mark.slow
def test_a_server_that_comes_back_is_asked_again(servers: list[Server], lines: queue.SimpleQueue[str]) -> None:
    with model(servers) as made:
        texts(made, 2)
        servers[1].stop()
        # Busy, so that some of the requests go to the other one, however fast the machine is.
        servers[0].delay = 0.1
        texts(made, 8)
        servers[1].start()
        while (said := lines.get(timeout=20)) != f"tiny: 2 of 2 servers answer; {servers[1].url} is back":
            assert said
        before = len(servers[1].calls)
        texts(made, 8)
        assert len(servers[1].calls) > before


def test_a_server_that_is_not_there_at_the_start(servers: list[Server], lines: queue.SimpleQueue[str]) -> None:
    servers[1].stop()
    with model(servers) as made:
        assert texts(made, 4) == ["answer"] * 4
    assert f"tiny: 1 of 2 servers answers; not {servers[1].url}: no connection" in lines.get(timeout=10)


def test_a_server_that_only_fails_is_no_trap_for_requests(servers: list[Server]) -> None:
    """It has always room, because it answers at once."""
    servers[0].faults = [Fault(status=500)] * 1000
    servers[1].delay = 0.01
    with model(servers, retries=0) as made:
        assert texts(made, 30) == ["answer"] * 30
    assert len(servers[0].calls) <= 10


def test_one_prompt_that_no_server_can_answer_ends_alone(servers: list[Server]) -> None:
    def fails(prompt: str, _: object) -> str:
        return "" if "poison" in prompt else "answer"

    def break_(body: dict[str, Any]) -> None:
        if body["choices"][0]["text"] == "":
            body.clear()

    for server in servers:
        server.answer, server.faults = fails, [Fault(change=break_)] * 1000
    with model(servers, retries=2) as made:
        answers = made.generate([ask("poison" if number == 5 else f"x{number}") for number in range(12)])
        assert [number for number, answer in enumerate(answers) if isinstance(answer, MachineFault)] == [5]
        assert "(3 tries)" in str(answers[5])
    poisoned = [call for server in servers for call in server.calls if call["prompt"] == "poison"]
    assert 3 <= len(poisoned) <= 6


def test_without_any_server_a_request_has_a_fault_and_no_answer(servers: list[Server]) -> None:
    for server in servers:
        server.stop()
    with model(servers) as made:
        [fault] = made.generate([ask()])
    assert isinstance(fault, MachineFault) and "no connection" in str(fault) and "(4 tries)" in str(fault)


def test_where_no_server_answers_each_is_tried(servers: list[Server]) -> None:
    for server in servers:
        server.stop()
    with model(servers) as made:
        [fault] = made.generate([ask()])
        assert isinstance(fault, MachineFault)
        servers[1].start()
        assert texts(made, 1) == ["answer"]


@pytest.mark.slow
def test_a_server_that_comes_back_with_another_model_stays_out(
    servers: list[Server], lines: queue.SimpleQueue[str]
) -> None:
    with model(servers) as made:
        texts(made, 4)
        servers[0].model = "large"
        assert texts(made, 12) == ["answer"] * 12
        while (said := lines.get(timeout=20)) != (
            f"tiny: 1 of 2 servers answers; {servers[0].url} serves large and not tiny"
        ):
            assert said
        asked = len(servers[0].calls)
        texts(made, 6)
        # Not even where no other answers: its name is right again, its weights are not.
        servers[0].model, servers[0].root = "tiny", "/models/tiny-v2"
        while "serve different models as tiny: root is 'tiny' and 'tiny-v2'" not in lines.get(timeout=20):
            pass
        servers[1].stop()
        [fault] = made.generate([ask()])
        assert isinstance(fault, MachineFault) and len(servers[0].calls) == asked


@pytest.mark.slow
def test_servers_that_start_after_the_run_are_compared_before_they_are_asked(
    servers: list[Server], lines: queue.SimpleQueue[str]
) -> None:
    for server, weights in zip(servers, ("first", "second"), strict=True):
        server.answer, server.root, server.delay = (lambda *_, said=weights: said), f"/models/{weights}", 0.1
        server.stop()
    answers: list[str] = []
    with model(servers, concurrency=1, backoff=0.05, retries=8) as made:
        asking = threading.Thread(target=lambda: answers.extend(texts(made, 6)))
        asking.start()
        assert "0 of 2 servers answer" in lines.get(timeout=20)
        for server in servers:
            server.start()
        asking.join(60)
        while "serve different models as tiny: root is" not in lines.get(timeout=20):
            pass
    assert len(answers) == 6 and len(set(answers)) == 1
    assert sorted(len(server.calls) for server in servers) == [0, 6]


def test_a_server_that_is_there_again_with_other_weights_gets_nothing_though_no_other_answers(
    servers: list[Server],
) -> None:
    with model(servers, backoff=0.01) as made:
        texts(made, 4)
        for server in servers:
            server.stop()
        [fault] = made.generate([ask()])
        assert isinstance(fault, MachineFault) and "no connection" in str(fault)
        asked = [len(server.calls) for server in servers]
        for server in servers:
            server.root = "/models/tiny-v2"
            server.start()
            [fault] = made.generate([ask()])
            assert isinstance(fault, MachineFault)
        assert "serve different models as tiny: root is 'tiny' and 'tiny-v2'" in str(fault)
        assert [len(server.calls) for server in servers] == asked
        for server in servers:
            server.root = ""
        assert texts(made, 4) == ["answer"] * 4


def test_an_answer_from_before_it_was_lost_brings_no_server_back(servers: list[Server]) -> None:
    with model(servers) as made, made._client._servers.lease(()) as server:
        servers[0].stop()
        away = Problem(fault=MachineFault("no connection", where="tiny", cure="start it"), again=True, away=True)
        assert made._client._servers.moves(server, away, {server})
        made._client._servers.answered(server)
        assert server.lost == "no connection"


def test_what_a_server_with_another_model_listed_is_no_measure(servers: list[Server]) -> None:
    for server in servers:
        server.stop()
    with model(servers, backoff=0.01, retries=2) as made:
        [fault] = made.generate([ask()])
        assert isinstance(fault, MachineFault)
        for server in servers:
            server.model = "large"
            server.start()
        # Nothing was ever answered: the run ends, as it does where servers differ at the start.
        with pytest.raises(InputFault, match="serves large and not tiny .*; serve tiny everywhere"):
            made.generate([ask()])
        for server in servers:
            server.model = "tiny"
        assert texts(made, 4) == ["answer"] * 4


def test_a_server_is_compared_with_all_that_listed_something(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers[0], "reply", lambda path, *_: (200, {"data": [{"id": "tiny"}]}))
    with serving(root="/models/tiny-v2") as third, model([*servers, third]) as made:
        with pytest.raises(InputFault, match="root is 'tiny' and 'tiny-v2'") as caught:
            made.generate([ask()])
        assert f"{servers[1].url} and {third.url} serve" in str(caught.value)


def test_closing_ends_requests_that_wait_for_a_server(servers: list[Server]) -> None:
    for server in servers:
        server.faults = [rate_limited(200)] * 9
    with model(servers, concurrency=1) as made:
        results: list[object] = []
        asking = threading.Thread(target=lambda: results.extend(made.generate([ask("a"), ask("b"), ask("c")])))
        asking.start()
        until = time.monotonic() + 20
        while not all(server.calls for server in servers) and time.monotonic() < until:
            time.sleep(0.002)
        made.close()
        asking.join(10)
    assert len(results) == 3 and all(isinstance(result, MachineFault) for result in results)


# One model


def test_servers_of_different_models_are_refused_in_one_line(servers: list[Server]) -> None:
    servers[1].model = "large"
    with model(servers) as made, pytest.raises(InputFault) as caught:
        made.generate([ask()])
    assert str(caught.value) == (
        f"tiny at {servers[0].url} and 1 more: {servers[1].url} serves large and not tiny; "
        "serve tiny everywhere, or leave that address out"
    )
    assert not servers[0].calls and not servers[1].calls


@pytest.mark.parametrize(
    ("here", "there", "words"),
    [
        ({"root": "/disk1/tiny"}, {"root": "/disk2/tiny/"}, ""),
        ({"root": "/m/tiny"}, {"root": "/m/tiny-v2"}, "different models as tiny: root is 'tiny' and 'tiny-v2'"),
        ({"max_model_len": 4096}, {"max_model_len": 2048}, "max_model_len is 4096 and 2048"),
        ({"max_model_len": 4096}, {}, ""),
        ({"meta": {"n_params": 1}}, {"meta": {"n_params": 2}}, "meta.n_params is 1 and 2"),
        ({"meta": None, "root": 7}, {"meta": [], "root": None}, ""),
    ],
)
def test_what_servers_list_tells_models_apart(here: dict[str, Any], there: dict[str, Any], words: str) -> None:
    first, second = ("http://a/v1", [{"id": "tiny", **here}]), ("http://b/v1", [{"id": "tiny", **there}])
    said = difference("tiny", first, second)
    assert words in said and bool(said) == bool(words)
    assert difference("tiny", first, ("http://b/v1", [])) == ""
    assert difference("tiny", first, ("http://b/v1", ["odd", {"id": None}])).startswith("http://b/v1 serves")


# What a spec says


def test_servers_are_no_part_of_a_runs_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled = "openai(concurrency=4, model=tiny, url='http://a:1,http://b:2')"
    short = "openai:tiny@http://a:1,http://b:2(concurrency=4)"
    assert {
        registry.canonical(spec) for spec in (spelled, short, "openai:tiny@http://c/v1,http://d", "openai:tiny@servers")
    } == {"openai(model=tiny, url=servers)"}
    # One address is what it always was.
    assert registry.canonical("openai:tiny@http://a:1") == "openai(model=tiny, url=http://a:1)"
    monkeypatch.delenv("CTXBENCH_SERVERS", raising=False)
    with pytest.raises(InputFault, match="CTXBENCH_SERVERS is not set; export CTXBENCH_SERVERS="):
        registry.resolve("openai(model=tiny, url=servers)")
    monkeypatch.setenv("CTXBENCH_SERVERS", "http://a:1, http://b:2,http://a:1/v1")
    made = registry.resolve("openai(model=tiny, url=servers)")
    assert isinstance(made, OpenAI) and made._settings.where == "tiny at http://a:1/v1 and 1 more"
    assert made.capabilities.batch_size == 32


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        ("http://a,", "the url is none"),
        ("http://a,b", "the url is none"),
        ("http://a,http://me:secret@b", "a key or a password"),
        ("http://a,https://api.openai.com/v1", "OpenAI's own service is one of several; name it alone"),
    ],
)
def test_addresses_that_cannot_be_used(urls: str, words: str) -> None:
    with pytest.raises(InputFault, match=words) as caught:
        registry.resolve(f"openai(model=tiny, url='{urls}')")
    assert "secret" not in str(caught.value)


def test_a_secret_goes_over_plain_http_to_no_other_machine() -> None:
    with pytest.raises(InputFault, match="MY_KEY would go over plain http"):
        registry.resolve("openai(model=tiny, url='http://127.0.0.1:1,http://gpu2:1', key_env=MY_KEY)")


# A run


@pytest.mark.slow
def test_a_run_that_loses_a_server_is_whole_and_goes_on_with_others(tmp_path: Path) -> None:
    with serving(answer=right, delay=0.01) as first, serving(answer=right, delay=0.01) as second:
        bench = Bench(tmp_path, first)
        killer = kill(first, after=10, back=None)
        summary = bench.run(urls=f"{first.url},{second.url}")
        killer.join(30)
        assert (summary.scored, summary.model_failed, summary.missing) == (40, 0, 0)
        assert (
            bench.rows("SELECT text, count(*) > 0 FROM generation WHERE text NOT LIKE 'apply_tax(cart_%' GROUP BY text")
            == []
        )
        asked = len(second.calls)
        # The same run by other servers: nothing is left to ask.
        again = bench.run(urls=f"{second.url},http://127.0.0.1:9")
        assert (again.run, again.new) == (summary.run, 0) and len(second.calls) == asked
        bench.store.close()
