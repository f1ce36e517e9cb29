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
from bench.types import Query
from harness.cells import bounds, wire
from harness.cells.base import Card, StrategyFault
from harness.cells.bounds import Bounds
from harness.cells.questions import Questions
from harness.cells.registrations import Registrations, is_ours
from harness.cells.scratch import Scratch
from harness.cells.talk import Gone, Talk, fault_of, or_gone, three_texts
from harness.cells.wire import END, ORDER, START
from harness.generators.base import TooLong
from strategies.api import Execute, Generate, Prompt
from strategies.conformance import Finding, findings
from strategies.registration import Registration

T = TypeVar("T")
TIMEOUT = 600.0
"""Seconds a strategy may take for one sample, its waiting for the model not counted."""
IMPORT_TIMEOUT = 60.0
"""Seconds that the import of a strategy may take when only its registration is wanted."""
CHECK_TIMEOUT = 60.0
"""Seconds that it may take for one of the tiny samples of `checked`."""
_START_TIMEOUT = 120.0
_MEND = "mend its file, or uninstall the package that provides it"
_MOST = 100
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

    def __init__(self, hidden: Sequence[Path], workers: int, timeout: float, limits: Bounds | None = None) -> None:
        """Start the server; see `open_cells`."""
        self._timeout, self._bounds = timeout, limits or Bounds()
        self._import_timeout = min(timeout, IMPORT_TIMEOUT)
        self.registrations = Registrations(self.registration)
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
            report: dict[str, str] = wire.receive(self._control)[0]
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
        """Return what there is to know of a strategy; no module but our own is imported for it in this process."""
        return Card.of(self.registrations.bound(spec))

    def registration(self, name: str) -> Registration:
        """Return what a strategy says of itself once a cell has imported it.

        Args:
            name: of an installed strategy, or ``file.py@name``.

        Raises:
            InputFault: if there is none, or it cannot be imported.
            MachineFault: if no cell could be had.
        """
        what = "its import"
        with self._slots, self._cell(name, what, self._import_timeout, cure=_MEND) as (channel, deadline):
            talk = Talk(channel, deadline, name, what, limits=self._bounds, cure=_MEND)
            answer = talk.ask({"register": name})
            with talk.suspecting():
                if "fault" in answer:
                    said, where, cure = three_texts(wire.fields(answer, "fault")["fault"])
                    raise InputFault(said, where=where, cure=cure[: bounds.SENTENCE])
                sent = wire.fields(answer, "registration")["registration"]
                return wire.load_registration(sent, name.rpartition("@")[2])

    def run(
        self, spec: str, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None
    ) -> Prompt:
        """Return the strategy's prompt for one query; see `Cells.run`."""
        return self._prompt(spec, query, repo, generate, execute)[0]

    def trial(
        self, spec: str, query: Query, repo: Repository, generate: Generate, execute: Execute | None
    ) -> tuple[Prompt, Sequence[str]]:
        """Return the prompt as `run` does, its types checked in the cell, and the tries to use the network."""
        return self._prompt(spec, query, repo, generate, execute, checks=True)

    def _prompt(
        self,
        spec: str,
        query: Query,
        repo: Repository,
        generate: Generate,
        execute: Execute | None,
        *,
        checks: bool = False,
    ) -> tuple[Prompt, Sequence[str]]:
        bound = self.registrations.bound(spec)
        with self._slots, self._cell(spec, query.id, self._timeout) as (channel, deadline):
            talk = Talk(channel, deadline, spec, query.id, limits=self._bounds)
            questions = Questions(repo, spec, talk.account, trusted=is_ours(bound, spec))
            job = {"spec": spec, "query": wire.dump_query(query), "name": repo.name, "checks": checks}
            message = talk.ask({**job, "instructs": generate.instructs, "executes": execute is not None})
            while "call" in message:
                with talk.suspecting():
                    answer = self._answer(message, talk, questions, generate, execute)
                message = talk.ask(answer)
            with talk.suspecting():
                if "fault" in message:
                    said, _, cure = three_texts(wire.fields(message, "fault")["fault"])
                    raise talk.fault(f"can no longer be had: {said}; {cure[: bounds.SENTENCE]}")
                parts = wire.fields(message, "prompt", *(["network"] if checks else []))
                network = [wire.text(one, bounds.WORD) for one in wire.items(parts.get("network", []), _MOST, "tries")]
                return wire.load_prompt(parts["prompt"]), network

    def _answer(
        self,
        message: dict[str, Any],
        talk: Talk,
        questions: Questions,
        generate: Generate,
        execute: Execute | None,
    ) -> dict[str, Any]:
        call = wire.checked(message.pop("call"), str)
        if call == "generate":
            parts = wire.fields(message, "prompt", "role", "max_tokens")
            talk.account.take("drafts")
            prompt, role = wire.load_prompt(parts["prompt"]), wire.word(parts["role"])
            tokens = wire.whole(parts["max_tokens"], 1, bounds.TOKENS)
            try:
                return {"value": self._elsewhere(talk, lambda: generate(prompt, role=role, max_tokens=tokens))}
            except TooLong as fault:
                raise talk.fault(f"asked the model what it cannot read: {fault.what}") from fault
        if call == "execute" and execute is not None:
            parts = wire.fields(message, "program", "seconds")
            talk.account.take("programs")
            program, seconds = wire.checked(parts["program"], str), wire.checked(parts["seconds"], float)
            done = self._elsewhere(talk, lambda: execute(program, seconds=seconds))
            return {"value": [done.finished, done.output]}
        try:
            with talk.paused():
                return {"value": questions.answer(call, message)}
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
    def _cell(self, spec: str, sample: str, timeout: float, *, cure: str = "") -> Iterator[tuple[socket.socket, float]]:
        """Have a cell made; end it, whatever happened."""
        mine, theirs = socket.socketpair()
        job = next(self._numbers)
        try:
            with theirs, or_gone():
                self._order(START, job, theirs)
            yield mine, time.monotonic() + timeout
        except Gone:
            # A cell that ends because its server did is no fault of the strategy.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(0.3)
                raise MachineFault(
                    "the process that runs strategies has ended", where=sample, cure="run the same command again"
                ) from None
            said = "ended without an answer: killed, out of memory, or it left by itself"
            raise fault_of(spec, sample, said, cure=cure) from None
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
def open_cells(
    hidden: Sequence[Path], workers: int, *, timeout: float = TIMEOUT, limits: Bounds | None = None
) -> Iterator[ForkedCells]:
    """Start the place where strategies run; end it, and everything in it, on leaving.

    Args:
        hidden: folders and files that no strategy may read: the home, the database, local sources.
        workers: how many strategies may work at once; those that wait for the model do not count.
        timeout: seconds a strategy may take for one sample.
        limits: what else it may use for one sample; None for the usual.

    Raises:
        MachineFault: if it cannot be started.
    """
    cells = ForkedCells(hidden, workers, timeout, limits)
    try:
        yield cells
    finally:
        cells.close()


