"""Place a located task in its real file: sample, answer and notes are made anew from it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ctxbench.bench.codereval.records import Located
from ctxbench.bench.formats.types import Task
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Cursor

NO_REFERENCE = "no_reference"
"""Key of `Reference.fields`: the benchmark's files hold no answer, so that nothing can be compared with one."""
CONTRADICTION = "told"
"""Key of `Reference.fields`: where the task's file contradicts its record, in words."""
DOCSTRING = "docstring"
"""Key of `Reference.fields`: ``human`` where the docstring shown is the one written for the benchmark."""


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
    line, column = located.cursor.line, located.cursor.column
    tail = located.tail or Cursor(line=located.end, column=0)
    sample = replace(
        task.sample,
        repo=repo,
        path=located.path,
        cursor=located.cursor,
        prefix="".join(f"{text_line}\n" for text_line in lines[:line]) + lines[line][:column],
        suffix="\n".join(lines[tail.line :])[tail.column :],
        context_start=0,
        name=located.name,
        signature=task.sample.signature or located.signature,
        docstring=task.sample.docstring or located.docstring,
        span=(located.start, located.end),
        hidden=tuple(sorted(hidden)),
    )
    target = sample.language.miner().lift(lines[located.start : located.end]).rstrip("\n")
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
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n")
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
