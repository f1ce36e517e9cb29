"""Reads the output (code and results) and input (only code) of CoderEval's official harness, and writes its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from ctxbench.bench.checking import FieldError, Strict, checked, explained
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import PredictionFiles, RecordedAnswer, RecordedSample, Row
from ctxbench.bench.functions.mining import Level
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Kind, Sample

SHAPE = (
    'one object per line: _id and generate_results, a list of code (the official input) or of {"generate_code": "…", '
    '"is_pass": true} (the official output: with file_path, project, name, level, code; Java with project_name, '
    "method_name, code_level, codes)"
)
BENCHMARK = "codereval"
NO_RESULT = "no_result"
_CURE = f"write {SHAPE}"
_Id = Annotated[str, Field(min_length=1, max_length=500)]


class _Input(Strict):
    id: _Id = Field(alias="_id")
    generate_results: Annotated[list[str], Field(min_length=1)]


class _Result(Strict):
    generate_code: str
    is_pass: bool
    return_code: int | None = None
    errormessage: str | None = None


class _Output(Strict):
    id: _Id = Field(alias="_id")
    generate_results: list[_Result]


class _Python(_Output):
    file_path: Annotated[str, Field(min_length=1)]
    project: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]
    level: Level = Field(strict=False)
    code: list[str]


class _Java(_Output):
    project_name: Annotated[str, Field(min_length=1)]
    method_name: Annotated[str, Field(min_length=1)]
    code_level: Level = Field(strict=False)
    codes: list[str]


def read(rows: Iterable[Row]) -> list[RecordedSample]:
    """Read all records. In harness output, pad each sample with failed answers to the largest number of answers."""
    recorded: list[RecordedSample] = []
    for where, record in rows:
        sample = _input(record, where) if _is_input(record) else _output(record, where)
        first = recorded[0].sample if recorded else sample.sample
        if (sample.sample and sample.sample.language) != (first and first.language):
            raise InputFault(
                "the record's kind (input, Python output or Java output) differs from the first record's",
                where=where,
                cure="put each kind into its own file",
            )
        recorded.append(sample)
    if recorded and recorded[0].sample is not None:
        most = max(len(sample.answers) for sample in recorded)
        return [_filled(sample, most) for sample in recorded]
    return recorded


def _is_input(record: Any) -> bool:
    results = record.get("generate_results")
    return isinstance(results, list) and bool(results) and isinstance(results[0], str)


def _input(record: Any, where: str) -> RecordedSample:
    parsed = checked(_Input, record, where=where, cure=_CURE)
    return RecordedSample(
        where=where, task=parsed.id, answers=tuple(RecordedAnswer(text=text) for text in parsed.generate_results)
    )


def _output(record: Any, where: str) -> RecordedSample:
    if "code_level" in record or "method_name" in record:
        java = checked(_Java, record, where=where, cure=_CURE)
        # The harness's output for Java does not name files.
        sample = _sample(java.id, JAVA, java.code_level, java.project_name, "", java.method_name)
        return _recorded(where, sample, java.generate_results, java.codes)
    python = checked(_Python, record, where=where, cure=_CURE)
    sample = _sample(python.id, PYTHON, python.level, python.project, python.file_path, python.name)
    return _recorded(where, sample, python.generate_results, python.code)


def _sample(id_: str, language: Language, level: Level, project: str, path: str, name: str) -> Sample:
    return Sample(
        id=id_,
        benchmark=BENCHMARK,
        language=language,
        kind=Kind.FUNCTION,
        subkind=str(level),
        repo=project,
        path=path,
        cursor=Cursor(line=0, column=0),
        prefix="",
        name=name,
    )


def _recorded(where: str, sample: Sample, results: Sequence[_Result], codes: Sequence[str]) -> RecordedSample:
    with explained(where, _CURE):
        answers = [_answer(f"generate_results.{number}", answer) for number, answer in enumerate(results)]
        unmatched = Counter(codes)
        unmatched.subtract(answer.text for answer in answers)
        strange = next((number for number, answer in enumerate(answers) if unmatched[answer.text] < 0), None)
        if strange is not None:
            raise FieldError(f"generate_results.{strange}.generate_code", "is missing in the record's code")
    answers += [_lacking(text) for text in unmatched.elements()]
    return RecordedSample(where=where, task=sample.id, answers=tuple(answers), sample=sample)


def _answer(field: str, result: _Result) -> RecordedAnswer:
    if result.return_code is not None and result.is_pass != (result.return_code == 0):
        raise FieldError(f"{field}.is_pass", f"is {result.is_pass}, but return_code is {result.return_code}")
    if result.is_pass:
        return RecordedAnswer(text=result.generate_code, verdict=Verdict.PASSED)
    cause = (
        f"return code {result.return_code}"
        if result.return_code is not None
        else "the official harness reports a failure"
    )
    return RecordedAnswer(text=result.generate_code, verdict=Verdict.FAILED, reason=result.errormessage or cause)


def _lacking(text: str = "") -> RecordedAnswer:
    return RecordedAnswer(text=text, verdict=Verdict.FAILED, reason="no result in the file", flags=(NO_RESULT,))


def _filled(sample: RecordedSample, most: int) -> RecordedSample:
    lacking = most - len(sample.answers)
    return RecordedSample(
        where=sample.where, task=sample.task, sample=sample.sample, answers=(*sample.answers, *[_lacking()] * lacking)
    )


def _write(sample: RecordedSample, _: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"_id": sample.task, "generate_results": [answer.text for answer in sample.answers]}


PREDICTIONS = PredictionFiles(shape=SHAPE, read=read, write=_write, kind=Kind.FUNCTION, repeats=True)
