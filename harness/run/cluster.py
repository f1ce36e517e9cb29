"""`Cluster`: completes work units on the nodes of a Ray cluster, with one long-lived worker process per node.

Nodes need ctxbench, but no shared disk and no database. Work units of a lost worker are repeated.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.results import Load
from ctxbench.harness.run.attempt import Answers, UnitOutcome
from ctxbench.harness.run.node import NodeJob, NodeUnit, NodeWorker, packed, packed_tests
from ctxbench.harness.run.scheduling import WorkUnit, most_of, units
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions, RunSpec

AHEAD = 2
"""Number of work units assigned to a node at a time, so that the next one can start at once."""
TURNS = 6
"""Minimum number of work units of a run, per node, if it has enough samples. Nodes then finish nearly together."""
TRIES = 5
"""Number of workers lost on a work unit after which the attempt skips the unit's samples."""
_MOMENT = 1.0
_CLOSING = 60.0
"""Seconds for idle workers to end their cells and sandboxes before the workers are killed."""
_PATIENCE = 120.0
"""Seconds without an available node after which the run ends."""
T = TypeVar("T")
Say = Callable[[str], None]


@dataclass(slots=True)
class _Node:
    id: str
    name: str
    actor: Any
    greeting: Any
    ready: bool = False
    repos: set[str] = field(default_factory=set)


