"""Starts and stops cells, answers their questions, and reads strategies' registrations, in ctxbench's own process."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.retrieval import NoRanker
from ctxbench.bench.types import Query
from ctxbench.harness.cells import protocol, wire
from ctxbench.harness.cells.conversation import (
    CellConversation,
    CellGone,
    Clock,
    Questions,
    channel,
    fault_of,
    three_texts,
    to_check,
    translate_disconnects,
)
from ctxbench.harness.cells.kernel import ended_for_memory
from ctxbench.harness.cells.process import SHIPPED_ANSWERS, ForkServer, Remarks, strategy_file_folders, visible_paths
from ctxbench.harness.cells.protocol import StrategyBounds, StrategyCard, StrategyFault
from ctxbench.harness.generators.base import TooLong
from ctxbench.strategies import registry
from ctxbench.strategies.api import Execute, Model, Prompt
from ctxbench.strategies.conformance import StrategyCheck, findings
from ctxbench.strategies.registry import Bound, Registration

T = TypeVar("T")
IMPORT_TIMEOUT = 60.0
"""Maximum processor seconds to read a strategy's registration, and maximum seconds of waiting."""
CHECK_WAIT = 60.0
"""Maximum seconds of waiting per sample in a strategy check."""
_REMARKS_EVERY = 10.0
_LOG = logging.getLogger(__name__)
_MEND = "correct the strategy's file, or uninstall its package"
_MOST_RESTARTS = 20
_MOST = 100
_AT_ONCE = 8


