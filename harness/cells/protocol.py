"""The interface, limits and messages of cells. docs/isolation.md explains the limits."""

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
"""Maximum number of places in a prompt's kept and dropped blocks, and of lines in these places."""
LAST_LINE = 10_000_000
SCORE = 1e12
"""Maximum absolute value of a block's score."""
WORD, SENTENCE, PATH, TEXT = 200, 1_000, 4_096, 20_000
"""Maximum characters of short words (flag, role, reason), parts of a fault, paths, and docstrings or tracebacks."""
CANDIDATES = 5_000
"""Maximum number of texts that one question compares."""
TOKENS = 32_768
"""Maximum tokens of one draft."""
GIGABYTE = 1 << 30
RESERVE = 64 << 20
"""Bytes of memory that a cell keeps in reserve to report that it exceeded its memory limit."""
OVERLAP = 40
"""Maximum number of windows that contain the same line. This limits an index's size relative to the repository.
"""
_WORK, _WAITS = 60.0, 5
"""Default maximum of processor seconds, and ratio of the maximum waiting time to it."""
LIMIT = 64 << 20
"""Maximum bytes of one message to a cell."""
ORDER = struct.Struct(">cQ")
"""An order to the fork server: `START` (with a channel) or `END`, and the job's number."""
START, END = b"J", b"K"
GREETING = b"\n"
"""First byte that a cell sends, before importing the strategy. The kernel adds the cell's process number."""
_LENGTH = struct.Struct(">I")
_LONGEST_NUMBER = 19


class StrategyFault(InputFault):
    """Raised when a strategy fails on a sample: it raises, hangs, crashes, exceeds a limit or sends invalid data."""

    traceback: str = ""
    """The strategy's traceback, if the strategy raised. It is stored with the run but is not part of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCard:
    """The facts about a strategy that runs need, available without importing its code."""

    spec: str
    kinds: frozenset[Kind]
    languages: frozenset[str]
    """Languages that the strategy accepts; empty for all."""
    drafts: bool
    executes: bool
    unmasked: bool
    """Whether the strategy sees the import lines that samples mask."""
    version: str
    """Digest of the strategy's files; empty if unknown."""
    summary: str
    """First line of the strategy's docstring."""
    engines: tuple[str, ...] = ()
    """Specs of the context engines that the strategy may query."""
    encoders: tuple[str, ...] = ()
    """Encoder specs among the arguments, including default values."""
    texts: tuple[str, ...] = ()
    """Text arguments, including default values. Each of them may be the name of an encoder."""

    @classmethod
    def of(cls, bound: Bound[Any]) -> StrategyCard:
        """Return the card of the strategy and parameters in `bound`."""
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
    """The interface for running strategies; implementations are thread-safe."""

    def run(self, spec: str, query: Query, repo: Repository, generate: Model, execute: Execute | None = None) -> Prompt:
        """Return the strategy's prompt for one query.

        Args:
            spec: the strategy's spec.
            query: the sample's query.
            repo: the part of the repository that strategies see for this sample.
            generate: the model, called in the calling thread. Its exceptions are raised here, except `TooLong`.
            execute: the sandbox, for strategies that run the model's code; called like `generate`. None if absent.

        Raises:
            InputFault: if the spec is wrong, or the user must install an encoder.
            StrategyFault: if the strategy failed on this sample.
            MachineFault: if no cell could be started, or the machine ran out of memory.
        """
        ...

    def card(self, spec: str) -> StrategyCard:
        """Return the facts about a strategy that runs need.

        Raises:
            InputFault: if the spec is wrong, or its module cannot be imported.
            MachineFault: if no cell could be started.
        """
        ...

    def describe(self) -> Mapping[str, str]:
        """Return how strategies are isolated, for the run's record. The key ``isolation`` is always present."""
        ...


class InlineCells:
    """Cells for tests, which run strategies in this process without isolation."""

    def run(self, spec: str, query: Query, repo: Repository, generate: Model, execute: Execute | None = None) -> Prompt:
        """Return the strategy's prompt for one query."""
        from ctxbench.strategies import resolve  # noqa: PLC0415 - the fork server imports this module too

        return resolve(spec)(query, repo, generate, execute)

    def card(self, spec: str) -> StrategyCard:
        """Return the facts about a strategy that runs need."""
        from ctxbench.strategies import resolve  # noqa: PLC0415 - as above

        return StrategyCard.of(resolve(spec))

    def describe(self) -> Mapping[str, str]:
        """Return ``isolation: none``, because strategies run in this process."""
        return {"isolation": "none"}


