"""The shapes of line predictions, and our own: what is read, and what is refused."""

from typing import Any

import pytest

from ctxbench.bench import formats
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.projbench import first_line
from ctxbench.bench.judging.types import Verdict


def read(shape: str, *records: dict[str, Any]) -> list[tuple[str, list[str]]]:
    found = formats.predictions(shape).read((f"p.jsonl:{number}", record) for number, record in enumerate(records, 1))
    return [(one.task, [answer.text for answer in one.answers]) for one in found]


def test_what_each_shape_holds() -> None:
    assert read("crosscodeeval", {"task_id": "cc/1", "pred": " x\n"}) == [("cc/1", [" x\n"])]
    task = {"prompt": "a = ", "metadata": {"task_id": "r/0", "ground_truth": "1"}}
    assert read("repocoder", {**task, "choices": [{"text": "1"}, {"text": "2"}]}) == [("r/0", ["1", "2"])]
    assert read("infercom", {**task, "pred_res": "\n 1 \n2", "choices": [{"text": "1"}]}) == [("r/0", ["\n 1 \n2"])]


@pytest.mark.parametrize(("text", "line"), [("\n  a \nb", "a"), ("", ""), (" \n", ""), ("a", "a")])
def test_the_line_that_infercom_keeps(text: str, line: str) -> None:
    assert first_line(text) == line


def test_our_own_completions_are_put_in_order() -> None:
    lines = [
        {"sample": "a", "text": "a1", "index": 1, "verdict": "FAILED", "reason": "1 of  2\ntests failed"},
        {"sample": "b", "text": "b0"},
        {"sample": "a", "text": "a0", "index": 0, "verdict": "PASSED"},
        {"sample": "b", "text": "b1"},
        {"sample": "a", "text": "other", "strategy": "mine", "generator": "m"},
    ]
    found = formats.predictions("ctxbench").read((f"p.jsonl:{number}", one) for number, one in enumerate(lines, 1))
    assert [(one.task, one.strategy, one.generator, one.where) for one in found] == [
        ("a", "", "", "p.jsonl:1"),
        ("b", "", "", "p.jsonl:2"),
        ("a", "mine", "m", "p.jsonl:5"),
    ]
    assert [[answer.text for answer in one.answers] for one in found] == [["a0", "a1"], ["b0", "b1"], ["other"]]
    assert [answer.verdict for answer in found[0].answers] == [Verdict.PASSED, Verdict.FAILED]
    assert [answer.reason for answer in found[0].answers] == ["", "1 of 2 tests failed"]


_TASK = {"metadata": {"task_id": "a"}}
BROKEN: list[tuple[str, list[dict[str, Any]], str]] = [
    ("crosscodeeval", [{"pred": "x"}], "field task_id"),
    ("crosscodeeval", [{"task_id": "a"}], "field pred"),
    ("crosscodeeval", [{"task_id": "a", "pred": ["x"]}], "field pred"),
    ("crosscodeeval", [{"task_id": "", "pred": "x"}], "field task_id"),
    ("repocoder", [{"choices": [{"text": "x"}]}], "field metadata"),
    ("repocoder", [{"metadata": {}, "choices": [{"text": "x"}]}], "field metadata.task_id"),
    ("repocoder", [{**_TASK, "choices": []}], "field choices"),
    ("repocoder", [{**_TASK, "choices": [{"text": 1}]}], "field choices.0.text"),
    ("repocoder", [{**_TASK, "choices": ["x"]}], "field choices.0"),
    ("infercom", [_TASK], "field pred_res"),
    ("infercom", [{**_TASK, "pred_res": None}], "field pred_res"),
    ("infercom", [{"metadata": {"task_id": 1}, "pred_res": "x"}], "field metadata.task_id"),
    ("ctxbench", [{"text": "x"}], "field sample"),
    ("ctxbench", [{"sample": "a"}], "field text"),
    ("ctxbench", [{"sample": "a", "text": "x", "index": -1}], "field index"),
    ("ctxbench", [{"sample": "a", "text": "x", "index": True}], "field index"),
    ("ctxbench", [{"sample": "a", "text": "x", "index": 0}] * 2, "field index"),
    ("ctxbench", [{"sample": "a", "text": "x", "index": 1}], "field index"),
    ("ctxbench", [{"sample": "a", "text": "x", "verdict": "RIGHT"}], "field verdict"),
    ("ctxbench", [{"sample": "a", "text": "x", "verdict": "BROKEN"}], "field verdict"),
    ("ctxbench", [{"sample": "a", "text": "x", "strategy": 3}], "field strategy"),
]


@pytest.mark.parametrize(("shape", "records", "words"), BROKEN)
def test_broken_records(shape: str, records: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(InputFault) as caught:
        read(shape, *records)
    said = str(caught.value)
    assert words in said and said.startswith("p.jsonl:") and "; " in said and "\n" not in said