class ForkedCells:
    """Cells as forked processes that run strategies, one process per strategy and sample; thread-safe."""

    def __init__(
        self, hidden: Sequence[Path], workers: int, limits: StrategyBounds, common: Mapping[str, Any] | None = None
    ) -> None:
        self._bounds, self._common = limits, common or {}
        self._import_bounds = replace(
            limits, work=min(limits.work, IMPORT_TIMEOUT), wait=min(limits.wait, IMPORT_TIMEOUT)
        )
        self.registrations = Registrations(self.registration)
        self._numbers = itertools.count(1)
        self._slots = threading.BoundedSemaphore(max(1, workers))
        self._remarks = Remarks()
        self._hidden, self._visible = [*hidden, *filter(Path.exists, SHIPPED_ANSWERS)], visible_paths()
        self._servers: dict[tuple[str, ...], ForkServer] = {}
        """Folders that cells see in addition to the standard files -> the server of these cells."""
        self._restarts = 0
        self._starting = threading.Lock()
        self._progress_lock = threading.Lock()
        self._remarked = -math.inf

    def describe(self) -> Mapping[str, str]:
        """Return how cells are isolated. ``isolation`` is ``process`` with ``+landlock`` and ``+namespaces`` if in use.

        Raises:
            MachineFault: if no cell could be started.
        """
        with self._starting:
            servers = list(self._servers.values())
        # Report the weakest server's isolation, because every cell is isolated at least that well.
        reports = [dict(server.report) for server in servers or [self._server()]]
        return min(reports, key=lambda report: len(report["isolation"]))

    def _server(self, *more: str) -> ForkServer:
        """Return the server whose cells also see the paths `more`. Without namespaces, there is only one server."""
        with self._starting:
            self._drop_ended()
            for server in self._servers.values():
                if not server.separates:
                    return server
            if more not in self._servers:
                visible = [*self._visible, *more]
                self._servers[more] = ForkServer(self._hidden, visible, self._bounds.memory, self._common)
            return self._servers[more]

    def _drop_ended(self) -> None:
        for key, server in list(self._servers.items()):
            if self._restarts < _MOST_RESTARTS and server.ended(0):
                self._restarts += 1
                del self._servers[key]
                server.close()

    def card(self, spec: str) -> StrategyCard:
        """Return the facts about a strategy that runs need. Foreign code is imported only in a cell."""
        return StrategyCard.of(self.registrations.bound(spec))

    def registration(self, name: str) -> Registration:
        """Read the registration of the strategy `name` (an installed name, or ``file.py@name``) in a cell.

        Raises:
            InputFault: if the strategy does not exist, or cannot be imported.
            MachineFault: if no cell could be started.
        """
        subject = "its import"
        with self._slots, self._cell(name, subject, self._import_bounds, cure=_MEND) as talk:
            answer = talk.ask({"register": name})
            with talk.suspecting():
                if "fault" in answer:
                    message, where, cure = three_texts(wire.fields(answer, "fault")["fault"])
                    raise InputFault(message, where=where, cure=cure[: protocol.SENTENCE])
                sent = wire.fields(answer, "registration")["registration"]
                return wire.load_registration(sent, name.rpartition("@")[2])

    def run(self, spec: str, query: Query, repo: Repository, generate: Model, execute: Execute | None = None) -> Prompt:
        """Return the strategy's prompt for one query; see `Cells.run`."""
        return self._prompt(spec, query, repo, generate, execute)[0]

    def checked(self, spec: str) -> list[StrategyCheck]:
        """Run the conformance checks on a strategy, and return their results; raises like the function `checked`."""

        def attempt(
            query: Query, repo: Repository, generate: Model, execute: Execute | None
        ) -> tuple[Prompt, Sequence[str]]:
            try:
                return self._prompt(spec, query, repo, generate, execute, checks=True)
            except StrategyFault as fault:
                # A check's report repeats neither the fault's location nor the advice to run a check.
                raise InputFault(fault.what, cure="" if fault.cure == to_check(spec) else fault.cure) from fault

        return findings(self.card(spec).kinds, attempt)

    def _prompt(
        self,
        spec: str,
        query: Query,
        repo: Repository,
        generate: Model,
        execute: Execute | None,
        *,
        checks: bool = False,
    ) -> tuple[Prompt, Sequence[str]]:
        bound = self.registrations.bound(spec)
        with self._slots, self._cell(spec, query.id, self._bounds) as talk:
            questions = Questions(repo, spec, talk.account, trusted=is_ours(bound, spec))
            job = {"spec": spec, "query": wire.dump_query(query), "name": repo.name, "checks": checks}
            job |= {"versions": self.registrations.file_versions(spec)}
            job |= {"instructs": generate.instructs, "summarises": generate.summarises, "executes": execute is not None}
            message = talk.ask(job)
            while "call" in message:
                with talk.suspecting():
                    answer = self._answer(message, talk, questions, generate, execute)
                message = talk.ask(answer)
            with talk.suspecting():
                if "fault" in message:
                    what, _, cure = three_texts(wire.fields(message, "fault")["fault"])
                    raise talk.fault(f"is no longer available: {what}; {cure[: protocol.SENTENCE]}")
                parts = wire.fields(message, "prompt", *(["network"] if checks else []))
                network = [
                    wire.text(attempt, protocol.WORD)
                    for attempt in wire.items(parts.get("network", []), _MOST, "tries")
                ]
                return wire.load_prompt(parts["prompt"]), network

    def _answer(
        self,
        message: dict[str, Any],
        talk: CellConversation,
        questions: Questions,
        generate: Model,
        execute: Execute | None,
    ) -> dict[str, Any]:
        call = wire.checked(message.pop("call"), str)
        if call == "generate":
            parts = wire.fields(message, "prompt", "role", "max_tokens")
            talk.account.take("drafts")
            prompt = wire.load_asked(parts["prompt"])
            with wire.named("role"):
                role = wire.word(parts["role"])
            with wire.named("max_tokens"):
                tokens = wire.whole(parts["max_tokens"], 1, protocol.TOKENS)
            try:
                return {"value": self._elsewhere(talk, lambda: generate(prompt, role=role, max_tokens=tokens))}
            except TooLong as fault:
                raise talk.fault(f"sent a prompt that the model cannot read: {fault.what}", cure=fault.cure) from fault
        if call == "execute" and execute is not None:
            parts = wire.fields(message, "program", "seconds")
            talk.account.take("programs")
            program, seconds = wire.checked(parts["program"], str), wire.checked(parts["seconds"], float)
            execution = self._elsewhere(talk, lambda: execute(program, seconds=seconds))
            return {"value": [execution.finished, execution.output]}
        try:
            with talk.paused():
                return {"value": questions.answer(call, message)}
        except NoRanker:
            raise  # end the run, because the user must install the encoder
        except InputFault as fault:
            return {"fault": [fault.what, fault.where, fault.cure]}

    def _elsewhere(self, talk: CellConversation, ask: Callable[[], T]) -> T:
        """Ask the model or the sandbox. Meanwhile this cell's clock is paused and another cell may use its slot."""
        with talk.paused():
            self._slots.release()
            try:
                return ask()
            finally:
                self._slots.acquire()

    @contextlib.contextmanager
    def _cell(self, spec: str, sample: str, limits: StrategyBounds, *, cure: str = "") -> Iterator[CellConversation]:
        server = self._server(*strategy_file_folders(spec))
        mine, theirs = channel()
        job = next(self._numbers)
        clock = Clock(limits, functools.partial(self._remark, f"{spec} on {sample}"))
        # The count is for the whole machine, so only an increase after the start of this cell matters.
        ended_before = ended_for_memory()
        with self._remarks.of_cell() as output:
            try:
                with theirs, translate_disconnects():
                    server.start(job, theirs, output)
                yield CellConversation(mine, clock, spec, sample, limits=limits, cure=cure)
            except CellGone:
                # The strategy is not to blame if the server ended or the machine ran out of memory.
                if server.ended(0.3):
                    raise MachineFault(
                        "the process that runs strategies has ended", where=sample, cure="run the same command again"
                    ) from None
                if not clock.runs:
                    raise MachineFault(
                        "the process for a strategy could not be started",
                        where=sample,
                        cure="correct the fault above, then run the same command again",
                    ) from None
                if ended_for_memory() > ended_before:
                    raise MachineFault(
                        "this machine ran out of memory while a strategy ran",
                        where=f"{spec} on {sample}",
                        cure="free some memory, or use fewer --workers; then run the same command again",
                    ) from None
                what = "ended without an answer: its process was killed, ran out of memory, or exited"
                raise fault_of(spec, sample, what, cure=cure) from None
            finally:
                mine.close()
                with contextlib.suppress(OSError):
                    server.end(job)

    def _remark(self, whose: str, words: str) -> None:
        with self._progress_lock:
            if time.monotonic() - self._remarked >= _REMARKS_EVERY:
                self._remarked = time.monotonic()
                _LOG.info("%s is slow: %s", whose, words)

    def close(self) -> None:
        """Stop every server and cell, and remove their temporary folders."""
        for server in self._servers.values():
            server.close()


