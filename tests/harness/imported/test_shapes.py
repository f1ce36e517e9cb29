"""Recorded predictions for lines and for CoderEval: reading, refusing and matching them with samples."""

from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import formats
from ctxbench.bench import samples as sets
from ctxbench.bench.codereval.predictions import NO_RESULT
from ctxbench.bench.codereval.predictions import read as read_codereval
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import RecordedSample
from ctxbench.bench.formats.projbench import first_line
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.imported.matching import Labels, MatchedRun, match_runs
from tests.harness.imported.records import java_task, python_task
from tests.helpers.sets import make_set


def read(shape: str, *records: dict[str, Any]) -> list[tuple[str, list[str]]]:
    found = formats.predictions(shape).read((f"p.jsonl:{number}", record) for number, record in enumerate(records, 1))
    return [(one.task, [answer.text for answer in one.answers]) for one in found]


def test_answers_are_read_from_each_format() -> None:
    assert read("crosscodeeval", {"task_id": "cc/1", "pred": " x\n"}) == [("cc/1", [" x\n"])]
    task = {"prompt": "a = ", "metadata": {"task_id": "r/0", "ground_truth": "1"}}
    assert read("repocoder", {**task, "choices": [{"text": "1"}, {"text": "2"}]}) == [("r/0", ["1", "2"])]
    assert read("infercom", {**task, "pred_res": "\n 1 \n2", "choices": [{"text": "1"}]}) == [("r/0", ["\n 1 \n2"])]


@pytest.mark.parametrize(("text", "line"), [("\n  a \nb", "a"), ("", ""), (" \n", ""), ("a", "a")])
def test_infercom_keeps_the_first_nonblank_line(text: str, line: str) -> None:
    assert first_line(text) == line


def test_ctxbench_completions_are_sorted_by_index() -> None:
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
def test_broken_records_are_refused_with_their_field(shape: str, records: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(InputFault) as caught:
        read(shape, *records)
    said = str(caught.value)
    assert words in said and said.startswith("p.jsonl:") and "; " in said and "\n" not in said


ANSWER = {"pred_res": "x", "choices": [{"text": "x"}]}


def match(shape: str, lines: list[dict[str, Any]], sample_set: SampleSet) -> list[MatchedRun]:
    form = formats.predictions(shape)
    recorded = form.read((f"p.jsonl:{number}", line) for number, line in enumerate(lines, 1))
    return match_runs(recorded, form, file="p.jsonl", stem="p", labels=Labels(), sample_set=sample_set, language=None)


def exported(shape: str, made: SampleSet) -> list[dict[str, Any]]:
    tasks = formats.tasks(formats.predictions(shape), made.samples, made.references)
    return [{**task, **ANSWER} for task in tasks.values()]


@pytest.mark.parametrize("shape", ["infercom", "projbench", "repocoder"])
def test_records_numbered_for_another_set_are_refused(tmp_path: Path, shape: str) -> None:
    home = Home(tmp_path)
    made = make_set(home)
    lines = exported(shape, made)
    assert lines[0]["metadata"]["task_id"] == "shop0/0", "a running number, that other sets have too"
    [run] = match(shape, lines, made)
    assert list(run.answers) == [sample.id for sample in made.samples]
    # Another seed would choose other lines of the same repositories.
    other = sets.save(home, "other", made.samples[1:], list(made.references.values())[1:], made.manifest)
    with pytest.raises(InputFault) as caught:
        match(shape, lines, other)
    assert str(caught.value) == (
        f"p.jsonl:1: field metadata.line_no differs from that of {other.samples[0].id!r} in the sample set 'other'; "
        "give --samples the set that the file was made for"
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("fpath_tuple", ["shop0", "old.py"]), ("line_no", 99), ("ground_truth", "apply_tax(cart_0)")],
)
def test_records_of_another_set_version_are_refused(tmp_path: Path, field: str, value: object) -> None:
    made = make_set(Home(tmp_path))
    lines = exported("infercom", made)
    for line, sample in zip(lines, made.samples, strict=True):
        line["metadata"]["task_id"] = sample.id
        line["metadata"]["ground_truth"] += " \r\n"
    assert len(match("infercom", lines, made)) == 1, "blanks behind an answer are none of it"
    lines[2]["metadata"][field] = value
    with pytest.raises(InputFault, match=rf"p\.jsonl:3: field metadata\.{field} .*{made.samples[2].id}.*--samples"):
        match("infercom", lines, made)


def test_records_with_only_an_id_are_accepted(tmp_path: Path) -> None:
    made = make_set(Home(tmp_path))
    lines = [{"metadata": {"task_id": id_}, **ANSWER} for id_ in ("shop0/0", "shop1/0")]
    [run] = match("infercom", lines, made)
    assert list(run.answers) == [made.samples[0].id, made.samples[4].id]


def rows(*records: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"out.jsonl:{number}", record) for number, record in enumerate(records, 1)]


def read_one(record: dict[str, Any]) -> RecordedSample:
    [found] = read_codereval(rows(record))
    return found


