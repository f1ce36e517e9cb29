"""CoderEval's records of tasks, and the places of their functions. Frozen data, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from ctxbench.bench.formats.types import Task
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Cursor

EXACT = "exact"
"""The record's file, name, parameters and docstring."""
INHERITED = "inherited-docstring"
"""All but the docstring, which the record has from a base class or a built-in one (``inspect.getdoc``)."""
OTHER_FILE = "other-file"
"""The record names another file, and exactly one file holds the function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task as the benchmark's files tell it; what they do not tell is empty."""

    id: str
    project: str
    """As recorded: ``owner/repo`` (Python), a folder's name (Java)."""
    path: str
    """Python: in the repository. Java: empty, or the file's name."""
    name: str
    """Bare: without classes."""
    level: str
    signature: str
    """Python: up to the colon. Java: up to the opening brace. Empty: any parameters fit."""
    docstring: str
    """The original one. Python: lines after the first are not indented. Java: with its comment marks."""
    code: str = ""
    """The reference function as recorded."""
    lineno: int | None = None
    """Where it begins in the recorded file, counted from 1."""
    class_name: str = ""
    package: str = ""
    """Java: of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Where a task's function stands. Lines are 0-based, ends exclusive."""

    path: str
    """A key of the texts that were searched."""
    name: str
    """``Class.function``; overloads of Java have their parameter types added."""
    start: int
    """Line of its declaration, decorators and annotations left out."""
    cursor: Cursor
    """Where the body begins, after signature and docstring."""
    end: int
    tail: Cursor | None
    """Java: before the closing brace; None: the body ends at `end`."""
    signature: str
    """As it stands in the file, dedented; Java: in one line, without the brace."""
    docstring: str
    """As it stands in the file, without marks; empty where it is inherited."""
    how: str
    """`EXACT`, `INHERITED` or `OTHER_FILE`."""
    doc: tuple[Cursor, Cursor] | None = None
    """Where the docstring begins and ends in the file, marks included; None where it has none of its own."""
    remark: str = ""
    """Where the file contradicts the record (its line, its code), in words; empty if nowhere."""


@dataclass(frozen=True, slots=True)
class Missed:
    """Why a task's function was not found."""

    reason: str
    """``no_file``, ``no_function``, ``other_signature``, ``other_docstring``, ``ambiguous`` or ``shares_line``."""
    detail: str


def record_of(task: Task) -> TaskRecord:
    """Return what the benchmark says of a task that was read by `bench.formats.codereval`."""
    fields = task.reference.fields["record"]
    java = task.sample.language == JAVA
    return TaskRecord(
        id=task.sample.id,
        project=fields["project"],
        path=fields.get("file_name", "") if java else fields["file_path"],
        name=fields["name"],
        level=task.sample.subkind,
        signature=task.sample.signature or "",
        docstring=fields["docstring"],
        code=fields.get("code", ""),
        lineno=int(fields["lineno"]) if fields.get("lineno") else None,
        class_name=fields.get("class_name", ""),
        package=fields.get("package", "") if java else "",
    )
