"""The protocol of engines, the record of their work, their faults, and the checks of their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.types import Place


class Mode(StrEnum):
    """The samples that share a box of an engine."""

    PER_FILE = "per-file"
    """The samples of one target file. The tree contains only what all of them may show."""
    SHARED = "shared"
    """The samples of a repository. A target file is whole at first and is cut before each question."""


class Engine(Protocol):
    """An engine as its author writes it: a class with these methods, which need not import this protocol.

    Without ``update``, the tree is indexed again. ``saves = True`` declares that pickle can store the object, together
    with the files of its tree, home and temporary folder. The engine then indexes only once per repository.
    """

    def index(self, root: str) -> tuple[str, str]:
        """Read the files under a folder; return the engine's own name and version. Called first."""
        ...

    def update(self, paths: Sequence[str]) -> None:
        """Read these files again. Paths are relative to the folder, and some files may be gone."""
        ...

    def search(self, text: str, path: str, line: int, top: int) -> Sequence[tuple[str, int, int, float]]:
        """Return places for a text: (path, first line from 0, line after the last, score).

        Args:
            text: usually the target file up to the cursor.
            line: the cursor's line, from 0.
            top: largest number of places. Further places are dropped.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPlace:
    """A place from an engine's answer."""

    place: Place
    score: float


class EngineDoor(Protocol):
    """A view's access to the engines that its query may use."""

    def search(self, engine: str, text: str, top: int) -> Sequence[ScoredPlace]:
        """Return the engine's places, checked against its tree, in the engine's order.

        Raises:
            InputFault: if the query may not use this engine, or its answer is rejected.
            MachineFault: if the engine was lost.
        """
        ...

    def note(self, engine: str, *, returned: int, cut: int) -> None:
        """Record how many places were returned to the strategy, and how many reached into hidden lines."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUse:
    """The work of one engine for one sample."""

    engine: str
    version: str
    mode: Mode
    index_seconds: float = 0.0
    """Seconds that the sample waited for boxes and their indexes; 0 if a box was ready."""
    query_seconds: float = 0.0
    calls: int = 0
    places: int = 0
    """Number of places that the view returned to the strategy."""
    cut: int = 0
    """Number of places that reached into hidden lines. Places that only run past the file's text in its box do not
    count."""
    index_bytes: int = 0
    """Bytes on disk that the engine wrote to index its tree."""


class EngineRefused(InputFault):
    """Raised when an engine's answer contains anything but places of its tree. The whole answer is discarded."""


class EngineLost(MachineFault):
    """Raised when an engine hangs, answers too much, ends or cannot start. The sample stays missing."""


_LAST_LINE = 10_000_000
_CURE = "an engine answers with places: (path, start, end, score); see `ctxbench engine check`"
_SCORE = 1e12
"""Largest score that a block of a prompt may have."""
_WORDS = 200


class Raised(Exception):
    """Raised when the engine's own code raised an exception."""


def parsed(line: bytes) -> Any:
    """Return the answer in a line from a box.

    Raises:
        Raised: if the engine raised an exception.
        ValueError: if the line does not have the form of an answer.
    """
    try:
        message = json.loads(line)
    except RecursionError:
        raise ValueError("the answer is nested too deeply") from None
    if isinstance(message, dict) and isinstance(message.get("raised"), str):
        raise Raised(message["raised"][: 3 * _WORDS])
    if not isinstance(message, dict) or message.keys() != {"answer"}:
        raise ValueError("the answer has an unknown form")
    return message["answer"]


def identity(answer: Any) -> tuple[str, int, int]:
    """Return an engine's name and version, the bytes that it wrote to disk, and its peak memory in bytes.

    Raises:
        ValueError: if the answer to ``index`` lacks the name and version.
    """
    # A server elsewhere reports only its name and version.
    facts = answer if isinstance(answer, dict) else {"told": answer}
    told = facts.get("told")
    if not isinstance(told, list) or len(told) != 2 or not all(isinstance(part, str) for part in told):
        raise ValueError("index(root) must return a name and a version")
    name = " ".join(" ".join(told).split())
    disk, memory = (value if type(value) is int else 0 for value in (facts.get("bytes"), facts.get("memory")))
    return "".join(char for char in name if char.isprintable())[:_WORDS], disk, memory


def places(
    answer: Any, lines: Mapping[str, int], target: str, target_lines: int, top: int, engine: str
) -> list[ScoredPlace]:
    """Return the first `top` places of an answer.

    Args:
        lines: path -> number of lines, for the files of the engine's tree.
        target: the target file. The tree may contain only a part of it, and the view cuts places in it.
        target_lines: number of its lines that the engine may have seen. A place that runs past them ends there.

    Raises:
        EngineRefused: if any part of the answer is not a place of the tree.
    """
    if not isinstance(answer, list):
        raise _refused(engine, f"with {answer!r:.60} instead of a list of places")
    return [_place(item, lines, target, target_lines, engine) for item in answer[:top]]


def _place(item: Any, lines: Mapping[str, int], target: str, target_lines: int, engine: str) -> ScoredPlace:
    if not isinstance(item, list) or len(item) != 4:
        what = (
            "text" if isinstance(item, str | dict) or (isinstance(item, list) and len(item) > 4) else "an invalid place"
        )
        raise _refused(engine, f"with {what}: {item!r:.60}")
    path, start, end, score = item
    if not isinstance(path, str) or type(start) is not int or type(end) is not int:
        raise _refused(engine, f"with an invalid place: {item!r:.80}")
    if path.startswith("/") or "\\" in path:
        raise _refused(engine, f"with an absolute path: {path!r:.80}")
    if path not in lines:
        raise _refused(engine, f"with a place outside its tree: {path!r:.80}")
    if not 0 <= start < end <= _LAST_LINE:
        raise _refused(engine, f"with invalid lines: {item!r:.80}")
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= _SCORE:
        raise _refused(engine, f"with an invalid score: {score!r:.40}")
    last = target_lines if path == target else lines[path]
    if start < last:
        end = min(end, last)
    elif path != target:
        raise _refused(engine, f"with a place after the end of {path!r:.80}, which has {last} lines")
    return ScoredPlace(place=Place(path=path, start=start, end=end), score=float(score))


def _refused(engine: str, what: str) -> EngineRefused:
    return EngineRefused(f"the engine answered {what}", where=engine, cure=_CURE)
