"""`Attempt`: one attempt at one run, which completes, scores and stores the missing samples and records its faults."""

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
from ctxbench.harness.run.scheduling import UnderWay, WorkPace, apart
from ctxbench.harness.run.scoring import SampleScorer
from ctxbench.harness.run.spec import RunSpec, unfinished_samples
from ctxbench.harness.store import verdicts
from ctxbench.harness.store.notes import add_remarks
from ctxbench.harness.store.runs import status_counts
from ctxbench.harness.store.scores import RunCosts, costs_of_run
from ctxbench.harness.store.shard import Shard, unpack
from ctxbench.harness.store.shard_store import answers_for
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.tables import forget_unbegun
from ctxbench.harness.store.verdicts import UnscoredCompletion
from ctxbench.harness.store.work import failed_on
from ctxbench.harness.store.write import StoredConstruction, StoredFault, StoredGeneration
from ctxbench.sandbox.errors import SandboxError
from ctxbench.strategies.registry import CONTROLS

if TYPE_CHECKING:
    from ctxbench.harness.run.cluster import Cluster

Make = Callable[[str, Sample, Sampling, int], AnsweredSample]
"""Strategy, sample, decoding, completions -> the answered sample."""
Answers = Callable[[Sequence[Sample]], Sequence[StoredGeneration]]
"""Samples -> the stored answers to what was asked for them."""
GIVE_UP_AFTER = 5
"""Equal failures of a strategy in a row after which an attempt begins no more samples: the next would fail as well."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Counts and faults of a run after an attempt at it."""

    run: str
    strategy: str
    scored: int
    model_failed: int
    missing: int
    new: int
    """Samples that this attempt finished."""
    faults: tuple[StoredFault, ...]
    """Why samples are missing, in the order in which the faults happened."""
    too_long: int = 0
    """How many of them were prompts too long for the model."""
    judges: bool = False
    """Whether functions were to get verdicts."""
    unjudged: int = 0
    """Stored completions of functions that have none yet."""
    passes: tuple[int, ...] = ()
    """How many completions passed, of each sample whose functions all have verdicts."""
    all_equal: bool = False
    """Whether every sample has several completions, none of which differs from its others."""
    seed: int = 0
    repeats: bool = False
    """Whether it has the prompts and completions of the run with the seed before, so that repetition tells nothing."""
    gave_up: bool = False
    """Whether samples were left undone because the strategy failed in the same way again and again."""
    costs: RunCosts | None = None
    """What all of its calls cost, whenever they were asked; None where nobody knows."""
    spent: float | None = None
    """US dollars at which the command stopped for its limit; None where it did not."""
    remark: str = ""
    """Requests to the model beside the samples, by this call of `run` so far."""


@dataclass(slots=True)
class _Tally:
    """Counts and faults of one attempt so far."""

    new: int = 0
    faults: list[StoredFault] = field(default_factory=list)
    built: list[StoredConstruction] = field(default_factory=list)
    """What other machines built."""
    too_long: int = 0
    gave_up: bool = False
    _last: str = ""
    _alike: int = 0

    def failed(self, fault: StrategyFault) -> None:
        """Count a failure of the strategy."""
        self._alike = self._alike + 1 if fault.what == self._last else 1
        self._last = fault.what
        if self._alike == GIVE_UP_AFTER:
            self.gave_up = True
            _LOG.info("no more samples are begun: %d in a row failed alike: %s", GIVE_UP_AFTER, fault)

    def succeeded(self) -> None:
        """Count a sample that the strategy did not fail on."""
        self._alike = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOutcome:
    """What another machine made of a unit."""

    samples: Sequence[Sample]
    shards: Sequence[tuple[str, bytes]] = ()
    """Their names and contents."""
    fault: MachineFault | None = None
    """Why there is nothing of any of the samples."""


