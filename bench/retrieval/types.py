"""Types of retrieval: units, hits, encoders. Frozen data and protocols, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One piece of a file that can be found."""

    place: Place
    text: str
    """What a strategy is shown of it: the function, the chunk, or the API's signature as text."""
    keys: tuple[str, ...] = ()
    """What queries are compared with; its score is that of the best one. Empty: its `text`."""
    name: str = ""
    """Of a function: its name, with the classes around it (``Cart.add``)."""
    code: str = ""
    """Of an API: the function's whole source, which its summary is made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One unit that was found."""

    place: Place
    text: str
    score: float
    name: str = ""
    matched: str = ""
    """The key that was most like the query (a usage example, a summary); empty where that is the text itself."""


class Encoder(Protocol):
    """Turns texts into vectors; equal texts give equal vectors, whatever stands beside them in a batch."""

    @property
    def version(self) -> str:
        """Everything that decides its vectors besides its spec: a digest of the weights. Part of every cache key."""
        ...

    @property
    def width(self) -> int:
        """The length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one vector of length 1 a text, in order: shape (texts, width); too long texts are cut at the end.

        Raises:
            MachineFault: if it could not be computed.
        """
        ...


Summarise = Callable[[Language, Sequence[Unit]], Sequence[str]]
"""APIs, with their `code` -> one short sentence each, empty where none could be made."""

Built = Callable[[str, str, float], None]
"""Told of one thing that was made of a repository to be searched by: the repository, what it is, seconds of wall time.

What it is begins with ``units``, ``summaries``, ``index`` or ``windows``. May be called by several threads.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleTarget:
    """The target file as a view shows it."""

    path: str
    text: str
    cut: int
    """The character at which the cursor stands; what a function sample shows behind the answer begins there."""
    context_start: int
    """A stretch of text is a candidate of retrieval only if it ends at or before this line."""
    trusted: bool
    """Whether the snapshot's file is the one that the sample was made of. If it is not (another version, or none),
    its lines cannot be told apart at the cursor, so only what the sample stores is shown and no window of it is."""
