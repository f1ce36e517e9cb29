"""Judges completions of a sample set in boxes, which are opened when needed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import TracebackType

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.home import Home
from ctxbench.bench.judging.python import Compiling, bytecode, with_bytecode
from ctxbench.bench.judging.suites import suite_of
from ctxbench.bench.judging.types import MOST_FLAGS, Judgement, Suite, Verdict, short
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.types import Ended, Job, Outcome, Pool, Sandbox

VERSION = 3
"""Version of the rules for verdicts, which is part of the key that `Judge.image` returns."""
_LOG = logging.getLogger(__name__)
MOST_CHARACTERS = 1_000_000
PUBLISHED_REUSE = 50
"""Number of jobs per box for trusted code. A model's code always gets a new box."""


@contextlib.contextmanager
def sandbox_explained() -> Iterator[None]:
    """Turn a `SandboxUnavailable` that is raised in the context into a `MachineFault`."""
    try:
        yield
    except SandboxUnavailable as error:
        raise MachineFault(error.what, where=error.where, cure=error.cure) from error


def judged(suite: Suite, run: Callable[[Job], Outcome], sample: Sample, reference: Reference, text: str) -> Judgement:
    """Judge a completion in a job that `run` executes, and add remarks on unusual code in the completion.

    Raises:
        SandboxLost: if the machine failed.
    """
    secret = secrets.token_hex(16)
    try:
        job = suite.job(sample, reference, text, secret)
    except InputFault as fault:
        return Judgement(verdict=Verdict.FAILED, reason=str(fault))
    judgement = suite.judge(reference, run(job), secret)
    if text == reference.target:
        return judgement
    return replace(judgement, flags=tuple(map(short, suite.remarks(sample, reference, text)[:MOST_FLAGS])))


class _Room:
    def __init__(self, suite: Suite) -> None:
        self.lock = threading.Lock()
        self.suite = suite
        self.image = ""
        self.pool: Pool | None = None
        self.bytecode: Mapping[str, bytes] = {}


