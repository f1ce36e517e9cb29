"""RepoEval: next lines, API calls that may have several lines, and function bodies, which are scored as text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field

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
from ctxbench.bench.judging import indentation
from ctxbench.bench.judging.python.text import lift, shift
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import FunctionNode, docstring, only_function
from ctxbench.bench.types import NEXT_LINE, UNTESTED, Cursor, Kind, Reference, Sample

SHAPE = (
    "`prompt` and `metadata` with `task_id`, `ground_truth`, `fpath_tuple`, `line_no` (lines, API calls) or `lineno` "
    "(functions), and optionally `context_start_lineno`, `function_name`."
)
_PREDICTION_SHAPE = 'one object a line: {"metadata": {"task_id": "…"}, "choices": [{"text": "…"}]}'
_CURE = "correct that line; `ctxbench samples import --help` describes the fields"
_Line = Annotated[int, Field(ge=0)]
BENCHMARK = "repoeval"
_DEF = re.compile(r"[ \t]*(async[ \t]+)?def[ \t]+(\w+)")


class _Metadata(Strict):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    task_id: Annotated[str, Field(min_length=1)]
    ground_truth: str
    fpath_tuple: Annotated[list[str], Field(min_length=2)]
    context_start_lineno: _Line = 0
    line_no: _Line | None = None
    lineno: _Line | None = None
    function_name: str | None = None


class _Record(Strict):
    prompt: str
    metadata: _Metadata


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files of lines, API calls or functions.

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
    if (data.line_no is None) == (data.lineno is None):
        raise FieldError("metadata.line_no", "is missing (line_no, or lineno of functions), or both are there")
    sample = Sample(
        id=data.task_id,
        benchmark=BENCHMARK,
        language=PYTHON,
        kind=Kind.LINE,
        subkind=STATEMENT if "\n" in target else NEXT_LINE,
        repo=repo,
        path=path,
        cursor=Cursor(line=data.line_no or 0, column=0),
        prefix=_prompt(record, joined),
        context_start=data.context_start_lineno,
    )
    fields = {"metadata": dict(data.model_extra)} if data.model_extra else {}
    reference = Reference(id=data.task_id, target=target, fields=fields)
    if data.lineno is None:
        return Task(sample, reference, where)
    return _function(sample, reference, data, where)


def _function(sample: Sample, reference: Reference, data: _Metadata, where: str) -> Task | Unusable:
    head = head_of(sample.prefix, reference.target, data.function_name)
    if head is None:
        detail = "prompt and answer together do not end in a whole function"
        return Unusable(id=sample.id, reason="not_a_function", where=where, detail=detail)
    line = sample.context_start + sample.prefix.count("\n")
    declared, recorded_line = sample.context_start + head.line, data.lineno or 0
    # The format does not say whether lineno is the line of the declaration or of the body, or counts from 0 or 1.
    if not declared <= recorded_line <= line + 1:
        raise FieldError(
            "metadata.lineno", f"is {recorded_line}, but the function's head is on lines {declared} to {line - 1}"
        )
    function_sample = replace(
        sample,
        kind=Kind.FUNCTION,
        subkind=UNTESTED,
        cursor=Cursor(line=line, column=0),
        name=data.function_name or head.name,
        signature=head.signature,
        docstring=head.docstring,
    )
    function_fields = {"body": reference.target, "lineno": recorded_line, "named": data.function_name is not None}
    whole = lift([*_head_lines(function_sample, head), *reference.target.split("\n")]).rstrip("\n")
    return Task(
        function_sample, replace(reference, target=whole, fields={**reference.fields, **function_fields}), where
    )


def _head_lines(sample: Sample, head: Head) -> list[str]:
    return sample.prefix.split("\n")[head.line : -1]


def _place(parts: list[str]) -> tuple[str, str]:
    repo, path = repository_path("metadata.fpath_tuple", parts)
    if language_of(path) != PYTHON:
        raise FieldError("metadata.fpath_tuple", f"{parts[-1]!r} is not a Python file, and RepoEval is of Python")
    return repo, path


def _prompt(record: _Record, joined: bool) -> str:
    data, prompt = record.metadata, plain_newlines(record.prompt)
    if data.line_no is None:
        return f"{prompt}\n" if joined else prompt
    whole_lines = data.line_no - data.context_start_lineno
    whole = f"{prompt}\n" if joined and whole_lines else prompt
    if whole.count("\n") != whole_lines:
        what = f"prompt has {whole.count(chr(10))} whole lines from line {data.context_start_lineno}, not {whole_lines}"
        raise FieldError("metadata.line_no", what)
    return whole


def in_repository(task: Task, text: str) -> Task | None:
    """Rebuild a task's prompt from the content of its file; None if the answer differs from the file."""
    sample, reference, lines = task.sample, task.reference, text.split("\n")
    target_lines = (reference.target if sample.kind is Kind.LINE else str(reference.fields["body"])).split("\n")
    line = sample.cursor.line
    file_lines = lines[line : line + len(target_lines)]
    if [row.rstrip() for row in file_lines] != [row.rstrip() for row in target_lines]:
        return None
    prefix, end = "".join(f"{row}\n" for row in lines[:line]), line + len(target_lines)
    rebuilt = replace(sample, prefix=prefix, suffix="\n".join(lines[end:]))
    if sample.kind is Kind.FUNCTION:
        head = head_of(prefix, "\n".join(target_lines), sample.name)
        if head is None:
            return None
        rebuilt = replace(rebuilt, span=(head.line, end))
    return replace(task, sample=rebuilt)


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the records of lines and Python functions.

    Raises:
        InputFault: if a sample begins inside a line, has masked lines, or is in another language.
    """
    for sample in samples:
        reference = references[sample.id]
        reason = _no_place(sample, reference)
        if reason:
            raise InputFault(f"{sample.id} {reason}", cure="choose another --format, e.g. ctxbench")
        fields = reference.fields if sample.benchmark == BENCHMARK else {}
        metadata: dict[str, Any] = {
            "task_id": sample.id,
            "ground_truth": reference.target if sample.kind is Kind.LINE else body_of(sample, reference),
            "fpath_tuple": [sample.repo, *sample.path.split("/")],
            "context_start_lineno": sample.context_start,
        }
        if sample.kind is Kind.LINE:
            metadata["line_no"] = sample.cursor.line
        else:
            metadata["lineno"] = fields.get("lineno", sample.cursor.line)
            metadata |= {"function_name": sample.name} if fields.get("named", True) else {}
        yield {"prompt": sample.stored_prompt, "metadata": {**metadata, **fields.get("metadata", {})}}


def _no_place(sample: Sample, reference: Reference) -> str:
    if sample.language != PYTHON:
        return f"is of {sample.language}, and RepoEval is of Python"
    if sample.masked:
        return "has masked lines, which RepoEval cannot store"
    if sample.cursor.column or not (sample.prefix.endswith("\n") or not sample.prefix):
        return "begins inside a line, and RepoEval has whole lines"
    if "/" in sample.repo:
        return "has a repository name that is not a folder name"
    return "" if reference.target.strip() else "has no answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Declaration and docstring of a function at the end of a prompt."""

    line: int
    """Line of the declaration in the prompt, 0-based, below decorators."""
    name: str
    signature: str
    docstring: str | None


