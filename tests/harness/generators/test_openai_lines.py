"""The end of `openai` answers: after their line, or before the marks of a filled middle."""

import functools
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from ctxbench.harness.generators import answers, openai
from ctxbench.harness.generators.answers import End
from ctxbench.harness.generators.base import Request, Response, Sampling
from ctxbench.harness.generators.fim import filled
from ctxbench.harness.generators.openai import OpenAI
from ctxbench.strategies.api import Block, BlockKind, Prompt
from tests.harness.generators.test_openai import model
from tests.harness.generators.test_openai import one as answer
from tests.helpers.openai_server import LLAMA_CPP, VLLM, Server, serving
from tests.helpers.requests import make_request

ANSWERS = [
    "sum(cart)\nprint(total)\n",
    "\n    sum(cart)\nprint(total)\n",
    "   \n\n  \tx\n\ny\n",
    "sum(cart)",
    "sum(cart)\n",
    "",
    "\n\n  \n",
    "one\r\ntwo\r\n",
    "x\u2028y\nz",
    "word " * 200,
    "\n" + "word " * 200,
]


ask = functools.partial(make_request, one_line=True)


def one(server: Server, request: Request, **changes: Any) -> Response:
    with model(server, **changes) as made:
        return answer(made, request)


@pytest.mark.parametrize("keeps_stop", [False, True])
@pytest.mark.parametrize("shape", [VLLM, LLAMA_CPP])
def test_a_stopped_answer_is_the_whole_answer_cut_at_its_line(shape: str, keeps_stop: bool) -> None:
    for said in ANSWERS:
        with serving(answer=lambda *_, said=said: said, shape=shape, keeps_stop=keeps_stop) as server:
            stopped = one(server, ask())
            whole = one(server, ask(), extra='{"stop": null}')
            uncut = one(server, ask(one_line=False))
        assert (stopped.text, stopped.finish) == (whole.text, whole.finish)
        assert stopped.text == uncut.text[: End(line=True).find(uncut.text)]
        assert whole.tokens_out == uncut.tokens_out


def test_an_answer_that_begins_blank_is_requested_again_and_both_are_counted() -> None:
    with serving(answer=lambda *_: ANSWERS[1], cached=1) as server:
        found = one(server, ask())
        whole = one(server, ask(one_line=False))
    assert found.text == "\n    sum(cart)" and [call.get("stop") for call in server.calls] == [["\n"], None, None]
    assert found.tokens_in == 2 * whole.tokens_in and found.tokens_out == 1 + whole.tokens_out
    assert found.cached == 2 and found.seconds > 0


def test_blanks_up_to_the_token_limit_are_not_requested_again() -> None:
    with serving(answer=lambda *_: "\t", finish="length") as server:
        assert one(server, ask()).finish == "length"
    assert len(server.calls) == 1


def test_a_requests_own_stop_texts_are_kept() -> None:
    with serving(answer=lambda *_: "a # b\n") as server:
        assert one(server, ask(stop=("#",))).text == "a "
    assert server.calls[0]["stop"] == ["#", "\n"]


@pytest.mark.parametrize(
    ("changes", "sampling"),
    [
        ({"endpoint": "chat"}, {}),
        ({}, {"temperature": 0.5}),
        ({"extra": '{"stop": ["END"]}'}, {}),
        ({"extra": '{"temperature": null}'}, {}),
        ({"extra": '{"temperature": 0.8}'}, {}),
    ],
)
def test_other_answers_are_not_stopped_by_the_server(changes: dict[str, Any], sampling: dict[str, Any]) -> None:
    with serving(answer=lambda *_: ANSWERS[1]) as server:
        found = one(server, ask(**sampling), **changes)
    assert len(server.calls) == 1 and "\n" not in server.calls[0].get("stop", ())
    # Drawn answers are cut like greedy ones, but a chat model's answer is not.
    assert found.text == (ANSWERS[1] if "endpoint" in changes else "\n    sum(cart)")


def test_an_answer_that_the_spec_makes_greedy_is_stopped() -> None:
    with serving(answer=lambda *_: ANSWERS[0]) as server:
        one(server, ask(temperature=0.5), extra='{"temperature": 0}')
    assert server.calls[0]["stop"] == ["\n"]


@given(st.text(alphabet=" \t\n\r\x0b\u2028ab", max_size=12))
def test_a_line_ends_at_the_same_place_as_with_local_models(text: str) -> None:
    assert answers.end(text) == End(line=True).find(text)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("```python\nsum(cart)\n```", "sum(cart)\n"),
        ("\n```\nsum(cart)\nprint(total)", "sum(cart)\nprint(total)"),
        ("<output_start>\n```python\nsum(cart)\n```\n<output_end>", "sum(cart)\n"),
        ("```python\n<output_start>sum(cart)<output_end>\n```", "sum(cart)"),
        ("```python\nsum(cart)\n```\nor\n```python\n0\n```", "sum(cart)\n"),
        ('"```python\\n" + cart', '"```python\\n" + cart'),
        ("sum(cart)\n```python\n0\n```", "sum(cart)\n```python\n0\n```"),
        ("`sum`", "`sum`"),
        ("```", "```"),
        ("Here:\n<output_start>\n1;\n</output_end>bye", "\n1;\n"),
        ("<output_start>1;</output_start>", "1;"),
        ("<output_start>1;", "1;"),
        ("1;<output_end>", "1;"),
        ("", ""),
    ],
)
def test_a_chat_models_line_is_taken_from_its_fence_and_tags(said: str, code: str) -> None:
    with serving(answer=lambda *_: said) as server:
        assert one(server, ask(), endpoint="chat").text == code
        function = Request(prompt=ask().prompt, language=PYTHON, kind=Kind.FUNCTION)
        assert one(server, function, endpoint="chat").text == said


AFTER = Block(kind=BlockKind.AFTER, text="\nprint(total)\n")


def middle_model(**changes: Any) -> OpenAI:
    return openai.openai(**{"model": "Qwen/Qwen2.5-Coder-7B", "url": "http://127.0.0.1:1", **changes})


def ask_for_middle(**changes: Any) -> Request:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="total = "),))
    how = Sampling(fim=True)
    return Request(prompt=prompt, language=PYTHON, kind=Kind.LINE, sampling=how, one_line=True, **changes)


def test_the_family_comes_from_the_models_name_or_the_spec() -> None:
    assert middle_model().capabilities.fills and middle_model().infilling().name == "qwen"
    assert middle_model(model="mine", fim="starcoder").infilling().name == "starcoder"


def test_an_unknown_family_is_refused_at_once() -> None:
    with pytest.raises(InputFault, match="fim=nonsense is unknown"):
        middle_model(fim="nonsense")


@pytest.mark.parametrize("said", ["sum(cart)<|fim_pad|>", "sum(cart)\nprint(total)\n", "sum(cart)"])
def test_marks_are_sent_and_an_answer_ends_before_the_next_mark(said: str) -> None:
    with (
        serving(answer=lambda *_: said, model="mine") as server,
        closing(middle_model(model="mine", fim="qwen", url=server.url)) as made,
    ):
        [found] = made.generate([filled(made, ask_for_middle(), AFTER)])
        [as_is] = made.generate([replace(ask_for_middle(), sampling=Sampling(), one_line=False)])
    assert isinstance(found, Response) and found.text == "sum(cart)"
    assert server.calls[0]["prompt"] == "<|fim_prefix|>total = <|fim_suffix|>\nprint(total)\n<|fim_middle|>"
    assert "suffix" not in server.calls[0] and isinstance(as_is, Response) and as_is.text == said
