"""ctxbench's side of the conversation with a cell: checks messages, answers questions, enforces the cell's limits."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.retrieval import LEXICAL, NoRanker
from ctxbench.harness.cells import protocol, wire
from ctxbench.harness.cells.kernel import Work, own_memory, usage
from ctxbench.harness.cells.protocol import GIGABYTE, Excess, StrategyBounds, StrategyFault, UsageMeter
from ctxbench.harness.cells.wire import ARGUMENTS, misfit

_REFUSALS = ("FileNotFoundError", "PermissionError", "OSError", "URLError", "gaierror")
_OUTSIDE = (
    "a strategy can read the repository through `repo` and the files beside its source, can write to its temporary "
    "folder, and has no network (docs/isolation.md)"
)
_START_TIMEOUT = 120.0
_CREDENTIALS = struct.Struct("3i")
"""Structure of a sender's credentials: the numbers of process, user and group."""
EVERY = 0.5
"""Seconds between two measurements of a cell's resources."""
_FIRST_REMARK = 10.0
"""Seconds of work and waiting before the first log line. Further lines follow whenever this time has doubled."""
_CALLS = ("files", "read", "similar_windows", "search", "similarity", "grep", "engine")
_DUMPS: Mapping[str, Callable[[Any], Any]] = {
    "similar_windows": wire.dump_hits,
    "search": wire.dump_found,
    "grep": wire.dump_found,
    "engine": wire.dump_found,
}
_NAMES: Mapping[str, int] = {
    "path": protocol.PATH,
    "pattern": protocol.SENTENCE,
    "unit": protocol.WORD,
    "ranker": protocol.PATH,
    "name": protocol.PATH,
}
"""Argument that contains a name -> maximum length of the name in characters."""
MOST_CHARACTERS = 1_000_000
"""Maximum characters of all texts of one question."""


class CellConversation:
    """The exchange of messages with one cell; it enforces the cell's limits."""

    def __init__(
        self,
        channel: socket.socket,
        clock: Clock,
        spec: str,
        sample: str,
        *,
        limits: StrategyBounds,
        cure: str = "",
    ) -> None:
        """Use `channel` in the calling thread. Without a `cure`, faults suggest checking the strategy."""
        self._channel, self._clock, self.spec, self._sample = channel, clock, spec, sample
        self._limits, self._cure = limits, cure
        self.account = UsageMeter(limits)
        channel.settimeout(EVERY)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the clock while ctxbench prepares an answer, because this time does not count as the strategy's."""
        with self._clock.paused():
            yield

    @contextlib.contextmanager
    def suspecting(self) -> Iterator[None]:
        """Turn `ProtocolError` and `Excess` inside the context into a `StrategyFault`."""
        try:
            yield
        except protocol.ProtocolError as error:
            raise self.fault(f"sent an invalid message ({error})") from None
        except Excess as error:
            raise self.fault(f"exceeded a limit ({error})", cure=error.cure) from None

    def fault(self, what: str, *, cure: str = "") -> StrategyFault:
        """Return a fault of this strategy. `cure` is used only if the conversation has no cure of its own."""
        return fault_of(self.spec, self._sample, what, cure=self._cure or cure)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the cell's reply.

        Raises:
            StrategyFault: if the strategy raised, timed out, sent an invalid message or exceeded a limit.
            CellGone: if the cell has ended.
        """
        try:
            with self.suspecting(), translate_disconnects():
                self.account.take("sent", protocol.send(self._channel, message, look=self._look))
                if not self._clock.runs:
                    # Start the clock after the job is sent, so that the cell's wait for the job does not count.
                    self._clock.start(greeted(self._channel))
                self._channel.settimeout(self._clock.until_look())
                answer, size = protocol.receive(self._channel, most=protocol.MESSAGE, look=self._look)
                self._clock.look(asked=True)
                self.account.take("received", size)
                self.account.check_time()
                if "error" in answer:
                    raise self._raised(wire.fields(answer, "error")["error"])
        except TimeoutError:
            what = f"did not answer: it was idle for more than {self._limits.wait:g} seconds"
            raise self.fault(what) from None
        return answer

    def _look(self) -> None:
        self._clock.look()
        self._channel.settimeout(EVERY)

    def _raised(self, report: object) -> StrategyFault:
        kind, message, trace = three_texts(report)
        if kind:
            message = f"raised {kind[: protocol.WORD]}: {message}"
        fault = self.fault(message, cure=_OUTSIDE if kind in _REFUSALS else "")
        fault.traceback = trace
        return fault


class CellGone(Exception):
    """Raised when the process at the other end of a socket has ended."""


@contextlib.contextmanager
def translate_disconnects() -> Iterator[None]:
    """Turn exceptions that mean a closed connection (broken pipe, reset, end of file) into `CellGone`."""
    try:
        yield
    except (BrokenPipeError, ConnectionResetError, EOFError):
        raise CellGone from None


def fault_of(spec: str, sample: str, what: str, *, cure: str = "") -> StrategyFault:
    """Return the fault of a strategy that failed on a sample. `what` continues the sentence "the strategy …"."""
    return StrategyFault(f"the strategy {what}", where=f"{spec} on {sample}", cure=cure or to_check(spec))


def to_check(spec: str) -> str:
    """Return the default advice for a strategy's fault."""
    return f"test the strategy with `ctxbench strategy check {spec!r}`"


