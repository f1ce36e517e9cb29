"""The generator `openai` with a server that answers, fails and breaks off as planned."""

import functools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.generators import base, openai
from ctxbench.harness.generators.base import Request, Response, TooLong
from ctxbench.harness.generators.conformance import check
from ctxbench.harness.generators.openai import OpenAI
from ctxbench.strategies.api import BlockKind
from tests.helpers.openai_server import LLAMA_CPP, OPENAI, VLLM, VLLM_OLD, Fault, Server, rate_limited, raw, serving
from tests.helpers.requests import make_request

KEY = "sk-test-5Zq8-secret"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


ask = functools.partial(make_request, block=BlockKind.TEXT)


@contextmanager
def model(server: Server, **changes: Any) -> Iterator[OpenAI]:
    given = {"model": "tiny", "url": server.url, "backoff": 0.001, "retries": 3, "timeout": 10.0}
    with closing(openai.openai(**{**given, **changes})) as made:
        yield made


def one(made: OpenAI, request: Request | None = None) -> Response:
    [found] = made.generate([request or ask()])
    assert isinstance(found, Response), found
    return found


def fault(made: OpenAI, request: Request | None = None) -> MachineFault:
    [found] = made.generate([request or ask()])
    assert isinstance(found, MachineFault), found
    assert "\n" not in str(found) and found.cure
    return found


# Answers


def test_an_answer_has_its_tokens_and_seconds() -> None:
    with serving(answer=lambda prompt, _: f"sum({prompt.split()[0]})", cached=2) as server, model(server) as made:
        answer = one(made)
    assert (answer.text, answer.finish, answer.tokens_in, answer.tokens_out) == ("sum(total)", "stop", 3, 4)
    assert answer.cached == 2 and 0 < answer.seconds < 10
    assert server.calls == [{"model": "tiny", "prompt": "total = ", "max_tokens": 128, "temperature": 0.0}]


def test_a_chat_model_receives_instructions_to_continue_a_line() -> None:
    said = "Sure!\n<output_start>sum(cart)<output_end> Hope it helps."
    with serving(answer=lambda *_: said) as server, model(server, endpoint="chat") as made:
        assert one(made, ask(block=BlockKind.INFILE)).text == "sum(cart)"
        assert one(made, ask()).text == said
    asked, bare = (call["messages"][0]["content"] for call in server.calls)
    assert "the special tokens <output_start> and <output_end>.\n\nHere is the code prefix:\n\ntotal = \n\n" in asked
    assert bare == "total = "


def test_the_seed_of_a_drawn_answer_depends_on_its_index() -> None:
    with serving() as server, model(server) as made:
        for index in (0, 1, 0):
            one(made, ask(index=index, temperature=0.8, top_p=0.95, seed=7, stop=("\n",)))
        one(made, ask(index=1, seed=7))
    first, second, again, greedy = server.calls
    assert first == again and {**first, "seed": 0} == {**second, "seed": 0}
    assert first["seed"] != second["seed"] and 0 <= first["seed"] < 2**31
    assert (first["temperature"], first["top_p"], first["stop"]) == (0.8, 0.95, ["\n"])
    assert not {"seed", "top_p", "stop"} & set(greedy)


def test_any_text_can_be_sent() -> None:
    with serving(answer=lambda prompt, _: prompt) as server, model(server) as made:
        assert one(made, ask("é 漢 \u2028 \0 \U0001f600")).text == "é 漢 \u2028 \0 \U0001f600"
        assert one(made, ask("half \ud800 character")).text == "half ? character"
    assert server.headers[0]["Content-Type"] == "application/json"


def test_the_served_model_is_recorded_if_the_server_reports_more_than_the_spec() -> None:
    dated = Fault(change=lambda body: body.update(model="tiny-2026-11-01", system_fingerprint=None))
    with serving(shape=OPENAI, faults=[None, dated]) as server, model(server) as made:
        assert made.served == ()
        for _ in range(3):
            one(made)
        assert made.served == ("tiny (fp_1)", "tiny-2026-11-01")
    with serving(shape=VLLM) as server, model(server) as made:
        one(made)
        assert made.served == ()


def test_a_refusal_is_the_answer() -> None:
    def refuse(body: dict[str, Any]) -> None:
        body["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": "No."}

    with serving(faults=[Fault(change=refuse)]) as server, model(server, endpoint="chat") as made:
        assert one(made).text == "No."


# Concurrent requests