class Cluster:
    """The nodes of a Ray cluster, for the runs of one command; create it with `open_cluster`."""

    def __init__(self, ray: Any, home: Home, sample_set: SampleSet, job: NodeJob, say: Say) -> None:
        self._ray, self._home, self._set, self._say = ray, home, sample_set, say
        self._job, self._seed, self._tests = ray.put(job), job.choices.seed, _tests_of(job)
        self._nodes: dict[str, _Node] = {}
        self._closed_to: set[str] = set()
        self._parts: dict[str, Any] = {}
        self._wheels: Any = None
        self._units: dict[Any, tuple[str, WorkUnit]] = {}
        self._seen = time.monotonic()

    def close(self) -> None:
        """Stop all workers. If no work unit is running, they close their cells and sandboxes first."""
        with contextlib.suppress(Exception):
            if closings := [] if self._units else [node.actor.close.remote() for node in self._nodes.values()]:
                self._ray.wait(closings, num_returns=len(closings), timeout=_CLOSING)
        for node in self._nodes.values():
            with contextlib.suppress(Exception):
                self._ray.kill(node.actor)

    @property
    def load(self) -> Load:
        """Load of a run on the cluster: `workers` and `cores` count its cores, and `requests` counts its nodes."""
        cores = [int(node["Resources"]["CPU"]) for node in _alive(self._ray)]
        return Load(workers=sum(cores), requests=len(cores), cores=sum(cores))

    @property
    def isolation(self) -> str:
        """Description of the strategies' isolation and of where tests run, for the run's record."""
        return f"cells on {len(_alive(self._ray))} Ray nodes{self._tests}"

    def do(self, spec: RunSpec, missing: Sequence[Sample], answers: Answers) -> Iterator[UnitOutcome]:
        """Complete samples of a run; yield each work unit's outcome as it ends. `answers` looks up stored answers.

        Raises:
            InputFault: if a node reports something that the user must correct first.
            MachineFault: if no node answers, or none can run the samples.
        """
        most = min(most_of(missing), max(1, -(-len(missing) // (TURNS * max(1, len(_alive(self._ray)))))))
        waiting = units(spec.id, missing, most)
        losses: Counter[str] = Counter()
        self._units.clear()  # units may be left from a run that ended early
        while waiting or self._units:
            self._look()
            for node in self._free():
                if waiting:
                    unit = next_unit(waiting, node.repos, self._repos_of_others(node))
                    waiting.remove(unit)
                    self._begin(node, unit, answers, spec)
            for outcome in self._ended():
                if isinstance(outcome, UnitOutcome):
                    yield outcome
                else:
                    first = outcome.samples[0].id
                    losses[first] += 1
                    if losses[first] < TRIES:
                        waiting.insert(0, outcome)
                    else:
                        yield UnitOutcome(samples=outcome.samples, fault=_gave_up(outcome))

    def _look(self) -> None:
        alive = {node["NodeID"]: node for node in _alive(self._ray)}
        for id_ in [id_ for id_ in self._nodes if id_ not in alive]:
            self._say(f"node {self._nodes.pop(id_).name} is lost; other nodes take its samples")
        for id_, node in alive.items():
            if id_ not in self._nodes and id_ not in self._closed_to:
                self._nodes[id_] = self._start(id_, node)
        for node in list(self._nodes.values()):
            if not node.ready:
                self._greet(node)
        if any(node.ready for node in self._nodes.values()):
            self._seen = time.monotonic()
        elif alive and alive.keys() <= self._closed_to:
            raise MachineFault(
                "no node of the cluster can run the samples",
                where="Ray",
                cure="correct the faults reported for the nodes",
            )
        elif time.monotonic() - self._seen > _PATIENCE + 60 * len(alive):
            raise MachineFault(
                "no node of the cluster answers",
                where="Ray",
                cure="check `ray status`, then run the same command again",
            )

    def _start(self, id_: str, node: Mapping[str, Any]) -> _Node:
        cores = max(1, int(node["Resources"]["CPU"]))
        options = {"num_cpus": cores, "max_restarts": 0, "max_task_retries": 0, **_on(id_)}
        actor = self._ray.remote(NodeWorker).options(**options).remote(self._job, cores)
        # If one machine runs several Ray nodes, only their ids differ.
        return _Node(id=id_, name=_name(node), actor=actor, greeting=actor.check.remote())

    def _greet(self, node: _Node) -> None:
        if not self._ray.wait([node.greeting], timeout=0)[0]:
            return
        try:
            fault = self._ray.get(node.greeting)
        except self._ray.exceptions.RayError as error:
            self._drop(node, f"the worker ended: {_first_line(error)}", forever=not _is_lost(self._ray, error))
            return
        if fault:
            self._drop(node, fault, forever=True)
        else:
            node.ready = True

    def _drop(self, node: _Node, why: str, *, forever: bool) -> None:
        self._nodes.pop(node.id, None)
        if forever:
            self._closed_to.add(node.id)
            self._say(f"node {node.name} is excluded: {why}")
        with contextlib.suppress(Exception):
            self._ray.kill(node.actor)

    def _free(self) -> Iterator[_Node]:
        """Yield a node for each unit that can be assigned, nodes with the fewest units first."""
        at_work = Counter(id_ for id_, _ in self._units.values())
        for number in range(AHEAD):
            for node in list(self._nodes.values()):
                if node.ready and at_work[node.id] == number:
                    at_work[node.id] += 1
                    yield node

    def _repos_of_others(self, node: _Node) -> set[str]:
        return {repo for other in self._nodes.values() if other is not node for repo in other.repos}

    def _begin(self, node: _Node, unit: WorkUnit, answers: Answers, spec: RunSpec) -> None:
        if unit.repo not in self._parts:
            if self._wheels is None and any(sample.tested for sample in unit.samples):
                self._wheels = self._ray.put(packed_tests(self._home))
            self._parts[unit.repo] = self._ray.put(packed(self._home, self._set, unit.repo))
        node.repos.add(unit.repo)
        ids = tuple(sample.id for sample in unit.samples)
        plain = NodeUnit(
            run=unit.run,
            strategy=spec.strategy,
            repetition=spec.seed - self._seed,
            repo=unit.repo,
            samples=ids,
            answers=tuple(answers(unit.samples)),
        )
        # Pass the parts in a list, so that the worker fetches only parts that it lacks.
        self._units[node.actor.do.remote(plain, [self._parts[unit.repo], self._wheels])] = (node.id, unit)

    def _ended(self) -> Iterator[UnitOutcome | WorkUnit]:
        refs = list(self._units)
        if not refs:
            time.sleep(_MOMENT / 4)
            return
        for ref in self._ray.wait(refs, num_returns=len(refs), timeout=_MOMENT / 4)[0]:
            id_, unit = self._units.pop(ref)
            try:
                shards = self._ray.get(ref)
            except MachineFault as fault:
                # Drop Ray's subclass of the fault, which contains the worker's traceback.
                plain = MachineFault(fault.what, where=fault.where, cure=fault.cure)
                yield UnitOutcome(samples=unit.samples, fault=plain)
            except InputFault as fault:
                raise InputFault(fault.what, where=fault.where, cure=fault.cure) from None
            except self._ray.exceptions.RayError as error:
                if not _is_lost(self._ray, error):
                    raise
                if (node := self._nodes.get(id_)) is not None:
                    self._say(f"a worker on node {node.name} is lost; its samples are repeated")
                    self._drop(node, "", forever=False)
                yield unit
            else:
                yield UnitOutcome(samples=unit.samples, shards=shards)


def next_unit(waiting: Sequence[WorkUnit], mine: set[str], others: set[str]) -> WorkUnit:
    """Return the next work unit for a node.

    Units of repositories that the node has (`mine`) come first, then those of repositories that no other node has (not
    in `others`), then those of the repository with the most waiting units.
    """
    left: dict[str, list[WorkUnit]] = defaultdict(list)
    for unit in waiting:
        left[unit.repo].append(unit)
    return left[min(left, key=lambda repo: (repo not in mine, repo in others, -len(left[repo]), repo))][0]


def _tests_of(job: NodeJob) -> str:
    if job.choices.sandbox == NO_SANDBOX:
        return " without tests"
    return f", tests in {job.choices.sandbox}" if job.tested and job.choices.sandbox else ""


def _gave_up(unit: WorkUnit) -> MachineFault:
    return MachineFault(
        f"{TRIES} workers were lost while completing {len(unit.samples)} samples of {unit.repo}",
        where="Ray",
        cure="check the nodes' memory, then run the same command again",
    )


def _is_lost(ray: Any, error: Exception) -> bool:
    kinds = (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError, ray.exceptions.ObjectLostError)
    return isinstance(error, (*kinds, ray.exceptions.NodeDiedError))


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def ask_nodes(address: str | None, question: Callable[..., T], *arguments: Any) -> list[tuple[str, int, T | str]]:
    """Call a function on each node of a cluster; return (name, cores, answer or error text) per node.

    Raises:
        InputFault: if Ray is not installed, or no cluster answers at the address.
    """
    ray = connect(address)
    try:
        nodes = _alive(ray)
        asked = [ray.remote(question).options(num_cpus=0, **_on(node["NodeID"])).remote(*arguments) for node in nodes]
        answers: list[tuple[str, int, T | str]] = []
        for node, reference in zip(nodes, asked, strict=True):
            try:
                answer = ray.get(reference, timeout=_PATIENCE)
            except ray.exceptions.RayError as error:
                answer = f"the node does not answer: {_first_line(error)}"
            answers.append((_name(node), int(node["Resources"]["CPU"]), answer))
        return answers
    finally:
        ray.shutdown()


def _alive(ray: Any) -> list[Any]:
    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def _on(node_id: str) -> dict[str, Any]:
    scheduling = importlib.import_module("ray.util.scheduling_strategies")
    return {"scheduling_strategy": scheduling.NodeAffinitySchedulingStrategy(node_id=node_id, soft=False)}


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})"


def connect(address: str | None) -> Any:
    """Connect to the Ray cluster at an address and return the ``ray`` module; None starts a cluster on this machine.

    Raises:
        InputFault: if Ray is not installed, or no cluster answers at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray = importlib.import_module("ray")
    except ModuleNotFoundError:
        raise InputFault("Ray is not installed", where="--engine ray", cure="pip install 'ctxbench[ray]'") from None
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address is None:
        options |= {"include_dashboard": False, "num_cpus": os.cpu_count() or 1}
    try:
        ray.init(address=address or "local", **options)
    except (OSError, ValueError, RuntimeError) as error:
        what, where = f"no Ray cluster answers: {_first_line(error)}", address or "this machine"
        raise InputFault(what, where=where, cure="check `ray status` and --address") from None
    return ray


@contextlib.contextmanager
def open_cluster(
    address: str | None,
    home: Home,
    sample_set: SampleSet,
    generator: str,
    choices: RunOptions,
    say: Say,
) -> Iterator[Cluster]:
    """Connect to a Ray cluster for runs over a sample set. The workers end with the context.

    Args:
        address: address of the cluster's head, or ``auto``; None starts a temporary cluster on this machine.
        say: receives messages about excluded and lost nodes.

    Raises:
        InputFault: if Ray is missing, no cluster answers, a file cannot be read, or a model would run in the workers.
    """
    ray = connect(address)
    try:
        cluster = Cluster(ray, home, sample_set, NodeJob.of(home, sample_set, generator, choices), say)
        with contextlib.closing(cluster):
            yield cluster
    finally:
        ray.shutdown()