@dataclass(frozen=True, kw_only=True)
class StrategyBounds:
    """The limits of a strategy on one sample."""

    work: float = _WORK
    """Maximum processor seconds of the cell's processes."""
    wait: float = _WAITS * _WORK
    """Maximum total seconds in which no process of the cell is runnable and no question is pending."""
    memory: int = 4 * GIGABYTE
    """Maximum bytes of memory, for each process of the cell and for all its processes together."""
    received: int = 32 << 20
    """Maximum bytes of all messages from the cell."""
    sent: int = 1 << 30
    """Maximum bytes of all messages to the cell."""
    questions: int = 100_000
    searches: int = 2_000
    """Maximum questions to a ranker or engine; also limits encoders' work in other threads, which `seconds` omits."""
    drafts: int = 200
    programs: int = 200
    indices: int = 80
    """Maximum number of search indices: one per window size and stride, or per code unit and ranker."""
    seconds: float = 120.0
    """Maximum processor seconds to answer the strategy's questions, not counting the building of indices."""
    index_seconds: float = 7200.0
    """Maximum processor seconds to build indices. The first question for an index builds it for all samples."""

    @classmethod
    def of_work(cls, seconds: float) -> StrategyBounds:
        """Return the default limits, but with `seconds` of processor time and a waiting time in proportion."""
        return cls(work=seconds, wait=_WAITS * seconds)


class Excess(Exception):
    """Raised when a strategy exceeds a limit; the message names the limit."""

    def __init__(self, what: str, *, cure: str = "") -> None:
        """Create the exception for an exceeded limit. Without a cure, the fault suggests `strategy check`."""
        self.cure = cure
        super().__init__(what)


class UsageMeter:
    """A count of the questions, bytes and processor seconds of a strategy on one sample, for use in one thread only."""

    def __init__(self, bounds: StrategyBounds) -> None:
        self._bounds = bounds
        self._used: Counter[str] = Counter()
        self._indices: set[Hashable] = set()
        self._began = time.thread_time()
        self._indexing = 0.0

    def take(self, what: str, amount: int = 1) -> None:
        """Add `amount` to the use of `what`, which is the name of a field of `StrategyBounds`.

        Raises:
            Excess: if the limit is exceeded.
        """
        self._used[what] += amount
        most = getattr(self._bounds, what)
        if self._used[what] > most:
            noun = {"received": "bytes sent", "sent": "bytes requested"}.get(what, what)
            raise Excess(f"more than {most:,} {noun}")

    def check_time(self) -> None:
        """Check that the processor time for questions and for indices is not used up.

        Raises:
            Excess: if a limit of processor time is exceeded.
        """
        spent = time.thread_time() - self._began - self._indexing
        for seconds, most, what in (
            (spent, self._bounds.seconds, "its questions"),
            (self._indexing, self._bounds.index_seconds, "its indices"),
        ):
            if seconds > most:
                raise Excess(f"more than {most:g} seconds of processor time for {what}")

    @contextlib.contextmanager
    def asking(self, index: Hashable) -> Iterator[None]:
        """Count the time inside the context as building `index`, if not None and this question is the first to need it.

        Raises:
            Excess: if the strategy uses too many indices.
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
    """Raised when a message violates the protocol."""


def send(
    channel: socket.socket, message: Mapping[str, Any], *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> int:
    """Send one message of at most `most` bytes, and return its size in bytes.

    Blocks while the channel's buffer is full. `look` is called after each timeout of the channel, and may raise to
    end the wait. Without `look`, a timeout raises `TimeoutError`.

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
    """Return the next message from ctxbench's process; cells call this. The message's content is not checked.

    Raises:
        EOFError: if the sender has ended.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, None))
    message: dict[str, Any] = json.loads(_exactly(channel, length, None))
    return message


def receive(
    channel: socket.socket, *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> tuple[dict[str, Any], int]:
    """Return the next message of at most `most` bytes, and its size in bytes.

    `look` is called between the parts of a message and after each timeout of the channel, and may raise to end the
    wait. Without `look`, a timeout raises `TimeoutError`.

    Raises:
        EOFError: if the sender has ended.
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
        raise ProtocolError(f"the message is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError("the message is not a JSON object")
    return message


def _no_number(word: str) -> float:
    raise ProtocolError(f"{word} is not a finite number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ProtocolError(f"{text:.20} is not a finite number")
    return number


def _int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ProtocolError(f"a number has {len(text)} digits, which is too many")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ProtocolError("an object has a duplicate key")
    return members
