"""`Attempt`: completes, scores and stores the missing samples of one run, and records faults."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxbench.bench.concurrency import Progress, Tick
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.cells import StrategyCard, StrategyFault
from ctxbench.harness.generators.base import Sampling, TooLong
from ctxbench.harness.results import Load, Status
from ctxbench.harness.run.controls import Controls
from ctxbench.harness.run.execution import Executor, judge_stored, judged
from ctxbench.harness.run.merging import Merger
from ctxbench.harness.run.resources import Resources
from ctxbench.harness.run.sample import AnsweredSample
from ctxbench.harness.run.scheduling import PendingWork, WorkPace, isolate_faults
from ctxbench.harness.run.scoring import SampleScorer
from ctxbench.harness.run.spec import RunSpec, unfinished_samples
from ctxbench.harness.store import verdicts
from ctxbench.harness.store.notes import add_remarks
from ctxbench.harness.store.scores import RunCosts, costs_of_run, verdict_counts
from ctxbench.harness.store.shard import Shard
from ctxbench.harness.store.shard_store import answers_for
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.tables import forget_unbegun
from ctxbench.harness.store.verdicts import UnscoredCompletion
from ctxbench.harness.store.work import failed_on, status_counts
from ctxbench.harness.store.write import StoredConstruction, StoredFault, StoredGeneration
from ctxbench.sandbox.errors import SandboxError
from ctxbench.strategies.registry import CONTROLS

if TYPE_CHECKING:
    from ctxbench.harness.run.cluster import Cluster

Make = Callable[[str, Sample, Sampling, int], AnsweredSample]
"""(strategy, sample, decoding, number of completions) -> answered sample."""
Answers = Callable[[Sequence[Sample]], Sequence[StoredGeneration]]
GIVE_UP_AFTER = 5
"""Number of equal failures in a row after which a strategy is stopped, because more samples would fail alike."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The state of a run after an attempt: its counts, its costs, and the faults of the attempt."""

    run: str
    strategy: str
    scored: int
    model_failed: int
    missing: int
    new: int
    faults: tuple[StoredFault, ...]
    too_long: int = 0
    judges: bool = False
    unjudged: int = 0
    passes: tuple[int, ...] = ()
    """Number of passed completions per sample, for samples whose completions are all judged."""
    all_equal: bool = False
    """Whether the run has samples with several scored completions, and each sample's scored completions are equal."""
    seed: int = 0
    repeats: bool = False
    """Whether this is the second repetition, and its prompts and completions equal those of the first."""
    gave_up: bool = False
    """Whether the attempt stopped early because the strategy failed repeatedly with the same fault."""
    costs: RunCosts | None = None
    """Total cost of the stored samples' calls, over all attempts; None if the database has none."""
    spent: float | None = None
    """US dollars that all new answers have cost, if they reached the cost limit; otherwise None."""
    remark: str = ""
    """Lines on API summaries, which belong to no sample, and on the generator, such as its tokens; may be empty."""


@dataclass(slots=True)
class _Tally:
    new: int = 0
    faults: list[StoredFault] = field(default_factory=list)
    built: list[StoredConstruction] = field(default_factory=list)
    too_long: int = 0
    gave_up: bool = False
    _last: str = ""
    _alike: int = 0

    def failed(self, fault: StrategyFault) -> None:
        self._alike = self._alike + 1 if fault.what == self._last else 1
        self._last = fault.what
        if self._alike == GIVE_UP_AFTER:
            self.gave_up = True
            _LOG.info(
                "no more samples are started, because %d in a row failed with the same fault: %s", GIVE_UP_AFTER, fault
            )

    def succeeded(self) -> None:
        self._alike = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOutcome:
    """The outcome of a work unit on another machine: its results, or the fault that stopped it."""

    samples: Sequence[Sample]
    shards: Sequence[Shard] = ()
    fault: MachineFault | None = None


