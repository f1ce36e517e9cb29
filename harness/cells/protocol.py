"""The protocol of cells: their interface, strategy faults, all limits, and messages in length-prefixed JSON.

Messages are never pickled, because a strategy controls their content: every number and key is checked. Exceeding a
limit is the strategy's fault, for that sample alone. Each limit is at least twenty times what the two papers'
strategies use on real repositories (docs/isolation.md has the numbers), so only a runaway strategy exceeds it.
"""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ctxbench.bench.errors import InputFault

if TYPE_CHECKING:
    from ctxbench.bench.repository import Repository
    from ctxbench.bench.types import Kind, Query
    from ctxbench.strategies.api import Execute, Model, Prompt
    from ctxbench.strategies.registry import Bound

T = TypeVar("T")
MESSAGE = 8 << 20
"""Maximum bytes of one message from a cell."""
CHARACTERS = 2_500_000
"""Maximum characters of a prompt."""
BLOCKS, DROPPED, FLAGS = 1_000, 10_000, 100
PLACES, LINES = 20_000, 1_000_000
"""Maximum number of places of a prompt in kept and dropped blocks together, and of lines in these places."""
LAST_LINE = 10_000_000
SCORE = 1e12
"""The largest absolute value of a block's score."""
WORD, SENTENCE, PATH, TEXT = 200, 1_000, 4_096, 20_000
"""Maximum characters of a flag, role or reason; of one part of a fault; of a path; of a docstring or traceback."""
CANDIDATES = 5_000
"""Maximum number of texts that one question compares."""
TOKENS = 32_768
"""Maximum tokens of one draft."""
GIGABYTE = 1 << 30
RESERVE = 64 << 20
"""Bytes of memory reserved for a cell's report after the cell has exceeded its limit."""
OVERLAP = 40
"""Maximum number of retrieval windows that contain the same line. The index is then 40 times the repository's size."""
_WORK, _WAITS = 60.0, 5
"""Maximum seconds of work, and the ratio of waiting to work."""
LIMIT = 64 << 20
"""Maximum bytes of one message to a cell."""
ORDER = struct.Struct(">cQ")
"""An order to the fork server: `START` (with a channel) or `END`, and the job's number."""
START, END = b"J", b"K"
GREETING = b"\n"
"""A cell's first byte, sent before the strategy is imported. The kernel adds the cell's process number."""
_LENGTH = struct.Struct(">I")
_LONGEST_NUMBER = 19


class StrategyFault(InputFault):
    """Raised when a strategy failed on a sample: it raised, hung, crashed, or returned no prompt."""

    traceback: str = ""
    """The strategy's own traceback, if it raised; stored in the run's record, absent from the one-line message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCard:
    """A strategy's description for the runner, obtained without importing the strategy."""

    spec: str
    kinds: frozenset[Kind]
    languages: frozenset[str]
    """Languages of the samples that the strategy accepts; empty for all."""
    drafts: bool
    """Whether the strategy asks the model before its final prompt."""
    executes: bool
    """Whether the strategy runs the model's code in the sandbox."""
    unmasked: bool
    """Whether the strategy sees the import lines that samples mask."""
    version: str
    """A digest of the strategy's files; empty if unknown."""
    summary: str
    """The first line of the strategy's docstring."""
    engines: tuple[str, ...] = ()
    """Specs of the context engines that the strategy may ask."""
    encoders: tuple[str, ...] = ()
    """Specs of encoders among the arguments, defaults included."""
    texts: tuple[str, ...] = ()
    """Texts among the arguments, defaults included. Each may name an encoder."""

    @classmethod
    def of(cls, bound: Bound[Any]) -> StrategyCard:
        """Return the card of a strategy with its parameters."""
        return cls(
            spec=bound.spec,
            kinds=bound.kinds,
            languages=bound.languages,
            drafts=bound.drafts,
            executes=bound.executes,
            unmasked=bound.unmasked,
            version=bound.version,
            summary=bound.strategy.summary,
            engines=bound.engines,
            encoders=bound.encoders,
            texts=bound.texts,
        )


class Cells(Protocol):
    """Runs strategies. Many threads may use it."""

    def run(self, spec: str, query: Query, repo: Repository, generate: Model, execute: Execute | None = None) -> Prompt:
        """Return the strategy's prompt for one query.

        Args:
            spec: the strategy.
            query: the sample's query.
            repo: the query's view; stays on the trusted side.
            generate: the model, called on the trusted side, in the calling thread. Its exceptions are raised here.
            execute: the sandbox, for strategies that run the model's code; called like `generate`.

        Raises:
            InputFault: if the spec is wrong.
            StrategyFault: if the strategy failed on this sample.
            MachineFault: if no cell could be started.
        """
        ...

    def card(self, spec: str) -> StrategyCard:
        """Return the card of a strategy.

        Raises:
            InputFault: if the spec is wrong, or its module cannot be imported.
        """
        ...

    def describe(self) -> Mapping[str, str]:
        """Return how strategies are isolated, for the run's record. The key ``isolation`` always exists."""
        ...


class InlineCells:
    """Runs strategies in this process, for tests and conformance checks. Hides nothing from them."""

    def run(self, spec: str, query: Query, repo: Repository, generate: Model, execute: Execute | None = None) -> Prompt:
        """Return the strategy's prompt."""
        from ctxbench.strategies import resolve  # noqa: PLC0415 - the fork server imports this module too

        return resolve(spec)(query, repo, generate, execute)

    def card(self, spec: str) -> StrategyCard:
        """Return the card of a strategy."""
        from ctxbench.strategies import resolve  # noqa: PLC0415 - as above

        return StrategyCard.of(resolve(spec))

    def describe(self) -> Mapping[str, str]:
        """Return ``isolation: none``."""
        return {"isolation": "none"}