def head_of(prompt: str, body: str, name: str | None) -> Head | None:
    """Return the head of the function at the end of a prompt; None if prompt and body are not one function.

    Args:
        body: the answer, with its indentation.
        name: the function's name, if known.
    """
    lines = prompt.split("\n")[:-1]
    for at in range(len(lines) - 1, -1, -1):
        match = _DEF.match(lines[at])
        if match is None or (name is not None and match[2] != name.rpartition(".")[2]):
            continue
        function = only_function("\n".join([*lines[at:], body, ""]))
        if function is not None:
            return _head(at, function, lines[at:])
    return None


def _head(line: int, node: FunctionNode, lines: list[str]) -> Head:
    first = node.body[0]
    behind = lines[: first.lineno - node.lineno]
    signature = textwrap.dedent("\n".join(behind)).strip() if behind else lines[0].strip()
    return Head(line=line, name=node.name, signature=signature, docstring=docstring(node))


def body_of(sample: Sample, reference: Reference) -> str:
    """Return a function sample's body, with the file's indentation."""
    if sample.benchmark == BENCHMARK:
        return str(reference.fields["body"])
    lines = reference.target.split("\n")
    head = sample.prefix.split("\n")[sample.span[0] if sample.span else 0 : -1]
    return "\n".join(shift(lines, indentation(head[0] if head else ""))[len(head) :])


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
        answers = tuple(RecordedAnswer(text=choice.text, behind=True) for choice in prediction.choices)
        read_samples.append(
            RecordedSample(where=where, task=prediction.metadata.task_id, answers=answers, metadata=row["metadata"])
        )
    return read_samples


def _write_predictions(sample: RecordedSample, task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {**task, "choices": [{"text": answer.text} for answer in sample.answers]}


def _tasks(samples: Sequence[Sample]) -> str:
    lines = all(sample.kind is Kind.LINE and sample.benchmark != BENCHMARK for sample in samples)
    return "projbench" if lines else BENCHMARK


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
            shape=_PREDICTION_SHAPE, read=_read_predictions, write=_write_predictions, tasks=_tasks, behind=True
        ),
    )
)
