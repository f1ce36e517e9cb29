"""`NodeWorker`: completes work units on a cluster node that needs only an installed ctxbench."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import os
import platform
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench.bench import samples as sets
from ctxbench.bench.concurrency import silent
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.generators import base
from ctxbench.harness.prices import FILE as PRICES
from ctxbench.harness.run.runner import Runs, card_of, open_runs
from ctxbench.harness.run.scheduling import WorkUnit
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions
from ctxbench.harness.store.shard import Shard
from ctxbench.harness.store.shard_store import ShardStore
from ctxbench.harness.store.store import open_store
from ctxbench.harness.store.write import StoredGeneration
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.registry import open_sandbox

_PREFIX = "ctxbench-node-"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """The data that a node without a shared disk needs for one command's runs, except repositories and wheels."""

    version: str
    samples: str
    files: Mapping[str, bytes]
    """Contents of the files of the sample set and of the models' prices, by path in the home folder."""
    generator: str
    choices: RunOptions
    tokenizer: bytes | None
    tested: bool

    @classmethod
    def of(cls, home: Home, sample_set: SampleSet, generator: str, choices: RunOptions) -> NodeJob:
        """Return the job for runs over a sample set.

        Raises:
            InputFault: if a model would run in the workers, or a file cannot be read.
        """
        for spec in filter(None, (generator, choices.summariser)):
            model = base.resolve(spec)
            model.close()
            if model.capabilities.weights:
                raise InputFault(
                    f"{base.canonical(spec)} loads weights into its process, which is not supported on a cluster",
                    where="--engine ray",
                    cure="start a server (see `ctxbench generator list`), and use its URL: openai:MODEL@URL",
                )
        place = sets.folder(home, sample_set.name)
        names = (sets.SAMPLES, sets.REFERENCES, "manifest.json")
        paths = [place / name for name in names] + [path for path in [home.root / PRICES] if path.exists()]
        tokenizer = None
        with explained(place):
            files = {path.relative_to(home.root).as_posix(): path.read_bytes() for path in paths}
            if choices.tokenizer is not None:
                tokenizer = choices.tokenizer.read_bytes()
        tested = choices.sandbox != NO_SANDBOX and any(sample.tested for sample in sample_set.samples)
        return cls(
            version=version("ctxbench"),
            samples=sample_set.name,
            files=files,
            generator=generator,
            choices=choices,
            tokenizer=tokenizer,
            tested=tested,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUnit:
    """Samples of one repository in one run, given by id, that one node completes."""

    run: str
    """Id of the run. A node that has another version of the strategy or generator computes another id."""
    strategy: str
    repetition: int
    repo: str
    samples: tuple[str, ...]
    answers: tuple[StoredGeneration, ...] = ()
    """Stored answers to all strategies' requests for these samples, because a new request might get another answer."""


class NodeWorker:
    """A process on a cluster node that completes work units one after another."""

    def __init__(self, job: NodeJob, workers: int) -> None:
        self._job, self._workers = job, workers
        self._open = contextlib.ExitStack()
        self._snapshots: dict[str, Snapshot] = {}
        self._runs: Runs | None = None
        self._set: SampleSet | None = None
        _remove_stale()
        folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")
        self._home = Home(Path(self._open.enter_context(folder)))
        for name, content in job.files.items():
            (self._home.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self._home.root / name).write_bytes(content)

    def check(self) -> str:
        """Return why this node cannot complete the job's units; empty if it can."""
        if (mine := version("ctxbench")) != self._job.version:
            return f"it has ctxbench {mine} instead of {self._job.version}"
        if self._job.tested:
            try:
                open_sandbox(self._job.choices.sandbox, self._home.cache / "sandbox")
            except SandboxError as error:
                return f"it has no sandbox for tests: {error}"
        return ""

    def do(self, unit: NodeUnit, parts: Sequence[Any]) -> list[Shard]:
        """Complete a work unit; return its shards.

        `parts` are Ray references to the results of `packed` and `packed_tests`. The node fetches both with its first
        unit of each repository.

        Raises:
            InputFault: if the user must correct something first.
            MachineFault: if the machine failed.
        """
        # Raise only ctxbench's faults. To unpickle a library's exception, the other machine would need that library.
        try:
            return self._do(unit, parts)
        except SandboxError as error:
            raise MachineFault(error.what, where=error.where, cure=error.cure) from None

    def close(self) -> None:
        """Close the worker's cells and sandboxes, and remove its temporary home folder."""
        self._open.close()

    def _do(self, unit: NodeUnit, parts: Sequence[Any]) -> list[Shard]:
        runs = self._opened()
        self._fetch(runs.sample_set, unit.repo, parts)
        card = card_of(unit.strategy, runs.resources.cells)
        samples = {sample.id: sample for sample in runs.sample_set.samples}
        mine = tuple(samples[id_] for id_ in unit.samples)
        spec = runs.spec(card, unit.repetition)
        if spec.id != unit.run:
            raise InputFault(
                f"{card.spec} or {spec.generator} has another version here than on the machine that started the run",
                where=platform.node(),
                cure="install the same version on all nodes",
            )
        if unit.answers:
            runs.store.add_generations(unit.answers)
        shards: list[Shard] = []
        store = ShardStore(
            runs.store,
            cut=lambda run, _: [WorkUnit(run, unit.repo, mine)],
            deliver=shards.append,
            snapshots={unit.repo: self._snapshots[unit.repo].digest} if unit.repo in self._snapshots else {},
        )
        runs.attempt(card, unit.repetition, mine, store).run(silent)
        return shards

    def _opened(self) -> Runs:
        if self._runs is None:
            choices = dataclasses.replace(self._job.choices, workers=self._workers)
            if self._job.tokenizer is not None:
                choices = dataclasses.replace(choices, tokenizer=self._home.root / choices.tokenizer.name)  # type: ignore[union-attr]
                choices.tokenizer.write_bytes(self._job.tokenizer)  # type: ignore[union-attr]
            store = self._open.enter_context(open_store(self._home.database))
            sample_set = sets.load(self._home, self._job.samples)
            opened = open_runs(
                self._home, store, sample_set, self._job.generator, choices, snapshots=lambda: self._snapshots
            )
            self._runs = self._open.enter_context(opened)
        return self._runs

    def _fetch(self, sample_set: SampleSet, repo: str, parts: Sequence[Any]) -> None:
        entry = sample_set.manifest["repositories"].get(repo, {})
        if repo in self._snapshots or not entry.get("checkout"):
            return
        ray = importlib.import_module("ray")
        for reference, folder in zip(parts, (self._home.repos, self._home.cache / "sandbox"), strict=False):
            if reference is not None:
                _unpack(ray.get(reference), folder)
        self._snapshots |= sets.snapshots(self._home, sample_set, {repo})


def packed(home: Home, sample_set: SampleSet, repo: str) -> bytes:
    """Return a repository's folder as a gzipped tar file; empty if the set was imported without the repository."""
    checkout = sample_set.manifest["repositories"].get(repo, {}).get("checkout")
    return _packed(home.repos, [checkout]) if checkout else b""


def packed_tests(home: Home) -> bytes:
    """Return the wheels for all tests as a gzipped tar file, for nodes without access to a package index."""
    return _packed(home.cache / "sandbox", ["wheels"])


def _packed(root: Path, names: Sequence[str]) -> bytes:
    buffer = io.BytesIO()
    with explained(root), tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        for name in names:
            if (root / name).exists():
                tar.add(root / name, arcname=name)
    return buffer.getvalue()


def _unpack(content: bytes, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if content:
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            # The archive comes from the trusted process that started this node. Python before 3.11.4 has no filters.
            filtered = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
            tar.extractall(folder, **filtered)  # type: ignore[arg-type]  # noqa: S202


def _remove_stale() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists() and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
