"""RepoEval: next lines, and API calls that may have several lines. Functions are left out: the files lack tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from ctxbench.bench.checking import FieldError, Strict, checked, explained, language_of, repository_path
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import plain_newlines
from ctxbench.bench.formats import (
    BenchmarkFormat,
    Options,
    PredictionFiles,
    RecordedAnswer,
    RecordedSample,
    Row,
    SampleFiles,
    Table,
    Task,
    Unusable,
    register,
)
from ctxbench.bench.formats.crosscodeeval import STATEMENT
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import NEXT_LINE, Cursor, Kind, Reference, Sample

SHAPE = (
    "`prompt` and `metadata` with `task_id`, `ground_truth`, `fpath_tuple`, `line_no`, and optionally "
    "`context_start_lineno`. Functions (`lineno`) are left out, because the files lack their tests."
)
_PREDICTION_SHAPE = 'one object per line: {"metadata": {"task_id": "…"}, "choices": [{"text": "…"}]}'
"""RepoCoder's predictions: the task's record with ``choices``. Each choice is the text after the cursor."""
_CURE = "correct that line; `ctxbench samples import --help` describes the fields"
_Line = Annotated[int, Field(ge=0)]
BENCHMARK = "repoeval"


class _Metadata(Strict):
    task_id: Annotated[str, Field(min_length=1)]
    ground_truth: str
    fpath_tuple: Annotated[list[str], Field(min_length=2)]
    context_start_lineno: _Line = 0
    line_no: _Line | None = None
    lineno: _Line | None = None


class _Record(Strict):
    prompt: str
    metadata: _Metadata


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files of lines, API calls or functions, and yield tasks. Functions become `Unusable`.

    Raises:
        InputFault: if a field is missing, of a wrong type, or contradicts another.
    """
    del options
    for table in tables:
        rows = [(where, checked(_Record, row, where=where, cure=_CURE)) for where, row in table.rows]
        joined = any(record.prompt and not record.prompt.endswith("\n") for _, record in rows)
        for where, record in rows:
            with explained(where, _CURE):
                task = _task(record, joined, where)
            yield task


def _task(record: _Record, joined: bool, where: str) -> Task | Unusable:
    data = record.metadata
    repo, path = _place(data.fpath_tuple)
    target = plain_newlines(data.ground_truth).rstrip()
    if not target:
        return Unusable(id=data.task_id, reason="empty_target", where=where)
    if data.line_no is None:
        if data.lineno is None:
            raise FieldError("metadata.line_no", "is missing")
        return Unusable(id=data.task_id, reason="no_tests", where=where, detail="the files lack the function's tests")
    prefix = _prompt(record, data.line_no, joined)
    sample = Sample(
        id=data.task_id,
        benchmark=BENCHMARK,
        language=PYTHON,
        kind=Kind.LINE,
        subkind=STATEMENT if "\n" in target else NEXT_LINE,
        repo=repo,
        path=path,
        cursor=Cursor(line=data.line_no, column=0),
        prefix=prefix,
        context_start=data.context_start_lineno,
    )
    return Task(sample, Reference(id=data.task_id, target=target), where)


def _place(parts: list[str]) -> tuple[str, str]:
    repo, path = repository_path("metadata.fpath_tuple", parts)
    if language_of(path) != PYTHON:
        raise FieldError("metadata.fpath_tuple", f"{parts[-1]!r} is not a Python file; RepoEval has only Python files")
    return repo, path


def _prompt(record: _Record, line: int, joined: bool) -> str:
    """Return the prompt with its last newline.

    Args:
        joined: whether the prompts in the record's file lack the last newline.

    Raises:
        FieldError: if the prompt does not end at the recorded line.
    """
    data, prompt = record.metadata, plain_newlines(record.prompt)
    whole_lines = line - data.context_start_lineno
    whole = f"{prompt}\n" if joined and whole_lines else prompt
    if whole.count("\n") != whole_lines:
        what = f"prompt has {whole.count(chr(10))} whole lines from line {data.context_start_lineno}, not {whole_lines}"
        raise FieldError("metadata.line_no", what)
    return whole


