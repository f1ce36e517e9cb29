"""`RunOptions`: a user's decisions about a run, the samples that they leave, and how completions are decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from ctxbench.bench.errors import InputFault
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness.cells import StrategyBounds
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.measures import EVERY, Measurement
from ctxbench.harness.run.spec import GREEDY, planned_samples

LINE_TOKENS, FUNCTION_TOKENS = 128, 1024
"""The papers' limits of a completion."""
SEVERAL = (0.8, 0.95)
"""Temperature and top-p for several completions of a function, as the pass@k literature draws them."""
NO_SANDBOX = "none"
"""Instead of a back end's name: store completions of functions without verdicts."""
_MOST_SEEDS = 2**63
"""A stored seed is less."""


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
    measure: frozenset[Measurement] = EVERY
    """What is computed of a sample at once, beside the scores of the default profile."""
    max_cost: float | None = None
    """US dollars of new answers after which no more samples are begun; None for no limit."""
    tokenizer: Path | None = None
    """The file of p50k_base, in whose tokens budgets are counted; None for those of `ctxcode-1`."""


def planned_by(
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