def test_the_python_output_of_codereval_is_read() -> None:
    found = read_one(python_task("62a", True, False, level="plib_runnable"))
    sample = found.sample
    assert sample is not None and (found.task, found.where) == ("62a", "out.jsonl:1")
    assert (sample.benchmark, sample.language, sample.kind) == ("codereval", PYTHON, Kind.FUNCTION)
    assert (sample.repo, sample.path, sample.name) == ("owner/shop", "shop/tax.py", "f")
    assert sample.subkind == "plib_runnable" and sample.prefix == ""
    assert [(one.verdict, one.reason) for one in found.answers] == [
        (Verdict.PASSED, ""),
        (Verdict.FAILED, "return code 1"),
    ]
    assert found.answers[1].text == "def f(x):\n    return x + 1\n"


def test_the_java_output_of_codereval_is_read() -> None:
    record = java_task("63a", True, False, False)
    record["generate_results"][2]["errormessage"] = ""
    found = read_one(record)
    sample = found.sample
    assert sample is not None and sample.language == JAVA
    assert (sample.repo, sample.path, sample.name, sample.subkind) == ("shop-master", "", "f", "file_runnable")
    assert [one.reason for one in found.answers] == ["", "compile error", "the official harness reports a failure"]


def test_codereval_input_is_read_without_verdicts_and_samples() -> None:
    found = read_codereval(rows({"_id": "a", "generate_results": ["x", "y"]}, {"_id": "b", "generate_results": ["z"]}))
    assert [(one.task, [answer.text for answer in one.answers]) for one in found] == [("a", ["x", "y"]), ("b", ["z"])]
    assert all(one.sample is None and one.answers[0].verdict is None for one in found)


def test_results_that_the_harness_left_out_count_as_failed() -> None:
    """One record lacks a result but has its code. Another lacks both."""
    record = python_task("a", True, False, True)
    left_out = record["generate_results"].pop(1)["generate_code"]
    short = python_task("b", True, True)
    first, second, whole = read_codereval(rows(record, short, python_task("c", True, True, True)))
    assert [(one.text, one.verdict, one.flags) for one in first.answers] == [
        (record["code"][0], Verdict.PASSED, ()),
        (record["code"][2], Verdict.PASSED, ()),
        (left_out, Verdict.FAILED, (NO_RESULT,)),
    ]
    assert [(one.text, one.verdict, one.flags) for one in second.answers][2] == ("", Verdict.FAILED, (NO_RESULT,))
    assert len(whole.answers) == 3 and not any(one.flags for one in whole.answers)


def _without(key: str, java: bool = False) -> dict[str, Any]:
    record = java_task("a", True) if java else python_task("a", True)
    del record[key]
    return record


def _result(**changes: Any) -> dict[str, Any]:
    record = python_task("a", True)
    record["generate_results"][0] |= changes
    return record


def _misspelt(right: str, wrong: str) -> dict[str, Any]:
    record = python_task("a", True)
    result = record["generate_results"][0]
    result[wrong] = result.pop(right)
    return record


BROKEN_TASKS = {
    "no id": (_without("_id"), "field _id"),
    "no level": (_without("level"), "field level"),
    "no project": (_without("project_name", java=True), "field project_name"),
    "an unknown level": (python_task("a", True, level="runnable"), "field level"),
    "no results": (_without("generate_results"), "field generate_results"),
    "results that are no list": (python_task("a", True, generate_results="pass"), "field generate_results"),
    "a result that is a number": (python_task("a", True, generate_results=[1]), "field generate_results.0"),
    "no answer": ({"_id": "a", "generate_results": []}, "field file_path"),
    "an answer that is a number": ({"_id": "a", "generate_results": ["x", 2]}, "field generate_results.1"),
    "a verdict as text": (_result(is_pass="true"), "field generate_results.0.is_pass"),
    "a verdict against its return code": (_result(return_code=1), "field generate_results.0.is_pass"),
    "a misspelt return code": (
        _misspelt("return_code", "returncode"),
        "did you mean return_code? (in generate_results.0)",
    ),
    "a misspelt verdict": (_misspelt("is_pass", "is_pas"), "did you mean is_pass? (in generate_results.0)"),
    "code that is null": (_result(generate_code=None), "field generate_results.0.generate_code"),
    "a result of other code": (_result(generate_code="other"), "field generate_results.0.generate_code"),
    "an id that is a number": (python_task("a", True, _id=62), "field _id"),
    "codes that are no list": (java_task("a", True, codes="int f() {}"), "field codes"),
}


@pytest.mark.parametrize("kind", BROKEN_TASKS)
def test_broken_codereval_tasks_are_refused_with_their_field(kind: str) -> None:
    record, words = BROKEN_TASKS[kind]
    with pytest.raises(InputFault) as caught:
        read_codereval(rows(python_task("good", True) if "file_path" in record else record, record))
    said = str(caught.value)
    assert words in said and "out.jsonl:" in said and "_id and generate_results" in said and "\n" not in said


@pytest.mark.parametrize("other", [java_task("b", True), {"_id": "b", "generate_results": ["x"]}])
def test_a_file_that_mixes_languages_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(InputFault, match=r"out.jsonl:2: the record's kind .* differs"):
        read_codereval(rows(python_task("a", True), other))