@pytest.mark.slow
def test_sixty_four_requests_are_sent_at_once() -> None:
    together = threading.Barrier(64)

    def answer(prompt: str, _: object) -> str:
        # Each answer waits until 64 requests have arrived.
        together.wait(20)
        return prompt.upper()

    with serving(answer=answer) as server, model(server, concurrency=64, timeout=60) as made:
        answers = made.generate([ask(f"t{number}") for number in range(128)])
    assert [answer.text for answer in answers if isinstance(answer, Response)] == [f"T{n}" for n in range(128)]
    assert server.most == 64 == made.capabilities.batch_size


def test_callers_share_the_concurrency_limit() -> None:
    with serving(delay=0.05) as server, model(server, concurrency=3) as made, ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: made.generate([ask(str(n)), ask(f"x{n}")]), range(6)))
    assert len(server.calls) == 12 and server.most == 3


@pytest.mark.slow
def test_waiting_for_a_free_connection_does_not_count_as_server_time() -> None:
    slow, pool = serving(delay=0.5), ThreadPoolExecutor(6)
    with slow as server, model(server, concurrency=1, timeout=2, retries=0) as made, pool:
        found = list(pool.map(lambda n: one(made, ask(str(n))), range(6)))
    assert len(found) == 6 and max(answer.seconds for answer in found) < 2


# Faults that pass


@pytest.mark.parametrize(
    "planned",
    [
        Fault(status=500),
        Fault(status=503, text="<html>busy</html>"),
        rate_limited(0),
        Fault(cut=True),
        Fault(drop=True),
        raw('{"choices": [{"text": "half'),
        raw("[" * 100_000),
        Fault(change=lambda body: body["choices"][0].update(finish_reason="abort")),
    ],
)
def test_a_fault_that_passes_is_tried_again(planned: Fault) -> None:
    with serving(faults=[planned, planned]) as server, model(server) as made:
        assert one(made).text == "answer"
    assert len(server.calls) == 3 and server.calls[0] == server.calls[2]


@pytest.mark.slow
@pytest.mark.parametrize("planned", [Fault(stall=60), Fault(drip=0.05)])
def test_an_answer_that_never_arrives_is_a_timeout(planned: Fault) -> None:
    with serving(faults=[planned] * 2) as server, model(server, timeout=0.3, retries=1) as made:
        begin = time.monotonic()
        assert "sent no answer within 0.3 s (2 tries)" in str(fault(made))
        assert time.monotonic() - begin < 15
        assert one(made).text == "answer"


def test_all_requests_wait_for_retry_after() -> None:
    with serving(faults=[rate_limited(0.4)]) as server, model(server) as made:
        first = threading.Thread(target=made.generate, args=([ask("a")],))
        first.start()
        until = time.monotonic() + 10
        while not made._client._not_before and time.monotonic() < until:
            time.sleep(0.005)
        one(made, ask("b"))
        first.join(10)
    assert len(server.calls) == 3
    assert all(later - server.times[0] >= 0.39 for later in server.times[1:])


def test_a_server_that_requests_too_long_a_wait_is_a_fault() -> None:
    with serving(faults=[rate_limited(3600)]) as server, model(server) as made:
        assert "lower concurrency=16" in str(fault(made))
    assert len(server.calls) == 1


def test_pauses_between_tries_double() -> None:
    with serving(faults=[Fault(status=500)] * 4) as server, model(server, backoff=0.1, retries=3) as made:
        fault(made)
    gaps = [later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)]
    assert all(gap >= least for gap, least in zip(gaps, (0.05, 0.1, 0.2), strict=True))


def test_a_server_that_starts_later_is_used() -> None:
    server = Server()
    server.start()
    server.stop()
    with model(server, retries=0) as made:
        assert "cannot be reached" in str(fault(made))
        server.start()
        try:
            assert one(made).text == "answer"
            server.stop()
            assert "check the server" in str(fault(made))
            server.start()
            assert one(made).text == "answer"
        finally:
            server.stop()


def test_a_server_that_was_never_reached_is_not_tried_again() -> None:
    server = Server()
    server.start()
    server.stop()
    with model(server, retries=99) as made:
        first = str(fault(made))
        assert "cannot be reached" in first and "check the address" in first and "tries" not in first


@pytest.mark.parametrize("first", [None, Fault(cut=True), Fault(drop=True)], ids=["answers", "breaks-off", "hangs-up"])
def test_a_server_that_was_reached_before_is_tried_again(first: Fault | None) -> None:
    with serving(faults=[first] * 4 if first else []) as server, model(server, backoff=0.05, retries=3) as made:
        assert isinstance(made.generate([ask()])[0], MachineFault if first else Response)
        server.stop()
        assert "(4 tries)" in str(found := fault(made)) and "cannot be reached" in str(found)


