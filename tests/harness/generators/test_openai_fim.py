"""Fill in the middle by `openai`: whose marks, and where an answer ends."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from ctxbench.harness.generators import openai
from ctxbench.harness.generators.base import Request, Response, Sampling
from ctxbench.harness.generators.fim import filled
from ctxbench.harness.generators.openai import OpenAI
from ctxbench.strategies.api import Block, BlockKind, Prompt
from tests.helpers.openai_server import serving

AFTER = Block(kind=BlockKind.AFTER, text="\nprint(total)\n")


def model(**changes: Any) -> OpenAI:
    return openai.openai(**{"model": "Qwen/Qwen2.5-Coder-7B", "url": "http://127.0.0.1:1", **changes})


def ask(**changes: Any) -> Request:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="total = "),))
    how = Sampling(fim=True)
    return Request(prompt=prompt, language=PYTHON, kind=Kind.LINE, sampling=how, one_line=True, **changes)


def test_the_family_follows_from_the_name_or_the_spec() -> None:
    assert model().capabilities.fills and model().infilling().name == "qwen"
    assert model(model="mine", fim="starcoder").infilling().name == "starcoder"


def test_an_unknown_family_is_refused_at_once() -> None:
    with pytest.raises(InputFault, match="fim=nonsense is unknown"):
        model(fim="nonsense")


@pytest.mark.parametrize("said", ["sum(cart)<|fim_pad|>", "sum(cart)\nprint(total)\n", "sum(cart)"])
def test_marks_go_out_and_an_answer_ends_before_one(said: str) -> None:
    with (
        serving(answer=lambda *_: said, model="mine") as server,
        closing(model(model="mine", fim="qwen", url=server.url)) as made,
    ):
        [found] = made.generate([filled(made, ask(), AFTER)])
        [as_is] = made.generate([replace(ask(), sampling=Sampling(), one_line=False)])
    assert isinstance(found, Response) and found.text == "sum(cart)"
    assert server.calls[0]["prompt"] == "<|fim_prefix|>total = <|fim_suffix|>\nprint(total)\n<|fim_middle|>"
    assert "suffix" not in server.calls[0] and isinstance(as_is, Response) and as_is.text == said
