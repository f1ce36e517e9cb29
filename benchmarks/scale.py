"""A simulated run on 1 to 1,000 workers: throughput and bottleneck. `python -m scripts.scale_page` draws it.

A discrete simulation (simpy) of Ray clusters and batch schedulers: workers with one core receive units, query model
servers and deliver shards, and one process merges the shards. The cost of merging is measured on this machine.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import simpy

from ctxbench.bench.home import Home
from ctxbench.harness.cells import InlineCells
from ctxbench.harness.run.merging import Merger, shard_files
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.scheduling import MOST, MOST_TESTED, Share
from ctxbench.harness.store import open_store
from ctxbench.harness.store.shard_store import open_share
from tests.helpers.sets import make_set

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
WARM, HORIZON = 300.0, 900.0
"""Simulated seconds. Throughput counts the samples merged between them."""
CHUNKS = 2
"""Parts of a unit whose requests go together to one server, which then has proportionally fewer slots."""
LIMIT = 0.9
"""Share of its capacity above which a resource counts as saturated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Costs in seconds, of one core unless stated. Measured on a quiet machine of 2 cores."""

    start: float = 2.8
    """A worker's start: imports, cells, indices of its first repositories (measured over 450 quick-start samples)."""
    sample: float = 0.024
    """One finished line sample with a mock model and all measurements (the same run: 13.7 s for 450)."""
    tests: float = 0.0
    """The tests of one function in a sandbox; 0 without tests."""
    answer: float = 0.0
    """One answer, on one of a server's slots; 0 without a server."""
    servers: int = 0
    slots: int = 64
    """Concurrent answers of a server."""
    image: float = 0.0
    """One image from a registry for one worker: 300 MB at 1 Gbit/s and unpacking; 0 without pulls."""
    pulls: int = 32
    """Concurrent pulls of a registry. More are refused for a while (harbor 1424: 429)."""
    merge: float = 0.0
    """Merging one sample of a shard into a database; measured by `measured_merge`."""
    merges_whole: bool = True
    """Whether samples arrive as shards. Otherwise workers write each sample singly, one at a time."""


SETTINGS = {
    "lines, built-in model": Costs(),
    # A small model on one GPU: 64 lines at once in 1 s (benchmarks/overhead.py).
    "lines, 8 model servers": Costs(answer=1.0, servers=8),
    # 1.5 s per function in bubblewrap, and one image per worker.
    "functions, 8 servers, tests": Costs(answer=4.0, servers=8, tests=1.5, image=8.0),
    # Before shards: 237 finished line samples per second on SQLite, with a single writer.
    "lines, one database, no shards": Costs(merge=1 / 237, merges_whole=False),
}