class Attempt:
    """One attempt to complete a stored run."""

    def __init__(
        self,
        store: Store,
        sample_set: SampleSet,
        snapshots: Callable[[], Mapping[str, Snapshot]],
        resources: Resources,
        spec: RunSpec,
        planned: Sequence[Sample],
        *,
        scorer: SampleScorer,
        card: StrategyCard,
    ) -> None:
        """Prepare an attempt at the stored run `spec` over the `planned` samples. `snapshots` reads repositories."""
        self._store, self._snapshots, self._resources = store, snapshots, resources
        self._spec, self._planned, self._set = spec, planned, sample_set
        self._functions = spec.n > 0 and any(sample.tested for sample in planned)
        self._scorer, self._pace = scorer, WorkPace(2 * resources.workers)
        self._card = card
        self._run = spec.id
        self._attempt, self._tally, self._locked = 0, _Tally(), False

    def run(self, progress: Progress, cluster: Cluster | None = None) -> RunSummary:
        """Complete the missing samples, here or on a cluster's nodes. Record the attempt's end even after an interrupt.

        If an `InputFault`, such as a missing key, stops the run before anything is stored, the run is deleted.

        Raises:
            InputFault: if another process is working on the run, or the user must correct something first.
            MachineFault: if the disk is full, a process cannot start, or no node works. Finished samples are kept.
        """
        with self._store.run_lock(self._run) as self._locked:
            try:
                return self._run_missing(progress, cluster)
            except InputFault:
                forget_unbegun(self._store, self._run)
                raise

    def _run_missing(self, progress: Progress, cluster: Cluster | None) -> RunSummary:
        missing = unfinished_samples(self._planned, self._store.finished(self._run), failed_on(self._store, self._run))
        lacking = self._lacking() if self._resources.judges else []
        if missing or lacking:
            if cluster is not None:
                self._share_out(missing, lacking, cluster, progress)
            else:
                self._try(missing, lacking, progress)
        with self._store.reading() as connection:
            stored = status_counts(connection, [self._run])[self._run]
            counts = verdict_counts(connection, [self._run]).get(self._run, {})
            costs = costs_of_run(connection, self._run)
        return RunSummary(
            run=self._run,
            strategy=self._spec.strategy,
            scored=stored.get(Status.SCORED, 0),
            model_failed=stored.get(Status.MODEL_FAILED, 0),
            missing=len(unfinished_samples(self._planned, self._store.finished(self._run))),
            new=self._tally.new,
            faults=tuple(self._tally.faults),
            too_long=self._tally.too_long,
            judges=self._resources.judges,
            unjudged=len(self._lacking()),
            passes=tuple(passed for _, (tested, passed) in sorted(counts.items()) if tested == self._spec.n),
            all_equal=verdicts.all_equal(self._store, self._run) if self._spec.n > 1 else False,
            seed=self._spec.seed,
            gave_up=self._tally.gave_up,
            # Samples that arrived as shards are not in the store.
            costs=costs if costs.samples else None,
            spent=self._resources.spent if self._resources.cost_limit_reached else None,
            remark="\n".join(filter(None, self._remarks())),
        )

    def _remarks(self) -> Iterator[str]:
        yield self._resources.summaries.remark
        yield self._resources.batcher.generator.remark

    def _lacking(self) -> list[UnscoredCompletion]:
        return verdicts.unjudged(self._store, self._run) if self._functions else []

    def _try(self, missing: Sequence[Sample], lacking: Sequence[UnscoredCompletion], progress: Progress) -> None:
        resources = self._resources
        executor = resources.executor() if self._functions else None
        make: Make | None = None
        if missing:
            asker = resources.asker(self._card, self._store, self._snapshots(), self._scorer.ahead)
            is_control = self._spec.strategy in CONTROLS
            make = Controls(asker, self._store, self._set.references).make if is_control else asker.make
            if self._card.engines:
                resources.engines.prepare(self._card.engines, self._set.samples)
                missing = resources.engines.ordered(missing, resources.workers)
        resources.retrieval.searched_summaries.clear()
        isolation = resources.cells.describe()["isolation"]
        isolation += f", tests in {executor.sandbox}" if executor is not None else ""
        load = Load(workers=resources.workers, requests=resources.batcher.requests, cores=os.cpu_count() or 1)
        with self._recorded(isolation, load, len(missing)):
            for language in sorted({sample.language for sample in missing}):
                # Start the coder while the model writes the first answers, so that scoring need not wait for the coder.
                self._scorer.wake(language)
            with progress(self._spec.strategy, len(missing) + len(lacking)) as tick:
                if executor is not None:
                    self._judge(executor, lacking, tick)
                if make is not None:
                    self._work(functools.partial(self._complete, make, executor), missing, tick)

    @contextlib.contextmanager
    def _recorded(self, isolation: str, load: Load, missing: int) -> Iterator[None]:
        resources = self._resources
        self._attempt = self._store.start_attempt(self._run, isolation, load=load, locked=self._locked)
        reason = "failed"
        try:
            yield
            reason = "faults" if self._tally.faults else "done"
        except KeyboardInterrupt:
            reason = "interrupted"
            raise
        finally:
            # A fault while recording the end must not hide the fault that ended the attempt, such as a full disk.
            with contextlib.suppress(InputFault, MachineFault):
                if services := resources.batcher.generator.served:
                    add_remarks(self._store, self._run, [f"Answered by {service}." for service in services])
                if resources.retrieval.searched_summaries.is_set():
                    self._store.add_summaries(self._run, resources.summaries.answers)
                self._store.add_construction(self._attempt, [*self._tally.built, *resources.construction.take()])
                still_missing = missing - self._tally.new
                self._store.end_attempt(self._attempt, reason=reason, finished=self._tally.new, missing=still_missing)

    def _share_out(
        self, missing: Sequence[Sample], lacking: Sequence[UnscoredCompletion], cluster: Cluster, progress: Progress
    ) -> None:
        merger = Merger(self._store, self._set, own=True)
        with (
            self._recorded(cluster.isolation, cluster.load, len(missing)),
            progress(self._spec.strategy, len(missing) + len(lacking)) as tick,
        ):
            for outcome in cluster.do(self._spec, missing, functools.partial(answers_for, self._store, self._spec)):
                before = self._tally.new
                for shard in outcome.shards:
                    self._bring_in(merger, shard)
                if outcome.fault is not None:
                    for sample in outcome.samples:
                        self._note(sample.id, outcome.fault)
                tick(len(outcome.samples), len(outcome.samples) - self._tally.new + before)
            self._judge_here(lacking, tick)

    def _judge_here(self, lacking: Sequence[UnscoredCompletion], tick: Tick) -> None:
        try:
            executor = self._resources.executor() if lacking else None
        except SandboxError as error:
            cure = (
                f"{error.cure}, or run `ctxbench exec --samples {self._set.name} --run {self._run}` on another machine"
            )
            for completion in lacking:
                self._note(completion.sample_id, MachineFault(error.what, where=error.where, cure=cure))
                tick(1, 1)
        else:
            if executor is not None:
                self._judge(executor, lacking, tick)

    def _bring_in(self, merger: Merger, shard: Shard) -> None:
        log, shard = shard.attempt, dataclasses.replace(shard, attempt=None)
        try:
            self._tally.new += merger.merge(shard, "a node").new
        except InputFault as fault:
            # Two nodes got different answers to one request. Only this machine has the answers of all nodes.
            cure = "run the same command again without --engine ray"
            for sample in shard.finished:
                self._note(sample.sample_id, MachineFault(fault.what, cure=cure))
        if log is not None:
            for stored in log.faults:
                self._keep(stored)
            self._tally.built += log.constructions
            add_remarks(self._store, self._run, log.remarks)
            self._store.add_summaries(self._run, log.summaries)

    def _judge(self, executor: Executor, lacking: Sequence[UnscoredCompletion], tick: Tick) -> None:
        for completion, verdict in judge_stored(self._store, executor, self._set, self._run, lacking):
            if lost := isinstance(verdict, MachineFault):
                self._note(completion.sample_id, verdict)
            tick(1, lost)

    def _complete(self, make: Make, executor: Executor | None, sample: Sample) -> AnsweredSample:
        try:
            answered = make(self._spec.strategy, sample, self._spec.sampling, self._spec.n)
        finally:
            self._resources.engines.withdraw(sample)
        return answered if executor is None else judged(answered, executor)

    def _work(self, make: Callable[[Sample], AnsweredSample], missing: Sequence[Sample], tick: Tick) -> None:
        resources = self._resources
        left = deque(missing)
        under_way = PendingWork(resources.threads, make)
        engines = resources.engines if self._card.engines else None
        while True:
            lost = resources.batcher.lost or resources.summaries.batcher.lost
            stops = lost or self._tally.gave_up or resources.cost_limit_reached
            if stops:
                # Leave samples that have not started to the next attempt.
                for sample in under_way.drop():
                    resources.engines.withdraw(sample)
                    left.append(sample)
            else:
                # Queue twice as many samples as threads, so that no thread idles while this thread scores and stores.
                while left and len(under_way) < 2 * resources.width:
                    sample = left.popleft()
                    if engines is not None:
                        engines.announce(sample)
                    under_way.begin(sample)
            if under_way:
                returned, before = under_way.take(), self._tally.new
                answered = [self._outcome(future, sample) for sample, future in returned]
                self._store_all([answer for answer in answered if answer is not None])
                tick(len(returned), len(returned) - self._tally.new + before)
            else:
                tick(len(left), len(left))
                return

    def _outcome(self, future: Future[AnsweredSample], sample: Sample) -> AnsweredSample | None:
        try:
            answered = future.result()
        except (StrategyFault, TooLong) as fault:
            if isinstance(fault, TooLong) or isinstance(fault.__cause__, TooLong):
                # The model would refuse the same prompt again, but may accept a shorter one.
                self._tally.too_long += 1
            else:
                self._tally.failed(fault)
            self._note(sample.id, fault, kind="strategy")
        except MachineFault as fault:
            self._note(sample.id, fault)
        else:
            self._tally.succeeded()
            return answered
        return None

    def _store_all(self, answered: Sequence[AnsweredSample]) -> None:
        # A model that also measures bits measures between its batches, so pass all samples at once.
        parts = [answered] if self._resources.likelihood.aside is None else self._pace.parts(answered)
        for part in parts:
            works = functools.partial(self._scorer.can_measure, part)
            for samples, outcome in isolate_faults(self._scorer.finish, part, works):
                if isinstance(outcome, MachineFault):
                    for unscored in samples:
                        self._note(unscored.sample.id, outcome)
                else:
                    self._tally.new += self._store.add_all_finished(self._run, self._spec.coder, outcome)

    def _note(self, sample: str, fault: InputFault | MachineFault, *, kind: str = "machine") -> None:
        detail = fault.traceback if isinstance(fault, StrategyFault) else ""
        self._keep(StoredFault(sample_id=sample, kind=kind, message=str(fault), detail=detail))

    def _keep(self, fault: StoredFault) -> None:
        self._store.add_fault(self._attempt, fault)
        self._tally.faults.append(fault)
