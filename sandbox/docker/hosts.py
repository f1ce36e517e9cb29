"""`DockerHosts`: several Docker engines as one back end. A lost one's jobs are tried again on the others.

An image is built by one engine and sent to the others, so that a job finds the same in its box wherever it runs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from ctxbench.sandbox.docker import DockerSandbox, foreign, images
from ctxbench.sandbox.docker.engine import engine_faults
from ctxbench.sandbox.errors import SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.living import Conversation
from ctxbench.sandbox.types import Ended, Environment, Job, Limits, Outcome, Pool, Report

T = TypeVar("T")
_log = logging.getLogger(__name__)
_ANSWER_SECONDS = 5.0
"""An engine that takes longer to say that it is there is taken for hung."""
_FAILURES = 3
"""Jobs in a row that a host loses, though it answers, before the others get its jobs."""
_FIRST_LOOK, _LONGEST = 1.0, 60.0
"""Seconds until a lost host is looked after, which double up to the second number."""


class DockerHost:
    """One engine, and how it does. What changes is under the lock of its `DockerHosts`, but for `making`."""

    def __init__(self, sandbox: DockerSandbox) -> None:
        """Take a back end; ask it nothing."""
        self.sandbox, self.url = sandbox, sandbox.host
        self.room = 1
        """Jobs that it may have at once: as many as it has processors."""
        self.load = self.failures = 0
        """Jobs that it has now, and jobs in a row that it lost."""
        self.lost = "it was not asked yet"
        """Why the others get its jobs; empty while it answers."""
        self.looks, self.look_at = 0, 0.0
        """How often it was looked after since it was lost, and when it is the next time."""
        self.making = threading.Lock()
        """Held by who gives it an image."""

    def trouble(self) -> str:
        """Ask the engine how much it can do; return why it can do nothing, empty if it can.

        The number of its processors is how many jobs it gets at once: tests have a clock.
        """
        try:
            with self.sandbox.connected(_ANSWER_SECONDS) as client, engine_faults(SandboxUnavailable, self.url):
                info = client.api.info()
        except SandboxError as fault:
            return fault.what
        self.room = max(1, int(info.get("NCPU") or 1))
        runtime, present = self.sandbox.runtime, sorted(info.get("Runtimes") or {})
        if runtime and runtime not in present:
            return f"it has no runtime {runtime!r}, but {', '.join(present) or 'none'}"
        return ""


class DockerHosts:
    """A back end of several engines; see `sandbox.types.Sandbox`. Safe to use from many threads."""

    def __init__(self, sandboxes: Sequence[DockerSandbox]) -> None:
        """Take the engines' own back ends, each with its address; ask none of them."""
        self.name = sandboxes[0].name
        self._hosts = [DockerHost(sandbox) for sandbox in sandboxes]
        self._changed = threading.Condition()
        self._holders: dict[str, list[DockerHost]] = {}
        """Digest of an environment -> the hosts that have its image for certain."""

    def begin(self) -> None:
        """See which hosts answer, and say so.

        Raises:
            SandboxUnavailable: if none does.
        """
        for host in self._hosts:
            host.lost = host.trouble()
            if host.lost:
                self._look_later(host)
        lost = "; ".join(f"{host.url}: {host.lost}" for host in self._hosts if host.lost)
        if all(host.lost for host in self._hosts):
            cure = "start them, see that each is reached by a plain connection, or use --sandbox docker"
            raise SandboxUnavailable(f"no host answers ({lost})", where="docker", cure=cure)
        # Shown also where nobody looks at progress yet.
        self._say(f"not {lost}" if lost else "", logging.WARNING if lost else logging.INFO)

    def prepare(self, environment: Environment, report: Report) -> str:
        """Build an environment's image on one host, and send it to the others that answer; return its digest."""
        host, key = self._somewhere(lambda host: host.sandbox.prepare(environment, report))
        with self._changed:
            self._holders[environment.digest] = [host]
        for other in self._hosts:
            if other is not host and not other.lost:
                try:
                    self._provide(other, environment, report)
                except SandboxError as fault:
                    # It may still get it later, with its first job.
                    report(f"{other.url} has not got the image of {environment.name}: {fault.what}")
        return key

    @contextlib.contextmanager
    def open(self, environment: Environment, *, limits: Limits, width: int = 1, reuse: int = 1) -> Iterator[Pool]:
        """Open a pool over all hosts; a host's own part is opened with its first job."""
        with contextlib.ExitStack() as parts:

            def part(host: DockerHost) -> Pool:
                self._provide(host, environment, _log.info)
                width_there = min(width, host.room)
                return parts.enter_context(
                    host.sandbox.open(environment, limits=limits, width=width_there, reuse=reuse)
                )

            pool = HostsPool(self, part, width)
            try:
                pool.begin()
                yield pool
            finally:
                pool.close()

    @contextlib.contextmanager
    def converse(self, environment: Environment, *, limits: Limits) -> Iterator[Conversation]:
        """Have a living box on one of the hosts."""
        with contextlib.ExitStack() as stack:

            def talk_with(host: DockerHost) -> Conversation:
                self._provide(host, environment, _log.info)
                return stack.enter_context(host.sandbox.converse(environment, limits=limits))

            _, talk = self._somewhere(talk_with)
            yield talk

    def take(self, tried: Collection[DockerHost]) -> DockerHost | None:
        """Return the least loaded host that answers, for one job; None if all were tried. Wait until one has room."""
        self._look_after()
        with self._changed:
            while True:
                answering = [host for host in self._hosts if not host.lost] or self._hosts
                candidates = [host for host in answering if host not in tried]
                if not candidates:
                    return None
                if free := [host for host in candidates if host.load < host.room]:
                    host = min(free, key=lambda host: host.load / host.room)
                    host.load += 1
                    return host
                self._changed.wait()

    def give_back(self, host: DockerHost) -> None:
        """Note that a job has left a host."""
        with self._changed:
            host.load -= 1
            self._changed.notify_all()

    def worked(self, host: DockerHost) -> None:
        """Note that a job has an outcome."""
        with self._changed:
            host.failures = host.looks = 0

    def failed(self, host: DockerHost, fault: SandboxError) -> None:
        """Note a host's fault; the others get its jobs if it is not there, or fails again and again."""
        trouble = host.trouble()
        with self._changed:
            host.failures += 1
            trouble = trouble or (fault.what if host.failures >= _FAILURES else "")
            if not trouble or host.lost:
                return
            host.lost = trouble
            self._look_later(host)
            self._changed.notify_all()
        self._say(f"{host.url} is lost ({trouble}), the others get its jobs")

    def _look_later(self, host: DockerHost) -> None:
        host.look_at = time.monotonic() + min(_LONGEST, _FIRST_LOOK * 2.0 ** min(host.looks, 16))
        host.looks += 1

    def _look_after(self) -> None:
        """Ask lost hosts, when it is time, whether they are there again."""
        with self._changed:
            due = [host for host in self._hosts if host.lost and host.look_at <= time.monotonic()]
            for host in due:
                self._look_later(host)
        for host in due:
            trouble = host.trouble()
            with self._changed:
                host.lost = trouble
                # Until a job has an outcome there, one more that has none is enough to lose it again.
                host.failures = _FAILURES - 1
                self._changed.notify_all()
            if not trouble:
                self._say(f"{host.url} is back")

    def _somewhere(self, work: Callable[[DockerHost], T]) -> tuple[DockerHost, T]:
        """Do a work on the least loaded host that can do it; return which it was, and the result.

        Raises:
            SandboxError: the first host's fault, if none can.
        """
        self._look_after()
        first: SandboxError | None = None
        for host in sorted(self._hosts, key=lambda host: (bool(host.lost), host.load / host.room)):
            try:
                return host, work(host)
            except SandboxError as fault:
                self.failed(host, fault)
                first = first or fault
        raise first or SandboxUnavailable("there is no host", where="docker")

    def _provide(self, host: DockerHost, environment: Environment, report: Report) -> None:
        """Send a host the image of an environment from one that has it, unless it is there.

        Raises:
            SandboxUnavailable: if that cannot be done.
        """
        with self._changed:
            holders = self._holders.get(environment.digest, [host])
            holder = min(holders, key=lambda holder: bool(holder.lost))
        if host in holders:
            return
        with host.making, host.sandbox.connected() as there, holder.sandbox.connected() as here:
            host.sandbox.base = holder.sandbox.base or images.local_base(here, holder.sandbox.base_image)
            name = holder.sandbox.image_name(here, environment)
            if images.find(there, name) is None:
                report(f"sending the image of {environment.name} to {host.url}")
                images.send(here, there, name)
            if environment.image and foreign.key(there, environment) != foreign.key(here, environment):
                cure = "remove it there: it is then sent"
                raise SandboxUnavailable(f"{environment.image} is another image there", where=host.url, cure=cure)
        with self._changed:
            holders.append(host)

    def _say(self, what: str, level: int = logging.INFO) -> None:
        count = sum(not host.lost for host in self._hosts)
        head = f"docker: {count} of {len(self._hosts)} hosts {'answers' if count == 1 else 'answer'}"
        _log.log(level, "%s", f"{head}; {what}" if what else head)


