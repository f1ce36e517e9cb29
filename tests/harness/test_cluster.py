"""Runs on several nodes, with a fake Ray: how work is distributed, and what happens if workers or nodes are lost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.harness.generators.base import Capabilities
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run import attempt as attempts
from ctxbench.harness.run import cluster as clusters
from ctxbench.harness.run import node as nodes
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.run.cluster import TRIES, Cluster
from ctxbench.harness.run.node import NodeJob, NodeUnit, NodeWorker, packed
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.run.scheduling import WorkUnit
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import Store, open_store
from ctxbench.sandbox.errors import SandboxUnavailable
from tests.helpers.functions import make_function_set
from tests.helpers.openai_server import Server, serving
from tests.helpers.samples import make_sample
from tests.helpers.sets import make_set


class LostError(Exception):
    """A stand-in for Ray's errors about lost workers."""


class RemoteFault(LostError, InputFault):
    """A fault as Ray raises it again: an instance of its own class whose text is the worker's traceback."""

    def __str__(self) -> str:
        return "\x1b[36mray::NodeWorker.do()\x1b[39m\n  File ..."


class FakeRay:
    """Nodes whose workers answer at once or are lost, as `answer` decides."""

    def __init__(self, *names: str) -> None:
        self.alive = dict.fromkeys(names, True)
        self.answer: Callable[[str, NodeUnit], Any] = lambda _, unit: [(unit.repo, b"")]
        self.report: Callable[[str], Any] = lambda _: ""
        self.done: list[tuple[str, NodeUnit]] = []
        self.started: Counter[str] = Counter()
        self.closed: list[str] = []
        self.killed: list[str] = []
        kinds = ("RayError", "RayActorError", "WorkerCrashedError", "ObjectLostError", "NodeDiedError")
        self.exceptions = SimpleNamespace(**dict.fromkeys(kinds, LostError))

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name * 56, "Alive": alive, "NodeManagerAddress": name, "Resources": {"CPU": 1.0}}
            for name, alive in self.alive.items()
        ]

    def put(self, value: Any) -> Any:
        return value

    def remote(self, kind: type[NodeWorker]) -> Any:
        assert kind is NodeWorker
        return SimpleNamespace(options=lambda scheduling_strategy, **_: self._of(scheduling_strategy.node_id[0]))

    def _of(self, name: str) -> Any:
        def do(unit: NodeUnit, _: Any) -> Any:
            self.done.append((name, unit))
            return Ref(lambda: self.answer(name, unit))

        def start(*_: Any) -> Any:
            self.started[name] += 1
            check = SimpleNamespace(remote=lambda: Ref(lambda: self.report(name)))
            close = SimpleNamespace(remote=lambda: Ref(lambda: self.closed.append(name)))
            return SimpleNamespace(name=name, check=check, do=SimpleNamespace(remote=do), close=close)

        return SimpleNamespace(remote=start)

    def wait(self, refs: list[Any], timeout: float, num_returns: int = 1) -> Any:
        for ref in refs if timeout == clusters._CLOSING else []:
            ref.value()
        return refs[:num_returns], refs[num_returns:]

    def get(self, ref: Ref) -> Any:
        value = ref.value()
        if isinstance(value, Exception):
            raise value
        return value

    def kill(self, actor: Any) -> None:
        self.killed.append(actor.name)


class Ref:
    def __init__(self, value: Callable[[], Any]) -> None:
        self.value = value


class Nodes:
    """A cluster of fake nodes, and the messages that it printed."""

    def __init__(self, tmp_path: Path, *names: str, functions: bool = False, sandbox: str | None = None) -> None:
        home = Home(tmp_path / "home")
        self.set = make_function_set(home) if functions else make_set(home, repos=2, per_repo=6)
        self.ray, self.said = FakeRay(*names), list[str]()
        job = NodeJob.of(home, self.set, "incontext", RunOptions(sandbox=sandbox))
        self.cluster = Cluster(self.ray, home, self.set, job, self.said.append)

    def do(self) -> Iterator[Any]:
        spec: Any = SimpleNamespace(id="r", strategy="lc.infile", seed=0)
        return self.cluster.do(spec, self.set.samples, lambda _: ())

    def samples_done(self) -> list[str]:
        return sorted(sample.id for outcome in self.do() if outcome.fault is None for sample in outcome.samples)

    @property
    def ids(self) -> list[str]:
        return sorted(sample.id for sample in self.set.samples)


