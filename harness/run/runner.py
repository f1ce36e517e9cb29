"""`run`: run strategies over a sample set with a generator, storing one finished sample at a time.

A stored sample is never done again; a sample that a fault left missing is done by the next run of the same command.
Strategies get queries and views; references are read here, after the strategy has ended.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench import code_tokens
from ctxbench.bench import samples as sets
from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.code_tokens import P50K_BASE
from ctxbench.bench.dates import dates_of
from ctxbench.bench.engines.recipe import read
from ctxbench.bench.engines.types import Mode
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.p50k_base import P50kBase
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.retrieval.types import Unit
from ctxbench.bench.retrieval.units import cutter
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.bench.windows import Pieces
from ctxbench.harness import prices
from ctxbench.harness.cells import Cells, StrategyBounds, StrategyCard, copies, open_cells
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.generators import fim, registry
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.run import controls
from ctxbench.harness.run.attempt import GIVE_UP_AFTER, Attempt, Progress, RunSummary, silent
from ctxbench.harness.run.judging import OpenJudge, open_executor, open_judge
from ctxbench.harness.run.machinery import Machinery, MachineryOptions, open_machinery
from ctxbench.harness.run.programs import back_end, open_tools
from ctxbench.harness.run.sample import UNMASKED_REMARK, Asker
from ctxbench.harness.run.scoring import Bits, SampleScorer
from ctxbench.harness.run.spec import GREEDY, RunSpec, planned_samples
from ctxbench.harness.run.units import Share, repository_of
from ctxbench.harness.store.notes import add_cutoff, add_remarks
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import equal_runs
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.registration import CONTROLS

if TYPE_CHECKING:
    from ctxbench.harness.run.cluster import Cluster

LINE_TOKENS, FUNCTION_TOKENS = 128, 1024
"""The papers' limits of a completion."""
SEVERAL = (0.8, 0.95)
"""Temperature and top-p for several completions of a function, as the pass@k literature draws them."""
NO_SANDBOX = "none"
"""Instead of a back end's name: store completions of functions without verdicts."""
Parts = Callable[[Sequence[Sample]], Iterator[Sequence[Sample]]]
"""The samples of a run -> those to be done before the next part is asked for; each part begins with the one before."""
_MOST_SEEDS = 2**63
"""A stored seed is less."""
_AGAIN = "run the same command again"
_FAILED = ("a strategy failed", f"mend the strategy, then {_AGAIN}")
_TOO_LONG = ("the prompt is too long for the model", "until then the same command fails again")
"""Faults of samples that a second try does not mend: the reason, and the words after the cure of the first fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A user's decisions beside samples, strategy and generator."""

    limit: int | None = None
    after: date | None = None
    """Only samples dated after that day; None for all, dated or not."""
    until_decided: bool = False
    """Whether a decision between the two strategies ends their runs; what `parts` does is the caller's."""
    n: int = 1
    seed: int = 0
    repeat: int = 1
    """Runs of each strategy; their seeds rise from `seed` by 1. Controls, which draw nothing, are run once."""
    workers: int | None = None
    temperature: float | None = None
    """None: `SEVERAL` for several completions of a function, else 0."""
    top_p: float | None = None
    sandbox: str | None = None
    """Back end that judges functions; None for what this machine offers, `NO_SANDBOX` for no verdicts."""
    strategy_seconds: float = StrategyBounds.work
    """Processor time that a strategy may take for one sample; waiting for the model does not count."""
    fim: bool = False
    """Whether the model is shown what follows the cursor; strategies never are."""
    summariser: str = ""
    """Spec of the generator that writes summaries; empty: the run's own."""
    summarise_tests: bool = False
    """Whether a summariser is asked about APIs of tests and vendored files too; the run's own always is."""
    tokenizer: Path | None = None
    """The file of p50k_base, in whose tokens budgets are counted; None for those of `ctxcode-1`."""


