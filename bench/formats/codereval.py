"""CoderEval: functions of real projects, judged by tests. Reads its tasks, its prompts, and recorded results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from ctxbench.bench.checking import FieldError, Strict, checked, explained, inside
from ctxbench.bench.codereval.locate import locate, locate_in_file
from ctxbench.bench.codereval.predictions import PREDICTIONS
from ctxbench.bench.codereval.records import CONTRADICTION, DOCSTRING, NO_REFERENCE, Missed, rebuild_task, record_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import plain_newlines
from ctxbench.bench.formats import BenchmarkFormat, Options, SampleFiles, Table, Task, Unusable, register
from ctxbench.bench.functions.mining import Level
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Kind, Reference, Sample

BENCHMARK = "codereval"
SHAPE = (
    "`CoderEval4Python.json` or `CoderEval4Java.json` (`RECORDS`: `_id`, `name`, `code`, `docstring`, `human_label`, "
    "`file_content`, `file_path` or `file_name`, `project`, `lineno`, `level`); or `CE*Raw.jsonl` or "
    "`CE*HumanLabel.jsonl` (`question_id`, `input`, `signature`, `docstring`) together with recorded results "
    "(`*_out.jsonl`; only their tasks are read). Prompts without a task are counted."
)
_Prompts = dict[str, tuple[str, "PromptRecord"]]
CURE = "correct that record; `ctxbench samples import --help` describes the fields"
_Named = Annotated[str, Field(min_length=1)]
_Number = str | int | None
"""A line number, which CoderEval writes as text."""


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read tables of tasks and prompts, join them by id, and yield tasks and unusable records.

    Raises:
        InputFault: if a record is malformed, a prompt is repeated, a raw prompt's docstring differs from its task's,
            or the files contain prompts but no task.
    """
    prompts: dict[str, _Prompts] = {"raw": {}, "human": {}}
    tasks: list[tuple[str, RecordedTask]] = []
    for table in tables:
        kind = "human" if "human" in table.name.lower() else "raw"
        for where, row in table.rows:
            if is_prompt(row):
                _add(prompts[kind], prompt(row, where=where), where)
            else:
                tasks.append((where, recorded(row, where=where)))
    if not tasks:
        _refuse_alone(prompts)
    for where, recorded_task in tasks:
        joined = _joined(recorded_task, where, prompts)
        task = _task(joined, where, options)
        if isinstance(task, Task):
            task = _of_file(joined, task) if joined.whole else _of_prompt(joined, task, options)
        yield task
    task_ids = {recorded_task.record["_id"] for _, recorded_task in tasks}
    alone = {key: where for kind in prompts.values() for key, (where, _) in kind.items() if key not in task_ids}
    for key, where in alone.items():
        yield Unusable(id=key, reason="no_task", where=where, detail="no task in the files belongs to this prompt")


def _refuse_alone(prompts: Mapping[str, _Prompts]) -> None:
    for kind, of_kind in prompts.items():
        for where, question in of_kind.values():
            language = JAVA if question.signature.endswith("{") else PYTHON
            results = f"CodeGen.{language.label}.Raw_Input.jsonl_out.jsonl"
            cure = f"add the recorded results of any model, which list the tasks (such as {results})"
            chosen = ", and --docstring human" if kind == "human" else ""
            raise InputFault("the files contain prompts without their tasks", where=where, cure=cure + chosen)


def _add(prompts: _Prompts, question: PromptRecord, where: str) -> None:
    if question.question_id in prompts:
        what = f"field question_id: {question.question_id!r} is also at {prompts[question.question_id][0]}"
        raise InputFault(what, where=where, cure="give each file once; CE*HumanLabel.jsonl is recognised by its name")
    prompts[question.question_id] = where, question


def _joined(recorded_task: RecordedTask, where: str, prompts: Mapping[str, _Prompts]) -> RecordedTask:
    record = dict(recorded_task.record)
    (_, raw), (_, human) = (prompts[kind].get(record["_id"], (where, None)) for kind in ("raw", "human"))
    if raw is not None and "".join(raw.docstring.split()) != "".join(record["docstring"].split()):
        at = prompts["raw"][record["_id"]][0]
        cure = "give the files of one benchmark; a file of human docstrings must have HumanLabel in its name"
        raise InputFault(f"field docstring: differs from the task's docstring at {where}", where=at, cure=cure)
    if human is not None and not record.get("human_label"):
        record["human_label"] = human.docstring
    return RecordedTask(record, recorded_task.language, raw, human)


