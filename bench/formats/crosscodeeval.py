"""CrossCodeEval: the rest of a statement, with code that the benchmark's authors retrieved. One file per retriever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ctxbench.bench.checking import FieldError, Strict, checked, explained, inside, language_of
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
from ctxbench.bench.types import Cursor, Kind, Reference, Sample, StoredContext, StoredSnippet

STATEMENT = "statement"
"""Subkind of CrossCodeEval's samples: the rest of a statement, possibly with several lines."""
SHAPE = (
    "`prompt`, `groundtruth`, optionally `right_context` and `crossfile_context` (`text`, and `list` of "
    "`retrieved_chunk`, `filename`, `score`), and `metadata` with `task_id`, `repository`, `file`, "
    "`groundtruth_start_lineno` and optionally `context_start_lineno`. Several files of one release are joined on "
    "the id; a context is named after its file."
)
_PREDICTION_SHAPE = 'one object per line: {"task_id": "…", "pred": "…"}'
_CURE = "correct that record; `ctxbench samples import --help` describes the fields"
_ONE_RELEASE = "give files of one release"
BENCHMARK = "crosscodeeval"
GRAPHS = {
    "definition": "crossfile_definition_by_dependency_graph",
    "reference": "crossfile_reference_by_dependency_graph",
}
_Line = Annotated[int, Field(ge=0)]
_Word = Annotated[str, Field(min_length=1)]


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:  # noqa: ARG001 - files say it
    """Join the tables' records by task, and yield the tasks in the order of their first records.

    Raises:
        InputFault: if a record is malformed or repeated, or two files contradict each other on a task.
    """
    tasks: dict[str, Task | Unusable] = {}
    for table in tables:
        name = table.name.removeprefix("line_completion").strip("_-")
        places: dict[str, str] = {}
        for where, row in table.rows:
            record = checked(CrossCodeEvalRecord, row, where=where, cure=_CURE)
            key = record.metadata.task_id
            with explained(where, _CURE):
                if key in places:
                    raise FieldError("metadata.task_id", f"{key!r} is also at {places[key]}")
                task = _task(record, name, where)
            places[key] = where
            with explained(where, _ONE_RELEASE):
                tasks[key] = _joined(tasks[key], task) if key in tasks else task
    yield from tasks.values()


