"""Answers that stand elsewhere in a repository: copies of functions are hidden, repeated lines are counted. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.formats.types import Task
from bench.projbench.leaks import VerbatimIndex
from bench.types import Kind

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The tasks of one repository, and what was found about them."""

    tasks: tuple[Task, ...]
    counts: Mapping[str, int]
    """``copies_hidden``: files hidden from the sample whose answer they hold, summed over the samples;
    ``copies_in_file``: answers that stand a second time in their own file, which cannot be hidden;
    ``verbatim_elsewhere``: lines that stand elsewhere too. Those that are 0 are left out."""


def cleaned(tasks: Sequence[Task], texts: Mapping[str, str], *, hide: bool) -> Cleaned:
    """Return tasks with the files hidden that hold an exact copy of their answer.

    A copy of a function is one with the same sequence of tokens: layout does not count (strategies.md 1.2).
    A line that recurs is no leak to be closed: the official sets keep such lines, and so are they here.

    Args:
        tasks: of one repository.
        texts: its files, path -> text.
        hide: False: copies are counted, and stay visible.
    """
    flat = {path: _flat(text) for path, text in texts.items()} if _any(tasks, Kind.FUNCTION) else {}
    lines = VerbatimIndex(texts.values()) if _any(tasks, Kind.LINE) else None
    counts = {"copies_hidden" if hide else "copies_visible": 0, "copies_in_file": 0, "verbatim_elsewhere": 0}
    made: list[Task] = []
    for task in tasks:
        sample, target = task.sample, task.reference.target
        copies: list[str] = []
        if lines is not None and sample.kind is Kind.LINE:
            whole = sample.prefix.rpartition("\n")[2] + target.partition("\n")[0]
            counts["verbatim_elsewhere"] += lines.repeated(whole)
        elif target.strip():
            wanted = _flat(target)
            copies = [path for path, text in flat.items() if path != sample.path and wanted in text]
            counts["copies_hidden" if hide else "copies_visible"] += len(copies)
            counts["copies_in_file"] += flat.get(sample.path, "").count(wanted) > 1
        hidden = tuple(sorted({*sample.hidden, *copies})) if hide else sample.hidden
        made.append(replace(task, sample=replace(sample, hidden=hidden)))
    return Cleaned(tasks=tuple(made), counts={key: count for key, count in counts.items() if count})


def _any(tasks: Sequence[Task], kind: Kind) -> bool:
    return any(task.sample.kind is kind for task in tasks)


def _flat(text: str) -> str:
    """Return the tokens of a text, each between two spaces, so that a text holds another's tokens in one piece."""
    return f" {' '.join(_TOKEN.findall(text))} "
