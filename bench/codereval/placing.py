"""From a located task to a sample of its real file. Pure."""

from __future__ import annotations

from dataclasses import replace

from ctxbench.bench.codereval.finishing import finished
from ctxbench.bench.codereval.records import Located
from ctxbench.bench.formats.types import Task
from ctxbench.bench.functions.mining import miner
from ctxbench.bench.types import Cursor


def placed(
    task: Task, found: Located, text: str, *, repo: str, hidden: tuple[str, ...] = (), tests: tuple[str, ...] = ()
) -> Task:
    """Return a task made anew from the file that its function stands in.

    Id, level, signature and docstring stay those of the benchmark; position, text and answer are the file's.

    Args:
        task: as the benchmark's files tell it.
        found: where its function stands.
        text: the whole file.
        repo: the repository's name in the set.
        hidden: files, and folders (ended by ``/``), that no strategy may see.
        tests: ids of the tests that judge it.
    """
    lines = text.split("\n")
    line, column = found.cursor.line, found.cursor.column
    tail = found.tail or Cursor(line=found.end, column=0)
    sample = replace(
        task.sample,
        repo=repo,
        path=found.path,
        cursor=found.cursor,
        prefix="".join(f"{each}\n" for each in lines[:line]) + lines[line][:column],
        suffix="\n".join(lines[tail.line :])[tail.column :],
        context_start=0,
        name=found.name,
        signature=task.sample.signature or found.signature,
        docstring=task.sample.docstring or found.docstring,
        span=(found.start, found.end),
        hidden=tuple(sorted(hidden)),
    )
    target = miner(sample.language).lift(lines[found.start : found.end]).rstrip("\n")
    reference = replace(task.reference, target=target, tests=tests)
    return finished(replace(task, sample=sample, reference=reference), found)