def in_repository(task: Task, text: str) -> Task | None:
    """Rebuild a task's prompt from the content of its file; None if prompt or answer differ from the file."""
    sample, lines = task.sample, text.split("\n")
    line, column = sample.cursor.line, sample.cursor.column
    prompt, target = (plain_newlines(part) for part in (sample.prefix, task.reference.target))
    if line >= len(lines) or column > len(lines[line]):
        return None
    cursor = sum(len(part) + 1 for part in lines[:line]) + column
    before, after = text[:cursor], text[cursor:]
    # The files of a snapshot have no byte order mark.
    if not before.endswith(prompt.removeprefix("\ufeff")) or not after.startswith(target):
        return None
    suffix = after[len(target) :] if sample.suffix is None else sample.suffix
    rebuilt = replace(sample, prefix=before, suffix=suffix)
    return replace(task, sample=rebuilt, reference=replace(task.reference, target=target))


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the records of line samples. `read` converts them back.

    Raises:
        InputFault: if a sample is a function or has masked lines, which the format cannot express.
    """
    for sample in samples:
        if sample.kind is not Kind.LINE:
            raise InputFault(
                f"{sample.id} is a {sample.kind} sample, but CrossCodeEval has only line samples",
                cure="use --format ctxbench, which can store it",
            )
        if sample.masked:
            raise InputFault(
                f"{sample.id} has masked lines, which CrossCodeEval cannot store",
                cure="use --format projbench, which can store them",
            )
        yield record_of(sample, references[sample.id])


def _task(record: CrossCodeEvalRecord, file: str, where: str) -> Task | Unusable:
    data, name = record.metadata, record.metadata.task_id
    if "/" in inside("metadata.repository", data.repository):
        raise FieldError("metadata.repository", f"{data.repository!r} is not the name of a folder")
    language = language_of(inside("metadata.file", data.file))
    if language is None:
        return Unusable(id=name, reason="unsupported_language", where=where, detail=data.file)
    if not record.groundtruth.strip():
        return Unusable(id=name, reason="empty_target", where=where)
    line = data.context_start_lineno + record.prompt.count("\n")
    if line != data.groundtruth_start_lineno:
        detail = f"prompt ends on line {line}, metadata.groundtruth_start_lineno is {data.groundtruth_start_lineno}"
        return Unusable(id=name, reason="cursor_mismatch", where=where, detail=detail)
    sample = Sample(
        id=name,
        benchmark=BENCHMARK,
        language=language,
        kind=Kind.LINE,
        subkind=STATEMENT,
        repo=data.repository,
        path=data.file,
        cursor=Cursor(line=line, column=len(record.prompt.rpartition("\n")[2])),
        prefix=record.prompt,
        suffix=record.right_context,
        context_start=data.context_start_lineno,
        stored=contexts_of(record, file),
    )
    return Task(sample, Reference(id=name, target=record.groundtruth), where)


def _joined(old: Task | Unusable, new: Task | Unusable) -> Task | Unusable:
    if isinstance(old, Unusable):
        return old
    if isinstance(new, Unusable):
        return new
    earlier, later = old.sample, new.sample
    same = {
        "prompt": (earlier.prefix, later.prefix),
        "groundtruth": (old.reference.target, new.reference.target),
        "right_context": (earlier.suffix, later.suffix),
        "metadata.repository": (earlier.repo, later.repo),
        "metadata.file": (earlier.path, later.path),
        "metadata.context_start_lineno": (earlier.context_start, later.context_start),
    }
    for field, (this, that) in same.items():
        if this != that:
            raise FieldError(field, f"the value for {earlier.id!r} differs from the value at {old.where}")
    contexts = {context.name: context for context in earlier.stored}
    for context in later.stored:
        if contexts.setdefault(context.name, context) != context:
            raise FieldError(
                "crossfile_context", f"{earlier.id!r} has another context {context.name!r} in an earlier file"
            )
    return replace(old, sample=replace(earlier, stored=ordered(contexts.values())))


class _Loose(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class _Item(_Loose):
    retrieved_chunk: str
    filename: str
    score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    node_type: str = ""
    relation: str = ""


class _Context(_Loose):
    text: str | None = None
    items: list[_Item] | None = Field(None, alias="list")


class _Named(_Context):
    name: _Word


class _Extension(_Loose):
    context: str = ""
    stored: list[_Named] = []


class _Metadata(_Loose):
    task_id: _Word
    repository: _Word
    file: _Word
    context_start_lineno: _Line = 0
    groundtruth_start_lineno: _Line
    ctxbench: _Extension | None = None


_Maybe = Annotated[_Context | None, BeforeValidator(lambda value: value or None)]
"""A context, or None. The authors' program writes an empty text or object if it finds nothing."""


class CrossCodeEvalRecord(_Loose):
    """A record in a CrossCodeEval file."""

    prompt: str
    groundtruth: str
    right_context: str | None = None
    metadata: _Metadata
    crossfile_context: _Maybe = None
    crossfile_definition_by_dependency_graph: _Maybe = None
    crossfile_reference_by_dependency_graph: _Maybe = None


def contexts_of(record: CrossCodeEvalRecord, file: str) -> tuple[StoredContext, ...]:
    """Return a record's nonempty retrieved contexts, in the order of `ordered`.

    Args:
        file: name for ``crossfile_context`` if the record does not name it.

    Raises:
        FieldError: if two contexts have the same name.
    """
    contexts: dict[str, StoredContext] = {}
    for name, context in _named(record, file):
        if name in contexts:
            raise FieldError("metadata.ctxbench", f"there are two contexts {name!r}")
        snippets = tuple(
            StoredSnippet(
                path=item.filename,
                text=item.retrieved_chunk,
                score=item.score,
                name=" ".join(filter(None, (item.node_type, item.relation))),
            )
            for item in context.items or ()
        )
        oracle = "oracle" in name.lower() or any(_reaches_past(snippet, record) for snippet in snippets)
        contexts[name] = StoredContext(name=name, text=context.text or "", snippets=snippets, oracle=oracle)
    return ordered(contexts.values())


