"""`Runs`: what the runs of one call share, opened and closed together, and how one of them is attempted."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ctxbench.bench import code_tokens
from ctxbench.bench import samples as sets
from ctxbench.bench import spec as specs
from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.code_tokens import P50K_BASE, P50kBase
from ctxbench.bench.dates import dates_of
from ctxbench.bench.engines.recipe import read
from ctxbench.bench.engines.types import Mode
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.retrieval.retrieval import check_ranker, weights_of
from ctxbench.bench.retrieval.units import Unit, cutter
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.bench.windows import Tokens
from ctxbench.harness import metrics, prices
from ctxbench.harness.cells import Cells, StrategyBounds, StrategyCard, copies, open_cells
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.generators import fim
from ctxbench.harness.results import Measurement
from ctxbench.harness.run import controls
from ctxbench.harness.run.attempt import Attempt
from ctxbench.harness.run.execution import OpenJudge, back_end, open_executor, open_judge, open_tools
from ctxbench.harness.run.machinery import Machinery, MachineryOptions, open_machinery
from ctxbench.harness.run.sample import UNMASKED_REMARK
from ctxbench.harness.run.scoring import Bits, SampleScorer
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions, RunSpec, decoding, planned_by
from ctxbench.harness.store.notes import add_remarks
from ctxbench.harness.store.store import Store
from ctxbench.strategies.registry import CONTROLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """What the runs of one call share, and how one of them is attempted."""

    store: Store
    sample_set: SampleSet
    choices: RunOptions
    days: Mapping[str, date]
    planned: Sequence[Sample]
    machinery: Machinery
    snapshots: Callable[[], Mapping[str, Snapshot]]
    scorer: SampleScorer
    has_sandbox: bool

    @property
    def greedy(self) -> bool:
        """Whether decoding draws nothing."""
        return decoding(self.choices, self.sample_set.samples).temperature == 0

    def check(self, cards: Sequence[StrategyCard]) -> None:
        """Refuse what could never be done, before a run is stored.

        Raises:
            InputFault: if a strategy does not take such samples or names no encoder, an engine's file lies where no
                strategy may read, or the run fills in the middle and the model cannot.
        """
        for engine in [engine for card in cards for engine in card.engines]:
            self.machinery.engines.read(engine)
        check_cards(cards, self.planned, self.sample_set, has_sandbox=self.has_sandbox)
        if self.choices.fim:
            fim.template_of(self.machinery.batcher.generator)

    def spec(self, card: StrategyCard, repetition: int) -> RunSpec:
        """Return the choices of one run."""
        return _spec(card, self.sample_set, self.machinery, self.choices, repetition)

    def attempt(
        self,
        card: StrategyCard,
        repetition: int,
        mine: Sequence[Sample],
        store: Store | None = None,
    ) -> Attempt:
        """Note a run, unless it is stored, and return an attempt at it.

        Args:
            card: of its strategy.
            repetition: which of several runs with seeds of their own.
            mine: those of its samples that are done here.
            store: where its results go; None for the store of the machinery's own answers.
        """
        store = store or self.store
        spec = self.spec(card, repetition)
        run_id = store.add_run(spec, self.planned, self.days)
        remarks = [*self.sample_set.manifest.get("remarks", ()), *([fim.REMARK] if self.choices.fim else [])]
        remarks += [UNMASKED_REMARK] if card.unmasked and any(sample.masked for sample in self.planned) else []
        remarks += _engine_remarks(card)
        left_out = [measure.remark for measure in Measurement if measure not in self.choices.measure]
        if left_out and len(store.finished(run_id, [sample.id for sample in mine])) < len(mine):
            remarks += left_out
        if remarks:
            add_remarks(store, run_id, remarks)
        return Attempt(
            store, self.sample_set, self.snapshots, self.machinery, spec, mine, scorer=self.scorer, card=card
        )


@contextlib.contextmanager
def open_runs(
    home: Home,
    store: Store,
    sample_set: SampleSet,
    generator: str,
    choices: RunOptions | None = None,
    *,
    judges: OpenJudge = open_judge,
    snapshots: Callable[[], Mapping[str, Snapshot]] | None = None,
    **machines: Any,
) -> Iterator[Runs]:
    """Open what runs over a sample set need; nothing computes before it is asked.

    Args:
        home: where the repositories are.
        store: where answers go, and results.
        sample_set: what to complete.
        generator: its spec.
        choices: which samples, and how.
        judges: how to open judges of functions; for tests.
        snapshots: the repositories, by name; None to read those of all planned samples when they are first needed.
        machines: fields of `MachineryOptions` to replace; for tests.

    Raises:
        InputFault: if a spec is wrong, or the choices do not fit the set.
        MachineFault: if no process can be started.
    """
    choices = choices or RunOptions()
    days = dates_of(sample_set)
    choices, planned = planned_by(sample_set, choices, days)
    options = replace(options_of(home, store, sample_set, planned, choices, judges), **machines)
    with open_machinery(store, generator, options) as machinery:
        if snapshots is None:
            snapshots = functools.cache(lambda: sets.snapshots(home, sample_set, {sample.repo for sample in planned}))
            machinery.summaries.planned = functools.partial(summary_units, snapshots)
        yield Runs(
            store=store,
            sample_set=sample_set,
            choices=choices,
            days=days,
            planned=planned,
            machinery=machinery,
            snapshots=snapshots,
            scorer=_scorer(store, sample_set, machinery, snapshots, choices.measure),
            has_sandbox=options.tools is not None,
        )


def _scorer(
    store: Store,
    sample_set: SampleSet,
    machinery: Machinery,
    snapshots: Callable[[], Mapping[str, Snapshot]],
    measure: Collection[Measurement],
) -> SampleScorer:
    """Return what scores the samples of a run, and measures as much as was asked for."""
    return SampleScorer(
        sample_set.references,
        Bits(store, sample_set.references, machinery.pricer) if Measurement.GAIN in measure else None,
        Diagnostics(snapshots) if Measurement.DIAGNOSTICS in measure else None,
        profiles=None if Measurement.PROFILES in measure else (metrics.FUNCTIONS,),
    )


def _engine_remarks(card: StrategyCard) -> list[str]:
    """Return what a reader must know of a strategy's engines."""
    recipes = [read(spec) for spec in card.engines]
    remote = [
        f"The engine {recipe.spec} is a server elsewhere ({urlsplit(recipe.remote).netloc}): "
        "it may remember what it was sent for other target files, and nobody here saw what it did."
        for recipe in recipes
        if recipe.remote
    ]
    return remote + [
        f"The engine {recipe.spec} was shared by the samples of a repository and saw their target files whole: "
        "one that remembers may rank by the answers."
        for recipe in recipes
        if recipe.mode is Mode.SHARED
    ]


