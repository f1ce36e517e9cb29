"""The trusted side of cells: has them forked and answers what they ask."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bench.errors import InputFault, MachineFault
from bench.repository import Repository
from bench.retrieval.retrieval import NoRanker
from bench.types import Kind, Query
from harness.cells import questions, wire
from harness.cells.base import Card, Cells
from harness.cells.process import ForkServer
from harness.cells.remarks import Remarks
from harness.cells.shown import beside, shown
from harness.cells.talk import Gone, Talk, fault_of, or_gone
from strategies.api import Execute, Generate, Prompt

T = TypeVar("T")
TIMEOUT = 600.0
"""Seconds a strategy may take for one sample, its waiting for the model not counted."""


class ForkedCells:
    """Cells made by a fork server, each a process of its own for one sample."""

    def __init__(self, hidden: Sequence[Path], workers: int, timeout: float) -> None:
        """Start the server; see `open_cells`."""
        self._timeout = timeout
        self._numbers = itertools.count(1)
        self._slots = threading.BoundedSemaphore(max(1, workers))
        self._remarks = Remarks()
        self._hidden, self._shown = hidden, shown()
        self._server = ForkServer(hidden, self._shown)
        self._others: dict[tuple[str, ...], ForkServer] = {}
        """Servers whose cells see more: the folders of a strategy file -> the server."""
        self._starting = threading.Lock()

    def describe(self) -> Mapping[str, str]:
        """Return what was reached: ``isolation`` is ``process`` and what it was strengthened by.

        That is ``process+landlock+namespaces`` where the kernel grants all of it.
        """
        return dict(self._server.report)

    def _server_of(self, spec: str) -> ForkServer:
        """Return the server whose cells see the strategy: what a view holds is settled when its server starts."""
        more = () if "namespaces" not in self._server.report["isolation"] else tuple(beside(spec))
        if not more:
            return self._server
        with self._starting:
            if more not in self._others:
                self._others[more] = ForkServer(self._hidden, [*self._shown, *more])
            return self._others[more]

    def card(self, spec: str) -> Card:
        """Return what there is to know of a strategy; its module is imported in a cell only."""
        with self._slots, self._cell(spec, "its description") as (channel, deadline):
            answer = Talk(channel, deadline, spec, "its description").ask({"spec": spec})
        try:
            name, kinds, drafts, executes, version, summary = answer["card"]
            return Card(
                spec=wire.checked(name, str),
                kinds=frozenset(Kind(kind) for kind in kinds),
                drafts=wire.checked(drafts, bool),
                executes=wire.checked(executes, bool),
                version=wire.checked(version, str),
                summary=wire.checked(summary, str),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise fault_of(spec, "its description", f"sent what is no description ({error})") from None

    def run(
        self, spec: str, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None
    ) -> Prompt:
        """Return the strategy's prompt for one query; see `Cells.run`."""
        with self._slots, self._cell(spec, query.id) as (channel, deadline):
            talk = Talk(channel, deadline, spec, query.id)
            job = {"spec": spec, "query": wire.dump_query(query), "name": repo.name}
            message = talk.ask({**job, "instructs": generate.instructs, "executes": execute is not None})
            while "call" in message:
                message = talk.ask(self._answer(message, talk, repo, generate, execute))
        try:
            return wire.load_prompt(message.get("prompt"))
        except wire.Garbage as error:
            raise fault_of(spec, query.id, f"sent what is no prompt ({error})") from None

    def _answer(
        self, message: dict[str, Any], talk: Talk, repo: Repository, generate: Generate, execute: Execute | None
    ) -> dict[str, Any]:
        try:
            call = wire.checked(message.pop("call"), str)
            if call == "generate":
                prompt = wire.load_prompt(message.get("prompt"))
                role, tokens = wire.checked(message.get("role"), str), wire.checked(message.get("max_tokens"), int)
                return {"value": self._elsewhere(talk, lambda: generate(prompt, role=role, max_tokens=tokens))}
            if call == "execute" and execute is not None:
                program, seconds = (
                    wire.checked(message.get("program"), str),
                    wire.checked(message.get("seconds"), float),
                )
                done = self._elsewhere(talk, lambda: execute(program, seconds=seconds))
                return {"value": [done.finished, done.output]}
            return self._answer_of(repo, call, message, talk)
        except wire.Garbage as error:
            raise talk.fault(f"sent garbage ({error})") from None

    def _answer_of(self, repo: Repository, call: str, arguments: dict[str, Any], talk: Talk) -> dict[str, Any]:
        try:
            with talk.paused():
                return {"value": questions.answer(repo, call, arguments, talk.spec)}
        except NoRanker:
            raise  # not the strategy's to answer for: the user is told at once
        except InputFault as fault:
            return {"fault": [fault.what, fault.where, fault.cure]}

    def _elsewhere(self, talk: Talk, ask: Callable[[], T]) -> T:
        """Ask model or sandbox; meanwhile the cell waits, so that its slot is another's and its clock stands still."""
        with talk.paused():
            self._slots.release()
            try:
                return ask()
            finally:
                self._slots.acquire()

    @contextlib.contextmanager
    def _cell(self, spec: str, sample: str) -> Iterator[tuple[socket.socket, float]]:
        """Have a cell made; end it, whatever happened."""
        server = self._server_of(spec)
        mine, theirs = socket.socketpair()
        job = next(self._numbers)
        with self._remarks.of_cell() as output:
            try:
                with theirs, or_gone():
                    server.start(job, theirs, output)
                yield mine, time.monotonic() + self._timeout
            except Gone:
                # A cell that ends because its server did is no fault of the strategy.
                if server.ended(0.3):
                    raise MachineFault(
                        "the process that runs strategies has ended", where=sample, cure="run the same command again"
                    ) from None
                raise fault_of(
                    spec, sample, "ended without an answer: killed, out of memory, or it left by itself"
                ) from None
            finally:
                mine.close()
                with contextlib.suppress(OSError):
                    server.end(job)

    def close(self) -> None:
        """End every server and every cell, and remove their temporary folders."""
        for server in (self._server, *self._others.values()):
            server.close()


@contextlib.contextmanager
def open_cells(hidden: Sequence[Path], workers: int, *, timeout: float = TIMEOUT) -> Iterator[Cells]:
    """Start the place where strategies run; end it, and everything in it, on leaving.

    Args:
        hidden: folders and files that no strategy may read: the home, the database, local sources.
        workers: how many strategies may work at once; those that wait for the model do not count.
        timeout: seconds a strategy may take for one sample.

    Raises:
        MachineFault: if it cannot be started.
    """
    cells = ForkedCells(hidden, workers, timeout)
    try:
        yield cells
    finally:
        cells.close()
