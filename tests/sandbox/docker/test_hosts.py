"""Several Docker hosts as one back end: made-up ones, and two doors to the one engine that is here."""

from __future__ import annotations

import contextlib
import gc
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxbench.sandbox.docker import DockerSandbox, images
from ctxbench.sandbox.docker import hosts as hosts_module
from ctxbench.sandbox.docker.engine import Client
from ctxbench.sandbox.docker.hosts import DockerHosts
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.fake import FakeSandbox
from ctxbench.sandbox.types import Command, Ended, Environment, Job, Limits, Outcome
from tests.helpers.engine_proxy import EngineProxy

ENVIRONMENT = Environment(name="made-up")
JOB = Job(action=Command(argv=("true",)))
FINE = Outcome(ended=Ended.EXITED, exit_code=0)


class Host(FakeSandbox):
    """A made-up engine with its back end."""

    runtime, base, base_image, cache = "", "sha256:base", "", Path()

    def __init__(self, number: int, answer: Callable[[Job], Outcome] = lambda _: FINE, processors: int = 2) -> None:
        super().__init__(answer)
        self.name, self.host, self.there, self.images = "docker", f"tcp://host{number}:2375", True, set[str]()
        info = {"NCPU": processors, "Runtimes": {"runc": {}}}
        self.api = SimpleNamespace(
            base_url=self.host,
            info=lambda: info,
            inspect_image=self._inspected,
            get_image=lambda name: [name.encode()],
            load_image=lambda parts: [self.images.add(b"".join(parts).decode()) or {}],
        )

    def _inspected(self, name: str) -> dict[str, Any]:
        if name not in self.images:
            raise SimpleNotFound
        return {"Id": name}

    @contextlib.contextmanager
    def connected(self, seconds: float = 0.0) -> Iterator[Any]:
        if not self.there:
            raise SandboxUnavailable("no Docker engine answers", where=self.host)
        yield SimpleNamespace(api=self.api)

    def prepare(self, environment: Environment, report: Callable[[str], None]) -> str:
        with self.connected():
            self.images.add(self.image_name(None, environment))
        return super().prepare(environment, report)

    def image_name(self, _: object, environment: Environment) -> str:
        return f"{self.base} {environment.digest}"

    def open(self, environment: Environment, **how: Any) -> Any:
        if self.image_name(None, environment) not in self.images:
            raise SandboxUnavailable("its image is not built", where=self.host)
        self.prepared.append(environment.digest)
        return super().open(environment, **how)


class SimpleNotFound(Exception):
    """The engine's answer about what it has not."""

    status_code = 404


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_module, "_FIRST_LOOK", 0.0)


@pytest.fixture
def lines() -> Iterator[queue.SimpleQueue[str]]:
    """What is said of the hosts."""
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    handler = logging.Handler()
    handler.emit = lambda record: said.put(record.getMessage())  # type: ignore[method-assign]
    logger, before = hosts_module._log, hosts_module._log.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield said
    logger.removeHandler(handler)
    logger.setLevel(before)


def opened(*hosts: Any) -> DockerHosts:
    made = DockerHosts(hosts)
    made.begin()
    return made


def lost(_: Job) -> Outcome:
    raise SandboxLost("the box is gone", where="box")