def three_texts(report: object) -> tuple[str, str, str]:
    """Return the three texts of a cell's error report, two short and one long, each truncated to its limit.

    Raises:
        ProtocolError: if the report is not a list of three texts.
    """
    texts = [wire.checked(part, str) for part in wire.items(report, 3, "parts")]
    if len(texts) < 3:
        raise protocol.ProtocolError("a report has fewer than three texts")
    return texts[0][: protocol.SENTENCE], texts[1][: protocol.SENTENCE], texts[2][: protocol.TEXT]


def channel() -> tuple[socket.socket, socket.socket]:
    """Return a socket pair: ctxbench's end, which receives the sender's process number, and the cell's end."""
    mine, theirs = socket.socketpair()
    if (passes := getattr(socket, "SO_PASSCRED", None)) is not None:
        mine.setsockopt(socket.SOL_SOCKET, passes, 1)
    return mine, theirs


def greeted(mine: socket.socket) -> int:
    """Wait for a cell's greeting, sent before the import of the strategy. Return the process number, or 0 if unknown.

    Raises:
        CellGone: if the cell sends no greeting.
    """
    mine.settimeout(_START_TIMEOUT)
    try:
        greeting, ancillary, *_ = mine.recvmsg(len(protocol.GREETING), socket.CMSG_SPACE(_CREDENTIALS.size))
    except OSError:
        greeting, ancillary = b"", []
    finally:
        mine.settimeout(EVERY)
    if greeting != protocol.GREETING:
        raise CellGone
    sent = [data for _, kind, data in ancillary if kind == getattr(socket, "SCM_CREDENTIALS", None)]
    return int(_CREDENTIALS.unpack(sent[0])[0]) if sent else 0


class Clock:
    """A meter of the resources that one cell uses; it enforces the cell's limits."""

    def __init__(self, limits: StrategyBounds, remark: Callable[[str], None] = lambda _: None) -> None:
        self._limits, self._remark = limits, remark
        self._pid: int | None = None
        self._work = Work()
        self._worked = self._waited = self._looked = self._paused = 0.0
        self._next_remark = _FIRST_REMARK

    @property
    def runs(self) -> bool:
        """Whether the clock has been started."""
        return self._pid is not None

    def start(self, pid: int) -> None:
        """Start the clock for the cell's first process `pid`, which is 0 if unknown."""
        self._pid, self._looked = pid, time.monotonic()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the clock while the strategy waits for an answer."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._paused += time.monotonic() - began

    def until_look(self) -> float:
        """Return the seconds until the next measurement, at least 0.01."""
        return max(0.01, self._looked + EVERY - time.monotonic()) if self.runs else EVERY

    def look(self, *, asked: bool = False) -> None:
        """Measure the resources that the cell uses, unless the last measurement is recent.

        If `asked`, the cell has just sent a question, so the cell's idle time does not count as waiting.

        Raises:
            Excess: if the cell exceeds a limit.
            TimeoutError: if the cell has been idle for too long.
        """
        passed = time.monotonic() - self._looked
        if self._pid is None or passed < (EVERY if asked else EVERY / 2):
            return
        # Count at most two intervals, because the trusted process may have been suspended too.
        elapsed = min(passed - self._paused, 2 * EVERY)
        self._looked, self._paused = self._looked + passed, 0.0
        used = usage(self._pid, self._work.processes)
        worked = self._work.add(used.processes)
        if not used.runnable:
            self._waited += 0.0 if asked else max(0.0, elapsed - worked)
        elif self._work.escapes:
            worked = max(worked, elapsed)
        self._worked += worked
        limits = self._limits
        if self._worked > limits.work:
            raise Excess(
                f"more than {limits.work:g} seconds of processor time",
                cure="speed the strategy up, or raise --strategy-seconds",
            )
        if used.memory > limits.memory and sum(own_memory(pid) for pid, _ in used.processes) > limits.memory:
            raise Excess(
                f"more than {limits.memory / GIGABYTE:.3g} GiB of memory",
                cure="change the strategy to use less memory at once",
            )
        if self._waited > limits.wait:
            raise TimeoutError
        if self._worked + self._waited >= self._next_remark:
            self._next_remark = 2 * (self._worked + self._waited)
            self._remark(
                f"{self._worked:.0f} of {limits.work:g} processor seconds used, "
                f"{self._waited:.0f} of {limits.wait:g} seconds idle"
            )


