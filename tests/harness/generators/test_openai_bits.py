"""Bits of texts from a server's log-probabilities, and the generators that can measure them."""

import functools
from dataclasses import replace
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import openai
from ctxbench.harness.generators.base import CutShort, Request, Response
from ctxbench.harness.generators.openai import OpenAI
from ctxbench.strategies.api import Prompt
from tests.harness.generators import test_openai
from tests.helpers.openai_server import Fault, bits_of, serving
from tests.helpers.requests import make_prompt


def prompt(text: str) -> Prompt:
    return make_prompt(text) if text else Prompt(blocks=())


model = functools.partial(test_openai.model, bits=True, retries=1)


def price(made: OpenAI, *pairs: tuple[str, str]) -> list[float]:
    return made.bits([prompt(one) for one, _ in pairs], [text for _, text in pairs], PYTHON)


def rising(_: list[str], at: int) -> float:
    """Give each token a different log-probability."""
    return -float(at)


def test_only_a_spec_with_bits_measures_texts() -> None:
    plain, pricing = openai.openai(model="m"), openai.openai(model="m", bits=True)
    assert pricing.capabilities.log_likelihoods and not plain.capabilities.log_likelihoods


def test_only_the_tokens_of_the_text_are_measured() -> None:
    # The tokens are a ( b ( c )) \n and the generated one. Numbers 5 and 6 belong to the text.
    with serving(costs=rising) as server, model(server) as made:
        assert price(made, ("a(b(c", "))")) == pytest.approx([bits_of(-5, -6)])
    assert server.calls[0]["prompt"] == "a(b(c))\n"
    assert (server.calls[0]["echo"], server.calls[0]["logprobs"], server.calls[0]["max_tokens"]) == (True, 1, 1)


def test_a_token_that_begins_in_the_prompt_counts_completely() -> None:
    # The prompt ends within the token `total`.
    with serving(costs=rising) as server, model(server) as made:
        assert price(made, ("x = to", "tal")) == pytest.approx([bits_of(-2, -3)])


def test_a_reference_is_measured_before_its_answer() -> None:
    asked = Request(prompt=prompt("a(b(c"), language=PYTHON, reference="))")
    with serving(costs=rising) as server, model(server, endpoint="completions") as made:
        first, second = made.generate([asked]) + made.generate([replace(asked, reference=None)])
    assert isinstance(first, Response) and first.bits == pytest.approx(bits_of(-5, -6))
    assert isinstance(second, Response) and second.bits is None and second.text == first.text
    assert [call.get("echo", False) for call in server.calls] == [True, False, False]


def test_an_answer_is_kept_if_its_bits_cannot_be_measured() -> None:
    asked = Request(prompt=prompt("a(b(c"), language=PYTHON, reference="))")
    with serving(costs=rising, faults=[Fault(status=400)]) as server, model(server, endpoint="completions") as made:
        [answer] = made.generate([asked])
    assert isinstance(answer, Response) and answer.bits is None and len(server.calls) == 2


def test_many_texts_are_measured_in_order() -> None:
    with serving(costs=rising) as server, model(server, concurrency=8) as made:
        found = price(made, *[("a " * length, "d") for length in range(1, 40)])
        assert found == sorted(found) and len(set(found)) == 39
    assert server.most <= 8


def test_a_start_token_before_the_prompt_does_not_change_bits() -> None:
    with serving(costs=lambda tokens, at: -float(len(tokens) - at), bos="<s>") as server, model(server) as made:
        assert price(made, ("a b c ", "d")) == pytest.approx([bits_of(-3, -2)])


def test_a_start_token_that_is_counted_but_not_shown_does_not_change_bits() -> None:
    counted = Fault(change=lambda body: body["usage"].update(prompt_tokens=body["usage"]["prompt_tokens"] + 1))
    with serving(costs=rising, faults=[counted]) as server, model(server) as made:
        assert price(made, ("a b c ", "d")) == pytest.approx([bits_of(-3, -4)])


