"""What is left to do once a task stands in its real file. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ctxbench.bench.codereval.records import Located
from ctxbench.bench.formats.types import Task
from ctxbench.bench.types import Cursor, Language

NO_REFERENCE = "no_reference"
"""Key of `Reference.fields`: the files tell no answer, so that nothing can be compared with one."""
TOLD = "told"
"""Key of `Reference.fields`: what of the record its file contradicts, in words."""
DOCSTRING = "docstring"
"""Key of `Reference.fields`: ``human`` where the docstring shown is the one written for the benchmark."""


def finished(task: Task, found: Located) -> Task:
    """Return a task that was given its file's text, with notes and prefix put right.

    It has an answer now; what the file contradicts of the record is noted; and where the human docstring was
    asked for, it stands in the prefix in place of the file's own, on as many lines, so that lines keep their
    numbers.

    Args:
        task: with the prefix as it stands in the file.
        found: where its function stands.
    """
    fields: dict[str, Any] = {
        key: value for key, value in task.reference.fields.items() if key not in (NO_REFERENCE, TOLD)
    }
    if found.remark:
        fields[TOLD] = found.remark
    sample = task.sample
    if fields.get(DOCSTRING) == "human" and found.doc is not None:
        sample = replace(sample, prefix=_replaced(sample.prefix, found.doc, sample.docstring or "", sample.language))
    return replace(task, sample=sample, reference=replace(task.reference, fields=fields))


def _replaced(prefix: str, doc: tuple[Cursor, Cursor], text: str, language: Language) -> str:
    """Return a prefix with another docstring, on one line if the old one has not as many."""
    begin, end = (_offset(prefix, each) for each in doc)
    indent = prefix[prefix.rfind("\n", 0, begin) + 1 : begin]
    held = prefix[begin:end].count("\n")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n")
    if len(lines) - 1 > held:
        lines = [" ".join(text.split())]
    made = _marked(f"\n{indent if not indent.strip() else ''}".join(lines), language)
    return prefix[:begin] + made + "\n" * (held - made.count("\n")) + prefix[end:]


def _marked(text: str, language: Language) -> str:
    if language is Language.JAVA:
        return f"/** {text.replace('*/', '* /')} */"
    quoted = text.replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{quoted}{" " if quoted.endswith(chr(34)) else ""}"""'


def _offset(text: str, cursor: Cursor) -> int:
    begin = 0
    for _ in range(cursor.line):
        begin = text.index("\n", begin) + 1
    return begin + cursor.column
