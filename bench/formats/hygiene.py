"""Answers that stand elsewhere in a repository: copies of functions are hidden, repeated lines are counted. Pure."""

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
"""A shorter rest of a line, such as ``= Cart()``, recurs by chance and gives nothing away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The tasks of one repository, and what was found about them."""

    tasks: tuple[Task, ...]
    counts: Mapping[str, int]
    """``copies_hidden``: files hidden from the sample whose answer they hold, summed over the samples;
    ``copies_in_file``: answers that stand a second time in their own file, which cannot be hidden;
    ``verbatim_elsewhere``: lines that stand elsewhere too. Those that are 0 are left out."""


class Copies:
    """The files of a repository, for asking which of them hold an exact copy of a function.

    A copy is one with the same sequence of tokens: layout does not count.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Index whole files, path -> text."""
        self._flat = {path: _flat(text) for path, text in texts.items()}

    def elsewhere(self, target: str, path: str) -> tuple[str, ...]:
        """Return the files, sorted, that hold a copy of `target`, which stands in the file `path`."""
        flat_target = _flat(target)
        if not flat_target.strip():
            return ()
        return tuple(sorted(other for other, text in self._flat.items() if other != path and flat_target in text))

    def again(self, target: str, path: str) -> bool:
        """Say whether `target` stands a second time in its own file."""
        flat_target, text = _flat(target), self._flat.get(path, "")
        first = text.find(flat_target) if flat_target.strip() else -1
        # A copy that follows at once shares the blank between the two.
        return first >= 0 and text.find(flat_target, first + 1) >= 0


def cleaned(tasks: Sequence[Task], texts: Mapping[str, str], *, hide: bool) -> Cleaned:
    """Return tasks with the files hidden that hold an exact copy of their answer.

    A line that recurs is no leak to be closed: the official sets keep such lines, and so are they here.

    Args:
        tasks: of one repository.
        texts: its files, path -> text.
        hide: False: copies are counted, and stay visible.
    """
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
    """Return the tokens of a text, each between two spaces, so that a text holds another's tokens in one piece."""
    return f" {' '.join(_TOKEN.findall(text))} "


class VerbatimIndex:
    """Every line of a repository, for asking whether a text stands elsewhere too.

    As in ProjBench, a whole line that recurs gives no sample, but the end of a line that also ends another line does:
    code that uses an API recurs by nature, and leaving such lines out would choose lines against retrieval. The
    builder counts them.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Index whole files, path -> text."""
        self._texts = texts
        self._count = Counter(line.strip() for text in texts.values() for line in text.split("\n"))
        self._reversed = sorted(line[::-1] for line in self._count)

    def repeated(self, line: str) -> bool:
        """Say whether a line of the repository, stripped, stands on a second line."""
        return self._count[line.strip()] > 1

    def in_another_file(self, target: str, path: str) -> bool:
        """Say whether what is to be written in the file `path`, stripped, stands anywhere in another file."""
        target = target.strip()
        # A word at an end of the target may be a part of another word there.
        of_words = (self._paths_of.get(word, ()) for word in re.findall(r"(?<=\W)\w+(?=\W)", target))
        return any(target in self._texts[other] for other in set(self._texts).intersection(*of_words) - {path})

    @functools.cached_property
    def _paths_of(self) -> Mapping[str, set[str]]:
        """Word -> the files that have it."""
        paths_of: dict[str, set[str]] = {}
        for path, text in self._texts.items():
            for word in set(re.findall(r"\w+", text)):
                paths_of.setdefault(word, set()).add(path)
        return paths_of

    def rest_repeated(self, tail: str) -> bool:
        """Say whether a rest of a line of the repository, if long enough, also ends a second line."""
        reversed_tail = tail.strip()[::-1]
        if len(reversed_tail) < SHORTEST_REST:
            return False
        start = bisect_left(self._reversed, reversed_tail)
        ends = (line.startswith(reversed_tail) for line in self._reversed[start : start + 2])
        return all(ends) and start + 1 < len(self._reversed)
