"""The interface of engines, records of engines' work, engines' errors, and checks of engines' answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.types import Place


class Mode(StrEnum):
    """The samples that share an engine's box."""

    PER_FILE = "per-file"
    """Samples of one target file. The files in the box contain only what all these samples may see."""
    SHARED = "shared"
    """All samples of one repository. The box starts with whole files. Before a sample's first search, its target file
    is cut to what the sample may see."""


class Engine(Protocol):
    """The interface of an engine: any class with these methods. ``update`` is optional.

    ``saves = True`` declares that the engine works again after its pickled object and its files are restored. Then
    further boxes of a repository start from the saved index.
    """

    def index(self, root: str) -> tuple[str, str]:
        """Index the files in a folder. Return the engine's name and version. Called first."""
        ...

    def update(self, paths: Sequence[str]) -> None:
        """Index the files at `paths` again. Paths are relative to `root` of `index`. Some files may no longer exist."""
        ...

    def search(self, text: str, path: str, line: int, top: int) -> Sequence[tuple[str, int, int, float]]:
        """Return places for a text: (path, first line from 0, line after the last, score).

        Args:
            text: usually the target file up to the cursor.
            path: the target file.
            line: cursor line, 0-based.
            top: maximum number of places. Further places are ignored.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPlace:
    """A place in an engine's answer, with its score."""

    place: Place
    score: float


class EngineDoor(Protocol):
    """The engines that a query may use."""

    def search(self, engine: str, text: str, top: int) -> Sequence[ScoredPlace]:
        """Return an engine's places, in the engine's order, after checking that the places exist.

        Raises:
            InputFault: if the query may not use this engine, or the answer is invalid.
            MachineFault: if the engine was lost.
        """
        ...

    def note(self, engine: str, *, returned: int, cut: int) -> None:
        """Record how many places the strategy received, and how many reached into hidden lines."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUse:
    """A record of one engine's work for one sample."""

    engine: str
    version: str
    mode: Mode
    index_seconds: float = 0.0
    """Seconds that the sample waited for boxes and indexing; 0 if a box was ready."""
    query_seconds: float = 0.0
    calls: int = 0
    places: int = 0
    cut: int = 0
    """Number of places that reached into hidden lines."""
    index_bytes: int = 0
    """Bytes that the engine wrote to disk while indexing."""


class EngineRefused(InputFault):
    """An engine's answer that is not a list of valid places in the indexed files. The whole answer is discarded."""


class EngineLost(MachineFault):
    """An engine that hangs, crashes, cannot start, or sends an invalid or too long answer. The sample stays missing."""


_LAST_LINE = 10_000_000
_CURE = "return places as (path, start, end, score); `ctxbench engine check` tests an engine"
_SCORE = 1e12
_WORDS = 200


class Raised(Exception):
    """An exception that the engine's own code raised."""


def parsed(line: bytes) -> Any:
    """Parse an answer from a box or a server.

    Raises:
        Raised: if the engine raised an exception.
        ValueError: if the line is not a valid answer.
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
    """Return an engine's name with version, the bytes it wrote to disk, and its peak memory in bytes; 0 if unknown.

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
    """Check and return the first `top` places of an engine's answer.

    Args:
        lines: path -> number of lines, for the files that the engine indexed.
        target: target file. Its indexed text may be incomplete.
        target_lines: number of target lines that the engine may have seen. Places that cross their end are truncated.

    Raises:
        EngineRefused: if the answer is not a list, or one of these places is invalid.
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
        raise _refused(engine, f"with a place outside the indexed files: {path!r:.80}")
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