def _task(recorded_task: RecordedTask, where: str, options: Options) -> Task | Unusable:
    record = recorded_task.record
    java = recorded_task.language == JAVA
    question = recorded_task.question
    human = options.docstring == "human"
    if human and not str(record.get("human_label", "")).strip():
        cure = f"give CE{recorded_task.language.label}HumanLabel.jsonl too, or --docstring raw"
        detail = "the task has no human docstring"
        return Unusable(id=record["_id"], reason="no_human_label", where=where, detail=detail, cure=cure)
    name = str(record.get("file_name") or f"{record['name']}.java")
    name = name if name.endswith(".java") else f"{name}.java"
    sample = Sample(
        id=record["_id"],
        benchmark=BENCHMARK,
        language=recorded_task.language,
        kind=Kind.FUNCTION,
        subkind=record["level"],
        repo=record["project"].replace("/", "---"),
        path="/".join([*filter(None, str(record.get("package", "")).split(".")), name])
        if java
        else record["file_path"],
        cursor=Cursor(line=0, column=0),
        prefix="",
        name=record["name"],
        signature=question.signature if question else None,
        docstring=record["human_label"] if human else record["docstring"],
    )
    fields = {"record": record} | ({DOCSTRING: "human"} if human else {})
    return Task(sample, Reference(id=sample.id, target="", fields=fields), where)


def _of_file(recorded_task: RecordedTask, task: Task) -> Task | Unusable:
    text = plain_newlines(recorded_task.record["file_content"])
    location = locate_in_file(record_of(task), task.sample.path, text, recorded_task.language)
    if isinstance(location, Missed):
        return Unusable(id=task.sample.id, reason=location.reason, where=task.where, detail=location.detail)
    return rebuild_task(task, location, text, repo=task.sample.repo)


def _of_prompt(recorded_task: RecordedTask, task: Task, options: Options) -> Task | Unusable:
    is_human = options.docstring == "human"
    question = recorded_task.human if is_human else recorded_task.raw
    if question is None:
        kind = "HumanLabel" if is_human else "Raw"
        other = "give --docstring human, or " if recorded_task.human else "give "
        cure = f"{other}CE{recorded_task.language.label}{kind}.jsonl too"
        detail = "the files contain neither the task's source file nor its prompt"
        return Unusable(id=task.sample.id, reason="no_prompt", where=task.where, detail=detail, cure=cure)
    text = question.input
    cursor = Cursor(line=text.count("\n"), column=len(text.rpartition("\n")[2]))
    begin = text[: max(text.rfind(question.signature), 0)].count("\n")
    sample = replace(task.sample, prefix=text, cursor=cursor, span=(begin, cursor.line + 1))
    fields = {**task.reference.fields, NO_REFERENCE: True}
    return replace(task, sample=sample, reference=replace(task.reference, fields=fields))


def in_snapshot(task: Task, texts: Mapping[str, str]) -> Task | Unusable:
    """Rebuild a task from the repository file with its function, or return `Unusable` with the reason of `locate`."""
    location = locate(record_of(task), texts, task.sample.language)
    if isinstance(location, Missed):
        return Unusable(id=task.sample.id, reason=location.reason, where=task.where, detail=location.detail)
    return rebuild_task(task, location, texts[location.path], repo=task.sample.repo)