@dataclass(frozen=True, kw_only=True)
class StrategyBounds:
    """The limits of a strategy on one sample."""

    work: float = _WORK
    """Seconds of processor time of the cell's own processes."""
    wait: float = _WAITS * _WORK
    """Seconds in which none of the cell's processes could run, although no question was pending."""
    memory: int = 4 * GIGABYTE
    """Bytes of memory that the cell's processes may use: each process alone, and all together."""
    received: int = 32 << 20
    """Bytes of all messages from the cell."""
    sent: int = 1 << 30
    """Bytes of all answers to the cell."""
    questions: int = 100_000
    searches: int = 2_000
    """Questions that a ranker answers. An encoder's work does not count as time of the serving thread."""
    drafts: int = 200
    programs: int = 200
    indices: int = 80
    """Different indices: windows of a size and stride, or units under a ranker."""
    seconds: float = 120.0
    """Processor seconds of the thread that serves the strategy, excluding the first use of each index."""
    index_seconds: float = 7200.0
    """Seconds of processor time of these first uses. An index is built once for all samples, on the first question."""

    @classmethod
    def of_work(cls, seconds: float) -> StrategyBounds:
        """Return the default bounds with another limit for the work and the waiting of the cell's own processes."""
        return cls(work=seconds, wait=_WAITS * seconds)


class Excess(Exception):
    """Raised when a strategy exceeds a bound, which the message names."""

    def __init__(self, what: str, *, cure: str = "") -> None:
        """Create the fault for an exceeded bound. Without a cure, the message suggests `strategy check`."""
        self.cure = cure
        super().__init__(what)


class UsageMeter:
    """Counts what a strategy uses for one sample. Each thread has its own."""

    def __init__(self, bounds: StrategyBounds) -> None:
        self._bounds = bounds
        self._used: Counter[str] = Counter()
        self._indices: set[Hashable] = set()
        self._began = time.thread_time()
        self._indexing = 0.0

    def take(self, what: str, amount: int = 1) -> None:
        """Add to the use of `what`, a field of `StrategyBounds`.

        Raises:
            Excess: if the limit is exceeded.
        """
        self._used[what] += amount
        most = getattr(self._bounds, what)
        if self._used[what] > most:
            noun = {"received": "bytes sent", "sent": "bytes asked for"}.get(what, what)
            raise Excess(f"{noun}: more than {most:,}")

    def check_time(self) -> None:
        """Check that processor time is left.

        Raises:
            Excess: if a limit of processor time is exceeded.
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
        """Count the time inside the context as building an index, if this is the first question that needs it.

        Raises:
            Excess: if the strategy asks for too many indices.
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


class ProtocolError(ValueError):
    """Raised when a message breaks the protocol."""


def send(
    channel: socket.socket, message: Mapping[str, Any], *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> int:
    """Send one message of at most `most` bytes, and return its size in bytes.

    The call blocks until the other side has read the message. `look` is called after each timeout of the channel, and
    may raise to end the wait.

    Raises:
        ProtocolError: if the message has more than `most` bytes.
    """
    raw = json.dumps(message).encode("ascii")
    if len(raw) > most:
        raise ProtocolError(f"a message of {len(raw)} bytes is over the limit of {most}")
    unsent = memoryview(_LENGTH.pack(len(raw)) + raw)
    while unsent:
        unsent = unsent[_patiently(lambda unsent=unsent: channel.send(unsent), look) :]  # type: ignore[misc]
    return len(raw)


def take(channel: socket.socket) -> dict[str, Any]:
    """Return the next message of the trusted side, without checks.

    Raises:
        EOFError: if the other side has gone.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, None))
    message: dict[str, Any] = json.loads(_exactly(channel, length, None))
    return message


def receive(
    channel: socket.socket, *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> tuple[dict[str, Any], int]:
    """Return the next message of at most `most` bytes, and its size in bytes.

    `look` is called after each part and each timeout of the channel, and may raise to end the wait.

    Raises:
        EOFError: if the other side has gone.
        ProtocolError: if the message is not a JSON object, or over the limit.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, look))
    if length > most:
        raise ProtocolError(f"a message of {length} bytes is over the limit of {most}")
    return _parsed(_exactly(channel, length, look)), length


def _exactly(channel: socket.socket, size: int, look: Callable[[], None] | None) -> bytes:
    parts: list[bytes] = []
    while size:
        most = min(size, 1 << 20)
        part = _patiently(lambda most=most: channel.recv(most), look)  # type: ignore[misc]
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
        if size and look is not None:
            look()
    return b"".join(parts)


def _patiently(attempt: Callable[[], T], look: Callable[[], None] | None) -> T:
    while True:
        try:
            return attempt()
        except TimeoutError:
            if look is None:
                raise
        look()


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        message = json.loads(
            raw.decode("ascii"),
            parse_constant=_no_number,
            parse_float=_float,
            parse_int=_int,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError("not a JSON object")
    return message


def _no_number(word: str) -> float:
    raise ProtocolError(f"{word} is not a number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ProtocolError(f"{text:.20} is not a number")
    return number


def _int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ProtocolError(f"a number of {len(text)} digits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ProtocolError("an object has a key twice")
    return members
