"""`ctxbench generator check`: checks and abilities, as words."""

from __future__ import annotations

import re

import pytest

from ctxbench.harness.generators.base import Capabilities, Request
from ctxbench.harness.generators.conformance import abilities
from ctxbench.harness.generators.scripted import Scripted
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.openai_server import OPENAI, serving


def test_what_a_served_model_can_do() -> None:
    with serving(answer=lambda *_: "width * height", shape=OPENAI, model="Qwen2.5-Coder-7B", delay=0.02) as server:
        result = run_cli("generator", "check", f"openai:Qwen2.5-Coder-7B@{server.url}(concurrency=4)")
        calls = len(server.calls)
    assert result.code == 0 and "11 of 11 checks passed\n\n" in result.out, result.out
    assert re.search(r"^instructions  goes on with text", result.out, re.M)
    assert re.search(r"^context gain  measured by the built-in copy model$", result.out, re.M)
    assert re.search(r"^window        not known", result.out, re.M)
    assert re.search(r"^--fim         fills in the middle, marks of qwen$", result.out, re.M)
    assert re.search(r"^at once       4 requests, each answered by itself$", result.out, re.M)
    assert re.search(r"^answered by   Qwen2.5-Coder-7B \(fp_1\)$", result.out, re.M)
    assert calls == 2 + 2 + 1 + 3 + 4 + 1


@pytest.mark.slow
def test_what_the_built_in_model_can_do() -> None:
    result = run_cli("generator", "check", "incontext")
    assert result.code == 0 and re.search(r"^context gain  prices texts itself$", result.out, re.M)
    assert re.search(r"^--fim         cannot fill in the middle$", result.out, re.M) and "answered by" not in result.out


def test_who_fails_a_check_is_told_no_abilities() -> None:
    with serving(window=1) as server:
        result = run_cli("generator", "check", f"openai:tiny@{server.url}")
    assert result.code == 1 and "FAIL" in result.out and "at once" not in result.out


def test_a_chat_model_is_told_apart() -> None:
    with serving() as server:
        result = run_cli("generator", "check", f"openai:tiny@{server.url}(endpoint=chat)")
    assert re.search(r"^instructions  follows them$", result.out, re.M)
    assert re.search(r"^--fim         no: is asked as a chat model", result.out, re.M)


def test_an_unknown_name_is_one_line() -> None:
    assert_fault(run_cli("generator", "check", "nonsense"), "nonsense", "generator list")


def test_a_window_is_told() -> None:
    class Windowed(Scripted):
        capabilities = Capabilities(batch_size=16, instructs=True, counts=True)
        window = 4096

        def count(self, request: Request) -> int:
            return 1

    assert dict(abilities(Windowed(lambda _: "")))["window"] == "4,096 tokens; prompts are cut to it"