@contextlib.contextmanager
def open_cells(
    hidden: Sequence[Path],
    workers: int,
    *,
    limits: StrategyBounds | None = None,
    common: Mapping[str, Any] | None = None,
) -> Iterator[ForkedCells]:
    """Provide cells to run strategies, and stop the cells on exit.

    Args:
        hidden: folders and files that no strategy may read: the home, the database, local sources.
        workers: maximum number of strategies that run at once, not counting those that wait for model or sandbox.
        limits: limits of a strategy on one sample; None for the defaults.
        common: settings of all cells: ``tokenizer`` is the p50k_base file for budgets, ``templates`` are the
            prompts that ask for summaries; None for ctxbench's own.
    """
    cells = ForkedCells(hidden, workers, limits or StrategyBounds(), common)
    try:
        yield cells
    finally:
        cells.close()


@contextlib.contextmanager
def open_registrations(hidden: Sequence[Path]) -> Iterator[Registrations]:
    """Provide strategies' registrations without a run. Cells are started only to read foreign strategies."""
    lock = threading.Lock()
    started: list[ForkedCells] = []
    with contextlib.ExitStack() as stack:

        def read(name: str) -> Registration:
            with lock:
                if not started:
                    started.append(stack.enter_context(open_cells(hidden, os.cpu_count() or 1)))
            return started[0].registration(name)

        yield Registrations(read)


