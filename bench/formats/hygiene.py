"""Finds answers elsewhere in a repository: copies of functions are hidden, repeated lines are counted."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ctxbench.bench.formats import Task
from ctxbench.bench.types import Kind

_TOKEN = re.compile(r"\w+|[^\w\s]")
SHORTEST_REST = 10
"""Minimum characters of a line's rest that reveals an answer if repeated. Shorter rests (``= Cart()``) are common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """One repository's tasks, with copies of their answers hidden on request, and counts of these copies."""

    tasks: tuple[Task, ...]
    counts: Mapping[str, int]
    """Nonzero counts of files, summed over tasks (``copies_hidden`` or ``copies_visible``), and of tasks
    (``copies_in_file``, ``verbatim_elsewhere``)."""


class Copies:
    """A search for exact copies of functions in a repository: the same tokens in any layout."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._flat = {path: _flat(text) for path, text in texts.items()}

    def elsewhere(self, target: str, path: str) -> tuple[str, ...]:
        """Return the files other than `path` that contain a copy of `target`, sorted."""
        flat_target = _flat(target)
        if not flat_target.strip():
            return ()
        return tuple(sorted(other for other, text in self._flat.items() if other != path and flat_target in text))

    def again(self, target: str, path: str) -> bool:
        """Return whether `target` occurs more than once in its own file, `path`."""
        flat_target, text = _flat(target), self._flat.get(path, "")
        first = text.find(flat_target) if flat_target.strip() else -1
        # An immediately following copy shares the blank between the two.
        return first >= 0 and text.find(flat_target, first + 1) >= 0


def cleaned(tasks: Sequence[Task], texts: Mapping[str, str], *, hide: bool) -> Cleaned:
    """Count copies of the tasks' functions and lines; with `hide`, hide other files with a copy of a function."""
    files = Copies(texts) if _any(tasks, Kind.FUNCTION) else None
    lines = VerbatimIndex(texts) if _any(tasks, Kind.LINE) else None
    counts: Counter[str] = Counter()
    cleaned_tasks: list[Task] = []
    for task in tasks:
        sample, target = task.sample, task.reference.target
        hidden = sample.hidden
        if lines is not None and sample.kind is Kind.LINE:
            whole = sample.prefix.rpartition("\n")[2] + target.partition("\n")[0]
            counts["verbatim_elsewhere"] += lines.repeated(whole)
        if files is not None and sample.kind is Kind.FUNCTION:
            copies = files.elsewhere(target, sample.path)
            counts["copies_hidden" if hide else "copies_visible"] += len(copies)
            counts["copies_in_file"] += files.again(target, sample.path)
            hidden = tuple(sorted({*hidden, *copies})) if hide else hidden
        cleaned_tasks.append(replace(task, sample=replace(sample, hidden=hidden)))
    return Cleaned(tasks=tuple(cleaned_tasks), counts={key: count for key, count in sorted(counts.items()) if count})


def _any(tasks: Sequence[Task], kind: Kind) -> bool:
    return any(task.sample.kind is kind for task in tasks)


def _flat(text: str) -> str:
    """Return a text's tokens, each between spaces, so that a copy is a substring."""
    return f" {' '.join(_TOKEN.findall(text))} "


class VerbatimIndex:
    """An index of a repository's lines that finds repeated text."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._count = Counter(line.strip() for text in texts.values() for line in text.split("\n"))
        self._reversed = sorted(line[::-1] for line in self._count)

    def repeated(self, line: str) -> bool:
        """Return whether a line, stripped, occurs at least twice in the repository."""
        return self._count[line.strip()] > 1

    def in_another_file(self, target: str, path: str) -> bool:
        """Return whether the target, stripped, occurs anywhere in a file other than `path`."""
        target = target.strip()
        # In another file, a word at an end of the target may be part of a longer word.
        of_words = (self._paths_of.get(word, ()) for word in re.findall(r"(?<=\W)\w+(?=\W)", target))
        return any(target in self._texts[other] for other in set(self._texts).intersection(*of_words) - {path})

    @functools.cached_property
    def _paths_of(self) -> Mapping[str, set[str]]:
        paths_of: dict[str, set[str]] = {}
        for path, text in self._texts.items():
            for word in set(re.findall(r"\w+", text)):
                paths_of.setdefault(word, set()).add(path)
        return paths_of

    def rest_repeated(self, tail: str) -> bool:
        """Return whether a line's rest has at least `SHORTEST_REST` characters and also ends a different line."""
        reversed_tail = tail.strip()[::-1]
        if len(reversed_tail) < SHORTEST_REST:
            return False
        start = bisect_left(self._reversed, reversed_tail)
        ends = (line.startswith(reversed_tail) for line in self._reversed[start : start + 2])
        return all(ends) and start + 1 < len(self._reversed)