def whole(planned: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    """Take all samples at once."""
    yield planned


def run(  # noqa: PLR0913 - what runs, on what, and who hears of it
    home: Home,
    store: Store,
    sample_set: SampleSet,
    *,
    strategies: Sequence[str],
    generator: str,
    choices: RunOptions | None = None,
    progress: Progress = silent,
    report: Callable[[RunSummary], None] = lambda _: None,
    judges: OpenJudge = open_judge,
    parts: Parts = whole,
    share: Share | None = None,
    cluster: Cluster | None = None,
    **machines: Any,
) -> list[RunSummary]:
    """Run strategies over a sample set, one after the other.

    Args:
        home: where the repositories are.
        store: where results go.
        sample_set: what to complete.
        strategies: their specs; names of controls are taken too.
        generator: its spec.
        choices: which samples, completions a sample, decoding, seed, workers, sandbox, fill in the middle.
        progress: shows how far each strategy is.
        report: called with each strategy's summary as soon as it ends.
        judges: how to open judges of functions; for tests.
        parts: what is done by all strategies before more is; a fault ends it.
        share: the part of the samples that is done here, while others do the rest; None for all.
        cluster: the machines that do the work; None for this one.
        machines: fields of `MachineryOptions` to replace; for tests.

    Returns:
        A summary for each strategy, and each repetition of it; `fault_of` says whether they are whole.

    Raises:
        InputFault: if a spec is wrong, a repository is not fetched, a strategy does not take such samples, or the run
            fills in the middle and the model cannot.
        MachineFault: if the disk is full or a process cannot be started; what was finished is kept.
    """
    with open_runs(home, store, sample_set, generator, choices, judges=judges, **machines) as runs:
        cards = [card_of(spec, runs.machinery.cells) for spec in strategies]
        runs.check(cards)
        if (cutoff := registry.cutoff(generator)) is not None:
            add_cutoff(store, runs.machinery.batcher.spec, cutoff)
        until = tuple(card.spec for card in cards) if runs.choices.until_decided else ()

        def attempt(card: StrategyCard, part: Sequence[Sample], repetition: int) -> RunSummary:
            mine = part if share is None else share.of(part, repository_of)
            work = runs.attempt(card, part, repetition, mine, until=until)
            return work.go(progress) if cluster is None else work.go(progress, cluster.doing(card.spec, repetition))

        # A share does not tell whether the whole run repeats the one before.
        greedy = runs.greedy and share is None
        turns = parts(runs.planned)
        return _in_turn(store, cards, turns, attempt, repetitions=runs.choices.repeat, greedy=greedy, report=report)


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
            InputFault: if a strategy does not take such samples, or the run fills in the middle and the model cannot.
        """
        _check(cards, self.planned, self.sample_set, has_sandbox=self.has_sandbox)
        if self.choices.fim:
            fim.template_of(self.machinery.batcher.generator)

    def spec(self, card: StrategyCard, repetition: int) -> RunSpec:
        """Return the choices of one run, if it takes all its samples."""
        return _spec(card, self.sample_set, self.machinery, self.choices, repetition)

    def attempt(
        self,
        card: StrategyCard,
        part: Sequence[Sample],
        repetition: int,
        mine: Sequence[Sample],
        store: Store | None = None,
        *,
        until: tuple[str, ...] = (),
    ) -> Attempt:
        """Note a run, unless it is stored, and return an attempt at it.

        Args:
            card: of its strategy.
            part: the samples that the run has by now.
            repetition: which of several runs with seeds of their own.
            mine: those of them that are done here.
            store: where its results go; None for the store of the machinery's own answers.
            until: the two strategies between which a decision ends the run; empty if it takes all its samples.
        """
        store = store or self.store
        spec = replace(self.spec(card, repetition), until=until)
        run_id = store.add_run(spec, part, self.days)
        remarks = [*self.sample_set.manifest.get("remarks", ()), *([fim.REMARK] if self.choices.fim else [])]
        remarks += [UNMASKED_REMARK] if card.unmasked and any(sample.masked for sample in part) else []
        remarks += _engine_remarks(card)
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
    choices, planned = _planned(sample_set, choices, days)
    options = replace(_options(home, store, sample_set, planned, choices, judges), **machines)
    with open_machinery(store, generator, options) as machinery:
        if snapshots is None:
            snapshots = functools.cache(lambda: sets.snapshots(home, sample_set, {sample.repo for sample in planned}))
            machinery.summaries.planned = functools.partial(_summary_units, snapshots)
        bits = Bits(store, sample_set.references, machinery.pricer)
        yield Runs(
            store=store,
            sample_set=sample_set,
            choices=choices,
            days=days,
            planned=planned,
            machinery=machinery,
            snapshots=snapshots,
            scorer=SampleScorer(sample_set.references, bits, Diagnostics(snapshots)),
            has_sandbox=options.tools is not None,
        )


def _in_turn(
    store: Store,
    cards: Sequence[StrategyCard],
    parts: Iterable[Sequence[Sample]],
    attempt: Callable[[StrategyCard, Sequence[Sample], int], RunSummary],
    *,
    repetitions: int,
    greedy: bool,
    report: Callable[[RunSummary], None],
) -> list[RunSummary]:
    """Attempt all repetitions of all strategies over one part of the samples after the other; a fault ends it.

    A strategy whose second run equals its first is not repeated further if decoding is greedy.
    """
    summaries: list[RunSummary] = []
    repeated = {card.spec for card in cards if card.spec not in CONTROLS}
    for part in parts:
        summaries = []
        for repetition, card in itertools.product(range(repetitions), cards):
            if repetition and card.spec not in repeated:
                continue
            summary = attempt(card, part, repetition)
            if repetition == 1:
                first_run = next(earlier.run for earlier in summaries if earlier.strategy == card.spec)
                repeats = not summary.missing and equal_runs(store, summary.run, first_run)
                summary = replace(summary, repeats=repeats)
            if summary.repeats and greedy:
                repeated.discard(card.spec)
            summaries.append(summary)
            report(summary)
        if fault_of(summaries):
            break
    return summaries


def _engine_remarks(card: StrategyCard) -> list[str]:
    """Return what a reader must know of a strategy's engines."""
    return [
        f"The engine {recipe.spec} was shared by the samples of a repository and saw their target files whole: "
        "one that remembers may rank by the answers."
        for recipe in map(read, card.engines)
        if recipe.mode is Mode.SHARED
    ]


def prompt_of(
    home: Home,
    store: Store,
    sample_set: SampleSet,
    sample: Sample,
    *,
    strategy: str,
    generator: str,
    choices: RunOptions | None = None,
    **machines: Any,
) -> Prompt:
    """Return the exact prompt that a strategy makes of one sample; no run is stored.

    Args:
        home: where the repositories are.
        store: where answers are looked up, and kept if the strategy asks the model on the way.
        sample_set: the set.
        sample: one of its samples.
        strategy: its spec.
        generator: the model's spec: it decides drafts, and how much fits its window.
        choices: decoding, seed, sandbox, summariser, fill in the middle.
        machines: fields of `MachineryOptions` to replace; for tests.

    Raises:
        InputFault: if a spec is wrong, the repository is not fetched, or the strategy does not take such samples.
        StrategyFault: if the strategy failed.
        MachineFault: if the model was lost, or a process cannot be started.
    """
    choices = choices or RunOptions()
    options = replace(_options(home, store, sample_set, (sample,), choices, open_judge), **machines)
    with open_machinery(store, generator, options) as machinery:
        card = card_of(strategy, machinery.cells)
        if card.spec in CONTROLS:
            raise InputFault(f"{card.spec} is a control: it completes without a prompt", cure="name a strategy")
        _check([card], [sample], sample_set, has_sandbox=options.tools is not None)
        snapshots = functools.cache(lambda: sets.snapshots(home, sample_set, {sample.repo}))
        machinery.summaries.planned = functools.partial(_summary_units, snapshots)
        asker = Asker(
            machinery.cells,
            machinery.batcher,
            snapshots(),
            machinery.workers,
            store=store,
            retrieval=machinery.retrieval,
            execute=machinery.tools() if card.executes else None,
            summariser=machinery.summaries.batcher,
            unmasked=card.unmasked,
            engines=machinery.engines if card.engines else None,
        )
        machinery.engines.prepare(card.engines, sample_set.samples)
        return asker.prompt_of(card.spec, sample, decoding(choices, sample_set.samples))


def _summary_units(
    snapshots: Callable[[], Mapping[str, Snapshot]],
) -> Iterator[tuple[Language, Sequence[Unit]]]:
    """Yield the APIs of each repository of a run, as a search by summary has them."""
    cut = cutter("summary")
    for snapshot in snapshots().values():
        for path, text in snapshot.texts.items():
            yield snapshot.language, cut(path, text, snapshot.language)


def _planned(
    sample_set: SampleSet, choices: RunOptions, days: Mapping[str, date]
) -> tuple[RunOptions, Sequence[Sample]]:
    """Return the choices, without a limit that leaves nothing out, and the samples of the run.

    Raises:
        InputFault: if the choices do not fit the set.
    """
    eligible = _eligible(sample_set, choices, days)
    if choices.limit is not None and choices.limit >= len(eligible):
        choices = replace(choices, limit=None)
    planned = planned_samples(eligible, choices.limit)
    for sample in planned if choices.fim else ():
        fim.after(sample)
    return choices, planned


def _eligible(sample_set: SampleSet, choices: RunOptions, days: Mapping[str, date]) -> tuple[Sample, ...]:
    """Return the samples that a run may take, given the days that are known.

    Raises:
        InputFault: if the choices do not fit them.
    """
    if choices.n < 1:
        raise InputFault(f"{choices.n} completions a sample are none", cure="give --n 1 or more")
    if choices.seed + choices.repeat > _MOST_SEEDS:
        raise InputFault(f"seeds from {choices.seed} on do not last for {choices.repeat} runs", cure="lower --seed")
    return sample_set.samples if choices.after is None else _after(sample_set, choices.after, days)


def _after(sample_set: SampleSet, day: date, days: Mapping[str, date]) -> tuple[Sample, ...]:
    """Return the samples that are dated after a day; those of unknown day may be older, and are not among them."""
    samples = tuple(sample for sample in sample_set.samples if sample.id in days and days[sample.id] > day)
    if not samples:
        newest = f"the newest is of {max(days.values())}" if days else "no day of any sample is known"
        raise InputFault(
            f"no sample of {sample_set.name!r} is dated after {day}: {newest}",
            cure="give an earlier day, or build newer samples with `ctxbench samples build --since`",
        )
    return samples


def _options(
    home: Home, store: Store, sample_set: SampleSet, planned: Sequence[Sample], choices: RunOptions, judges: OpenJudge
) -> MachineryOptions:
    executor = tools = None
    if choices.sandbox != NO_SANDBOX:
        tools = functools.partial(open_tools, home=home, sandbox=choices.sandbox)
        if any(sample.tested for sample in planned):
            executor = functools.partial(
                open_executor, home=home, store=store, sample_set=sample_set, sandbox=choices.sandbox, judges=judges
            )
    pieces: Pieces = code_tokens.pieces
    if choices.tokenizer is not None:
        pieces = P50kBase(choices.tokenizer).pieces  # a wrong file is refused before anything starts
    return MachineryOptions(
        hidden=kept_from_strategies(home, store.where, sample_set),
        cache=home.cache,
        workers=choices.workers,
        executor=executor,
        tools=tools,
        boxes=functools.partial(back_end, home, choices.sandbox) if choices.sandbox != NO_SANDBOX else None,
        prices=prices.of_home(home),
        summariser=choices.summariser,
        summarises_tests=choices.summarise_tests or not choices.summariser,
        pieces=pieces,
        cells=functools.partial(
            open_cells, limits=StrategyBounds.of_work(choices.strategy_seconds), tokenizer=choices.tokenizer
        ),
    )


def fault_of(summaries: Sequence[RunSummary]) -> InputFault | MachineFault | None:
    """Return the one-line fault for samples that are missing; None if there are none."""
    missing = sum(summary.missing for summary in summaries)
    unjudged = sum(summary.unjudged for summary in summaries if summary.judges)
    if not missing and not unjudged:
        return None
    faults = [fault for summary in summaries for fault in summary.faults]
    samples = "1 sample is" if missing == 1 else f"{missing} samples are"
    if not missing:
        samples = "1 verdict is" if unjudged == 1 else f"{unjudged} verdicts are"
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
        return InputFault(f"{samples} missing, {len(ours)} because {why}; the first: {ours[0].message}", cure=cure)
    cure = f"{_AGAIN}; it does only what is missing"
    if not faults:
        return MachineFault(f"{samples} missing", cure=cure)
    # A fault's message ends with its own cure, which comes first.
    cure = "it does only what is missing" if _AGAIN in faults[0].message else f"then {cure}"
    return MachineFault(f"{samples} missing; the first: {faults[0].message}", cure=cure)


def kept_from_strategies(home: Home, database: str, sample_set: SampleSet) -> list[Path]:
    """Return the paths that no strategy may read: the home, the database, and other copies of the targets' files."""
    paths = [home.root.absolute(), Path(database).absolute()]
    paths += copies(sample.path for sample in sample_set.samples)
    sources = [str(entry.get("source", "")) for entry in sample_set.manifest.get("repositories", {}).values()]
    paths += [Path(source.removeprefix("local:")) for source in sources if source.startswith("local:")]
    return [path for path in paths if path.is_absolute() and path.exists()]


def _check(
    cards: Sequence[StrategyCard], planned: Sequence[Sample], sample_set: SampleSet, *, has_sandbox: bool
) -> None:
    """Raise `InputFault` if a strategy does not take such samples, or needs a sandbox and has none."""
    for card in cards:
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
        engines = [read(engine).version for engine in card.engines]
        return replace(card, version=sha256(" ".join([card.version, *engines]))[:12]) if engines else card
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


def decoding(choices: RunOptions, samples: Sequence[Sample]) -> Sampling:
    """Return how completions of these samples are decoded: as chosen, else greedily, or `SEVERAL` functions."""
    functions = any(sample.kind is Kind.FUNCTION for sample in samples)
    temperature, top_p = SEVERAL if functions and choices.n > 1 else GREEDY
    return Sampling(
        max_tokens=FUNCTION_TOKENS if functions else LINE_TOKENS,
        temperature=temperature if choices.temperature is None else choices.temperature,
        top_p=top_p if choices.top_p is None else choices.top_p,
        seed=choices.seed,
        fim=choices.fim,
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