def checked(spec: str, hidden: Sequence[Path], limits: StrategyBounds) -> list[StrategyCheck]:
    """Run the conformance checks on a strategy in cells, with at most `CHECK_WAIT` seconds of waiting per sample.

    Raises:
        InputFault: if the spec is wrong, or the strategy cannot be imported.
        MachineFault: if no cell could be started.
    """
    with open_cells(hidden, 1, limits=replace(limits, wait=min(limits.wait, CHECK_WAIT))) as cells:
        return cells.checked(spec)


class Registrations:
    """The registrations of strategies, cached after their first reading; thread-safe."""

    def __init__(self, read: Callable[[str], Registration]) -> None:
        """Read foreign registrations with `read`, which must not import their code in this process."""
        self._read = read
        self._registrations: dict[str, Registration] = {}
        self._bound: dict[str, Bound[Registration]] = {}

    def get(self, name: str) -> Registration:
        """Return the registration of the strategy `name`: an installed name, or ``file.py@name``.

        Raises:
            InputFault: if the strategy does not exist, or its module or file cannot be imported.
            MachineFault: if no cell could be started.
        """
        if name not in self._registrations:
            _check_file(name)
            self._registrations[name] = registry.get(name).registration if _is_read_here(name) else self._read(name)
        return self._registrations[name]

    def bound(self, spec: str) -> Bound[Registration]:
        """Return the strategy of a spec with its checked parameters.

        Raises:
            InputFault: if the spec or a parameter is invalid, or the strategy does not exist or cannot be imported.
            MachineFault: if no cell could be started.
        """
        if spec not in self._bound:
            parsed = specs.parse(spec)
            self._bound[spec] = Bound(self.get(parsed.name), parsed, self.get)
        return self._bound[spec]

    def file_versions(self, spec: str) -> Mapping[str, str]:
        """Return the version of each strategy file that a spec names, by the strategy's name (``file.py@name``)."""
        bound = self.bound(spec)
        names = _names(bound, spec) if "@" in bound.spec else []  # called for every sample: parse only if needed
        return {name: self.get(name).version for name in names if "@" in name}

    def installed(self) -> Mapping[str, Registration | InputFault]:
        """Return the registrations of all installed strategies by name, or a fault for each that cannot be imported.

        Raises:
            MachineFault: if no cell could be started.
        """
        names = registry.names()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            # A strategy that hangs must not delay the others.
            foreign = {name: threads.submit(self._or_fault, name) for name in names if not _is_read_here(name)}
            return {name: foreign[name].result() if name in foreign else self._or_fault(name) for name in names}

    def _or_fault(self, name: str) -> Registration | InputFault:
        try:
            return self.get(name)
        except InputFault as fault:
            return fault


def _check_file(name: str) -> None:
    """Check that the file of ``file.py@name`` exists. Inside a cell, a folder and a hidden file look alike."""
    path, at, _ = name.rpartition("@")
    if at:
        with explained(path):
            if Path(path).expanduser().is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            Path(path).expanduser().stat()


def is_ours(bound: Bound[Registration], spec: str) -> bool:
    """Return whether a strategy and the strategies that it wraps are built in or registered in this process."""
    return all("@" not in name and registry.is_ours(name) for name in _names(bound, spec))


def _names(bound: Bound[Registration], spec: str) -> list[str]:
    return [specs.parse(spec).name, *(specs.parse(inner.spec).name for inner in bound.inner)]


def _is_read_here(name: str) -> bool:
    """Return whether ctxbench's own registry handles a name. Unknown names are reported there too."""
    return "@" not in name and (name not in registry.names() or registry.is_ours(name))
