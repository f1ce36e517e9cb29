"""`StrategyBounds`: the limits of one strategy on one sample; exceeding them is its fault, for that sample alone.

Each bound is at least twenty times what the strategies of the two papers use at most on real repositories
(docs/isolation.md has the numbers), so that only a strategy gone wild meets it.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

MESSAGE = 8 << 20
"""Bytes of one message from a cell."""
CHARACTERS = 2_500_000
"""Of a prompt."""
BLOCKS, DROPPED, FLAGS = 1_000, 10_000, 100
PLACES, LINES = 20_000, 1_000_000
"""Of a prompt, kept and dropped blocks together: places, and the lines that these span."""
LAST_LINE = 10_000_000
SCORE = 1e12
"""The largest number, above and below 0, that a block may be scored with."""
WORD, SENTENCE, PATH, TEXT = 200, 1_000, 4_096, 20_000
"""Characters of a flag, role or reason; of a part of a fault; of a path; of a docstring or a traceback."""
CANDIDATES = 5_000
"""Texts that one question compares."""
TOKENS = 32_768
"""Tokens that one draft may have."""
GIGABYTE = 1 << 30
RESERVE = 64 << 20
"""Bytes of memory that are left to a cell for its report when it holds too much."""
OVERLAP = 40
"""Windows of retrieval that may hold one line: 40 times the repository is then indexed."""


_WORK, _WAITS = 60.0, 5
"""Seconds, and how many times as long a strategy may wait as work."""


@dataclass(frozen=True, kw_only=True)
class StrategyBounds:
    """The limits for one sample."""

    work: float = _WORK
    """Processor time of the cell's own processes."""
    wait: float = _WAITS * _WORK
    """Seconds in which none of them could have worked, although no question was open."""
    memory: int = 4 * GIGABYTE
    """Bytes that they hold at once, each of them and all together."""
    received: int = 32 << 20
    """Bytes of all messages from the cell."""
    sent: int = 1 << 30
    """Bytes of all answers."""
    questions: int = 100_000
    """About the repository."""
    searches: int = 2_000
    """Questions among these that a ranker answers: an encoder's work is no time of the serving thread."""
    drafts: int = 200
    """Calls of the model."""
    programs: int = 200
    """Calls of the sandbox."""
    indices: int = 80
    """Kinds of index (windows of a size and stride; units under a ranker) that are asked for."""
    seconds: float = 120.0
    """Processor time of the thread that serves the strategy, the first use of each index left out."""
    index_seconds: float = 7200.0
    """Processor time of these first uses: an index is built once for all samples, and the first question waits."""

    @classmethod
    def of_work(cls, seconds: float) -> StrategyBounds:
        """Return the usual bounds but for the processor time, and the waiting, of the cell's own processes."""
        return cls(work=seconds, wait=_WAITS * seconds)


class Excess(Exception):
    """Raised when a strategy exceeds a bound, which the text names."""

    def __init__(self, what: str, *, cure: str = "") -> None:
        """Name the bound, and the cure; empty for the usual one, to check the strategy."""
        self.cure = cure
        super().__init__(what)


class Account:
    """The use of one strategy on one sample so far. Belongs to one thread, whose processor time it counts."""

    def __init__(self, bounds: StrategyBounds) -> None:
        """Begin at zero."""
        self._bounds = bounds
        self._used: Counter[str] = Counter()
        self._indices: set[Hashable] = set()
        self._began = time.thread_time()
        self._indexing = 0.0

    def take(self, what: str, amount: int = 1) -> None:
        """Add to the use of something that a field of `StrategyBounds` limits.

        Raises:
            Excess: if the limit is exceeded.
        """
        self._used[what] += amount
        most = getattr(self._bounds, what)
        if self._used[what] > most:
            noun = {"received": "bytes sent", "sent": "bytes asked for"}.get(what, what)
            raise Excess(f"{noun}: more than {most:,}")

    def check_time(self) -> None:
        """Check that there is processor time left.

        Raises:
            Excess: if there is none.
        """
        spent = time.thread_time() - self._began - self._indexing
        for seconds, most, what in (
            (spent, self._bounds.seconds, "its questions"),
            (self._indexing, self._bounds.index_seconds, "the indices it asked for"),
        ):
            if seconds > most:
                raise Excess(f"processor time for {what}: more than {most:g} seconds")

    @contextlib.contextmanager
    def asking(self, index: Hashable) -> Iterator[None]:
        """Count the time inside as building an index, if this is the first question that needs it.

        Raises:
            Excess: if it needs one index too many.
        """
        first = index is not None and index not in self._indices
        if first:
            self._indices.add(index)
            self.take("indices")
        began = time.thread_time()
        try:
            yield
        finally:
            if first:
                self._indexing += time.thread_time() - began