@pytest.mark.parametrize(
    ("prompt_", "text", "shown", "first"),
    [
        # Words without the blanks before them, as from Llama 2's tokenizer. Each case has lost some blanks.
        ("x = ", "sum(y)", ["<s>", "x", "=", "sum", "(", "y", ")", "\n"], 3),
        ("x = a", " + b", ["<s>", "x", "=", "a", "+", "b", "\n"], 4),
        ("if x:\n", "    return x", ["<s>", "if", "x", ":", "\n", "   ", "return", "x", "\n"], 5),
        ("if x:\n", "return x", ["<s>", "if", "x", ":", "\n", "return", "x", "\n"], 5),
        ("s = f(", "'é', y)", ["<s>", "s", "=", "f", "(", "'", "\ufffd", "\ufffd", "',", "y", ")", "\n"], 5),
        ("a = b", "", ["<s>", "a", "=", "b", "\n"], 4),
        # Bytes in the notations of SentencePiece and OpenAI.
        ("a = ", "foo(x)", ["<s>", "a", " =", " foo", "(", "x", ")", "<0x0A>"], 3),
        ("a = '", "\u4f60'", ["<s>", "a", " = '", "<0xE4>", "<0xBD>", "<0xA0>", "'", "<0x0A>"], 3),
        ("a = ", "foo('…')", ["<s>", "a", " =", " foo", "('", r"bytes:\xe2\x80", r"bytes:\xa6", "')", "\n"], 3),
        ("a =", " …'", ["<s>", "a", " =", r"bytes: \xe2\x80", r"bytes:\xa6", "'", "\n"], 3),
        # vLLM shows all parts of a character but the last as empty texts.
        ("a = '", "\u4f60\u597d'", ["<s>", "a", " = '", "", "\u4f60", "", "\u597d", "'", "\n"], 3),
        ("a =", " \u4f60'", ["<s>", "a", " =", "", " \u4f60", "'", "\n"], 3),
        ("b = 'é' + ", "c", ["<s>", "b", " = '", "", "é", "' +", " c", "\n"], 6),
        # The text begins with characters that are shown in parts or not at all.
        ("a = '", "\u4f60\u597d'", ["<s>", "a", " = '", *["\ufffd"] * 4, "'", "\n"], 3),
        ("a = '", "\u4f60\u597d'", ["<s>", "a", " = '", "", "", "", "", "'", "\n"], 3),
        ("a = '", "\u4f60 \u597d", ["<s>", "a", " = '", "\ufffd", "\ufffd", " ", "\ufffd", "\ufffd", "\n"], 3),
        ("a =", " '\u4f60'", ["<s>", "a", " =", " '\ufffd", "\ufffd", "'", "\n"], 3),
        ("a = '", "\u4f60'", ["<s>", "a", " =", " '\ufffd", "\ufffd", "'", "\n"], 3),
        ("if a:\n  ", "é = 1", ["<s>", "if", " a", ":", "\n ", " \ufffd", "\ufffd", " =", " 1", "\n"], 5),
    ],
)
def test_tokens_that_differ_from_the_text_are_aligned(prompt_: str, text: str, shown: list[str], first: int) -> None:
    def show(body: dict[str, Any]) -> None:
        offsets = [sum(map(len, shown[:number])) for number in range(len(shown) + 1)]
        costs = [None, *(-float(number) for number in range(1, len(shown) + 1))]
        given = {"tokens": [*shown, "made"], "token_logprobs": costs, "text_offset": offsets}
        body["choices"][0]["logprobs"] = given
        body["usage"]["prompt_tokens"] = len(shown)

    with serving(faults=[Fault(change=show)]) as server, model(server) as made:
        assert price(made, (prompt_, text)) == pytest.approx([bits_of(*(-float(n) for n in range(first, len(shown))))])


def test_an_empty_prompt_is_sent_as_a_line_end() -> None:
    with serving(costs=rising) as server, model(server) as made:
        assert price(made, ("", "d")) == pytest.approx([bits_of(-1, -2)])
    assert server.calls[0]["prompt"] == "\nd\n"


def joined(body: dict[str, Any]) -> None:
    """Show the first two tokens as one without a log-probability."""
    given = body["choices"][0]["logprobs"]
    given["tokens"][:2] = ["".join(given["tokens"][:2])]
    del given["token_logprobs"][1], given["text_offset"][1]
    body["usage"]["prompt_tokens"] -= 1


