"""`run`: run strategies over a sample set with a generator, storing one finished sample at a time.

A stored sample is never done again; a sample that a fault left missing is done by the next run of the same command.
Strategies get queries and views; references are read here, after the strategy has ended.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.cells import StrategyCard
from ctxbench.harness.generators import registry
from ctxbench.harness.run.attempt import GIVE_UP_AFTER, Progress, RunSummary, silent
from ctxbench.harness.run.execution import OpenJudge, open_judge
from ctxbench.harness.run.machinery import open_machinery
from ctxbench.harness.run.runs import Runs, card_of, check_cards, open_runs, options_of, summary_units
from ctxbench.harness.run.sample import Asker
from ctxbench.harness.run.scheduling import Share, repository_of
from ctxbench.harness.run.spec import RunOptions, decoding
from ctxbench.harness.store.notes import add_cutoff
from ctxbench.harness.store.scores import latest_costs
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import equal_runs
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.registry import CONTROLS

if TYPE_CHECKING:
    from ctxbench.harness.run.cluster import Cluster

_LOG = logging.getLogger(__name__)
_AGAIN = "run the same command again"
_FAILED = ("a strategy failed", f"mend the strategy, then {_AGAIN}")
_TOO_LONG = ("the prompt is too long for the model", "until then the same command fails again")
"""Faults of samples that a second try does not mend: the reason, and the words after the cure of the first fault."""


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
        _estimate(runs, cards)
        if (cutoff := registry.cutoff(generator)) is not None:
            add_cutoff(store, runs.machinery.batcher.spec, cutoff)

        def attempt(card: StrategyCard, repetition: int) -> RunSummary:
            mine = runs.planned if share is None else share.of(runs.planned, repository_of)
            work = runs.attempt(card, repetition, mine)
            return work.go(progress) if cluster is None else work.go(progress, cluster.doing(card.spec, repetition))

        # A share does not tell whether the whole run repeats the one before.
        greedy = runs.greedy and share is None
        return _in_turn(store, cards, attempt, repetitions=runs.choices.repeat, greedy=greedy, report=report)


def _estimate(runs: Runs, cards: Sequence[StrategyCard]) -> None:
    """Say before the first request what runs may cost, where the model has a price.

    Stored runs of the same strategies over the same set tell their tokens, whatever model answered.

    Raises:
        InputFault: if the costs have a limit and nobody knows what an answer costs.
    """
    machinery, choices = runs.machinery, runs.choices
    unpriced = [batcher.spec for batcher in (machinery.batcher, machinery.summaries.batcher) if batcher.rate is None]
    if choices.max_cost is not None and unpriced:
        raise InputFault(
            f"nobody knows what {unpriced[0]} costs",
            where="--max-cost",
            cure="give its rate in prices.toml of the home folder: a table [[rate]] with match, input, output and seen",
        )
    rate = machinery.batcher.rate
    if rate is None or rate.per_hour:
        return
    samples = len(runs.planned) * choices.repeat
    for card in cards:
        costs = latest_costs(runs.store, runs.sample_set.digest, card.spec, choices.n)
        if costs is None:
            _LOG.info("%s: no stored run tells what it takes; one with --limit does", card.spec)
            continue
        tokens_in, tokens_out = (samples * total / costs.samples for total in (costs.tokens_in, costs.tokens_out))
        price = rate.price(tokens_in=tokens_in, tokens_out=tokens_out, cached=0, seconds=0)
        _LOG.info(
            "%s: about %.0f tokens in, %.0f out, US$ %.2g, as its last run over this set; what is stored costs nothing",
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
    """Attempt all repetitions of all strategies.

    A strategy whose second run equals its first is not repeated further if decoding is greedy.
    """
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
    options = replace(options_of(home, store, sample_set, (sample,), choices, open_judge), **machines)
    with open_machinery(store, generator, options) as machinery:
        card = card_of(strategy, machinery.cells)
        if card.spec in CONTROLS:
            raise InputFault(f"{card.spec} is a control: it completes without a prompt", cure="name a strategy")
        check_cards([card], [sample], sample_set, has_sandbox=options.tools is not None)
        snapshots = functools.cache(lambda: sets.snapshots(home, sample_set, {sample.repo}))
        machinery.summaries.planned = functools.partial(summary_units, snapshots)
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
    dear = [summary.spent for summary in summaries if summary.spent is not None and summary.missing]
    if dear:
        return InputFault(
            f"{samples} missing: the run stopped at its limit, with US$ {max(dear):.2g} spent",
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
        return InputFault(f"{samples} missing, {len(ours)} because {why}; the first: {ours[0].message}", cure=cure)
    cure = f"{_AGAIN}; it does only what is missing"
    if not faults:
        return MachineFault(f"{samples} missing", cure=cure)
    # A fault's message ends with its own cure, which comes first.
    cure = "it does only what is missing" if _AGAIN in faults[0].message else f"then {cure}"
    return MachineFault(f"{samples} missing; the first: {faults[0].message}", cure=cure)