def test_closing_ends_the_wait_for_another_try() -> None:
    with serving(faults=[Fault(status=500)] * 9) as server, model(server, backoff=60) as made:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.extend(made.generate([ask()])))
        thread.start()
        while not server.calls:
            time.sleep(0.005)
        made.close()
        thread.join(5)
    assert not thread.is_alive() and isinstance(found[0], MachineFault)


# Faults that do not pass


@pytest.mark.parametrize("shape", [VLLM, VLLM_OLD, OPENAI, LLAMA_CPP])
def test_a_prompt_over_the_window_is_recognised(shape: str) -> None:
    with serving(window=50, shape=shape) as server, model(server) as made:
        found = fault(made, ask("word " * 60, max_tokens=8))
        assert isinstance(found, TooLong) and "smaller window" in found.cure
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "other"}, "The model `other` does not exist"),
        ({"url": "URL/v2"}, "the model or the address does not exist (status 404): Not Found"),
    ],
)
def test_a_fault_in_the_settings_ends_the_run(changes: dict[str, Any], words: str) -> None:
    with serving() as server:
        changes = {key: value.replace("URL", server.url[:-3]) for key, value in changes.items()}
        with model(server, concurrency=2, **changes) as made, pytest.raises(InputFault) as caught:
            made.generate([ask(str(number)) for number in range(40)])
    assert words in str(caught.value) and "check the url" in caught.value.cure
    # Only requests under way, and a few that had just begun, were sent.
    assert len(server.calls) < 20


def test_a_chat_model_at_the_wrong_endpoint_is_refused_with_a_cure() -> None:
    text = '{"error": {"message": "This is a chat model and not supported in the v1/completions endpoint."}}'
    with (
        serving(faults=[Fault(status=404, text=text)]) as server,
        model(server) as made,
        pytest.raises(InputFault) as caught,
    ):
        made.generate([ask()])
    assert caught.value.cure == "set endpoint=chat"


# The key


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    with serving(key=KEY) as server, model(server, key_env="MY_KEY") as made:
        assert one(made).text == "answer"
        assert KEY not in f"{made.version} {made.served}"
    with serving() as server, model(server) as made:
        one(made)
        assert "Authorization" not in server.headers[0]


def test_a_wrong_key_is_not_shown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with (
        serving(key="another") as server,
        model(server, key_env="OPENAI_API_KEY") as made,
        pytest.raises(InputFault) as caught,
    ):
        made.generate([ask()])
    assert "export a valid key as OPENAI_API_KEY" in str(caught.value) and "Incorrect API key" in str(caught.value)
    assert KEY not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r} {caplog.text}"


@pytest.mark.parametrize("bad", ["two words", "line\nend", "schlüssel"])
def test_an_invalid_key_is_refused_and_not_sent(monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", bad)
    with serving() as server, model(server, key_env="OPENAI_API_KEY") as made, pytest.raises(InputFault) as caught:
        made.generate([ask()])
    assert bad not in str(caught.value) and not server.calls


def test_the_official_service_needs_a_key() -> None:
    with closing(openai.openai(model="gpt-4o-mini")) as made, pytest.raises(InputFault, match="OPENAI_API_KEY is not"):
        made.generate([ask()])


# Specs


def test_the_short_spec_equals_the_long_one() -> None:
    short = "openai:Qwen/Qwen2.5-Coder-7B@http://localhost:8000/v1"
    assert base.canonical(short) == "openai(model=Qwen/Qwen2.5-Coder-7B, url=http://localhost:8000/v1)"
    assert base.canonical(f"{short}(endpoint=auto, retries=8)") == base.canonical(short)
    machine = "concurrency=64, timeout=9, retries=2, backoff=1, key_env=MY_KEY"
    assert base.canonical(f"{short}({machine}, window=9)") == base.canonical(f"{short}(window=9)")
    made = base.resolve(f"{short}(endpoint=chat, revision=a1b2)")
    assert (made.capabilities.instructs, made.version, made.capabilities.batch_size) == (True, "3-a1b2", 16)


@pytest.mark.parametrize("changes", [{}, {"endpoint": "chat"}, {"bits": True}])
def test_openai_passes_the_conformance_checks(changes: dict[str, Any]) -> None:
    def answer(prompt: str, _: object) -> str:
        return prompt.split(maxsplit=1)[0] + " + 1"

    with serving(answer=answer) as server, model(server, **changes) as made:
        findings = check(made)
    assert [finding for finding in findings if not finding.passed] == []
    names = [finding.name for finding in findings]
    assert {finding.detail for finding in findings if finding.name == "names the model"} == {"only the spec"}
    assert "answers side by side" in names and ("measures texts" in names) == ("bits" in changes)