class Judge:
    """A thread-safe judge of completions. As a context manager, it closes all its boxes on exit."""

    def __init__(self, home: Home, sample_set: SampleSet, sandbox: Sandbox, *, width: int, reuse: int = 1) -> None:
        """Create a judge for a set's samples. The boxes are opened later, in `sandbox`.

        Args:
            width: number of samples to judge at the same time.
            reuse: number of jobs per box; 1 for models' completions (see `PUBLISHED_REUSE`).
        """
        self._turns = Turns(home.cache)
        self._home, self._set, self._sandbox, self._width, self._reuse = home, sample_set, sandbox, width, reuse
        self._lock = threading.Lock()
        self._rooms: dict[str, _Room] = {}
        self._open = contextlib.ExitStack()
        self._closed = False

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            self._rooms.clear()
            pools = self._open.pop_all()
        pools.__exit__(kind, error, trace)

    def image(self, sample: Sample) -> str:
        """Return a key for everything that affects a verdict, except the tests and the completion.

        Raises:
            InputFault: if the repository is missing, or has changed since the set was built.
            MachineFault: if the image cannot be built here.
        """
        room = self._room(sample.repo)
        with room.lock:
            return self._prepared(room)

    def judge(self, sample: Sample, text: str, *, alone: bool = False, lenient: bool = True) -> Judgement:
        """Judge `text` as the sample's function.

        Args:
            alone: whether other jobs of this home folder must wait meanwhile.
            lenient: whether to judge again, alone, if only tests that read a clock failed, as can happen under load.

        Raises:
            InputFault: if the repository is missing, or has changed since the set was built.
            MachineFault: if no box can be started. A lost box results in `Verdict.BROKEN`.
        """
        reference = self._set.references[sample.id]
        if not reference.tests:
            return Judgement(verdict=Verdict.NO_TESTS, reason="the sample has no tests")
        if len(text) > MOST_CHARACTERS:
            return Judgement(verdict=Verdict.FAILED, reason=f"longer than {MOST_CHARACTERS} characters")
        room = self._room(sample.repo)
        first = self._judged(room, sample, text, alone=alone)
        if alone or not lenient or not first.failed or not set(first.failed) <= set(reference.clocks):
            return first
        again = self._judged(room, sample, text, alone=True)
        return replace(again, earlier=f"{first.verdict}: {first.reason}")

    def _judged(self, room: _Room, sample: Sample, text: str, *, alone: bool) -> Judgement:
        reference = self._set.references[sample.id]
        run = partial(self._in_turn, room, self._turns.alone if alone else self._turns.together)
        try:
            return judged(room.suite, run, sample, reference, text)
        except SandboxLost as lost:
            return Judgement(verdict=Verdict.BROKEN, reason=str(lost))

    def _in_turn(self, room: _Room, turn: Callable[[], AbstractContextManager[None]], job: Job) -> Outcome:
        with turn():
            return self._run(room, job)

    def failing(self, sample: Sample, reference: Reference, text: str) -> frozenset[str] | None:
        """Return the reference's tests that fail with `text` as the function; None without a usable report.

        For trusted code only. A run that was stopped is repeated alone, and so are failed tests that read a clock.

        Raises:
            InputFault: if the repository is missing or changed since the set was built, or `text` lacks the function.
            MachineFault: if no box can be started, or the box was lost.
        """
        room = self._room(sample.repo)
        try:
            ended, noticing = self._tried(room, sample, reference, text)
            if ended is not Ended.EXITED:
                return self._tried(room, sample, reference, text, alone=True)[1]
            timed = (noticing or frozenset()).intersection(reference.clocks)
            if timed:
                fewer = replace(reference, tests=tuple(test for test in reference.tests if test in timed))
                _, again = self._tried(room, sample, fewer, text, alone=True)
                return noticing if noticing is None or again is None else noticing - (timed - again)
            return noticing
        except SandboxLost as lost:
            raise MachineFault(
                str(lost), where=sample.id, cure="run the same command again; finished work is kept"
            ) from lost

    def _tried(
        self, room: _Room, sample: Sample, reference: Reference, text: str, *, alone: bool = False
    ) -> tuple[Ended, frozenset[str] | None]:
        job = room.suite.trial(sample, reference, text, secrets.token_hex(16))
        outcome = self._in_turn(room, self._turns.alone if alone else self._turns.together, job)
        return outcome.ended, room.suite.failing(reference, outcome)

    def _room(self, repo: str) -> _Room:
        with self._lock:
            if repo not in self._rooms:
                self._rooms[repo] = _Room(suite_of(self._home, self._set, repo, self._sandbox))
            return self._rooms[repo]

    def _tests(self, room: _Room) -> set[str]:
        return {
            test
            for sample in self._set.samples
            if self._rooms.get(sample.repo) is room
            for test in self._set.references[sample.id].tests
        }

    def _prepared(self, room: _Room) -> str:
        if not room.image:
            with sandbox_explained():
                digest = self._sandbox.prepare(room.suite.environment, _LOG.info)
            parts = [VERSION, self._sandbox.name, digest, room.suite.environment.digest, asdict(room.suite.limits)]
            room.image = sha256(json.dumps(parts))
        return room.image

    def _run(self, room: _Room, job: Job) -> Outcome:
        pool = self._pool(room)
        return pool.run(replace(job, files=with_bytecode(job, room.bytecode)))

    def _pool(self, room: _Room) -> Pool:
        with room.lock:
            if room.pool is None:
                self._prepared(room)
                with sandbox_explained():
                    manager = self._sandbox.open(
                        room.suite.environment, limits=room.suite.limits, width=self._width, reuse=self._reuse
                    )
                    pool = manager.__enter__()
                # Push a pool only after it was entered: otherwise there is nothing to exit.
                with self._lock:
                    late = self._closed
                    if not late:
                        self._open.push(manager.__exit__)
                if late:
                    manager.__exit__(None, None, None)
                    raise MachineFault("the judge is closed", cure="call it inside its `with` block")
                room.pool = pool
                if isinstance(room.suite, Compiling):
                    room.bytecode = bytecode(room.suite, self._tests(room), pool, room.image, self._home)
            return room.pool


class Turns:
    """Locks that let jobs of all processes run together, or one job alone. A waiting exclusive job goes first."""

    def __init__(self, folder: Path) -> None:
        self._door, self._room = folder / "judging.door", folder / "judging.room"

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Wait until no exclusive job runs. No exclusive job can start until the context ends."""
        with contextlib.ExitStack() as room:
            with _locked(self._door, fcntl.LOCK_SH):
                room.enter_context(_locked(self._room, fcntl.LOCK_SH))
            yield

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until all other jobs end. No other job can start until the context ends."""
        with _locked(self._door, fcntl.LOCK_EX), _locked(self._room, fcntl.LOCK_EX):
            yield


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        fcntl.flock(file, how)
        yield
