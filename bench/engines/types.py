"""Types of engines: what one does, what is noted of its work, its faults. Frozen data and protocols, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

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

    ``update`` may be left out: then the tree is indexed again.
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
    """Of the trees that were indexed for this sample, from the start of their boxes; 0 where one was there already."""
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
