"""What is known of CoderEval's tasks: their records, the places of their functions, and what became of each. Pure.

Every task of a set has a `Fate`: it is kept, or there is a reason why not; none is dropped in silence.
"""

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
"""The record's file, name, parameters and docstring."""
INHERITED = "inherited-docstring"
"""All but the docstring, which the record has from a base class or a built-in one (``inspect.getdoc``)."""
OTHER_FILE = "other-file"
"""The record names another file, and exactly one file holds the function."""
NO_REFERENCE = "no_reference"
"""Key of `Reference.fields`: the benchmark's files hold no answer, so that nothing can be compared with one."""
CONTRADICTION = "told"
"""Key of `Reference.fields`: where the task's file contradicts its record, in words."""
DOCSTRING = "docstring"
"""Key of `Reference.fields`: ``human`` where the docstring shown is the one written for the benchmark."""


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
    declaration: Declaration
    """Its docstring is empty where it is inherited."""
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


def placed(
    task: Task, located: Located, text: str, *, repo: str, hidden: tuple[str, ...] = (), tests: tuple[str, ...] = ()
) -> Task:
    """Return a task made anew from the file that its function stands in.

    Id, level, signature and docstring stay those of the benchmark; position, text and answer are the file's.

    Args:
        task: as the benchmark's files tell it.
        located: where its function stands.
        text: the whole file.
        repo: the repository's name in the set.
        hidden: files, and folders (ended by ``/``), that no strategy may see.
        tests: ids of the tests that judge it.
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
    """Return a task that was given its file's text, with notes and prefix put right.

    Contradictions between file and record are noted. Where the human docstring was asked for, it replaces the file's
    own in the prefix, on as many lines, so that lines keep their numbers.

    Args:
        task: with the prefix as it stands in the file.
        located: where its function stands.
    """
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
    """Return a prefix with another docstring, on one line if the old one has not as many."""
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
"""No repository stands for its project."""
NO_TESTS = "no_tests"
"""Its repository's manifest says nothing of tests."""
UNREACHABLE = "unreachable"
"""No source of its repository could be reached now: another time it may be there."""
SUITE_FAILED = "suite_failed"
"""Its repository's tests cannot be run here."""
NO_COVERING_TEST = "no_covering_test"
"""No usable test runs a line of its function."""
TOO_SLOW = "too_slow"
"""The tests that run its function take too long together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The outcome of one task, with what it was located and judged by."""

    id: str
    project: str
    """As recorded."""
    outcome: str
    """`KEPT` or a reason: one of the above, of `bench.codereval.records.Missed`, or of
    `bench.functions.certify.certificate`."""
    detail: str = ""
    repo: str = ""
    """The repository that stands for its project."""
    path: str = ""
    name: str = ""
    """The function's: within its file once it is located, before that as recorded."""
    how: str = ""
    """How its function was located, see `bench.codereval.records.Located`."""
    remark: str = ""
    """What of the record the located function contradicts."""
    tests: tuple[str, ...] = ()
    """Those that judge it."""
    covering: int = 0
    """How many usable tests run its function."""

    @property
    def judged_by(self) -> str:
        """Whose tests judge it: ``project``, ``ours``, ``both``; empty if none do."""
        ours = sum(test.startswith(ADDED) for test in self.tests)
        if not self.tests:
            return ""
        return "project" if not ours else "ours" if ours == len(self.tests) else "both"

    def entry(self) -> dict[str, Any]:
        """Return it for the set's manifest, empty fields left out."""
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
        """Return it for a person, on one line."""
        return f"{self.id} {self.project} {self.name}: {self.outcome}{f': {self.detail}' if self.detail else ''}"


def account(fates: Sequence[Fate]) -> dict[str, Any]:
    """Return what a set's manifest says of its tasks: each of them, counts of each project and of all."""
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


def remarks(fates: Iterable[Fate]) -> list[str]:
    """Return what a reader of the set's numbers must know."""
    fates = list(fates)
    kept_count = sum(fate.outcome == KEPT for fate in fates)
    sentences = [
        f"CoderEval tasks rebuilt on published releases and judged by tests that are not the benchmark's: "
        f"{kept_count} of {len(fates)} tasks"
    ]
    whys = {UNREACHABLE: "their sources could not be reached", SUITE_FAILED: "their tests could not be run here"}
    for outcome, why in whys.items():
        repos = sorted({fate.repo for fate in fates if fate.outcome == outcome})
        if repos:
            sentences.append(f"the tasks of {', '.join(repos)} are missing: {why}")
    return sentences
