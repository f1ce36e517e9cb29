"""A sandbox that runs nothing: a function answers its jobs."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.link import check_paths, job_frame
from ctxbench.sandbox.persistent import Conversation
from ctxbench.sandbox.types import Environment, Job, Limits, Outcome, Pool, Report


class FakeSandbox:
    """A `sandbox.types.Sandbox` that records its jobs, and the number of open pools in `opened`."""

    name = "fake"

    def __init__(self, answer: Callable[[Job], Outcome]) -> None:
        """Answer jobs with `answer`, which may raise `SandboxLost` and is called by many threads."""
        self.answer = answer
        self.jobs: list[Job] = []
        self.prepared: list[str] = []
        self.opened = 0
        self.lock = threading.Lock()

    def prepare(self, environment: Environment, report: Report) -> str:
        check_paths(environment.tree)
        report(f"{environment.name}: nothing to make")
        self.prepared.append(environment.digest)
        return environment.digest

    def open(
        self, environment: Environment, *, limits: Limits, width: int = 1, reuse: int = 1
    ) -> AbstractContextManager[Pool]:
        if environment.digest not in self.prepared:
            raise SandboxUnavailable(
                "is not prepared", where=f"fake environment {environment.name}", cure="call prepare() first"
            )
        return self._opened(environment, width)

    def converse(self, environment: Environment, *, limits: Limits) -> AbstractContextManager[Conversation]:
        raise SandboxUnavailable("the fake sandbox runs nothing", where=environment.name, cure="use --sandbox docker")

    @contextlib.contextmanager
    def _opened(self, environment: Environment, width: int) -> Iterator[Pool]:
        pool = FakePool(self, environment.digest, width)
        self.opened += 1
        try:
            yield pool
        finally:
            self.opened -= 1
            pool.closed = True


class FakePool:
    def __init__(self, sandbox: FakeSandbox, image: str, width: int) -> None:
        self.image, self.closed = image, False
        self._sandbox, self._slots = sandbox, threading.BoundedSemaphore(width)

    def run(self, job: Job) -> Outcome:
        if self.closed:
            raise SandboxLost("the pool is closed", cure="run jobs while it is open")
        job_frame(job)
        with self._slots:
            with self._sandbox.lock:
                self._sandbox.jobs.append(job)
            return self._sandbox.answer(job)