@pytest.fixture
def two(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path, "a", "b")


def unit(repo: str, number: int = 0) -> WorkUnit:
    return WorkUnit("r", repo, (make_sample(id=f"{repo}{number}", repo=repo),))


@pytest.mark.slow
def test_every_sample_runs_once_and_each_repository_on_one_node(two: Nodes) -> None:
    assert two.samples_done() == two.ids
    assert {repo: {name for name, unit in two.ray.done if unit.repo == repo} for repo in ("shop0", "shop1")} in (
        {"shop0": {"a"}, "shop1": {"b"}},
        {"shop0": {"b"}, "shop1": {"a"}},
    )
    assert two.said == [] and two.ray.started == {"a": 1, "b": 1}
    # The workers stay for the next run.
    assert two.samples_done() == two.ids and two.ray.started == {"a": 1, "b": 1}


def test_a_new_worker_repeats_the_work_of_a_lost_one(two: Nodes) -> None:
    lost: list[NodeUnit] = []

    def answer(name: str, unit: NodeUnit) -> Any:
        if name == "a" and len(lost) < 2:
            lost.append(unit)
            return LostError("killed")
        return [(unit.repo, b"")]

    two.ray.answer = answer
    assert two.samples_done() == two.ids
    assert two.ray.started["a"] > 1 and all("a worker on node a" in line for line in two.said)


def test_samples_that_kill_every_worker_are_reported_as_faults(two: Nodes) -> None:
    two.ray.answer = lambda _, unit: LostError("killed") if unit.repo == "shop1" else [(unit.repo, b"")]
    outcomes = list(two.do())
    faults = [outcome for outcome in outcomes if outcome.fault is not None]
    assert {sample.repo for outcome in faults for sample in outcome.samples} == {"shop1"}
    assert f"{TRIES} workers were lost" in str(faults[0].fault)
    assert sorted(s.id for outcome in outcomes for s in outcome.samples) == two.ids


@pytest.mark.parametrize("whole", [True, False])
def test_idle_workers_are_closed_before_they_are_killed(two: Nodes, whole: bool) -> None:
    if whole:
        two.samples_done()
    else:
        next(two.do())
    two.cluster.close()
    assert (sorted(two.ray.closed), sorted(two.ray.killed)) == (["a", "b"] if whole else [], ["a", "b"])


def test_other_nodes_run_the_samples_of_a_lost_node(two: Nodes) -> None:
    def answer(name: str, unit: NodeUnit) -> Any:
        if name == "a":
            two.ray.alive["a"] = False
            return LostError("the node is gone")
        return [(unit.repo, b"")]

    two.ray.answer = answer
    assert two.samples_done() == two.ids
    assert any(line.startswith("node a") or "on node a" in line for line in two.said)


def test_an_unsuitable_node_is_excluded_with_its_reason(two: Nodes) -> None:
    two.ray.report = lambda name: "it has no sandbox for tests" if name == "a" else ""
    assert two.samples_done() == two.ids
    assert {name for name, _ in two.ray.done} == {"b"}
    assert two.said == ["node a (aaaaaa) is excluded: it has no sandbox for tests"]


def test_a_run_without_a_usable_node_fails(two: Nodes) -> None:
    two.ray.report = lambda _: "it has ctxbench 0.0.1"
    with pytest.raises(MachineFault, match="no node of the cluster can run the samples"):
        two.samples_done()


def test_machine_faults_fail_their_unit_and_input_faults_end_the_run(two: Nodes) -> None:
    two.ray.answer = lambda _, unit: MachineFault("the disk is full") if unit.repo == "shop0" else [(unit.repo, b"")]
    faults = {str(outcome.fault) for outcome in two.do() if outcome.fault is not None}
    assert faults == {"the disk is full"}
    two.ray.answer = lambda *_: InputFault("another version")
    with pytest.raises(InputFault, match="another version"):
        two.samples_done()


def test_an_input_fault_from_a_node_is_raised_without_its_traceback(two: Nodes) -> None:
    fault = InputFault("has another version", where="node1", cure="install the same")
    two.ray.answer = lambda *_: RemoteFault(fault.what, where=fault.where, cure=fault.cure)
    with pytest.raises(InputFault) as caught:
        two.samples_done()
    assert type(caught.value) is InputFault and str(caught.value) == str(fault)