def in_repository(task: Task, text: str) -> Task | None:
    """Rebuild a task's prompt from the content of its file; None if the answer differs from the file."""
    sample, reference, lines = task.sample, task.reference, text.split("\n")
    target_lines = reference.target.split("\n")
    line = sample.cursor.line
    file_lines = lines[line : line + len(target_lines)]
    if [row.rstrip() for row in file_lines] != [row.rstrip() for row in target_lines]:
        return None
    prefix, end = "".join(f"{row}\n" for row in lines[:line]), line + len(target_lines)
    return replace(task, sample=replace(sample, prefix=prefix, suffix="\n".join(lines[end:])))


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the RepoEval records of samples that are whole lines of Python.

    Raises:
        InputFault: if a sample is a function, begins inside a line, has masked lines, is in another language, has no
            answer, or has a repository name with a slash.
    """
    for sample in samples:
        reference = references[sample.id]
        reason = _no_place(sample, reference)
        if reason:
            raise InputFault(f"{sample.id} {reason}", cure="choose another --format, e.g. ctxbench")
        metadata = {
            "task_id": sample.id,
            "ground_truth": reference.target,
            "fpath_tuple": [sample.repo, *sample.path.split("/")],
            "context_start_lineno": sample.context_start,
            "line_no": sample.cursor.line,
        }
        yield {"prompt": sample.stored_prompt, "metadata": metadata}


def _no_place(sample: Sample, reference: Reference) -> str:
    if sample.kind is not Kind.LINE:
        return f"is a {sample.kind} sample, but RepoEval cannot store the tests that judge it"
    if sample.language != PYTHON:
        return f"is a {sample.language} sample; RepoEval has only Python samples"
    if sample.masked:
        return "has masked lines, which RepoEval cannot store"
    if sample.cursor.column or not (sample.prefix.endswith("\n") or not sample.prefix):
        return "begins inside a line, but RepoEval has whole lines"
    if "/" in sample.repo:
        return "has a repository name that is not a folder name"
    return "" if reference.target.strip() else "has no answer"


class _PredictionMetadata(Strict):
    task_id: Annotated[str, Field(min_length=1)]


class _Choice(Strict):
    text: str


class _Prediction(Strict):
    metadata: _PredictionMetadata
    choices: Annotated[list[_Choice], Field(min_length=1)]


def _read_predictions(rows: Iterable[Row]) -> list[RecordedSample]:
    read_samples = []
    for where, row in rows:
        prediction = checked(_Prediction, row, where=where, cure=f"write {_PREDICTION_SHAPE}")
        answers = tuple(RecordedAnswer(text=choice.text) for choice in prediction.choices)
        read_samples.append(
            RecordedSample(where=where, task=prediction.metadata.task_id, answers=answers, metadata=row["metadata"])
        )
    return read_samples


def _write_predictions(sample: RecordedSample, task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {**task, "choices": [{"text": answer.text} for answer in sample.answers]}


def _tasks(samples: Sequence[Sample]) -> str:
    """Return the format of the tasks: RepoCoder's scorer reads tasks of RepoEval and line tasks of ProjBench."""
    return BENCHMARK if any(sample.benchmark == BENCHMARK for sample in samples) else "projbench"


register(
    BenchmarkFormat(
        name=BENCHMARK,
        samples=SampleFiles(shape=SHAPE, read=read, records=records, in_repository=in_repository),
    )
)
register(
    BenchmarkFormat(
        name="repocoder",
        predictions=PredictionFiles(
            shape=_PREDICTION_SHAPE, read=_read_predictions, write=_write_predictions, kind=Kind.LINE, tasks=_tasks
        ),
    )
)
