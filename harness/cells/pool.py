"""The trusted side of cells: starts the fork server and answers what cells ask."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
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
from harness.cells.scratch import Scratch
from harness.cells.talk import Gone, Talk, fault_of, or_gone
from harness.cells.wire import END, ORDER, START
from strategies.api import Execute, Generate, Prompt

T = TypeVar("T")
TIMEOUT = 600.0
"""Seconds a strategy may take for one sample, its waiting for the model not counted."""
_START_TIMEOUT = 120.0
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONHOME")
_SET_VARIABLES = {
    # Sums split over threads can differ in the last bit, and threads do not survive a fork.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class ForkedCells:
    """Cells made by a fork server, each a process of its own for one sample."""

    def __init__(self, hidden: Sequence[Path], workers: int, timeout: float) -> None:
        """Start the server; see `open_cells`."""
        self._timeout = timeout
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(max(1, workers))
        self._scratch = Scratch()
        self._control, theirs = socket.socketpair()
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.cells.server", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what a strategy prints is remarks, never data
            pass_fds=[theirs.fileno()],
            env=_environment(),
            start_new_session=True,
        )
        theirs.close()
        self._report = self._greet(hidden)

    def _greet(self, hidden: Sequence[Path]) -> dict[str, str]:
        try:
            self._control.settimeout(_START_TIMEOUT)
            wire.send(
                self._control,
                {"scratch": str(self._scratch.path), "hidden": [str(Path(path).absolute()) for path in hidden]},
            )
            report: dict[str, str] = wire.receive(self._control)
            self._control.settimeout(None)
        except (OSError, EOFError, wire.Garbage) as error:
            self.close()
            raise MachineFault(
                f"the process that runs strategies did not start ({type(error).__name__})",
                cure="see its message above, then run the same command again",
            ) from None
        return report

    def describe(self) -> Mapping[str, str]:
        """Return what was reached: ``isolation`` is ``process+landlock``, or ``process`` where there is no Landlock."""
        return dict(self._report)

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
        mine, theirs = socket.socketpair()
        job = next(self._numbers)
        try:
            with theirs, or_gone():
                self._order(START, job, theirs)
            yield mine, time.monotonic() + self._timeout
        except Gone:
            # A cell that ends because its server did is no fault of the strategy.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(0.3)
                raise MachineFault(
                    "the process that runs strategies has ended", where=sample, cure="run the same command again"
                ) from None
            raise fault_of(
                spec, sample, "ended without an answer: killed, out of memory, or it left by itself"
            ) from None
        finally:
            mine.close()
            with contextlib.suppress(OSError):
                self._order(END, job)

    def _order(self, order: bytes, job: int, channel: socket.socket | None = None) -> None:
        raw = ORDER.pack(order, job)
        with self._lock:
            if channel is None:
                self._control.sendall(raw)
            else:
                socket.send_fds(self._control, [raw], [channel.fileno()])

    def close(self) -> None:
        """End the server and every cell, and remove their temporary folder."""
        self._control.close()
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._scratch.remove()


def _environment() -> dict[str, str]:
    """Return the server's environment: no keys, tokens or settings of ours; the same modules to import."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**kept, **_SET_VARIABLES, "PYTHONPATH": path}


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