class Questions:
    """The source of answers to a strategy's questions about the repository of one query."""

    def __init__(self, repo: Repository, spec: str, account: UsageMeter, *, trusted: bool) -> None:
        """Prepare to answer the strategy `spec`. A missing encoder stops the run if the strategy is `trusted`."""
        self._repo, self._account, self._trusted = repo, account, trusted
        self._named = frozenset(specs.nested_specs(spec))
        self._spec = spec

    def answer(self, call: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer to one question as JSON data. `call` is the name of a repository method.

        Raises:
            ProtocolError: if the question is unknown, or an argument is missing, of another type or too long.
            Excess: if the strategy asks too many questions or searches too often.
            NoRanker: if the user has to install an encoder.
            InputFault: if the repository refuses the question, or its text, window or ranker is not allowed.
        """
        self._account.take("questions")
        _check(call, arguments)
        try:
            if "ranker" in arguments:
                self._account.take("searches")
                self._check_ranker(arguments["ranker"])
            if call == "engine":
                self._account.take("searches")
            with self._account.asking(_index(call, arguments)):
                value = self._ask(call, arguments)
        except NoRanker as fault:
            if self._trusted or _spelled(arguments["ranker"]) in self._named:
                raise
            raise InputFault(fault.what, where=fault.where, cure=fault.cure) from None
        except (InputFault, MachineFault, Excess):
            raise
        except Exception as error:
            # An argument that passed every check caused the error. Fail only this question, not the run.
            raise InputFault(
                f"{call} failed with these arguments ({type(error).__name__})", cure="change the arguments"
            ) from error
        return _DUMPS[call](value) if call in _DUMPS else value

    def _ask(self, call: str, arguments: Mapping[str, Any]) -> Any:
        if call == "engine":
            asked = {key: value for key, value in arguments.items() if key != "name"}
            return self._repo.engine(arguments["name"]).search(**asked)
        return getattr(self._repo, call)(**arguments)

    def _check_ranker(self, ranker: str) -> None:
        """Refuse a ranker whose parameters the user did not name: parameters can open files on the trusted side."""
        spec = encoders.read(ranker)
        if spec.arguments and spec.name not in LEXICAL and _spelled(ranker) not in self._named:
            raise InputFault(
                f"the strategy may not choose the ranker {ranker!r} itself",
                where=self._spec,
                cure="pass the ranker as a parameter of the strategy",
            )


def _check(call: str, arguments: Mapping[str, Any]) -> None:
    if call not in _CALLS or arguments.keys() != ARGUMENTS[call].keys():
        raise protocol.ProtocolError(f"there is no call {call!r:.40} with these arguments")
    if wrong := misfit(call, arguments):
        raise protocol.ProtocolError(wrong)
    for key in _NAMES.keys() & arguments.keys():
        with wire.named(key):
            wire.text(arguments[key], _NAMES[key])
    candidates = wire.items(arguments.get("candidates", []), protocol.CANDIDATES, "candidates")
    texts = [*candidates, arguments.get("text", "")]
    if sum(map(len, texts)) > MOST_CHARACTERS:
        raise InputFault(
            f"the texts to compare have more than {MOST_CHARACTERS} characters in total",
            cure="pass fewer or shorter texts",
        )
    if call == "similar_windows" and arguments["size"] > protocol.OVERLAP * max(1, arguments["stride"]):
        raise InputFault(
            f"windows of {arguments['size']} lines with a stride of {arguments['stride']} overlap too often",
            cure=f"use a stride of at least 1/{protocol.OVERLAP} of the size",
        )


def _index(call: str, arguments: Mapping[str, Any]) -> tuple[object, ...] | None:
    if call == "similar_windows":
        return call, arguments["size"], arguments["stride"]
    return (call, arguments.get("unit"), arguments["ranker"]) if "ranker" in arguments else None


def _spelled(ranker: str) -> str:
    return str(specs.parse(ranker))