def ordered(contexts: Iterable[StoredContext]) -> tuple[StoredContext, ...]:
    """Return contexts with dependency graphs last, and the other contexts in their given order."""
    last = {name: number for number, name in enumerate(GRAPHS, 1)}
    return tuple(sorted(contexts, key=lambda context: last.get(context.name, 0)))


def record_of(sample: Sample, reference: Reference) -> dict[str, Any]:
    """Return a line sample's CrossCodeEval record, with its first retrieved context as ``crossfile_context``."""
    contexts = {context.name: _context(context) for context in sample.stored}
    graphs = {field: contexts.pop(name) for name, field in GRAPHS.items() if name in contexts}
    first, *others = contexts or [""]
    ours: dict[str, Any] = {"context": first} if first else {}
    ours |= {"stored": [{"name": name, **contexts[name]} for name in others]} if others else {}
    metadata = {
        "task_id": sample.id,
        "repository": sample.repo,
        "file": sample.path,
        "context_start_lineno": sample.context_start,
        "groundtruth_start_lineno": sample.cursor.line,
    }
    return {
        "prompt": sample.stored_prompt,
        "groundtruth": reference.target,
        **({} if sample.suffix is None else {"right_context": sample.suffix}),
        "metadata": metadata | ({"ctxbench": ours} if ours else {}),
        **({"crossfile_context": contexts[first]} if first else {}),
        **graphs,
    }


def _named(record: CrossCodeEvalRecord, file: str) -> list[tuple[str, _Context]]:
    ours = record.metadata.ctxbench or _Extension()
    named = [
        (ours.context or file or "crossfile", record.crossfile_context),
        *((context.name, context) for context in ours.stored),
        *((name, getattr(record, field)) for name, field in GRAPHS.items()),
    ]
    return [(name, context) for name, context in named if context is not None and (context.text or context.items)]


def _reaches_past(piece: StoredSnippet, record: CrossCodeEvalRecord) -> bool:
    return piece.path == record.metadata.file and f"\n{_code(piece.text)}\n" not in f"\n{_code(record.prompt)}\n"


def _code(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _context(stored_context: StoredContext) -> dict[str, Any]:
    items = [
        {
            "retrieved_chunk": snippet.text,
            "filename": snippet.path,
            "score": snippet.score,
            **({"relation": snippet.name} if snippet.name else {}),
        }
        for snippet in stored_context.snippets
    ]
    return {"text": stored_context.text, "list": items}


class _Prediction(Strict):
    task_id: _Word
    pred: str


def _read_predictions(rows: Iterable[Row]) -> list[RecordedSample]:
    read_samples = []
    for where, row in rows:
        prediction = checked(_Prediction, row, where=where, cure=f"write {_PREDICTION_SHAPE}")
        answers = (RecordedAnswer(text=prediction.pred),)
        read_samples.append(RecordedSample(where=where, task=prediction.task_id, answers=answers))
    return read_samples


def _write_predictions(sample: RecordedSample, task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"task_id": task["metadata"]["task_id"], "pred": sample.answers[0].text}


register(
    BenchmarkFormat(
        name=BENCHMARK,
        samples=SampleFiles(shape=SHAPE, read=read, records=records, in_repository=in_repository),
        predictions=PredictionFiles(
            shape=_PREDICTION_SHAPE,
            read=_read_predictions,
            write=_write_predictions,
            kind=Kind.LINE,
            tasks=lambda _: BENCHMARK,
            single=True,
        ),
    )
)
