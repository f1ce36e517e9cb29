"""Profile `context_collection` beside sacreBLEU, which the organisers' package wraps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from ctxbench.harness.metrics.chrf import chrf, score

TEXTS = st.text(alphabet="ab c\n\t(_é\u3000", max_size=40)


def official(prediction: str, ground_truth: str) -> float:
    return float(CHRF().sentence_score(prediction, [ground_truth]).score)


@given(TEXTS, TEXTS)
def test_it_equals_the_official_tool(prediction: str, ground_truth: str) -> None:
    assert 100 * chrf(prediction, ground_truth) == official(prediction, ground_truth)


@pytest.mark.parametrize(
    ("prediction", "ground_truth"),
    [
        ("return apply_tax(cart, rate)", "return apply_tax(cart, rate)"),
        ("return apply_tax(cart)", "return apply_tax(cart, rate)\n    log.debug(cart)"),
        ("", "x"),
        ("x", ""),
        ("", ""),
        ("ab", "abcdefgh"),
        ("# only a comment", "value  # a comment"),
    ],
)
def test_code_and_edges(prediction: str, ground_truth: str) -> None:
    [value] = score("python", "", prediction, ground_truth).values()
    assert value is not None and 100 * value == official(prediction, ground_truth)
