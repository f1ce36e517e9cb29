"""CoderEval's official output and input, read strictly."""

from typing import Any

import pytest

from ctxbench.bench.codereval.predictions import NO_RESULT, read
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import RecordedSample
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from tests.harness.imported.records import java_task, python_task


def rows(*records: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"out.jsonl:{number}", record) for number, record in enumerate(records, 1)]


def read_one(record: dict[str, Any]) -> RecordedSample:
    [found] = read(rows(record))
    return found


def test_the_python_output() -> None:
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


def test_the_java_output() -> None:
    record = java_task("63a", True, False, False)
    record["generate_results"][2]["errormessage"] = ""
    found = read_one(record)
    sample = found.sample
    assert sample is not None and sample.language == JAVA
    assert (sample.repo, sample.path, sample.name, sample.subkind) == ("shop-master", "", "f", "file_runnable")
    assert [one.reason for one in found.answers] == ["", "compile error", "the official harness reports a failure"]


def test_the_input_has_no_verdicts_and_no_facts() -> None:
    found = read(rows({"_id": "a", "generate_results": ["x", "y"]}, {"_id": "b", "generate_results": ["z"]}))
    assert [(one.task, [answer.text for answer in one.answers]) for one in found] == [("a", ["x", "y"]), ("b", ["z"])]
    assert all(one.sample is None and one.answers[0].verdict is None for one in found)


def test_results_that_the_harness_left_out_count_as_failed() -> None:
    """One record lacks a result and keeps its code; another lacks both."""
    record = python_task("a", True, False, True)
    left_out = record["generate_results"].pop(1)["generate_code"]
    short = python_task("b", True, True)
    first, second, whole = read(rows(record, short, python_task("c", True, True, True)))
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


BROKEN = {
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


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_records(kind: str) -> None:
    record, words = BROKEN[kind]
    with pytest.raises(InputFault) as caught:
        read(rows(python_task("good", True) if "file_path" in record else record, record))
    said = str(caught.value)
    assert words in said and "out.jsonl:" in said and "_id and generate_results" in said and "\n" not in said


@pytest.mark.parametrize("other", [java_task("b", True), {"_id": "b", "generate_results": ["x"]}])
def test_a_file_is_of_one_kind(other: dict[str, Any]) -> None:
    with pytest.raises(InputFault, match=r"out.jsonl:2: the file mixes languages"):
        read(rows(python_task("a", True), other))