class Attempt:
    """One attempt at one run."""

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
        """Prepare an attempt at a run that is stored already.

        Args:
            store: where results go.
            sample_set: what is completed.
            snapshots: reads the repositories; called only if something is missing.
            resources: cells, model and threads of the run.
            spec: the run.
            planned: its samples.
            scorer: scores completions.
            card: of the strategy: for one that runs programs a sandbox is opened if something is missing.
        """
        self._store, self._snapshots, self._resources = store, snapshots, resources
        self._spec, self._planned, self._set = spec, planned, sample_set
        self._functions = spec.n > 0 and any(sample.tested for sample in planned)
        self._scorer, self._pace = scorer, WorkPace(2 * resources.workers)
        self._card = card
        # A digest: computed once, not for every sample.
        self._run = spec.id
        self._attempt, self._tally, self._locked = 0, _Tally(), False

    def go(self, progress: Progress, cluster: Cluster | None = None) -> RunSummary:
        """Complete what is missing, here or on a cluster's nodes; record the end of the attempt even if interrupted.

        A run that the user's own mistake ended, such as a missing key, before anything was ever stored of it is none.

        Raises:
            InputFault: if another process works at the same run, or nothing can be done until the user mends something.
        """
        with self._store.run_lock(self._run) as self._locked:
            try:
                return self._go(progress, cluster)
            except InputFault:
                forget_unbegun(self._store, self._run)
                raise

    def _go(self, progress: Progress, cluster: Cluster | None) -> RunSummary:
        missing = unfinished_samples(self._planned, self._store.finished(self._run), failed_on(self._store, self._run))
        lacking = self._lacking() if self._resources.judges else []
        if missing or lacking:
            if cluster is not None:
                self._share_out(missing, lacking, cluster, progress)
            else:
                self._try(missing, lacking, progress)
        stored = status_counts(self._store, self._run)
        with self._store.reading() as connection:
            costs = costs_of_run(connection, self._run)
        return RunSummary(
            run=self._run,
            strategy=self._spec.strategy,
            scored=stored[Status.SCORED],
            model_failed=stored[Status.MODEL_FAILED],
            missing=len(unfinished_samples(self._planned, self._store.finished(self._run))),
            new=self._tally.new,
            faults=tuple(self._tally.faults),
            too_long=self._tally.too_long,
            judges=self._resources.judges,
            unjudged=len(self._lacking()),
            passes=tuple(verdicts.passes(self._store, self._run, self._spec.n)) if self._functions else (),
            all_equal=verdicts.all_equal(self._store, self._run) if self._spec.n > 1 else False,
            seed=self._spec.seed,
            gave_up=self._tally.gave_up,
            # What leaves as shards is not in the store.
            costs=costs if costs.samples else None,
            spent=self._resources.spent if self._resources.dear else None,
            remark="\n".join(filter(None, self._remarks())),
        )

    def _remarks(self) -> Iterator[str]:
        yield self._resources.summaries.spent.remark
        yield self._resources.batcher.generator.remark

    def _lacking(self) -> list[UnscoredCompletion]:
        """Return the stored completions of functions that have no verdict."""
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
                # It starts while the model writes the first answers, which would otherwise wait for it.
                self._scorer.wake(language)
            with progress(self._spec.strategy, len(missing) + len(lacking)) as tick:
                if executor is not None:
                    self._judge(executor, lacking, tick)
                if make is not None:
                    self._work(functools.partial(self._complete, make, executor), missing, tick)

    @contextlib.contextmanager
    def _recorded(self, isolation: str, load: Load, missing: int) -> Iterator[None]:
        """Record an attempt at so many missing samples, with its end, in whatever way it ends."""
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
            # A fault in recording the end must not hide the fault that ended the attempt, such as a full disk.
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
        """Let other machines do what is missing, and bring their shards in as they come; then judge what is stored."""
        merger = Merger(self._store, self._set, own=True)
        with (
            self._recorded(cluster.isolation, cluster.load, len(missing)),
            progress(self._spec.strategy, len(missing) + len(lacking)) as tick,
        ):
            for outcome in cluster.do(self._spec, missing, functools.partial(answers_for, self._store, self._spec)):
                before = self._tally.new
                for name, content in outcome.shards:
                    self._bring_in(merger, name, unpack(name, content))
                if outcome.fault is not None:
                    for sample in outcome.samples:
                        self._note(sample.id, outcome.fault)
                tick(len(outcome.samples), len(outcome.samples) - self._tally.new + before)
            self._judge_here(lacking, tick)

    def _judge_here(self, lacking: Sequence[UnscoredCompletion], tick: Tick) -> None:
        """Judge what is stored on the machine that asks others, which may be without a sandbox."""
        try:
            executor = self._resources.executor() if lacking else None
        except SandboxError as error:
            cure = f"{error.cure}, or let `ctxbench exec --samples {self._set.name} --run {self._run}` do it elsewhere"
            for completion in lacking:
                self._note(completion.sample_id, MachineFault(error.what, where=error.where, cure=cure))
                tick(1, 1)
        else:
            if executor is not None:
                self._judge(executor, lacking, tick)

    def _bring_in(self, merger: Merger, name: str, shard: Shard) -> None:
        log, shard = shard.attempt, dataclasses.replace(shard, attempt=None)
        try:
            self._tally.new += merger.merge(shard, name).new
        except InputFault as fault:
            # Another node was answered otherwise. A node has the stored answers for its samples; here are all of them.
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
        """Judge what an earlier attempt stored without a verdict."""
        for completion, verdict in judge_stored(self._store, executor, self._set, self._run, lacking):
            if lost := isinstance(verdict, MachineFault):
                self._note(completion.sample_id, verdict)
            tick(1, lost)

    def _complete(self, make: Make, executor: Executor | None, sample: Sample) -> AnsweredSample:
        """Complete and judge one sample, in a thread of its own."""
        try:
            answered = make(self._spec.strategy, sample, self._spec.sampling, self._spec.n)
        finally:
            self._resources.engines.withdraw(sample)
        return answered if executor is None else judged(answered, executor)

    def _work(self, make: Callable[[Sample], AnsweredSample], missing: Sequence[Sample], tick: Tick) -> None:
        """Keep every thread busy; score and store together what has come back meanwhile."""
        resources = self._resources
        left = deque(missing)
        under_way = UnderWay(resources.threads, make)
        engines = resources.engines if self._card.engines else None
        while True:
            lost = resources.batcher.lost or resources.summaries.batcher.lost
            stops = lost or self._tally.gave_up or resources.dear
            if stops:
                # Samples that have not begun are left for the next attempt.
                for sample in under_way.drop():
                    resources.engines.withdraw(sample)
                    left.append(sample)
            else:
                # As many samples again wait for a thread, so that none idles while this one scores and stores.
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
                # The model would refuse the same prompt again; it may accept a shorter one.
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
        # A model that measures its own contexts does so between its batches: as many as there are by then.
        parts = [answered] if self._resources.pricer.aside is None else self._pace.parts(answered)
        for part in parts:
            for samples, outcome in apart(self._scorer.finish, part, functools.partial(self._scorer.works, part)):
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
