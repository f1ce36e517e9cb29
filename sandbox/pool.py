"""Pools of boxes for one environment. A box runs one job at a time and is replaced if its state is doubtful."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ctxbench.sandbox.errors import MachineShort, SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.link import Link, job_frame, tree_frame
from ctxbench.sandbox.types import Command, Ended, Environment, Job, Launcher, Limits, Outcome, Pool

_log = logging.getLogger(__name__)
_PAUSES = (0.0, 0.2, 1.0)
"""Pauses before each attempt, in seconds. The machine may lack a resource for a moment."""
_PROBE_SECONDS = 60.0


class BoxPool:
    """A pool (see `sandbox.types.Pool`). `open_pool` creates and closes pools."""

    def __init__(self, launcher: Launcher, environment: Environment, limits: Limits, width: int, reuse: int) -> None:
        if width < 1 or reuse < 1:
            raise ValueError("a pool needs a width and a reuse of at least 1")
        self.image = launcher.image
        self.greeting: dict[str, Any] = {}
        """What the first box reported when it started: ``landlock``, ``seccomp``, ``memory``, ``python``, ``user``."""
        self._launcher, self._environment, self._limits = launcher, environment, limits
        self._tree, self._reuse = tree_frame(environment), reuse
        self._probe = _probe(limits)
        self._most = width + (width + 1) // 2
        self._slots = threading.BoundedSemaphore(width)
        self._lock = threading.Lock()
        self._links: set[Link] = set()
        self._ready: list[Future[Link]] = []
        self._busy = 0
        self._closed = False
        self._workers = ThreadPoolExecutor(self._most, thread_name_prefix="sandbox")

    def begin(self) -> None:
        """Start the first box.

        Raises:
            SandboxUnavailable: if three attempts fail, or the environment does not work in the box.
        """
        for pause in _PAUSES:
            time.sleep(pause)
            first = self._workers.submit(self._make)
            try:
                first.result()
            except SandboxLost as lost:
                reason = lost
                continue
            self._ready.append(first)
            return
        raise SandboxUnavailable(reason.what, where=reason.where, cure=reason.cure)

    def run(self, job: Job) -> Outcome:
        """Run a job alone in a box (see `sandbox.types.Pool.run`).

        Raises:
            SandboxLost: if three boxes were lost, and the machine ran out of memory or a harmless job failed too.
            SandboxError: if the job cannot be started, for example because its files do not fit into the box.
            ValueError: if the job is malformed.
        """
        job_frame(job)
        with self._slots:
            return run_retrying(lambda fresh: self._try(job, fresh=fresh), lambda: self._try(self._probe, fresh=True))

    def _try(self, job: Job, *, fresh: bool) -> Outcome:
        link = self._take(fresh=fresh)
        try:
            outcome = link.run(job)
        except SandboxLost as lost:
            why = self._drop(link)
            what = f"{lost.what}: {why}" if why else lost.what
            raise type(lost)(what, where=lost.where, cure=lost.cure) from None
        except BaseException:
            self._drop(link)
            raise
        self._give_back(link)
        return outcome

    def _take(self, *, fresh: bool) -> Link:
        with self._lock:
            if self._closed:
                raise SandboxLost("the pool is closed", cure="run jobs while it is open")
            self._busy += 1
            link = None if fresh else self._choose()
            if link is None:
                link = self._workers.submit(self._make)
            elif not self._ready and self._busy < self._most:
                self._ready.append(self._workers.submit(self._make))
        try:
            return link.result()
        except BaseException:
            with self._lock:
                self._busy -= 1
            raise

    def _choose(self) -> Future[Link] | None:
        for future in self._ready:
            if future.done() and future.exception() is None:
                self._ready.remove(future)
                return future
        return self._ready.pop(0) if self._ready else None

    def _make(self) -> Link:
        if self._closed:
            raise SandboxLost("the pool is closed")
        link = Link(self._launcher.start(), self._limits)
        with self._lock:
            if not self._closed:
                self._links.add(link)
        try:
            if self._closed:
                raise SandboxLost("the pool is closed")
            greeting = link.greet(self._environment)
            self.greeting = self.greeting or greeting
            if self._tree:
                link.plant(self._tree)
        except SandboxError as error:
            why = self._end(link)
            if isinstance(error, SandboxLost) and why:
                raise SandboxLost(f"{error.what}: {why}", where=error.where, cure=error.cure) from None
            raise
        except BaseException:
            self._end(link)
            raise
        return link

    def _give_back(self, link: Link) -> None:
        with self._lock:
            self._busy -= 1
            if self._closed:
                return
            if link.jobs < self._reuse:
                self._ready.append(self._workers.submit(self._renew, link))
            else:
                self._workers.submit(self._end, link)

    def _renew(self, link: Link) -> Link:
        try:
            trouble = link.finish()
            if not trouble:
                if self._tree:
                    link.plant(self._tree)
                return link
        except SandboxError as error:
            trouble = str(error)
        _log.info("discarding a box: %s", trouble)
        self._end(link)
        return self._make()

    def _drop(self, link: Link) -> str:
        with self._lock:
            self._busy -= 1
        return self._end(link)

    def _end(self, link: Link) -> str:
        why = link.end()
        with self._lock:
            self._links.discard(link)
        return why

    def close(self) -> None:
        """End all boxes, including those that are starting, and wait until they are gone."""
        with self._lock:
            self._closed = True
            links = list(self._links)
        with contextlib.ExitStack() as stack:
            # The exit stack calls every callback, even if an interrupt stops another one.
            stack.callback(self._workers.shutdown, wait=True, cancel_futures=True)
            for link in links:
                stack.callback(link.end)


def _probe(limits: Limits) -> Job:
    """Return a job that allocates three quarters of its memory, to test whether the machine has that much."""
    program = f"len(b'x' * {limits.memory * 3 // 4})"
    return Job(action=Command(argv=("python3", "-I", "-S", "-c", program)), seconds=_PROBE_SECONDS)


def run_retrying(run: Callable[[bool], Outcome], probe: Callable[[], Outcome]) -> Outcome:
    """Run a job until a box survives it. If it destroys three boxes on a working machine, return a WRECKED outcome.

    A harmless job after each loss tests the machine. A single test at the end could miss a restart of Docker.

    Args:
        run: runs the job. The argument states whether the box must be new.
        probe: runs a harmless job.

    Raises:
        SandboxLost: if three boxes were lost, and the machine ran out of memory or a harmless job failed too.
    """
    wrecked = True
    began = time.monotonic()
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            return run(pause > 0)
        except SandboxLost as lost:
            reason = lost
            wrecked = wrecked and not isinstance(lost, MachineShort)
        try:
            wrecked = wrecked and probe().exit_code == 0
        except SandboxLost:
            wrecked = False
    if wrecked:
        return Outcome(ended=Ended.WRECKED, output=str(reason), seconds=time.monotonic() - began)
    raise reason


@contextlib.contextmanager
def open_pool(
    launcher: Launcher, environment: Environment, limits: Limits, *, width: int, reuse: int
) -> Iterator[Pool]:
    """Open a pool, and end all its boxes on exit.

    Args:
        width: number of concurrent jobs.
        reuse: number of jobs after which a box is replaced.

    Raises:
        SandboxUnavailable: if no box can be started, or the environment does not work in it.
        ValueError: if `width` or `reuse` is below 1, or a path of the environment's tree is not allowed.
    """
    pool = BoxPool(launcher, environment, limits, width, reuse)
    try:
        pool.begin()
        yield pool
    finally:
        pool.close()
