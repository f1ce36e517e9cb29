"""`Diagnostics`: measures of a sample's prompt and completions, sharing what they read of a repository."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ctxbench.bench.languages.base import ProjectNames, ProjectReading
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Kind, Place, Sample
from ctxbench.harness.diagnostics import context
from ctxbench.harness.diagnostics.excerpt import OutlinedFile
from ctxbench.harness.metrics import ctxbench
from ctxbench.strategies.api import Prompt

RECALL, WASTE = "api_recall", "context_waste"
HALLUCINATED, MADE_UP = "hallucinated", "made_up_names"
_MOST_FILES = 256

Scores = dict[str, float | None]


@dataclass(slots=True)
class _Repository:
    """A repository with its outlined files, filled as they are needed."""

    snapshot: Snapshot
    project: ProjectNames
    files: dict[str, OutlinedFile] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)


class Diagnostics:
    """Measures samples of one set; safe to use from many threads."""

    def __init__(self, snapshots: Callable[[], Mapping[str, Snapshot]]) -> None:
        """Use the repositories, which are read when the first sample is measured."""
        self._snapshots = snapshots
        self._repositories: dict[str, _Repository | None] = {}
        self._lock = threading.RLock()

    def of_prompt(self, sample: Sample, prompt: Prompt, target: str) -> Scores:
        """Return `RECALL` and `WASTE`, in 0..1 or None.

        Args:
            sample: the task.
            prompt: the final prompt.
            target: the answer after the cursor.
        """
        with self._lock:
            return {
                RECALL: context.api_recall(sample.uses, prompt),
                WASTE: context.waste(prompt, target, sample.language, lambda place: self._lines(sample.repo, place)),
            }

    def of_completion(self, sample: Sample, text: str, target: str) -> Scores:
        """Return `HALLUCINATED` (share of the project's names that it reads) and `MADE_UP` (their number).

        Args:
            sample: the task.
            text: the completion; for a function the whole function, for a line as much as the target is long is read.
            target: the answer, for its length only.
        """
        readings = self.readings(sample, text, target)
        if readings is None:
            return {HALLUCINATED: None, MADE_UP: None}
        unknown = sum(not reading.known for reading in readings)
        return {HALLUCINATED: unknown / len(readings) if readings else None, MADE_UP: float(unknown)}

    def readings(self, sample: Sample, text: str, target: str) -> tuple[ProjectReading, ...] | None:
        """Return the names of the project that a completion reads; None if its file is not at hand."""
        if sample.kind is Kind.LINE:
            text = ctxbench.unit(sample.prefix.rpartition("\n")[2], text, target)
        with self._lock:
            repository = self._repository(sample.repo)
            if repository is None or sample.path not in repository.snapshot.texts:
                return None
            excerpt = self._file(repository, sample.path).excerpt(sample, text)
            if excerpt is None:
                return None
            return repository.project.readings(sample.path, excerpt.code, start=(excerpt.line, excerpt.column))

    def _repository(self, name: str) -> _Repository | None:
        if name not in self._repositories:
            snapshot = self._snapshots().get(name)
            self._repositories[name] = (
                _Repository(snapshot, snapshot.language.project(snapshot.texts)) if snapshot is not None else None
            )
        return self._repositories[name]

    def _file(self, repository: _Repository, path: str) -> OutlinedFile:
        if path not in repository.files:
            if len(repository.files) >= _MOST_FILES:
                repository.files.clear()
            repository.files[path] = OutlinedFile(repository.snapshot.texts[path], repository.snapshot.language)
        return repository.files[path]

    def _lines(self, name: str, place: Place) -> Sequence[str]:
        repository = self._repository(name)
        if repository is None or place.path not in repository.snapshot.texts:
            return ()
        if place.path not in repository.lines:
            repository.lines[place.path] = repository.snapshot.texts[place.path].split("\n")
        return repository.lines[place.path][place.start : place.end]
