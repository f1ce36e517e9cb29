"""What the generator `openai` says while it waits: which server, which try, how long still."""

from __future__ import annotations

import logging
import queue
import re
import threading

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.harness.cli.progress import remarks
from ctxbench.harness.generators.openai.client import NEXT_LINE_AFTER, SLOW, TROUBLED, ServerPatience
from ctxbench.harness.generators.registry import resolve
from tests.harness.generators.test_openai import ask
from tests.helpers.openai_server import Server

WHERE = "tiny at http://127.0.0.1:9/v1"


def patience() -> ServerPatience:
    return ServerPatience(WHERE, most=9, timeout=300.0)


def test_nothing_is_said_of_a_server_that_answers_soon() -> None:
    made = patience()
    with made.request() as request:
        assert not made.line(request.since + SLOW - 1)
    assert not made.line(request.since + 10 * SLOW)


def test_a_server_that_fails_is_named_with_the_try_and_the_time_left() -> None:
    made = patience()
    with made.request() as request:
        request.failed("no connection (Connection refused)", until=request.since + 63)
        assert not made.line(request.since + TROUBLED - 1)
        said = made.line(request.since + TROUBLED + 1)
        assert said == (
            f"waiting for {WHERE}: no connection (Connection refused); try 2 of 9, given up in about 60 s; "
            "1 request waits"
        )
        # A line now and then, however many wait.
        with made.request():
            assert not made.line(request.since + TROUBLED + NEXT_LINE_AFTER)
            request.failed("status 503: loading", until=request.since + 90)
            said = made.line(request.since + TROUBLED + NEXT_LINE_AFTER + 1)
        assert "status 503: loading; try 3 of 9, given up in about 77 s; 2 requests wait" in said


def test_a_server_that_takes_long_is_named_too() -> None:
    made = patience()
    with made.request() as request:
        said = made.line(request.since + SLOW)
    assert said == (
        f"waiting for {WHERE}: no answer for 30 s; 1 request waits, each for 300 s at most before it is tried again"
    )


def test_answers_to_others_are_news() -> None:
    made = patience()
    with made.request() as request, made.request():
        made.answered()
        assert not made.line(request.since + SLOW - 1)


@pytest.mark.slow
def test_a_dead_server_is_not_waited_for_in_silence() -> None:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    handler = logging.Handler()
    handler.emit = lambda record: lines.put(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("ctxbench.harness.generators")
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    server = Server()
    server.start()
    server.stop()
    made = resolve(f"openai(model=tiny, url={server.url})")
    asking = threading.Thread(target=made.generate, args=([ask("x = ")],))
    asking.start()
    try:
        said = lines.get(timeout=60)
    finally:
        made.close()
        asking.join()
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert re.search(r"waiting for tiny at http://127\.0\.0\.1:\d+/v1: no connection \(.*refused\); try \d of 9", said)


def test_commands_write_what_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with remarks():
        logging.getLogger("ctxbench.harness.generators.openai.client").info("waiting for tiny")
    assert capsys.readouterr().err == "waiting for tiny\n"


@pytest.mark.parametrize("words", ["window=TOKENS", "tokenizer=FOLDER", "longer context"])
def test_the_cure_of_a_prompt_that_is_too_long(words: str) -> None:
    server = Server(window=4)
    server.start()
    made = resolve(f"openai(model=tiny, url={server.url})")
    try:
        [found] = made.generate([ask("x = 1\n" * 99)])
    finally:
        made.close()
        server.stop()
    assert isinstance(found, MachineFault) and words in found.cure
