"""A run on 1 to 1,000 workers, simulated: throughput, and what saturates. `python -m scripts.scale_page` draws it.

A discrete simulation (simpy) of what `harness/run/cluster.py` and batch schedulers do: workers of one core each take
units, ask model servers, deliver shards, and one process merges them. All costs stand in `Costs` and `SETTINGS`, with
their sources; that of merging is measured here, in processor seconds, before the simulation begins.
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
"""Simulated seconds; throughput counts what was merged between them."""
CHUNKS = 2
"""Parts of a unit whose requests go out together, to one server, which has so many fewer slots meanwhile."""
LIMIT = 0.9
"""Of its capacity: from here on something is called saturated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds, of one core where nothing else is said. Measured on a quiet machine of 2 cores."""

    start: float = 2.8
    """A worker's: imports, cells, indices of its first repositories (450 quick-start samples: so much beside them)."""
    sample: float = 0.024
    """One finished line sample with a mock model, everything measured (the same run: 13.7 s for 450)."""
    tests: float = 0.0
    """The tests of one function in a box, with those without its value."""
    answer: float = 0.0
    """One answer, on one of a server's slots; 0 where no server is asked."""
    servers: int = 0
    slots: int = 64
    """Answers that a server writes at once."""
    image: float = 0.0
    """A registry's, for one image on one worker: 300 MB at 1 Gbit/s and unpacking; 0 where nothing is pulled."""
    pulls: int = 32
    """Pulls that a registry serves at once; more are told to wait (harbor 1424: 429)."""
    merge: float = 0.0
    """One sample of a shard, brought into a database; measured by `measured_merge`."""
    merges_whole: bool = True
    """Whether samples arrive as shards; else each is written alone, by the worker, in turn with all others."""


SETTINGS = {
    "lines, built-in model": Costs(),
    # A small model on one GPU: 64 lines at once in 1 s (benchmarks/overhead.py).
    "lines, 8 model servers": Costs(answer=1.0, servers=8),
    # 1.5 s a function in bubblewrap, and an image a worker.
    "functions, 8 servers, tests": Costs(answer=4.0, servers=8, tests=1.5, image=8.0),
    # Before shards: 237 finished line samples a second on SQLite, of a single writer.
    "lines, one database, no shards": Costs(merge=1 / 237, merges_whole=False),
}


class Site:
    """Everything that workers share."""

    def __init__(self, costs: Costs) -> None:
        """Begin at time 0 with nothing done."""
        self.costs, self.env = costs, simpy.Environment()
        self.servers = simpy.Resource(self.env, max(1, costs.servers))
        self.registry = simpy.Resource(self.env, costs.pulls)
        self.merger = simpy.Resource(self.env, 1)
        self.busy = {"workers": 0.0, "model servers": 0.0, "registry": 0.0, "merge": 0.0}
        self.merged = 0

    def use(self, resource: Any, name: str, seconds: float) -> Generator[Any, Any, Any]:
        """Wait for a place and hold it for some seconds."""
        with resource.request() as place:
            yield place
            yield self.env.timeout(seconds)
            self.busy[name] += seconds

    def worker(self) -> Generator[Any, Any, Any]:
        """Do units for ever; a second one is begun while the answers of the first are waited for."""
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
            # Without shards its samples are written before it goes on.
            yield before if costs.merges_whole else merged

    def answers(self, count: int) -> Generator[Any, Any, Any]:
        """Ask a server for some answers."""
        seconds = count * self.costs.answer / self.costs.slots
        yield self.env.process(self.use(self.servers, "model servers", seconds))

    def deliver(self, unit: Any, size: int) -> Generator[Any, Any, Any]:
        """Bring a unit into the database once its answers are there."""
        yield unit
        yield self.env.process(self.use(self.merger, "merge", size * self.costs.merge))
        self.merged += size


@dataclass(frozen=True, slots=True)
class Point:
    """What a number of workers came to."""

    workers: int
    throughput: float
    """Merged samples a second."""
    busiest: str
    """What is used most of its capacity."""
    use: float
    """Of that, from 0 to 1."""


def simulate(costs: Costs, workers: int) -> Point:
    """Return what workers of one core come to between `WARM` and `HORIZON`."""
    site = Site(costs)
    for _ in range(workers):
        site.env.process(site.worker())
    site.env.run(until=WARM)
    before = site.merged, dict(site.busy)
    site.env.run(until=HORIZON)
    span = HORIZON - WARM
    capacity = {"workers": workers, "model servers": site.servers.capacity, "registry": costs.pulls, "merge": 1}
    use = {name: min(1.0, (busy - before[1][name]) / (capacity[name] * span)) for name, busy in site.busy.items()}
    # A queue before a shared part tells more than busy workers.
    shared = max((name for name in use if name != "workers"), key=lambda name: use[name])
    busiest = shared if use[shared] > LIMIT else "workers"
    return Point(workers, (site.merged - before[0]) / span, busiest, use[busiest])


def curves(merge: float) -> dict[str, list[Point]]:
    """Return the points of every setting; `merge` is the cost of a sample of a shard."""
    return {
        name: [simulate(costs if costs.merge else replace(costs, merge=merge), workers) for workers in WORKERS]
        for name, costs in SETTINGS.items()
    }


@dataclass(frozen=True, slots=True)
class MergeCost:
    """What one sample of a shard costs: processor seconds and bytes."""

    merge: float
    size: float


def measured_merge(samples: int = 200) -> MergeCost:
    """Measure it on lines of a made-up project, with prompts of about 6 kB and every score."""
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
    """Measure, simulate, print."""
    cost = measured_merge()
    print(f"a sample in a shard: {1e3 * cost.merge:.2f} ms of processor to merge, {cost.size:.0f} bytes")
    for name, points in curves(cost.merge).items():
        print(f"{name}:")
        for point in points:
            print(
                f"  {point.workers:5} workers {point.throughput:8.1f} samples/s   "
                f"{point.busiest} at {100 * point.use:3.0f} %"
            )


if __name__ == "__main__":
    main()
