"""`RunOptions`: a user's decisions about a run, the samples that they leave, and how completions are decoded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from ctxbench.bench.errors import InputFault
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness.cells import StrategyBounds
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.metrics.aggregate import MOST_K
from ctxbench.harness.results import EVERY, Measurement
from ctxbench.harness.run.spec import GREEDY, planned_samples
from ctxbench.sandbox.registry import SPELLINGS, read_name

LINE_TOKENS, FUNCTION_TOKENS = 128, 1024
"""The papers' limits of a completion."""
SEVERAL = (0.8, 0.95)
"""Temperature and top-p for several completions of a function, as the pass@k literature draws them."""
NO_SANDBOX = "none"
"""Instead of a back end's name: store completions of functions without verdicts."""
_MOST_SEEDS = 2**63
"""A stored seed is less."""
_RANGES: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "limit": (lambda limit: limit >= 1, "a whole number from 1 on"),
    "n": (lambda n: 1 <= n <= MOST_K, f"a whole number from 1 to {MOST_K}"),
    "seed": (lambda seed: seed >= 0, "a whole number from 0 on"),
    "repeat": (lambda runs: runs >= 1, "a whole number from 1 on"),
    "workers": (lambda workers: workers >= 1, "a whole number from 1 on"),
    "temperature": (lambda temperature: 0 <= temperature < math.inf, "a number from 0 on"),
    "top_p": (lambda top_p: 0 < top_p <= 1, "a number above 0 and at most 1"),
    "strategy_seconds": (lambda seconds: 0 < seconds < math.inf, "a number above 0"),
    "max_cost": (lambda dollars: 0 < dollars < math.inf, "a number above 0"),
}
"""Option -> whether a number fits, which ``nan`` never does, and the numbers that do, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A user's decisions beside samples, strategy and generator."""

    limit: int | None = None
    after: date | None = None
    """Only samples dated after that day; None for all, dated or not."""
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

    def __post_init__(self) -> None:
        """Refuse values that no run can have, whoever gives them: a run is stored with them, and stands on the board.

        Raises:
            InputFault: if a number is out of its range or is none, or there is no such back end.
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name not in _RANGES or (value is None and field.default is None):
                continue
            fits, expected = _RANGES[field.name]
            try:
                accepted = fits(value)
            except TypeError:
                accepted = False
            if not accepted:
                raise InputFault(f"{field.name.replace('_', '-')} is {value!r}", cure=f"give {expected}")
        if self.sandbox not in (None, NO_SANDBOX) and read_name(str(self.sandbox)) is None:
            raise InputFault(f"there is no sandbox {self.sandbox!r}", cure=f"give {SPELLINGS}, or {NO_SANDBOX}")


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
