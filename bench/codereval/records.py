"""Data on CoderEval's tasks: records, locations of functions, and outcomes of rebuilding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxbench.bench.files import plain_newlines
from ctxbench.bench.formats import Task
from ctxbench.bench.functions.candidates import Declaration
from ctxbench.bench.judging.suites import ADDED
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Cursor

EXACT = "exact"
"""File, name, parameters and docstring match the record."""
INHERITED = "inherited-docstring"
"""Like `EXACT`, except that the record has an inherited docstring (``inspect.getdoc``)."""
OTHER_FILE = "other-file"
"""The recorded file does not contain the function, but exactly one other file does."""
NO_REFERENCE = "no_reference"
"""Key of `Reference.fields`, present if the benchmark's files contain no answer."""
CONTRADICTION = "told"
"""Key of `Reference.fields`: contradictions between the task's file and its record, as a message."""
DOCSTRING = "docstring"
"""Key of `Reference.fields`: ``human`` if the docstring was written for the benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """CoderEval's record of a task. Missing values are empty, or None for `lineno`."""

    id: str
    project: str
    """Project as ``owner/repo`` (Python) or as a folder's name (Java)."""
    path: str
    """Path in the repository (Python), or the file's name, which may be empty (Java)."""
    name: str
    level: str
    signature: str
    """Text up to the colon (Python) or opening brace (Java). An empty signature matches any parameters."""
    docstring: str
    """Original docstring. In Python, its later lines are not indented; in Java, it includes comment marks."""
    code: str = ""
    lineno: int | None = None
    class_name: str = ""
    package: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Location of a task's function. Lines are 0-based, and ends are exclusive."""

    path: str
    declaration: Declaration
    how: str
    """How well the function matches the record: `EXACT`, `INHERITED` or `OTHER_FILE`."""
    doc: tuple[Cursor, Cursor] | None = None
    """Start and end of the docstring, with quotes or comment marks; None without a docstring."""
    remark: str = ""
    """Message on contradictions between the file and the record (line, code); empty if there are none."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The reason why a task's function was not found or cannot be used."""

    reason: str
    """``no_file``, ``no_function``, ``other_signature``, ``other_docstring``, ``ambiguous`` or ``shares_line``."""
    detail: str


def record_of(task: Task) -> TaskRecord:
    """Return CoderEval's record of a task."""
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


def rebuild_task(
    task: Task, located: Located, text: str, *, repo: str, hidden: tuple[str, ...] = (), tests: tuple[str, ...] = ()
) -> Task:
    """Rebuild a task from the file with its function. The id, the level, and any signature and docstring do not change.

    Args:
        text: content of the file.
        hidden: paths to hide from strategies.
    """
    lines = text.split("\n")
    line, column = located.declaration.cursor.line, located.declaration.cursor.column
    tail = located.declaration.tail or Cursor(line=located.declaration.end, column=0)
    sample = replace(
        task.sample,
        repo=repo,
        path=located.path,
        cursor=located.declaration.cursor,
        prefix="".join(f"{text_line}\n" for text_line in lines[:line]) + lines[line][:column],
        suffix="\n".join(lines[tail.line :])[tail.column :],
        context_start=0,
        name=located.declaration.name,
        signature=task.sample.signature or located.declaration.signature,
        docstring=task.sample.docstring or located.declaration.docstring,
        span=(located.declaration.start, located.declaration.end),
        hidden=tuple(sorted(hidden)),
    )
    target = sample.language.miner().lift(lines[located.declaration.start : located.declaration.end]).rstrip("\n")
    reference = replace(task.reference, target=target, tests=tests)
    return finished(replace(task, sample=sample, reference=reference), located)


def finished(task: Task, located: Located) -> Task:
    """Add the remark of `located` to a task, and put the human docstring, if the task uses it, into the prefix."""
    fields: dict[str, Any] = {
        key: value for key, value in task.reference.fields.items() if key not in (NO_REFERENCE, CONTRADICTION)
    }
    if located.remark:
        fields[CONTRADICTION] = located.remark
    sample = task.sample
    if fields.get(DOCSTRING) == "human" and located.doc is not None:
        sample = replace(sample, prefix=_replaced(sample.prefix, located.doc, sample.docstring or "", sample.language))
    return replace(task, sample=sample, reference=replace(task.reference, fields=fields))


