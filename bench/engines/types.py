"""Types of engines: what one does, what is noted of its work, its faults, and its answers, all checked. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.types import Place


class Mode(StrEnum):
    """How many queries share a box of an engine."""

    PER_FILE = "per-file"
    """The samples of one target file: its tree holds nothing that one of them may not show."""
    SHARED = "shared"
    """The samples of a repository: the target file is cut before each question, but was whole before."""


class Engine(Protocol):
    """An engine as its author writes it: a class with these methods, which need not know of this protocol.

    ``update`` may be left out: then the tree is indexed again. ``saves = True`` says that pickle can keep the object
    with the files of its tree, home and temporary folder: then it is indexed once a repository, and updated.
    """

    def index(self, root: str) -> tuple[str, str]:
        """Read the files under a folder; return the engine's own name and version. Called first."""
        ...

    def update(self, paths: Sequence[str]) -> None:
        """Read these files again, of which some may be gone; relative to the folder."""
        ...

    def search(self, text: str, path: str, line: int, top: int) -> Sequence[tuple[str, int, int, float]]:
        """Return places for a text: (path, first line from 0, line after the last, score).

        Args:
            text: usually the target file up to the cursor.
            path: the target file.
            line: the cursor's line, from 0.
            top: how many places are wanted at most; more are left out.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPlace:
    """A place that an engine answered with."""

    place: Place
    score: float


class EngineDoor(Protocol):
    """The engines that one query may ask, as its view needs them."""

    def search(self, engine: str, text: str, top: int) -> Sequence[ScoredPlace]:
        """Return what an engine answers, in its order, places checked against its tree.

        Raises:
            InputFault: if the query may not ask this engine, or its answer is refused.
            MachineFault: if the engine was lost.
        """
        ...

    def note(self, engine: str, *, returned: int, cut: int) -> None:
        """Note how many places were handed out, and how many reached into what is hidden."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUse:
    """The work of one engine for one sample."""

    engine: str
    """Its spec."""
    version: str
    """What it says of itself: name and version."""
    mode: Mode
    index_seconds: float = 0.0
    """Seconds that the sample waited for boxes and their indexes; 0 where a box was there already."""
    query_seconds: float = 0.0
    calls: int = 0
    places: int = 0
    """That the view handed out."""
    cut: int = 0
    """Places that reached into what is hidden; not those that only overhang what a file's own box holds of it."""
    index_bytes: int = 0
    """That the engine had written to disk once its tree was indexed."""


class EngineRefused(InputFault):
    """Raised when an engine answers with what is no place of its tree: no answer of it is used."""


class EngineLost(MachineFault):
    """Raised when an engine hangs, floods, ends or cannot be started: the sample stays missing."""


_LAST_LINE = 10_000_000
_CURE = "an engine answers with places: (path, start, end, score); see `ctxbench engine check`"
_SCORE = 1e12
"""The largest that a prompt's blocks may have."""
_WORDS = 200


class Raised(Exception):
    """Raised when the engine itself raised."""


def parsed(line: bytes) -> Any:
    """Return the answer in a line of a box.

    Raises:
        Raised: if the engine raised.
        ValueError: if it is no line of ours.
    """
    try:
        message = json.loads(line)
    except RecursionError:
        raise ValueError("an answer that is nested too deeply") from None
    if isinstance(message, dict) and isinstance(message.get("raised"), str):
        raise Raised(message["raised"][: 3 * _WORDS])
    if not isinstance(message, dict) or message.keys() != {"answer"}:
        raise ValueError("an answer of no form that is known")
    return message["answer"]


def identity(answer: Any) -> tuple[str, int, int]:
    """Return what an engine says of itself when it has indexed, the bytes that it wrote, and those of its memory.

    Raises:
        ValueError: if it says nothing of the kind.
    """
    # A server elsewhere tells its name and version alone; what it writes is not known.
    facts = answer if isinstance(answer, dict) else {"told": answer}
    told = facts.get("told")
    if not isinstance(told, list) or len(told) != 2 or not all(isinstance(part, str) for part in told):
        raise ValueError("index(root) is to return a name and a version")
    name = " ".join(" ".join(told).split())
    disk, memory = (value if type(value) is int else 0 for value in (facts.get("bytes"), facts.get("memory")))
    return "".join(char for char in name if char.isprintable())[:_WORDS], disk, memory


def places(
    answer: Any, lines: Mapping[str, int], target: str, target_lines: int, top: int, engine: str
) -> list[ScoredPlace]:
    """Return the places of an answer, the first `top`.

    Args:
        answer: JSON data from the box.
        lines: path -> number of lines, of the engine's tree.
        target: the target file, of which the tree may hold a part only: its view cuts places there.
        target_lines: lines of it that the engine may have seen: what only overhangs them reaches into nothing.
        top: how many.
        engine: its spec, for messages.

    Raises:
        EngineRefused: if a part of the answer is no place of the tree.
    """
    if not isinstance(answer, list):
        raise _refused(engine, f"with {answer!r:.60}, which is no list of places")
    return [_place(item, lines, target, target_lines, engine) for item in answer[:top]]


def _place(item: Any, lines: Mapping[str, int], target: str, target_lines: int, engine: str) -> ScoredPlace:
    if not isinstance(item, list) or len(item) != 4:
        what = "text" if isinstance(item, str | dict) or (isinstance(item, list) and len(item) > 4) else "no place"
        raise _refused(engine, f"with {what}: {item!r:.60}")
    path, start, end, score = item
    if not isinstance(path, str) or type(start) is not int or type(end) is not int:
        raise _refused(engine, f"with no place: {item!r:.80}")
    if path.startswith("/") or "\\" in path:
        raise _refused(engine, f"with an absolute path: {path!r:.80}")
    if path not in lines:
        raise _refused(engine, f"with a place outside its tree: {path!r:.80}")
    if not 0 <= start < end <= _LAST_LINE:
        raise _refused(engine, f"with lines that are none: {item!r:.80}")
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= _SCORE:
        raise _refused(engine, f"with a score that is no number: {score!r:.40}")
    last = target_lines if path == target else lines[path]
    if start < last:
        end = min(end, last)
    elif path != target:
        raise _refused(engine, f"with a place behind the end of {path!r:.80}, which has {last} lines, ended by \\n")
    return ScoredPlace(place=Place(path=path, start=start, end=end), score=float(score))


def _refused(engine: str, what: str) -> EngineRefused:
    return EngineRefused(f"the engine answered {what}", where=engine, cure=_CURE)
