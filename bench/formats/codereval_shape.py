"""The records of CoderEval's files, checked, and as one kind of record whichever file they come from. Pure.

Three kinds of file tell of tasks: the benchmark's own (``CoderEval4Python.json``, ``CoderEval4Java.json``), its
prompts (``CE*Raw.jsonl``, ``CE*HumanLabel.jsonl``), and recorded results (``*_out.jsonl``), of which only the task is
taken: what a model wrote is left where it is.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.checking import Odd, Strict, checked, explained, inside
from ctxbench.bench.functions.types import Level
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON

CURE = "mend that record; the shape is described under `ctxbench samples import --help`"
EXTENSION = "ctxbench"
"""Key of what an exported task without its file has besides: signature and prompts."""
_Named = Annotated[str, Field(min_length=1)]
_Number = str | int | None
"""CoderEval writes numbers as text."""


class _Whole(Strict):
    """A task of the benchmark's own file."""

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
    all_context: Any = None
    oracle_context: Any = None


class _Extension(Strict):
    signature: _Named
    input: str = ""
    human_input: str = ""


class _Listed(Strict):
    """A task of an exported set that has no files."""

    id: _Named = Field(alias="_id")
    name: _Named
    docstring: str
    human_label: str = ""
    file_path: str = ""
    project: _Named
    level: str
    ctxbench: _Extension


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
    """A line of ``CE*Raw.jsonl`` or ``CE*HumanLabel.jsonl``."""

    question_id: _Named
    input: _Named
    signature: _Named
    docstring: str


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """One task, under the names of the benchmark's own file, and the language of its file."""

    record: Mapping[str, Any]
    language: Language

    @property
    def whole(self) -> bool:
        """Whether the record holds its source file."""
        return "file_content" in self.record


def is_prompt(row: Mapping[str, Any]) -> bool:
    """Say whether a record is a prompt and no task."""
    return "question_id" in row and "_id" not in row


def prompt(row: Mapping[str, Any], *, where: str) -> PromptRecord:
    """Return a checked prompt.

    Raises:
        InputFault: if a field is missing or of a wrong type, or the prompt lacks the signature.
    """
    question = checked(PromptRecord, row, where=where, cure=CURE)
    if question.signature not in question.input:
        with explained(where, CURE):
            raise Odd("input", "does not hold the signature")
    return question


def recorded(row: Mapping[str, Any], *, where: str) -> RecordedTask:
    """Return a checked task.

    Raises:
        InputFault: if it has none of the shapes, or a field is missing, of a wrong type, or makes no sense.
    """
    with explained(where, CURE):
        if "generate_results" in row:
            return _of_results(row, where)
        if EXTENSION in row:
            listed = checked(_Listed, row, where=where, cure=CURE)
            return _settled(dict(row), PYTHON if listed.file_path else JAVA)
        if "_id" not in row and "file_content" not in row:
            what = "is none of CoderEval's: neither a task (_id, file_content), a prompt (question_id) nor a result"
            raise InputFault(f"the record {what}", where=where, cure="give the benchmark's own files")
        whole = checked(_Whole, row, where=where, cure=CURE)
        _check(whole)
        return _settled(dict(row), PYTHON if whole.file_path else JAVA)


def _of_results(row: Mapping[str, Any], where: str) -> RecordedTask:
    """Return the task of a recorded result; a file of them lists the benchmark's tasks."""
    if "method_name" in row or "project_name" in row:
        java = checked(_JavaResult, row, where=where, cure=CURE)
        record = {"_id": java.id, "name": java.method_name, "docstring": java.docstring}
        return _settled(record | {"project": java.project_name, "level": java.code_level}, JAVA)
    python_result = checked(_PythonResult, row, where=where, cure=CURE)
    record = {
        "_id": python_result.id,
        "name": python_result.name,
        "docstring": python_result.docstring,
        "file_path": python_result.file_path,
    }
    return _settled(record | {"project": python_result.project, "level": python_result.level}, PYTHON)


def _settled(record: dict[str, Any], language: Language) -> RecordedTask:
    inside("project", record["project"])
    if record["level"] not in {level.value for level in Level}:
        names = ", ".join(Level)
        raise Odd("level" if "file_path" in record else "level (code_level)", f"{record['level']!r} is none of {names}")
    if language == PYTHON and not inside("file_path", record["file_path"]).endswith(language.suffix):
        raise Odd("file_path", f"{record['file_path']!r} is no Python file")
    return RecordedTask(record, language)


def _check(whole: _Whole) -> None:
    if not whole.code.strip():
        raise Odd("code", "is empty")
    if not whole.file_content.strip():
        raise Odd("file_content", "is empty")
    if bool(whole.file_path) is bool(whole.file_name):
        raise Odd("file_path", "either file_path (Python) or file_name (Java) is wanted")
    if whole.file_name:
        inside("file_name", whole.file_name)
    for field in ("lineno", "end_lineno"):
        number(field, getattr(whole, field))
    for field in ("all_context", "oracle_context"):
        _context(field, getattr(whole, field))


def number(field: str, value: str | int | None) -> int | None:
    """Return a line number that may be written as text; None if there is none.

    Raises:
        Odd: if it is no number from 1.
    """
    if value is None or value == "":
        return None
    text = str(value).strip()
    if not text.isdecimal() or not int(text):
        raise Odd(field, f"{value!r} is no line number, counted from 1")
    return int(text)


def _context(field: str, value: object) -> None:
    """Check that a context is an object, or the text of one in JSON or Python; nothing reads it, exports keep it."""
    if value is None or value == "" or isinstance(value, dict):
        return
    if not isinstance(value, str):
        raise Odd(field, "is neither an object nor the text of one")
    try:
        read = json.loads(value)
    except ValueError:
        try:
            read = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise Odd(field, "is the text of neither a JSON object nor a Python one") from None
    if not isinstance(read, dict):
        raise Odd(field, "is not the text of an object")