class HostsPool:
    """A pool over several hosts; see `sandbox.types.Pool`."""

    def __init__(self, hosts: DockerHosts, part: Callable[[DockerHost], Pool], width: int) -> None:
        """Open nothing yet; `part` opens one host's own pool."""
        self.image, self.closed = "", False
        self._hosts, self._part = hosts, part
        self._slots = threading.BoundedSemaphore(width)
        self._pools: dict[DockerHost, Pool] = {}
        self._opening: defaultdict[DockerHost, threading.Lock] = defaultdict(threading.Lock)

    def begin(self) -> None:
        """Open the pool of one host, which shows that the environment works.

        Raises:
            SandboxError: the first host's fault, if none can be opened.
        """
        tried: list[DockerHost] = []
        first: SandboxError | None = None
        while (host := self._hosts.take(tried)) is not None:
            tried.append(host)
            try:
                self.image = self._pool(host).image
                return
            except SandboxError as fault:
                self._hosts.failed(host, fault)
                first = first or fault
            finally:
                self._hosts.give_back(host)
        raise first or SandboxUnavailable("no host answers", where="docker")

    def close(self) -> None:
        """Open no further pool; wait for those that are being opened."""
        self.closed = True
        for opening in list(self._opening.values()):
            with opening:
                pass

    def run(self, job: Job) -> Outcome:
        """Run a job on one host; where that is lost, or says that the job wrecks its boxes, on another.

        Raises:
            SandboxLost: if every host that answers has lost it.
            SandboxError: if the job's files do not fit into the box.
            ValueError: if the job itself is none.
        """
        with self._slots:
            tried: list[DockerHost] = []
            wrecked: Outcome | None = None
            lost: SandboxError | None = None
            while (host := self._hosts.take(tried)) is not None:
                tried.append(host)
                try:
                    outcome = self._pool(host).run(job)
                except (SandboxLost, SandboxUnavailable) as fault:
                    lost = fault
                    if self.closed:
                        break
                    self._hosts.failed(host, fault)
                    continue
                finally:
                    self._hosts.give_back(host)
                self._hosts.worked(host)
                if outcome.ended is not Ended.WRECKED:
                    return outcome
                # What one host's boxes do not survive may be that host's fault.
                wrecked = outcome
            if lost is None and wrecked is not None:
                return wrecked
            what, where, cure = (lost.what, lost.where, lost.cure) if lost else ("no host answers", "docker", "")
            raise SandboxLost(what, where=where, cure=cure)

    def _pool(self, host: DockerHost) -> Pool:
        with self._opening[host]:
            if self.closed:
                raise SandboxLost("the pool is closed", cure="run jobs before it is left")
            pool = self._pools.get(host)
            if pool is None:
                pool = self._part(host)
                if self.image not in ("", pool.image):
                    cure = "remove it there: it is then sent"
                    raise SandboxUnavailable("its image is another one", where=host.url, cure=cure)
                self._pools[host] = pool
            return pool