def _replaced(prefix: str, doc: tuple[Cursor, Cursor], text: str, language: Language) -> str:
    begin, end = (_offset(prefix, cursor) for cursor in doc)
    indent = prefix[prefix.rfind("\n", 0, begin) + 1 : begin]
    line_breaks = prefix[begin:end].count("\n")
    lines = plain_newlines(text).strip().split("\n")
    if len(lines) - 1 > line_breaks:
        lines = [" ".join(text.split())]
    docstring = _marked(f"\n{indent if not indent.strip() else ''}".join(lines), language)
    return prefix[:begin] + docstring + "\n" * (line_breaks - docstring.count("\n")) + prefix[end:]


def _marked(text: str, language: Language) -> str:
    if language == JAVA:
        return f"/** {text.replace('*/', '* /')} */"
    quoted = text.replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{quoted}{" " if quoted.endswith(chr(34)) else ""}"""'


def _offset(text: str, cursor: Cursor) -> int:
    begin = 0
    for _ in range(cursor.line):
        begin = text.index("\n", begin) + 1
    return begin + cursor.column


KEPT = "kept"
NO_MANIFEST = "no_manifest"
"""No repository replaces the task's project."""
NO_TESTS = "no_tests"
"""The repository's manifest declares no tests."""
UNREACHABLE = "unreachable"
"""No source of the repository could be reached. A later build may succeed."""
SUITE_FAILED = "suite_failed"
"""The repository's tests cannot run on this machine."""
NO_COVERING_TEST = "no_covering_test"
"""No usable test runs the function."""
TOO_SLOW = "too_slow"
"""The tests that were selected for the function take too long together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """A task's outcome, location and tests."""

    id: str
    project: str
    outcome: str
    """`KEPT`, or the reason for a drop: a constant in this file, `Missed.reason` or `certify.certificate`'s result."""
    detail: str = ""
    repo: str = ""
    path: str = ""
    name: str = ""
    """Name of the function, with its classes if the function was located."""
    how: str = ""
    remark: str = ""
    tests: tuple[str, ...] = ()
    covering: int = 0
    """Number of usable tests that run the function."""

    @property
    def judged_by(self) -> str:
        """Owner of the tests: ``project``, ``ours`` (added by ctxbench) or ``both``; empty without tests."""
        ours = sum(test.startswith(ADDED) for test in self.tests)
        if not self.tests:
            return ""
        return "project" if not ours else "ours" if ours == len(self.tests) else "both"

    def entry(self) -> dict[str, Any]:
        """Return the task's entry in the set's manifest, without empty fields."""
        fields = {
            "project": self.project,
            "outcome": self.outcome,
            "detail": self.detail,
            "repo": self.repo,
            "path": self.path,
            "name": self.name,
            "how": self.how,
            "remark": self.remark,
            "judged_by": self.judged_by,
            "covering": self.covering,
            "tests": list(self.tests),
        }
        return {key: value for key, value in fields.items() if value}

    def line(self) -> str:
        """Return a one-line description of the outcome for the terminal."""
        return f"{self.id} {self.project} {self.name}: {self.outcome}{f': {self.detail}' if self.detail else ''}"


def account(fates: Sequence[TaskReport]) -> dict[str, Any]:
    """Return the manifest's data on the tasks: each task's entry, and counts per project and in total."""
    projects: dict[str, Counter[str]] = {}
    for fate in fates:
        projects.setdefault(fate.project, Counter())[fate.outcome] += 1
    return {
        "tasks": {fate.id: fate.entry() for fate in fates},
        "projects": {
            project: {"tasks": counts.total(), **dict(sorted(counts.items()))}
            for project, counts in sorted(projects.items())
        },
        "unusable": dict(sorted(Counter(fate.outcome for fate in fates if fate.outcome != KEPT).items())),
        "judged_by": dict(sorted(Counter(fate.judged_by for fate in fates if fate.outcome == KEPT).items())),
        "located": dict(sorted(Counter(fate.how for fate in fates if fate.how).items())),
    }


def remarks(fates: Iterable[TaskReport]) -> list[str]:
    """Return remarks for readers of the set's results: how many tasks were rebuilt, and why tasks are missing."""
    fates = list(fates)
    kept_count = sum(fate.outcome == KEPT for fate in fates)
    sentences = [
        f"{kept_count} of {len(fates)} CoderEval tasks were rebuilt on published releases and are judged by other "
        f"tests than CoderEval's"
    ]
    whys = {UNREACHABLE: "their sources could not be reached", SUITE_FAILED: "their tests could not be run here"}
    for outcome, why in whys.items():
        repos = sorted({fate.repo for fate in fates if fate.outcome == outcome})
        if repos:
            sentences.append(f"the tasks of {', '.join(repos)} are missing: {why}")
    return sentences