@contextlib.contextmanager
def open_registrations(hidden: Sequence[Path]) -> Iterator[Registrations]:
    """Give registrations without a run; cells are started when a strategy is asked for that is not our own.

    Args:
        hidden: as for `open_cells`.
    """
    lock = threading.Lock()
    started: list[ForkedCells] = []
    with contextlib.ExitStack() as stack:

        def read(name: str) -> Registration:
            with lock:
                if not started:
                    started.append(stack.enter_context(open_cells(hidden, os.cpu_count() or 1)))
            return started[0].registration(name)

        yield Registrations(read)


def checked(spec: str, hidden: Sequence[Path]) -> list[Finding]:
    """Run the conformance list on a strategy in the cells of a run.

    Args:
        spec: the strategy.
        hidden: as for `open_cells`.

    Raises:
        InputFault: if the spec is wrong, or the strategy cannot be imported.
        MachineFault: if no cell could be had.
    """
    with open_cells(hidden, 1, timeout=CHECK_TIMEOUT) as cells:

        def attempt(
            query: Query, repo: Repository, generate: Generate, execute: Execute | None
        ) -> tuple[Prompt, Sequence[str]]:
            try:
                return cells.trial(spec, query, repo, generate, execute)
            except StrategyFault as fault:
                # Where, and to check it, need not be said to whoever checks.
                raise InputFault(fault.what) from fault

        return findings(cells.card(spec).kinds, attempt)