def remarks(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Return remarks for readers of the results, such as the number of tasks without source files."""
    notes = [task.reference.fields[CONTRADICTION] for task in tasks if CONTRADICTION in task.reference.fields]
    lines, codes = (sum(word in note for note in notes) for word in ("begins on line", "the code"))
    without = sum(NO_REFERENCE in task.reference.fields for task in tasks)
    human = sum(DOCSTRING in task.reference.fields for task in tasks)
    counted_sentences = (
        (lines, "wrong_lines: {} records name a wrong line; their functions were found by name near it"),
        (codes, "other_code: in {} files the function differs from the recorded code; the file's version was taken"),
        (without, "no_reference: {} tasks came without their files; only tests can judge them"),
        (human, "docstring human: {} tasks show the docstring that a person wrote for the benchmark"),
    )
    return tuple(sentence.format(count) for count, sentence in counted_sentences if count)


register(
    BenchmarkFormat(
        name=BENCHMARK,
        samples=SampleFiles(
            shape=SHAPE,
            read=read,
            in_snapshot=in_snapshot,
            remarks=remarks,
        ),
        predictions=PREDICTIONS,
    )
)


class _Whole(Strict):
    id: _Named = Field(alias="_id")
    name: _Named
    code: str
    docstring: str
    human_label: str = ""
    file_content: str
    file_path: str = ""
    file_name: str = ""
    class_name: str = ""
    package: str = ""
    project: _Named
    lineno: _Number = None
    end_lineno: _Number = None
    level: str


class _PythonResult(Strict):
    id: _Named = Field(alias="_id")
    file_path: _Named
    project: _Named
    name: _Named
    docstring: str
    level: str
    generate_results: list[Any]


class _JavaResult(Strict):
    id: _Named = Field(alias="_id")
    project_name: _Named
    method_name: _Named
    docstring: str
    code_level: str
    generate_results: list[Any]


class PromptRecord(Strict):
    """A prompt: one line of ``CE*Raw.jsonl`` or ``CE*HumanLabel.jsonl``."""

    question_id: _Named
    input: _Named
    signature: _Named
    docstring: str


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """A task's record with the field names of CoderEval's own file, and the task's prompts."""

    record: Mapping[str, Any]
    language: Language
    raw: PromptRecord | None = None
    """The task's prompt with the original docstring, if the files contain it."""
    human: PromptRecord | None = None
    """The task's prompt with the docstring that a person wrote, if the files contain it."""

    @property
    def question(self) -> PromptRecord | None:
        """The task's prompt, raw if possible; None without prompts, or if the record contains the source file."""
        return None if self.whole else self.raw or self.human

    @property
    def whole(self) -> bool:
        """Whether the record contains the text of its source file."""
        return "file_content" in self.record


def is_prompt(row: Mapping[str, Any]) -> bool:
    """Return whether a record is a prompt rather than a task."""
    return "question_id" in row and "_id" not in row


def prompt(row: Mapping[str, Any], *, where: str) -> PromptRecord:
    """Validate a prompt's record, and return the prompt.

    Raises:
        InputFault: if a field is missing or of a wrong type, or the prompt lacks the signature.
    """
    question = checked(PromptRecord, row, where=where, cure=CURE)
    if question.signature not in question.input:
        raise InputFault("field input: does not contain the signature", where=where, cure=CURE)
    return question


def recorded(row: Mapping[str, Any], *, where: str) -> RecordedTask:
    """Validate a task, or a model's recorded results, and return the task.

    Raises:
        InputFault: if the record is neither a task nor a result, or a field is missing or invalid.
    """
    with explained(where, CURE):
        if "generate_results" in row:
            return _of_results(row, where)
        if "_id" not in row and "file_content" not in row:
            what = "is neither a task (_id, file_content), a prompt (question_id) nor a result"
            raise InputFault(f"the record {what}", where=where, cure="give the benchmark's own files")
        whole = checked(_Whole, row, where=where, cure=CURE)
        _check(whole)
        return _settled(dict(row), PYTHON if whole.file_path else JAVA)


def _of_results(row: Mapping[str, Any], where: str) -> RecordedTask:
    if "method_name" in row or "project_name" in row:
        java = checked(_JavaResult, row, where=where, cure=CURE)
        record = {"_id": java.id, "name": java.method_name, "docstring": java.docstring}
        return _settled(record | {"project": java.project_name, "level": java.code_level}, JAVA)
    listed = checked(_PythonResult, row, where=where, cure=CURE)
    record = {"_id": listed.id, "name": listed.name, "docstring": listed.docstring, "file_path": listed.file_path}
    return _settled(record | {"project": listed.project, "level": listed.level}, PYTHON)


def _settled(record: dict[str, Any], language: Language) -> RecordedTask:
    inside("project", record["project"])
    if record["level"] not in {level.value for level in Level}:
        names = ", ".join(Level)
        raise FieldError(
            "level" if "file_path" in record else "level (code_level)", f"{record['level']!r} is not one of {names}"
        )
    if language == PYTHON and not inside("file_path", record["file_path"]).endswith(language.suffix):
        raise FieldError("file_path", f"{record['file_path']!r} is not a Python file")
    return RecordedTask(record, language)


def _check(whole: _Whole) -> None:
    for field in ("code", "file_content"):
        if not getattr(whole, field).strip():
            raise FieldError(field, "is empty")
    if bool(whole.file_path) is bool(whole.file_name):
        raise FieldError("file_path", "either file_path (Python) or file_name (Java) is required")
    if whole.file_name:
        inside("file_name", whole.file_name)
    for field in ("lineno", "end_lineno"):
        number(field, getattr(whole, field))


def number(field: str, value: str | int | None) -> int | None:
    """Convert a line number, which may be text, to an integer; None if missing.

    Raises:
        FieldError: if the value is not a whole number of at least 1.
    """
    if value is None or value == "":
        return None
    text = str(value).strip()
    if not text.isdecimal() or not int(text):
        raise FieldError(field, f"{value!r} is not a line number, counted from 1")
    return int(text)