class Site:
    """The resources that workers share."""

    def __init__(self, costs: Costs) -> None:
        self.costs, self.env = costs, simpy.Environment()
        self.servers = simpy.Resource(self.env, max(1, costs.servers))
        self.registry = simpy.Resource(self.env, costs.pulls)
        self.merger = simpy.Resource(self.env, 1)
        self.busy = {"workers": 0.0, "model servers": 0.0, "registry": 0.0, "merge": 0.0}
        self.merged = 0

    def use(self, resource: Any, name: str, seconds: float) -> Generator[Any, Any, Any]:
        """Wait for a slot and occupy it for some seconds."""
        with resource.request() as place:
            yield place
            yield self.env.timeout(seconds)
            self.busy[name] += seconds

    def worker(self) -> Generator[Any, Any, Any]:
        """Complete units forever. Start a second unit while waiting for the answers of the first."""
        costs, env = self.costs, self.env
        if costs.image:
            yield env.process(self.use(self.registry, "registry", costs.image))
        yield env.timeout(costs.start)
        unit, size = env.event().succeed(), MOST_TESTED if costs.tests else MOST
        while True:
            before = unit
            chunks = []
            for _ in range(CHUNKS):
                work = size / CHUNKS * (costs.sample + costs.tests)
                yield env.timeout(work)
                self.busy["workers"] += work
                chunks.append(env.process(self.answers(size // CHUNKS)))
            unit = env.all_of(chunks)
            merged = env.process(self.deliver(unit, size))
            # Without shards, write its samples before the next unit.
            yield before if costs.merges_whole else merged

    def answers(self, count: int) -> Generator[Any, Any, Any]:
        """Wait for some answers of a server."""
        seconds = count * self.costs.answer / self.costs.slots
        yield self.env.process(self.use(self.servers, "model servers", seconds))

    def deliver(self, unit: Any, size: int) -> Generator[Any, Any, Any]:
        """Deliver a unit to the database after its answers have arrived."""
        yield unit
        yield self.env.process(self.use(self.merger, "merge", size * self.costs.merge))
        self.merged += size


@dataclass(frozen=True, slots=True)
class Point:
    """The result for a number of workers."""

    workers: int
    throughput: float
    """Merged samples per second."""
    busiest: str
    """The resource with the highest utilisation."""
    use: float
    """The resource's utilisation, from 0 to 1."""


def simulate(costs: Costs, workers: int) -> Point:
    """Return the result of workers with one core each between `WARM` and `HORIZON`."""
    site = Site(costs)
    for _ in range(workers):
        site.env.process(site.worker())
    site.env.run(until=WARM)
    before = site.merged, dict(site.busy)
    site.env.run(until=HORIZON)
    span = HORIZON - WARM
    capacity = {"workers": workers, "model servers": site.servers.capacity, "registry": costs.pulls, "merge": 1}
    use = {name: min(1.0, (busy - before[1][name]) / (capacity[name] * span)) for name, busy in site.busy.items()}
    # Busy workers are normal, so name a saturated shared resource first.
    shared = max((name for name in use if name != "workers"), key=lambda name: use[name])
    busiest = shared if use[shared] > LIMIT else "workers"
    return Point(workers, (site.merged - before[0]) / span, busiest, use[busiest])


def curves(merge: float) -> dict[str, list[Point]]:
    """Return setting -> its points. `merge` is the cost of merging a sample, in seconds."""
    return {
        name: [simulate(costs if costs.merge else replace(costs, merge=merge), workers) for workers in WORKERS]
        for name, costs in SETTINGS.items()
    }


@dataclass(frozen=True, slots=True)
class MergeCost:
    """Cost of merging one sample of a shard: processor seconds and bytes."""

    merge: float
    size: float


def measured_merge(samples: int = 200) -> MergeCost:
    """Measure the cost on lines of a synthetic project, with prompts of about 6 kB and every score."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        sample_set = make_set(home, per_repo=samples // 2)

        with open_share(Share(0, 1), home.shards, sample_set) as share:
            run(
                home,
                share,
                sample_set,
                strategies=["lc.repocoder"],
                generator="scripted(text=apply_tax)",
                cells=lambda *_: contextlib.nullcontext(InlineCells()),
            )
        files = shard_files([home.shards])
        with open_store(f"sqlite:///{folder}/merged.db") as store:
            began = time.process_time()
            merger = Merger(store, sample_set)
            for file in files:
                merger.merge_file(file)
            merge = time.process_time() - began
        return MergeCost(
            merge=merge / samples,
            size=sum(file.stat().st_size for file in files) / samples,
        )


def main() -> None:
    cost = measured_merge()
    print(f"a sample in a shard: {1e3 * cost.merge:.2f} processor ms to merge, {cost.size:.0f} bytes")
    for name, points in curves(cost.merge).items():
        print(f"{name}:")
        for point in points:
            print(
                f"  {point.workers:5} workers {point.throughput:8.1f} samples/s   "
                f"{point.busiest} at {100 * point.use:3.0f} %"
            )


if __name__ == "__main__":
    main()