def in_threads(run: Callable[[Job], Outcome], count: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(run(JOB))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return outcomes


def test_an_image_is_built_once_and_sent_to_the_others() -> None:
    first, second, third = (Host(number) for number in range(3))
    said: list[str] = []
    made = opened(first, second, third)
    made.prepare(ENVIRONMENT, said.append)
    made.prepare(ENVIRONMENT, said.append)
    assert second.images == third.images == first.images and second.prepared == third.prepared == []
    assert [line for line in said if "sending" in line] == [
        f"sending the image of made-up to {host.host}" for host in (second, third)
    ]


def test_each_host_gets_as_many_jobs_at_once_as_it_has_processors() -> None:
    lock, at_once, most = threading.Lock(), {1: 0, 3: 0}, {1: 0, 3: 0}
    meeting = threading.Barrier(4)

    def counting(number: int) -> Callable[[Job], Outcome]:
        def answer(_: Job) -> Outcome:
            with lock:
                at_once[number] += 1
                most[number] = max(most[number], at_once[number])
            meeting.wait(20)
            with lock:
                at_once[number] -= 1
            return FINE

        return answer

    made = opened(Host(1, counting(1), processors=1), Host(2, counting(3), processors=3))
    made.prepare(ENVIRONMENT, lambda _: None)
    with made.open(ENVIRONMENT, limits=Limits(), width=16) as pool:
        assert len(in_threads(pool.run, 12)) == 12
    assert most == {1: 1, 3: 3}


def test_a_lost_hosts_jobs_go_to_the_others(lines: queue.SimpleQueue[str]) -> None:
    def dies(_: Job) -> Outcome:
        first.there = False
        raise SandboxLost("its stdout is closed", where="box")

    first, second = Host(1, dies), Host(2)
    made = opened(first, second)
    made.prepare(ENVIRONMENT, lambda _: None)
    with made.open(ENVIRONMENT, limits=Limits(), width=2) as pool:
        assert [pool.run(JOB) for _ in range(5)] == [FINE] * 5
        assert len(first.jobs) == 1 and len(second.jobs) == 5
        first.there, first.answer = True, lambda _: FINE
        assert [pool.run(JOB) for _ in range(4)] == [FINE] * 4 and len(first.jobs) > 1
    assert [lines.get_nowait() for _ in range(3)] == [
        "docker: 2 of 2 hosts answer",
        f"docker: 1 of 2 hosts answers; {first.host} is lost (no Docker engine answers), the others get its jobs",
        f"docker: 2 of 2 hosts answer; {first.host} is back",
    ]
    assert first.opened == second.opened == 0


def test_where_no_host_is_left_a_job_has_no_outcome() -> None:
    made = opened(Host(1, lost), Host(2, lost))
    made.prepare(ENVIRONMENT, lambda _: None)
    with made.open(ENVIRONMENT, limits=Limits()) as pool, pytest.raises(SandboxLost, match="the box is gone"):
        pool.run(JOB)


@pytest.mark.parametrize(("second", "ended"), [(lambda _: FINE, Ended.EXITED), (None, Ended.WRECKED)])
def test_what_wrecks_the_boxes_of_one_host_is_tried_on_another(
    second: Callable[[Job], Outcome] | None, ended: Ended
) -> None:
    def wrecks(_: Job) -> Outcome:
        return Outcome(ended=Ended.WRECKED)

    made = opened(Host(1, wrecks), Host(2, second or wrecks))
    made.prepare(ENVIRONMENT, lambda _: None)
    with made.open(ENVIRONMENT, limits=Limits()) as pool:
        assert pool.run(JOB).ended == ended


def test_wrecked_on_one_host_and_lost_on_the_other_is_no_outcome() -> None:
    made = opened(Host(1, lambda _: Outcome(ended=Ended.WRECKED)), Host(2, lost))
    made.prepare(ENVIRONMENT, lambda _: None)
    with made.open(ENVIRONMENT, limits=Limits()) as pool, pytest.raises(SandboxLost):
        pool.run(JOB)


def test_hosts_that_do_not_answer_at_the_start(lines: queue.SimpleQueue[str]) -> None:
    first, second = Host(1), Host(2)
    first.there = False
    made = opened(first, second)
    assert lines.get_nowait() == f"docker: 1 of 2 hosts answers; not {first.host}: no Docker engine answers"
    second.there = False
    with pytest.raises(SandboxUnavailable, match=r"no host answers \(tcp://host1.+; tcp://host2") as caught:
        opened(first, second)
    assert "\n" not in str(caught.value)
    second.there = True
    assert made.prepare(ENVIRONMENT, lambda _: None) == ENVIRONMENT.digest


def test_a_host_without_the_runtime_is_not_used(lines: queue.SimpleQueue[str]) -> None:
    first, second = Host(1), Host(2)
    first.runtime = second.runtime = "runsc"
    second.api.info()["Runtimes"]["runsc"] = {}
    opened(first, second)
    assert "not tcp://host1:2375: it has no runtime 'runsc', but runc" in lines.get_nowait()


def test_another_image_under_the_same_name_is_not_used() -> None:
    first, second = Host(1, lost), Host(2)
    made = opened(first, second)
    made.prepare(ENVIRONMENT, lambda _: None)
    inner = second.open

    def other(environment: Environment, **how: Any) -> Any:
        @contextlib.contextmanager
        def pool() -> Iterator[Any]:
            with inner(environment, **how) as inside:
                inside.image = "another"
                yield inside

        return pool()

    second.open = other  # type: ignore[method-assign]
    with made.open(ENVIRONMENT, limits=Limits()) as pool, pytest.raises(SandboxLost, match="image is another one"):
        pool.run(JOB)
    assert not second.jobs


def test_a_pool_that_is_left_opens_no_more() -> None:
    first, second = Host(1), Host(2)
    made = opened(first, second)
    made.prepare(ENVIRONMENT, lambda _: None)
    with made.open(ENVIRONMENT, limits=Limits()) as pool:
        pass
    with pytest.raises(SandboxLost, match="closed"):
        pool.run(JOB)
    assert first.opened == second.opened == 0


# Real boxes


@pytest.fixture
def doors(engine: Client, tmp_path: Path) -> Iterator[list[EngineProxy]]:
    path = engine.api.adapters["http+docker://"].socket_path
    made = [EngineProxy(tmp_path / f"{number}.sock", path) for number in range(2)]
    for door in made:
        door.start()
    yield made
    for door in made:
        door.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_real_boxes_behind_two_doors_of_which_one_is_shut(
    doors: list[EngineProxy], cache: Path, docker_sandbox: DockerSandbox, lines: queue.SimpleQueue[str]
) -> None:
    made = opened(*(DockerSandbox(cache, base_image=docker_sandbox.base_image, host=door.url) for door in doors))
    environment = Environment(name="test-hosts")
    made.prepare(environment, lambda _: None)
    slow = Job(action=Command(argv=("python3", "-c", "import time; print('on'); time.sleep(1.5)")))
    quick = Job(action=Command(argv=("python3", "-c", "print(6 * 7)")))
    with made.open(environment, limits=Limits(memory=128 << 20), width=2) as pool:
        outcomes = in_threads(lambda _: pool.run(quick), 4)
        assert [outcome.output.strip() for outcome in outcomes] == ["42"] * 4
        assert all(door.met.is_set() for door in doors)
        running = [threading.Thread(target=lambda: outcomes.append(pool.run(slow))) for _ in range(2)]
        for thread in running:
            thread.start()
        threading.Event().wait(0.7)  # inside both jobs: an end outside would only make the test weaker
        doors[0].stop()
        for thread in running:
            thread.join(60)
        assert [outcome.output.strip() for outcome in outcomes[4:]] == ["on"] * 2
        assert {outcome.exit_code for outcome in outcomes} == {0}
        doors[0].start()
        while "is back" not in lines.get(timeout=20) if not lines.empty() else True:
            assert pool.run(quick).output.strip() == "42"
    # The SDK leaves its sockets to a shut door to the collector.
    gc.collect()


@pytest.mark.slow
def test_an_image_goes_from_engine_to_engine(engine: Client) -> None:
    name = "ctxbench-test-sent:1"
    engine.api.import_image_from_data(b"\0" * 10240, repository=name.partition(":")[0], tag="1")
    try:
        before = engine.api.inspect_image(name)["Id"]
        images.send(engine, engine, name)
        assert engine.api.inspect_image(name)["Id"] == before
        there = SimpleNamespace(
            api=SimpleNamespace(base_url="x", load_image=lambda _: [{}, {"error": "no space left"}])
        )
        with pytest.raises(SandboxUnavailable, match="no space left"):
            images.send(engine, there, name)
    finally:
        engine.api.remove_image(name)