@pytest.mark.parametrize(
    ("prompt_", "text", "behind", "priced"),
    [("", "    d", "\n    d\n", (-2, -3, -4)), ("to", "tal", "total\n", (-2, -3))],
)
def test_a_text_that_begins_in_the_first_token_is_measured_after_a_line(
    prompt_: str, text: str, behind: str, priced: tuple[float, ...]
) -> None:
    fault = Fault(change=joined)
    with serving(costs=rising, faults=[fault]) as server, model(server) as made:
        assert price(made, (prompt_, text)) == pytest.approx([bits_of(*priced)])
    assert [call["prompt"] for call in server.calls] == [behind, f"#\n{behind}"]


def test_a_text_that_always_begins_in_the_first_token_has_no_bits() -> None:
    def join_all(body: dict[str, Any]) -> None:
        given = body["choices"][0]["logprobs"]
        given |= {"tokens": ["".join(given["tokens"][:-1]), "x"], "token_logprobs": [None, -1.0]}
        body["usage"]["prompt_tokens"] = 1

    fault = pytest.raises(MachineFault, match="first token")
    with serving(faults=[Fault(change=join_all)] * 2) as server, model(server, whole=False) as made, fault:
        price(made, ("", "d"))
    assert len(server.calls) == 2


def test_a_server_without_log_probabilities_is_refused_with_a_cure() -> None:
    silent = Fault(change=lambda body: body["choices"][0].update(logprobs=None))
    with serving(faults=[silent]) as server, model(server) as made, pytest.raises(InputFault, match="leave bits=true"):
        price(made, ("a", "b"))
    assert len(server.calls) == 1


def test_a_server_that_ignores_echo_is_refused() -> None:
    def forget(body: dict[str, Any]) -> None:
        given = body["choices"][0]["logprobs"]
        for key in given:
            given[key] = given[key][-1:]

    with serving(faults=[Fault(change=forget)]) as server, model(server) as made, pytest.raises(InputFault) as caught:
        price(made, ("a b", "c"))
    assert "does not repeat the prompt" in str(caught.value)


HUGE = 10**400
SOUND = {"tokens": ["a ", "b", "c", "\n"], "token_logprobs": [None, -1.0, -1.0, -1.0], "text_offset": []}
ABSENT = object()
IMPOSSIBLE = (1.5, float("nan"), float("inf"), float("-inf"), -1e308, -HUGE, HUGE)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        *(({"token_logprobs": [None, cost, cost, cost]}, 4) for cost in IMPOSSIBLE),
        *(({"token_logprobs": [None, cost, cost, cost]}, 4) for cost in ("-1", True, None, [-1.0], {"logprob": -1.0})),
        ({"token_logprobs": [None, -1.0, None, -1.0]}, 4),
        ({"token_logprobs": [None] + [-1.0] * 9}, 4),
        ({"token_logprobs": [-1.0]}, 4),
        ({"tokens": ["a ", "b", "c"]}, 4),
        ({"tokens": ["no", "such", "text", "here"]}, 4),
        ({"tokens": [3, None, ["c"], {}]}, 4),
        ({"tokens": ["a ", "b", "d", "\n"]}, 4),
        *(({}, read) for read in (ABSENT, 10**30, -1, 0, 2.0, True, "4", None, [4])),
    ],
)
def test_invalid_log_probabilities_are_a_fault(given: dict[str, Any], read: object) -> None:
    def change(body: dict[str, Any]) -> None:
        body["choices"][0]["logprobs"] = SOUND | given
        body["usage"]["prompt_tokens"] = read
        if read is ABSENT:
            del body["usage"]

    with serving(faults=[Fault(change=change)] * 2) as server, model(server) as made:
        with pytest.raises(MachineFault, match="log-probabilit" if given else None):
            price(made, ("a b", "c"))
        assert price(made, ("a b", "c"))[0] > 0


def test_a_fault_of_one_text_fails_the_whole_call() -> None:
    with serving(window=30) as server, model(server) as made, pytest.raises(MachineFault, match="too long"):
        price(made, ("a ", "b"), ("a " * 60, "b"), ("c ", "d"))


def test_a_prompt_that_was_cut_has_no_bits() -> None:
    with serving(cuts=100) as server, model(server) as made:
        assert price(made, ("a " * 50, "d"))
        with pytest.raises(CutShort, match="it read 100 of at least 360 tokens"):
            price(made, ("a " * 400, "d"))
    with serving(cuts=100) as server, model(server, whole=False) as made:
        assert price(made, ("a " * 400, "d"))