def summary_units(
    snapshots: Callable[[], Mapping[str, Snapshot]],
) -> Iterator[tuple[Language, Sequence[Unit]]]:
    """Yield the APIs of each repository of a run, as a search by summary has them."""
    cut = cutter("summary")
    for snapshot in snapshots().values():
        for path, text in snapshot.texts.items():
            yield snapshot.language, cut(path, text, snapshot.language)


def options_of(
    home: Home, store: Store, sample_set: SampleSet, planned: Sequence[Sample], choices: RunOptions, judges: OpenJudge
) -> MachineryOptions:
    """Return how the machinery of runs over some samples is set up.

    Raises:
        InputFault: if the tokenizer's file is no such file.
    """
    executor = tools = None
    if choices.sandbox != NO_SANDBOX:
        tools = functools.partial(open_tools, home=home, sandbox=choices.sandbox)
        if any(sample.tested for sample in planned):
            executor = functools.partial(
                open_executor, home=home, store=store, sample_set=sample_set, sandbox=choices.sandbox, judges=judges
            )
    tokens: Tokens = code_tokens.pieces
    if choices.tokenizer is not None:
        tokens = P50kBase(choices.tokenizer).ids  # a wrong file is refused before anything starts
    return MachineryOptions(
        hidden=kept_from_strategies(home, store.where, sample_set),
        cache=home.cache,
        workers=choices.workers,
        executor=executor,
        tools=tools,
        boxes=functools.partial(back_end, home, choices.sandbox) if choices.sandbox != NO_SANDBOX else None,
        prices=prices.of_home(home),
        max_cost=choices.max_cost,
        summariser=choices.summariser,
        summarises_tests=choices.summarise_tests or not choices.summariser,
        tokens=tokens,
        cells=functools.partial(
            open_cells, limits=StrategyBounds.of_work(choices.strategy_seconds), tokenizer=choices.tokenizer
        ),
    )


