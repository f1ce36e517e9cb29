"""`run`: runs strategies over a sample set with a generator. Stored samples are not repeated."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ctxbench.bench import samples as sets
from ctxbench.bench import spec as specs
from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.code_tokens import P50K_BASE
from ctxbench.bench.concurrency import Progress, silent
from ctxbench.bench.dates import dates_of
from ctxbench.bench.engines.recipe import read
from ctxbench.bench.engines.types import Mode
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.retrieval.retrieval import check_ranker, weights_of
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness import metrics
from ctxbench.harness.cells import Cells, StrategyCard
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.generators import base, fim
from ctxbench.harness.results import Measurement, asked_by
from ctxbench.harness.run import controls
from ctxbench.harness.run.attempt import GIVE_UP_AFTER, Attempt, RunSummary
from ctxbench.harness.run.resources import Resources, open_resources, summary_units
from ctxbench.harness.run.sample import UNMASKED_REMARK
from ctxbench.harness.run.scheduling import Share
from ctxbench.harness.run.scoring import Bits, SampleScorer
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions, RunSpec, decoding, planned_by
from ctxbench.harness.store.notes import add_cutoff, add_remarks
from ctxbench.harness.store.scores import latest_costs
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import equal_runs
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.registry import CONTROLS

if TYPE_CHECKING:
    from ctxbench.harness.run.cluster import Cluster

_LOG = logging.getLogger(__name__)
_AGAIN = "run the same command again"
_FAILED = ("a strategy failed", f"correct the strategy, then {_AGAIN}")
_TOO_LONG = ("the prompt is too long for the model", f"shorten the prompts as described, then {_AGAIN}")
"""Pairs of (reason, advice) for faults that running the same command again does not fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs of one command: their shared samples, options and resources, and methods to check and attempt a run."""

    store: Store
    sample_set: SampleSet
    choices: RunOptions
    days: Mapping[str, date]
    planned: Sequence[Sample]
    resources: Resources
    snapshots: Callable[[], Mapping[str, Snapshot]]
    scorer: SampleScorer

    @property
    def greedy(self) -> bool:
        """Whether decoding is deterministic (temperature 0)."""
        return decoding(self.choices, self.sample_set.samples).temperature == 0

    def check(self, cards: Sequence[StrategyCard]) -> None:
        """Check strategies before their runs are stored.

        Raises:
            InputFault: if `check_cards` refuses a strategy, an engine's spec is invalid, or an engine's file is in a
                hidden folder. Also if the run fills in the middle and the model cannot.
        """
        for engine in [engine for card in cards for engine in card.engines]:
            self.resources.engines.read(engine)
        check_cards(cards, self.planned, self.sample_set, has_sandbox=self.resources.has_sandbox)
        if self.choices.fim:
            fim.template_of(self.resources.batcher.generator)

    def spec(self, card: StrategyCard, repetition: int) -> RunSpec:
        """Return the choices that identify one run. `repetition` is added to the seed."""
        choices = replace(self.choices, seed=self.choices.seed + repetition)
        resources, sample_set = self.resources, self.sample_set
        summariser = resources.summaries.batcher if choices.summariser else None
        return RunSpec(
            samples=sample_set.name,
            samples_digest=sample_set.digest,
            set_size=len(sample_set.samples),
            limit=choices.limit,
            after=choices.after,
            strategy=card.spec,
            strategy_version=card.version,
            generator=resources.batcher.spec,
            generator_version=resources.batcher.generator.version,
            coder=resources.likelihood.name if choices.n else "",
            sampling=decoding(choices, sample_set.samples),
            n=choices.n,
            seed=choices.seed,
            tokenizer=P50K_BASE if choices.tokenizer else TOKENIZER,
            code=version("ctxbench"),
            summariser=summariser.spec if summariser else "",
            summariser_version=asked_by(summariser.generator.version, choices.summary_templates) if summariser else "",
            summarises_tests=choices.summarise_tests and summariser is not None,
        )

    def attempt(
        self, card: StrategyCard, repetition: int, mine: Sequence[Sample], store: Store | None = None
    ) -> Attempt:
        """Store a run, unless it is already stored, and return an attempt at the run.

        Args:
            repetition: index of the run among those with successive seeds, from 0.
            mine: the run's samples that this process completes.
            store: store for the results; None for the store of the model's answers.
        """
        store = store or self.store
        spec = self.spec(card, repetition)
        run_id = store.add_run(spec, self.planned, self.days)
        remarks = [*self.sample_set.manifest.get("remarks", ()), *([fim.REMARK] if self.choices.fim else [])]
        remarks += [UNMASKED_REMARK] if card.unmasked and any(sample.masked for sample in self.planned) else []
        remarks += _engine_remarks(card)
        left_out = [measure.remark for measure in Measurement if measure not in self.choices.measure and spec.n]
        if left_out and len(store.finished(run_id, [sample.id for sample in mine])) < len(mine):
            remarks += left_out
        if remarks:
            add_remarks(store, run_id, remarks)
        return Attempt(
            store, self.sample_set, self.snapshots, self.resources, spec, mine, scorer=self.scorer, card=card
        )


@contextlib.contextmanager
def open_runs(
    home: Home,
    store: Store,
    sample_set: SampleSet,
    generator: str,
    choices: RunOptions | None = None,
    *,
    snapshots: Callable[[], Mapping[str, Snapshot]] | None = None,
    **parts: Any,
) -> Iterator[Runs]:
    """Open the runs of one command over a sample set. Their resources compute nothing before the first use.

    Without `snapshots`, the repositories of all planned samples are read on first use. `parts` are passed to
    `open_resources`; only tests use them.

    Raises:
        InputFault: if a spec is wrong, or the options do not fit the set.
        MachineFault: if a process cannot be started.
    """
    choices = choices or RunOptions()
    days = dates_of(sample_set)
    choices, planned = planned_by(sample_set, choices, days)
    with open_resources(home, store, sample_set, planned, generator, choices, **parts) as resources:
        if not resources.batcher.generator.capabilities.writes:
            choices = replace(choices, n=0, measure=frozenset({Measurement.DIAGNOSTICS}))
        measure = choices.measure
        if snapshots is None:
            snapshots = functools.cache(lambda: sets.snapshots(home, sample_set, {sample.repo for sample in planned}))
            resources.summaries.planned = functools.partial(summary_units, snapshots)
        yield Runs(
            store=store,
            sample_set=sample_set,
            choices=choices,
            days=days,
            planned=planned,
            resources=resources,
            snapshots=snapshots,
            scorer=SampleScorer(
                sample_set.references,
                Bits(store, sample_set.references, resources.likelihood) if Measurement.GAIN in measure else None,
                Diagnostics(snapshots) if Measurement.DIAGNOSTICS in measure else None,
                profiles=None if Measurement.PROFILES in measure else (metrics.FUNCTIONS,),
            ),
        )


def _engine_remarks(card: StrategyCard) -> list[str]:
    recipes = [read(spec) for spec in card.engines]
    remote = [
        f"The engine {recipe.spec} is a server elsewhere ({urlsplit(recipe.remote).netloc}): "
        "it may remember queries for other target files, which ctxbench cannot check."
        for recipe in recipes
        if recipe.remote
    ]
    return remote + [
        f"The engine {recipe.spec} was shared by the samples of a repository and saw their whole target files: "
        "an engine that remembers may rank by the answers."
        for recipe in recipes
        if recipe.mode is Mode.SHARED
    ]


def check_cards(
    cards: Sequence[StrategyCard], planned: Sequence[Sample], sample_set: SampleSet, *, has_sandbox: bool
) -> None:
    """Raise `InputFault` if a strategy does not accept the samples, names an unknown encoder, or lacks its sandbox."""
    for card in cards:
        for encoder in card.encoders:
            check_ranker(encoder)
        if card.executes and not has_sandbox:
            raise InputFault(
                f"{card.spec} runs the model's code, which needs a sandbox",
                where=f"--sandbox {NO_SANDBOX}",
                cure="leave the option out, or name a back end (see `ctxbench doctor`)",
            )
        kinds = {str(sample.kind) for sample in planned}
        languages = {str(sample.language) for sample in planned} if card.languages else set()
        for takes, odd in ((card.kinds, kinds - card.kinds), (card.languages, languages - card.languages)):
            if not odd:
                continue
            raise InputFault(
                f"{card.spec} accepts {' and '.join(sorted(takes))} samples, but "
                f"the sample set {sample_set.name!r} has {' and '.join(sorted(odd))} samples",
                cure="choose another strategy (see `ctxbench strategy list`) or another sample set",
            )


def card_of(spec: str, cells: Cells) -> StrategyCard:
    """Return the properties of a strategy or a control.

    Raises:
        InputFault: if the spec is wrong.
    """
    name, bracket, _ = spec.strip().partition("(")
    if name not in CONTROLS:
        card = cells.card(spec)
        versions = [read(engine).version for engine in card.engines]
        named = chain.from_iterable(map(specs.nested_specs, card.texts))
        versions += [weights for spec in dict.fromkeys(named) if (weights := weights_of(spec))]
        return replace(card, version=sha256(" ".join([card.version, *versions]))[:12]) if versions else card
    if bracket:
        raise InputFault(f"{name} has no parameters", cure=f"write --strategy {name}")
    return StrategyCard(
        spec=name,
        kinds=frozenset(Kind),
        languages=frozenset(),
        drafts=False,
        executes=False,
        unmasked=False,
        version=sha256(Path(controls.__file__).read_bytes())[:12],
        summary=CONTROLS[name],
    )


def run(  # noqa: PLR0913 - what to run, and the progress of it
    home: Home,
    store: Store,
    sample_set: SampleSet,
    *,
    strategies: Sequence[str],
    generator: str,
    choices: RunOptions | None = None,
    progress: Progress = silent,
    report: Callable[[RunSummary], None] = lambda _: None,
    share: Share | None = None,
    cluster: Cluster | None = None,
    **parts: Any,
) -> list[RunSummary]:
    """Run strategies over a sample set, one after the other.

    Args:
        strategies: specs of strategies, or names of controls.
        report: called with the summary of each strategy and repetition when it ends.
        share: the part of the samples for this process; None for all.
        cluster: the machines that do the work; None for this machine.
        parts: arguments of `open_resources`, which only tests use.

    Returns:
        A summary for each run: a strategy in one repetition. `fault_of` returns the fault of incomplete runs.

    Raises:
        InputFault: if a spec or option is wrong, a repository is not fetched, or `Runs.check` refuses a strategy. Also
            if another process works on a run, or a cost limit is set without a known price.
        MachineFault: if the disk is full, a process cannot start, or no cluster node works. Finished samples are kept.
    """
    with open_runs(home, store, sample_set, generator, choices, **parts) as runs:
        cards = [card_of(spec, runs.resources.cells) for spec in strategies]
        runs.check(cards)
        if (cutoff := base.cutoff(generator)) is not None:
            add_cutoff(store, runs.resources.batcher.spec, cutoff)
        return run_cards(runs, cards, progress=progress, report=report, share=share, cluster=cluster)


def run_cards(
    runs: Runs,
    cards: Sequence[StrategyCard],
    *,
    progress: Progress = silent,
    report: Callable[[RunSummary], None] = lambda _: None,
    share: Share | None = None,
    cluster: Cluster | None = None,
) -> list[RunSummary]:
    """Run strategies that `Runs.check` accepted. The other arguments, the result and the faults are those of `run`."""
    _estimate(runs, cards)

    def attempt(card: StrategyCard, repetition: int) -> RunSummary:
        mine = runs.planned if share is None else share.of(runs.planned)
        work = runs.attempt(card, repetition, mine)
        return work.run(progress, cluster)

    # The samples of a share do not show whether the whole run equals the first run.
    greedy = runs.greedy and share is None
    return _in_turn(runs.store, cards, attempt, repetitions=runs.choices.repeat, greedy=greedy, report=report)


def _estimate(runs: Runs, cards: Sequence[StrategyCard]) -> None:
    """Log the expected cost before the first request, based on stored runs of the same strategies over the set."""
    resources, choices = runs.resources, runs.choices
    unpriced = [batcher.spec for batcher in (resources.batcher, resources.summaries.batcher) if batcher.rate is None]
    if choices.max_cost is not None and unpriced:
        raise InputFault(
            f"the price of {unpriced[0]} is unknown",
            where="--max-cost",
            cure="add its rate to prices.toml in the home folder: a table [[rate]] with match, input, output and seen",
        )
    rate = resources.batcher.rate
    samples = len(runs.planned) * choices.repeat
    if resources.batcher.generator.capabilities.weights:
        spec = resources.batcher.spec
        for card in cards:
            costs = latest_costs(runs.store, runs.sample_set.digest, card.spec, choices.n, generator=spec)
            if costs is not None:
                minutes = samples * costs.generator_seconds / costs.samples / 60
                text = "%s: about %.1f model minutes, as in the last run over this set; stored answers take no time"
                _LOG.info(text, card.spec, minutes)
    if rate is None or rate.per_hour:
        return
    for card in cards:
        costs = latest_costs(runs.store, runs.sample_set.digest, card.spec, choices.n)
        if costs is None:
            advice = "" if choices.limit else "; start with --limit"
            _LOG.info("%s: its cost cannot be estimated without a stored run%s", card.spec, advice)
            continue
        tokens_in, tokens_out = (samples * total / costs.samples for total in (costs.tokens_in, costs.tokens_out))
        price = rate.price(tokens_in=tokens_in, tokens_out=tokens_out, cached=0, seconds=0)
        _LOG.info(
            "%s: about %.0f tokens in, %.0f out, US$ %.2g, as in its last run over this set; stored answers are free",
            card.spec,
            tokens_in,
            tokens_out,
            price,
        )


def _in_turn(
    store: Store,
    cards: Sequence[StrategyCard],
    attempt: Callable[[StrategyCard, int], RunSummary],
    *,
    repetitions: int,
    greedy: bool,
    report: Callable[[RunSummary], None],
) -> list[RunSummary]:
    """Run every repetition. With greedy decoding, stop repeating a strategy whose second run equals its first."""
    summaries: list[RunSummary] = []
    repeated = {card.spec for card in cards if card.spec not in CONTROLS}
    for repetition, card in itertools.product(range(repetitions), cards):
        if repetition and card.spec not in repeated:
            continue
        summary = attempt(card, repetition)
        if repetition == 1:
            first_run = next(earlier.run for earlier in summaries if earlier.strategy == card.spec)
            repeats = not summary.missing and equal_runs(store, summary.run, first_run)
            summary = replace(summary, repeats=repeats)
        if summary.repeats and greedy:
            repeated.discard(card.spec)
        summaries.append(summary)
        report(summary)
    return summaries


def prompt_of(
    home: Home,
    store: Store,
    sample_set: SampleSet,
    sample: Sample,
    *,
    strategy: str,
    generator: str,
    choices: RunOptions | None = None,
    **parts: Any,
) -> Prompt:
    """Return the exact prompt of a strategy for one sample, without storing a run.

    Answers to the strategy's own requests are stored. `parts` are passed to `open_resources`; only tests use them.

    Raises:
        InputFault: if a spec is wrong or a control, the repository is not fetched, or the strategy rejects the sample.
        StrategyFault: if the strategy failed.
        MachineFault: if the model was lost, or a process cannot be started.
    """
    choices = choices or RunOptions()
    with open_resources(home, store, sample_set, (sample,), generator, choices, **parts) as resources:
        card = card_of(strategy, resources.cells)
        if card.spec in CONTROLS:
            raise InputFault(f"{card.spec} is a control, whose prompt cannot be shown", cure="name a strategy")
        check_cards([card], [sample], sample_set, has_sandbox=resources.has_sandbox)
        snapshots = functools.cache(lambda: sets.snapshots(home, sample_set, {sample.repo}))
        resources.summaries.planned = functools.partial(summary_units, snapshots)
        asker = resources.asker(card, store, snapshots())
        resources.engines.prepare(card.engines, sample_set.samples)
        return asker.prompt_of(card.spec, sample, decoding(choices, sample_set.samples))


def fault_of(summaries: Sequence[RunSummary]) -> InputFault | MachineFault | None:
    """Return a one-line fault about missing samples or verdicts; None if nothing is missing."""
    missing = sum(summary.missing for summary in summaries)
    unjudged = sum(summary.unjudged for summary in summaries if summary.judges)
    if not missing and not unjudged:
        return None
    faults = [fault for summary in summaries for fault in summary.faults]
    samples = "1 sample is" if missing == 1 else f"{missing} samples are"
    if not missing:
        samples = "1 verdict is" if unjudged == 1 else f"{unjudged} verdicts are"
    dear = [summary.spent for summary in summaries if summary.spent is not None and summary.missing]
    if dear:
        return InputFault(
            f"{samples} missing: the run stopped at its cost limit, with US$ {max(dear):.2g} spent",
            cure=f"raise --max-cost, then {_AGAIN}; it does only what is missing",
        )
    ours = [fault for fault in faults if fault.kind == "strategy"]
    if ours and any(summary.gave_up for summary in summaries):
        return InputFault(
            f"{samples} missing: the run stopped after {GIVE_UP_AFTER} equal failures of the strategy in a row; "
            f"the first fault: {ours[0].message}",
            cure=_FAILED[1],
        )
    if ours:
        too_long = sum(summary.too_long for summary in summaries) == len(ours)
        why, cure = _TOO_LONG if too_long else _FAILED
        return InputFault(
            f"{samples} missing, {len(ours)} because {why}; the first fault: {ours[0].message}", cure=cure
        )
    cure = f"{_AGAIN}; it does only what is missing"
    if not faults:
        return MachineFault(f"{samples} missing", cure=cure)
    # A fault's message ends with its own cure, which the user must apply first.
    cure = "it does only what is missing" if _AGAIN in faults[0].message else f"then {cure}"
    return MachineFault(f"{samples} missing; the first fault: {faults[0].message}", cure=cure)
