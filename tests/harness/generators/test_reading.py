"""Services that read less than they are sent, or something else, are found by `generator check`."""

from contextlib import closing
from typing import Any

import pytest

from ctxbench.harness.generators import conformance, openai
from tests.helpers.cli import run_cli
from tests.helpers.openai_server import LLAMA_CPP, serving


def findings(*, endpoint: str = "completions", whole: bool = True, **server: Any) -> dict[str, tuple[bool, str]]:
    with (
        serving(**server) as running,
        closing(openai.openai(model="tiny", url=running.url, endpoint=endpoint, whole=whole, retries=0)) as made,
    ):
        found = {name: (passed, words) for name, passed, words in conformance.reading_checks(made)}
        assert len(running.calls) == 3
    return found


def test_a_sound_server() -> None:
    found = findings(template=1)
    assert found == {
        "reads prompts whole": (True, "7,841 tokens"),
        "goes on with the text": (True, "tokens around a prompt: 1"),
    }


@pytest.mark.parametrize("cuts", [2050, 4096, 7600])
@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_a_server_that_cuts_without_a_word(cuts: int, endpoint: str) -> None:
    passed, words = findings(cuts=cuts, endpoint=endpoint)["reads prompts whole"]
    # The shorter ones are too short for any tokenizer, and refused at once.
    assert not passed and f"it read {cuts} of" in words.replace(",", "")
    assert "silently" in words or "without an error" in words


def test_it_is_found_also_where_counts_are_not_checked() -> None:
    passed, words = findings(cuts=4096, whole=False)["reads prompts whole"]
    assert not passed and words == "it read 4,096 of 7,840 tokens, without an error"


def test_a_server_that_refuses_what_is_too_long_reads_the_rest() -> None:
    passed, words = findings(window=4096, shape=LLAMA_CPP)["reads prompts whole"]
    assert passed and words.startswith("the prompt is too long for the model (status 400): the request exceeds the")


def test_a_server_that_takes_code_for_a_message() -> None:
    passed, words = findings(template=30)["goes on with the text"]
    assert not passed and words == "tokens around a prompt: 30, as around a chat's message"
    assert "goes on with the text" not in findings(template=30, endpoint="chat")


def test_a_server_that_repeats_the_prompt() -> None:
    passed, words = findings(answer=lambda prompt, _: prompt)["goes on with the text"]
    assert not passed and words == "it repeats the prompt before its answer"


def test_a_server_that_counts_nothing() -> None:
    assert findings(usage=False) == {"reads prompts whole": (True, "not known: the server counts no tokens")}


def test_the_command_says_it_and_fails() -> None:
    with serving(cuts=4096) as server:
        result = run_cli("generator", "check", f"openai:tiny@{server.url}(whole=off)")
    assert result.code == 1 and "FAIL  reads prompts whole" in result.out and "10 of 11 checks passed" in result.out
