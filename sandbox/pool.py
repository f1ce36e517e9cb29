"""Open boxes of one environment: prepared ahead, one job at a time each, thrown away when in doubt.

It knows no back end: a `Launcher` starts boxes, a `Link` talks to each.
"""

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
"""Seconds before each try: a machine that was short of something may have it again."""
_PROBE_SECONDS = 60.0


class BoxPool:
    """See `sandbox.types.Pool`; `open_pool` makes and ends one."""

    def __init__(self, launcher: Launcher, environment: Environment, limits: Limits, width: int, reuse: int) -> None:
        """Start nothing yet."""
        if width < 1 or reuse < 1:
            raise ValueError("a pool needs a width and a reuse of at least 1")
        self.image = launcher.image
        self.greeting: dict[str, Any] = {}
        """What the first box said of itself: ``landlock``, ``seccomp``, ``memory``, ``python``, ``user``."""
        self._launcher, self._environment, self._limits = launcher, environment, limits
        self._tree, self._reuse = tree_frame(environment), reuse
        self._probe = _probe(limits)
        self._most = width + (width + 1) // 2
        """Boxes there may be: those at work, and spares that are made ready meanwhile."""
        self._slots = threading.BoundedSemaphore(width)
        self._lock = threading.Lock()
        self._links: set[Link] = set()
        self._ready: list[Future[Link]] = []
        self._busy = 0
        self._closed = False
        self._workers = ThreadPoolExecutor(self._most, thread_name_prefix="sandbox")

    def begin(self) -> None:
        """Make the first box ready.

        Raises:
            SandboxUnavailable: if none can be.
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
        """Run a job in a box that no other job is in; see `sandbox.types.Pool.run`.

        Raises:
            SandboxLost: if three boxes were lost under it, and a harmless job's box too.
            SandboxError: if the job's files do not fit into the box.
            ValueError: if the job itself is none.
        """
        job_frame(job)
        with self._slots:
            return tried(lambda fresh: self._try(job, fresh=fresh), lambda: self._try(self._probe, fresh=True))

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
        """Return a box that is ready, make one if there is none; have the next one made meanwhile."""
        with self._lock:
            if self._closed:
                raise SandboxLost("the pool is closed", cure="run jobs before it is left")
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
        """Take a ready box out of the waiting ones, else the one that has been in the making for longest."""
        for future in self._ready:
            if future.done() and future.exception() is None:
                self._ready.remove(future)
                return future
        return self._ready.pop(0) if self._ready else None

    def _make(self) -> Link:
        """Start a box and make it ready for a job."""
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
        """Make a used box ready again, or another one in its place."""
        try:
            trouble = link.finish()
            if not trouble:
                if self._tree:
                    link.plant(self._tree)
                return link
        except SandboxError as error:
            trouble = str(error)
        _log.info("a box is thrown away: %s", trouble)
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
        """End every box, also those in the making; wait until that is done."""
        with self._lock:
            self._closed = True
            links = list(self._links)
        with contextlib.ExitStack() as stack:
            # Each is called even where an interrupt breaks into another.
            stack.callback(self._workers.shutdown, wait=True, cancel_futures=True)
            for link in links:
                stack.callback(link.end)


def _probe(limits: Limits) -> Job:
    """Return a job that does nothing, but uses most of the memory that it may: does the machine have it?"""
    program = f"len(b'x' * {limits.memory * 3 // 4})"
    return Job(action=Command(argv=("python3", "-I", "-S", "-c", program)), seconds=_PROBE_SECONDS)


def tried(run: Callable[[bool], Outcome], probe: Callable[[], Outcome]) -> Outcome:
    """Return a job's outcome, from its first box that is not lost: WRECKED where all are, on a machine that works.

    A harmless job follows each loss. With one at the end only, an engine that restarts could lose the job three times
    and be back in time for it.

    Args:
        run: runs the job; says whether it needs a box that nothing ran in before, which each try but the first does.
        probe: runs a harmless job that exits with 0; not asked where the machine is at fault without doubt.

    Raises:
        SandboxLost: if three boxes were lost under it, and a harmless job's box too.
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
    """Open a pool over boxes of a launcher; end every box on leaving, however it is left.

    Args:
        launcher: starts boxes of the prepared environment.
        environment: what they hold; its tree, path and preloaded modules are sent.
        limits: what each may use.
        width: how many jobs may run at once.
        reuse: jobs after which a box is thrown away.

    Raises:
        SandboxUnavailable: if no box can be started, or the environment does not work in one.
        ValueError: if a path of the tree leads out of the working folder.
    """
    pool = BoxPool(launcher, environment, limits, width, reuse)
    try:
        pool.begin()
        yield pool
    finally:
        pool.close()