def kept_from_strategies(home: Home, database: str, sample_set: SampleSet) -> list[Path]:
    """Return the paths that no strategy may read: home and cache, the database, other copies of the targets' files.

    Raises:
        InputFault: if the cache is elsewhere than in the home folder, and cannot be made there.
    """
    if not home.cache.is_relative_to(home.root):
        with explained(home.cache):
            # Made before anything is in it: what is not there is not hidden.
            home.cache.mkdir(parents=True, exist_ok=True)
    paths = [home.root.absolute(), home.cache, Path(database).absolute()]
    paths += copies(sample.path for sample in sample_set.samples)
    sources = [str(entry.get("source", "")) for entry in sample_set.manifest.get("repositories", {}).values()]
    paths += [Path(source.removeprefix("local:")) for source in sources if source.startswith("local:")]
    return [path for path in paths if path.is_absolute() and path.exists()]


def check_cards(
    cards: Sequence[StrategyCard], planned: Sequence[Sample], sample_set: SampleSet, *, has_sandbox: bool
) -> None:
    """Raise `InputFault` if a strategy does not take such samples, names no encoder, or lacks the sandbox it needs."""
    for card in cards:
        for encoder in card.encoders:
            check_ranker(encoder)
        if card.executes and not has_sandbox:
            raise InputFault(
                f"{card.spec} runs what the model wrote, which needs a sandbox",
                where=f"--sandbox {NO_SANDBOX}",
                cure="leave the option out, or name a back end (see `ctxbench doctor`)",
            )
        kinds = {str(sample.kind) for sample in planned}
        languages = {str(sample.language) for sample in planned} if card.languages else set()
        for takes, odd in ((card.kinds, kinds - card.kinds), (card.languages, languages - card.languages)):
            if not odd:
                continue
            raise InputFault(
                f"{card.spec} takes {' and '.join(sorted(takes))} samples, "
                f"the sample set {sample_set.name!r} has {' and '.join(sorted(odd))} samples",
                cure="choose another strategy (see `ctxbench strategy list`) or another sample set",
            )


def card_of(spec: str, cells: Cells) -> StrategyCard:
    """Return the card of a strategy or a control.

    Raises:
        InputFault: if the spec is wrong.
    """
    name, bracket, _ = spec.strip().partition("(")
    if name not in CONTROLS:
        card = cells.card(spec)
        versions = [read(engine).version for engine in card.engines]
        named = chain.from_iterable(map(specs.within, card.texts))
        versions += [weights for spec in dict.fromkeys(named) if (weights := weights_of(spec))]
        return replace(card, version=sha256(" ".join([card.version, *versions]))[:12]) if versions else card
    if bracket:
        raise InputFault(f"{name} takes no parameters", cure=f"write --strategy {name}")
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


def _spec(
    card: StrategyCard, sample_set: SampleSet, machinery: Machinery, choices: RunOptions, repetition: int = 0
) -> RunSpec:
    choices = replace(choices, seed=choices.seed + repetition)
    summariser = machinery.summaries.batcher if choices.summariser else None
    return RunSpec(
        samples=sample_set.name,
        samples_digest=sample_set.digest,
        limit=choices.limit,
        after=choices.after,
        strategy=card.spec,
        strategy_version=card.version,
        generator=machinery.batcher.spec,
        generator_version=machinery.batcher.generator.version,
        coder=machinery.pricer.name,
        sampling=decoding(choices, sample_set.samples),
        n=choices.n,
        seed=choices.seed,
        tokenizer=P50K_BASE if choices.tokenizer else TOKENIZER,
        code=version("ctxbench"),
        summariser=summariser.spec if summariser else "",
        summariser_version=summariser.generator.version if summariser else "",
        summarises_tests=choices.summarise_tests and summariser is not None,
    )
