"""ProjBench's official format of line tasks.

In one variant (``col``), masked imports are empty lines of the prompt. In the other (``col_no``), they are deleted,
although ``line_no`` counts the deleted lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from ctxbench.bench.checking import FieldError, Strict, checked, explained, language_of, repository_path
from ctxbench.bench.errors import InputFault
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
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.masking import blanked
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE, Cursor, Kind, Reference, Sample, Use

SHAPE = (
    "`prompt` and `metadata` with `task_id`, `ground_truth`, `fpath_tuple`, `line_no`, `col` or `col_no`, and "
    "optionally `context_start_lineno`, `import_no`, `dep`, `task_type`."
)
BENCHMARK = "projbench"
RELEASED = "sota_test"
"""Benchmark name of tasks with ``col_no``. InferCom's release has 70 such tasks, 50 from section 6.4 of its paper."""
_PREDICTION_SHAPE = 'one object per line: {"metadata": {"task_id": "…"}, "pred_res": "…"}'
_CURE = "correct that line; `ctxbench samples import --help` describes the fields"
_Line = Annotated[int, Field(ge=0)]


class _UseRecord(Strict):
    name: str
    module: str
    kind: str


class _Extension(Strict):
    masked: list[Annotated[list[_Line], Field(min_length=2, max_length=2)]] = Field(default_factory=list)
    uses: list[_UseRecord] = Field(default_factory=list)


class _Metadata(Strict):
    task_id: Annotated[str, Field(min_length=1)]
    task_type: str | None = None
    ground_truth: str
    fpath_tuple: Annotated[list[str], Field(min_length=2)]
    context_start_lineno: _Line = 0
    line_no: _Line
    col: Annotated[int, Field(ge=-1)] | None = None
    col_no: Annotated[int, Field(ge=-1)] | None = None
    dep: Any = None
    import_no: list[_Line] | None = None
    ctxbench: _Extension | None = None


class _Task(Strict):
    prompt: str
    metadata: _Metadata


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the ProjBench records of line samples. Ids of other benchmarks become ``REPOSITORY/NUMBER``.

    Raises:
        InputFault: if a sample is not a line, has an answer of several lines, or a repository name with a slash.
    """
    numbers: dict[str, int] = {}
    for sample in samples:
        reason = _no_place(sample, references[sample.id])
        if reason:
            raise InputFault(f"{sample.id} {reason}", cure="choose another --format, e.g. ctxbench")
        number = numbers.get(sample.repo, 0)
        numbers[sample.repo] = number + 1
        single, released = sample.subkind == SINGLE_LINE, sample.benchmark == RELEASED
        metadata: dict[str, Any] = {
            "task_id": sample.id if released or sample.benchmark == BENCHMARK else f"{sample.repo}/{number}",
            "task_type": "sl" if single else "nl",
            "ground_truth": references[sample.id].target,
            "fpath_tuple": [sample.repo, *sample.path.split("/")],
            "context_start_lineno": sample.context_start,
            "line_no": sample.cursor.line,
            **({"col_no": sample.cursor.column if single else -1} if released else {"col": sample.cursor.column}),
            "dep": sample.uses[0].name if sample.uses else "",
        }
        if sample.masked:
            start, end = sample.masked[0]
            metadata["import_no"] = [start, end - 1]
        metadata["ctxbench"] = {
            "masked": [list(span) for span in sample.masked],
            "uses": [{"name": use.name, "module": use.module, "kind": use.kind} for use in sample.uses],
        }
        yield {"prompt": sample.stored_prompt, "metadata": metadata}


def _no_place(sample: Sample, reference: Reference) -> str:
    if sample.kind is not Kind.LINE:
        return f"is a {sample.kind} sample, but ProjBench has only line samples"
    if "\n" in reference.target:
        return "has an answer of several lines, but answers in ProjBench have one"
    return "has a repository name that is not a folder name" if "/" in sample.repo else ""


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files of either variant (``col`` or ``col_no``), and yield their tasks.

    Raises:
        InputFault: if a field is missing, of a wrong type, or contradicts another.
    """
    del options
    for table in tables:
        for where, record in table.rows:
            yield task(record, where=where)


def task(record: Mapping[str, Any], *, where: str) -> Task:
    """Convert one record to a task.

    Raises:
        InputFault: if a field is missing, of a wrong type, or contradicts another.
    """
    parsed = checked(_Task, record, where=where, cure=_CURE)
    with explained(where, _CURE):
        sample, reference = _converted(parsed)
    return Task(sample, reference, where)


def _converted(parsed: _Task) -> tuple[Sample, Reference]:
    data = parsed.metadata
    repo, path, language = _place(data.fpath_tuple)
    target = data.ground_truth.rstrip()
    if not target:
        raise FieldError("metadata.ground_truth", "is empty")
    if "\n" in target or "\r" in target:
        raise FieldError("metadata.ground_truth", "has several lines")
    subkind, column = _cursor(parsed)
    masked = _masked(data)
    prefix, context_start = _shown_text(parsed, masked)
    uses = (
        tuple(Use(name=use.name, module=use.module, kind=use.kind) for use in data.ctxbench.uses)
        if data.ctxbench
        else ()
    )
    if not uses and isinstance(data.dep, str) and data.dep:
        uses = (Use(name=data.dep, module="", kind="unknown"),)
    sample = Sample(
        id=data.task_id,
        benchmark=RELEASED if data.col is None else BENCHMARK,
        language=language,
        kind=Kind.LINE,
        subkind=subkind,
        repo=repo,
        path=path,
        cursor=Cursor(line=data.line_no, column=column),
        masked=masked,
        prefix=prefix,
        uses=uses,
        context_start=context_start,
    )
    return sample, Reference(id=data.task_id, target=target)