@pytest.mark.parametrize(
    ("functions", "sandbox", "isolation"),
    [
        (True, None, "cells on 2 Ray nodes"),
        (True, "docker", "cells on 2 Ray nodes, tests in docker"),
        (True, "none", "cells on 2 Ray nodes without tests"),
        (False, "docker", "cells on 2 Ray nodes"),
    ],
)
def test_the_isolation_label_says_where_tests_run(
    tmp_path: Path, functions: bool, sandbox: str | None, isolation: str
) -> None:
    two = Nodes(tmp_path, "a", "b", functions=functions, sandbox=sandbox)
    assert two.cluster.isolation == isolation


def test_a_node_job_refuses_a_model_that_loads_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    sample_set = make_set(home)
    model = Scripted(lambda _: "")
    monkeypatch.setattr(model, "capabilities", Capabilities(weights=True), raising=False)
    monkeypatch.setattr(nodes.base, "resolve", lambda _: model)
    with pytest.raises(InputFault, match="loads weights .* openai:MODEL@URL"):
        NodeJob.of(home, sample_set, "scripted", RunOptions())


def test_a_node_without_a_sandbox_says_so_if_samples_need_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> Any:
        raise SandboxUnavailable("bwrap is missing", where="bubblewrap", cure="install it")

    monkeypatch.setattr(nodes, "open_sandbox", none)
    home = Home(tmp_path / "home")
    for sample_set, sandbox, fault in (
        (make_function_set(home), None, "it has no sandbox for tests: bubblewrap: bwrap is missing; install it"),
        (make_function_set(home), "none", ""),
        (make_set(home), None, ""),
    ):
        worker = NodeWorker(NodeJob.of(home, sample_set, "incontext", RunOptions(sandbox=sandbox)), 1)
        assert worker.check() == fault
        worker.close()


class Fickle:
    """Runs with a model that never repeats an answer, on nodes that are new for each command, or locally."""

    def __init__(self, home: Home, server: Server, store: Store) -> None:
        self.home, self.store, self.set = home, store, make_set(home, repos=2, per_repo=2)
        self.generator = f"openai(model=tiny, url={server.url}, endpoint=completions)"
        self.choices = RunOptions(measure=frozenset())

    def here(self, strategy: str, cluster: Cluster | None = None) -> RunSummary:
        [summary] = run(
            self.home,
            self.store,
            self.set,
            strategies=[strategy],
            generator=self.generator,
            choices=self.choices,
            cluster=cluster,
        )
        return summary

    def on_nodes(self, strategy: str) -> RunSummary:
        job, ray = NodeJob.of(self.home, self.set, self.generator, self.choices), FakeRay("a", "b")
        workers = {name: NodeWorker(job, 1) for name in ray.alive}
        ray.answer = lambda name, unit: workers[name].do(unit, [packed(self.home, self.set, unit.repo), None])
        try:
            return self.here(strategy, Cluster(ray, self.home, self.set, job, print))
        finally:
            for worker in workers.values():
                worker.close()


DRAFTS = "lc.repocoder", "lc.repocoder(q2_partial=drop)"
"""Two strategies that ask for the same drafts."""


@pytest.fixture
def fickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline_cells: None) -> Iterator[Fickle]:
    monkeypatch.setattr("ray.get", lambda value: value)
    home, count = Home(tmp_path / "home"), itertools.count()
    with serving(answer=lambda *_: f"pay_{next(count)}(cart)") as server, open_store(home.database) as store:
        yield Fickle(home, server, store)


@pytest.mark.slow
def test_nodes_reuse_the_stored_answers_for_their_samples(fickle: Fickle) -> None:
    for strategy in DRAFTS:
        summary = fickle.on_nodes(strategy)
        assert (summary.new, summary.faults) == (4, ())


@pytest.mark.slow
def test_samples_with_conflicting_answers_run_without_nodes(fickle: Fickle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "answers_for", lambda *_: ())
    assert fickle.on_nodes(DRAFTS[0]).new == 4
    refused = fickle.on_nodes(DRAFTS[1])
    assert (refused.new, refused.missing) == (0, 4)
    cure = "run the same command again without --engine ray; it does only what is missing"
    assert "has another value for the answer" in str(fault_of([refused])) and str(fault_of([refused])).endswith(cure)
    assert fickle.here(DRAFTS[1]).new == 4


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(clusters.importlib, "import_module", missing)
    with pytest.raises(InputFault, match=r"Ray is not installed; pip install 'ctxbench\[ray\]'"):
        clusters.connect(None)