def _place(parts: list[str]) -> tuple[str, str, Language]:
    repo, path = repository_path("metadata.fpath_tuple", parts)
    language = language_of(path)
    if language is None:
        raise FieldError("metadata.fpath_tuple", f"{parts[-1]!r} is neither a Python nor a Java file")
    return repo, path, language


def _cursor(parsed: _Task) -> tuple[str, int]:
    data = parsed.metadata
    field = "col" if data.col is not None else "col_no"
    column = data.col if data.col is not None else data.col_no
    if column is None:
        raise FieldError("metadata.col", "is missing (col or col_no)")
    partial = len(parsed.prompt.rpartition("\n")[2])
    if partial != max(column, 0):
        raise FieldError(f"metadata.{field}", f"is {column}, but the last line of prompt has {partial} characters")
    if column == -1 or (column == 0 and data.task_type != "sl"):
        return NEXT_LINE, 0
    return SINGLE_LINE, column


def _masked(data: _Metadata) -> tuple[Span, ...]:
    if data.import_no and (len(data.import_no) != 2 or data.import_no[0] > data.import_no[1]):
        raise FieldError("metadata.import_no", f"{data.import_no} is not [first line, last line]")
    spans = [(data.import_no[0], data.import_no[1] + 1)] if data.import_no else []
    if data.ctxbench is not None and data.ctxbench.masked:
        spans = [(start, end) for start, end in data.ctxbench.masked]
    for start, end in spans:
        if not start < end <= data.line_no:
            raise FieldError("metadata.import_no", f"lines {start} to {end - 1} are not before line_no {data.line_no}")
    return tuple(spans)


def _shown_text(parsed: _Task, masked: tuple[Span, ...]) -> tuple[str, int]:
    data = parsed.metadata
    start, lines = data.context_start_lineno, parsed.prompt.split("\n")
    hidden = {line for span in masked for line in range(*span)}
    deleted = data.line_no - start - (len(lines) - 1)
    if not deleted:
        return "\n".join(blanked(lines, masked, start)), start
    if deleted != len(hidden):
        expected = f"{data.line_no - start}, or {data.line_no - start - len(hidden)} where its masked lines are deleted"
        raise FieldError(
            "metadata.line_no", f"prompt has {len(lines) - 1} whole lines from line {start}, not {expected}"
        )
    visible_numbers = [number for number in range(data.line_no + 1) if number not in hidden]
    text_of = dict(zip(visible_numbers[start:], lines, strict=True))
    # A prompt from line 0 starts with the file's first line, even if that is a deleted import.
    start = visible_numbers[start] if start else 0
    return "\n".join(text_of.get(number, "") for number in range(start, data.line_no + 1)), start


def in_repository(task: Task, text: str) -> Task | None:
    """Rebuild a task's prompt from the content of its file; None if prompt or answer differ from the file.

    A line that is blank only in the stored prompt counts as masked, because `import_no` names at most one range.
    """
    sample, lines = task.sample, text.split("\n")
    line, column = sample.cursor.line, sample.cursor.column
    if line >= len(lines) or lines[line][column:].rstrip() != task.reference.target:
        return None
    *stored, partial = sample.prefix.removeprefix("\ufeff").split("\n")
    visible = blanked(lines[:line], sample.masked)
    prompt_lines = [*visible[: sample.first_line], *stored]
    differing = [number for number in range(line) if prompt_lines[number].rstrip() != visible[number].rstrip()]
    if partial != lines[line][:column] or any(prompt_lines[number].strip() for number in differing):
        return None
    masked = (*sample.masked, *((number, number + 1) for number in differing))
    visible = blanked(visible, masked)
    hidden = "\n".join("\n".join(lines[start:end]) for start, end in masked)
    rebuilt = replace(
        sample,
        masked=masked,
        prefix="".join(f"{visible_line}\n" for visible_line in visible) + lines[line][:column],
        suffix="\n".join(lines[line + 1 :]),
    )
    return replace(task, sample=rebuilt, reference=replace(task.reference, original_import=hidden or None))


class _PredictionMetadata(Strict):
    task_id: Annotated[str, Field(min_length=1)]


class _Prediction(Strict):
    metadata: _PredictionMetadata
    pred_res: str


def first_line(text: str) -> str:
    """Return a text's first nonblank line, stripped, as in InferCom's ``choices``; empty if there is none."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def _read_predictions(rows: Iterable[Row]) -> list[RecordedSample]:
    read_samples = []
    for where, row in rows:
        prediction = checked(_Prediction, row, where=where, cure=f"write {_PREDICTION_SHAPE}")
        answers = (RecordedAnswer(text=prediction.pred_res),)
        read_samples.append(
            RecordedSample(where=where, task=prediction.metadata.task_id, answers=answers, metadata=row["metadata"])
        )
    return read_samples


def _write_predictions(sample: RecordedSample, task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    text = sample.answers[0].text
    yield {**task, "pred_res": text, "choices": [{"text": first_line(text)}]}


INFERCOM = PredictionFiles(
    shape=_PREDICTION_SHAPE,
    read=_read_predictions,
    write=_write_predictions,
    kind=Kind.LINE,
    tasks=lambda _: BENCHMARK,
    single=True,
)
"""InferCom's predictions: the task's record with the model's text as ``pred_res``. Imports read it and ``metadata``."""
register(
    BenchmarkFormat(
        name=BENCHMARK,
        samples=SampleFiles(shape=SHAPE, read=read, records=records, in_repository=in_repository),
        predictions=INFERCOM,
    )
)
register(BenchmarkFormat(name="infercom", predictions=INFERCOM))
