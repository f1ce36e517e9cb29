"""Runs of two strategies that end once they are told apart: the looks between their parts, and what is printed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import click
import numpy as np

from ctxbench.bench import standard
from ctxbench.bench.errors import InputFault
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample, project_of
from ctxbench.harness.cli.progress import say
from ctxbench.harness.leaderboard import choices, numbers, pairs, stats
from ctxbench.harness.leaderboard.family import count_of
from ctxbench.harness.leaderboard.scales import Scale, completed, scale_of, values
from ctxbench.harness.leaderboard.sequential import Ending, Look, look, looks, repeated_interval
from ctxbench.harness.leaderboard.stats import Array
from ctxbench.harness.results import PRICE, RunTable
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.run.choices import NO_SANDBOX, RunOptions
from ctxbench.harness.store import Store
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies.registration import is_control

_TOKENS = {"tokens in": ("tokens_in", "summary_tokens_in"), "tokens out": ("tokens_out", "summary_tokens_out")}
_PRICES = (PRICE, "summary_price")
_CAVEAT = (
    "The interval and p hold whenever the run ends; the difference itself tends to be too large after an early end. "
    "Boards show these runs by themselves, and their p and interval take the number of repositories as fixed."
)


def check_pair(sample_set: SampleSet, strategies: Sequence[str], options: RunOptions) -> None:
    """Refuse what no rule can decide.

    Raises:
        InputFault: if there are not two strategies, one is a control, samples are left out or tests are not run, or
            the set has too few repositories of a language.
    """
    if len(set(strategies)) != len(strategies) or len(strategies) != 2:
        raise InputFault("a decision is between two strategies", cure="give --until-decided two different specs")
    if controls := [spec for spec in strategies if is_control(spec)]:
        raise InputFault(f"{controls[0]} is a control, of which no test is made", cure="name another strategy")
    if options.limit is not None:
        raise InputFault(
            "--limit takes samples of all repositories, --until-decided whole repositories",
            cure="leave one of them out",
        )
    if options.repeat > 1:
        raise InputFault("the rule is of single runs", where="--repeat", cure="leave it out with --until-decided")
    if options.sandbox == NO_SANDBOX and any(sample.tested for sample in sample_set.samples):
        raise InputFault(
            "functions without verdicts cannot be compared",
            where=f"--sandbox {NO_SANDBOX}",
            cure="leave the option out, or name a back end (see `ctxbench doctor`)",
        )


@dataclass(frozen=True, slots=True)
class _Gaps:
    """The paired differences of two runs in some repositories, in the order in which these were added."""

    metric: str
    scale: Scale
    seed: str
    sums: Array
    sizes: Array


@dataclass(slots=True)
class UntilDecided:
    """Adds repositories to the runs of two strategies, language by language, until a look ends them."""

    store: Store
    sample_set: SampleSet
    runs: dict[str, str] = field(default_factory=dict)
    """Strategy -> its run's id, the first strategy first."""

    def report(self, summary: RunSummary) -> None:
        """Note which run is of which strategy."""
        self.runs[summary.strategy] = summary.run

    def parts(self, planned: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
        """Yield the samples up to each look; look, and print what came of it.

        Raises:
            InputFault: if the set has too few repositories of a language, or its samples have no value to compare.
        """
        by_language = by_repository(self.sample_set, planned)
        for language, repositories in by_language.items():
            if not looks(len(repositories)):
                raise InputFault(
                    f"no difference of {count_of(len(repositories))} ({language}) can be significant",
                    where=self.sample_set.name,
                    cure=f"take a set with {stats.LEAST} repositories or more, or leave --until-decided out",
                )
        earlier: list[Sample] = []
        for language, repositories in by_language.items():
            order = list(repositories)
            for count in looks(len(order)):
                batch = list(chain.from_iterable(repositories[repo] for repo in order[:count]))
                yield [*earlier, *batch]
                if self._look(language, order, count):
                    break
            earlier += batch

    def _look(self, language: str, order: Sequence[str], count: int) -> bool:
        """Look at the first repositories; return whether that ends it."""
        tables = self._tables(language)
        gaps = self._gaps(tables, order[:count])
        outcome = look(gaps.sums, gaps.sizes, len(order), seed=gaps.seed)
        if outcome.ending is None:
            mean = numbers.value(outcome.mean, abs(outcome.mean), sign=True)
            say(
                f"{language}: {mean} {gaps.scale.unit} on {count} of "
                f"{count_of(len(order))}, p {numbers.p_value(outcome.p)}: not decided, more are added"
            )
            return False
        for line in _conclusion(self.sample_set.name, language, tables, gaps, outcome):
            click.echo(line)
        return True

    def _tables(self, language: str) -> list[RunTable]:
        tables = run_tables(self.store, samples=self.sample_set.name, hidden=True)
        return [
            table
            for run in self.runs.values()
            for table in tables
            if table.run.id == run and table.run.language == language
        ]

    def _gaps(self, tables: Sequence[RunTable], repositories: Sequence[str]) -> _Gaps:
        if len(self.runs) == 1:
            raise InputFault(
                f"both are {', '.join(self.runs)}: a decision is between two strategies",
                cure="give two different specs",
            )
        this, other = tables
        metric = choices.default_metric([name for name in this.metrics if name in other.metrics], this.run)
        scale = scale_of(this.run.profile, metric)
        places = {repo: place for place, repo in enumerate(repositories)}
        repository_of = {sample: repo for sample, repo in zip(this.sample, this.repo, strict=True) if repo in places}
        these, others = values(this, metric, scale), values(other, metric, scale)
        common = pairs.paired(
            {sample: value for sample, value in these.items() if sample in repository_of}, others, repository_of
        )
        if not common.samples:
            raise InputFault(
                f"no sample has a value of {metric} in both runs ({', '.join(self.runs.values())})",
                cure="for functions let their tests run (no --sandbox none), or compare by all samples",
            )
        codes = [places[repo] for repo in common.repos]
        gap, count = pairs.gap(common.this, common.other), len(repositories)
        return _Gaps(
            metric=metric,
            scale=scale,
            seed=f"{this.run.samples_digest}/{this.run.language}/{metric}",
            sums=np.bincount(codes, weights=gap, minlength=count).astype(np.float64),
            sizes=np.bincount(codes, minlength=count).astype(np.float64),
        )


def by_repository(sample_set: SampleSet, planned: Sequence[Sample]) -> Mapping[str, Mapping[str, list[Sample]]]:
    """Return language -> project -> its samples; projects in the order of the standard set, or of this one."""
    places = {repo: place for place, repo in enumerate(standard.order_of(sample_set.digest))}
    by_language: dict[str, dict[str, list[Sample]]] = {}
    for sample in sorted(planned, key=lambda sample: places.get(sample.repo, len(places))):
        by_language.setdefault(sample.language, {}).setdefault(project_of(sample.repo), []).append(sample)
    return by_language


def _conclusion(name: str, language: str, tables: Sequence[RunTable], gaps: _Gaps, outcome: Look) -> list[str]:
    """Return what is known at the end, a sentence a line."""
    this, other = (table.run.strategy for table in tables)
    least, most = pairs.gap_bounds(gaps.scale) or (-math.inf, math.inf)
    low, high = repeated_interval(gaps.sums, gaps.sizes, outcome.planned, seed=gaps.seed)
    low, high = max(low, least), min(high, most)
    # A look that may spend nothing yet rules nothing out.
    interval = (
        numbers.interval(outcome.mean, low, high, sign=True)
        if math.isfinite(high - low)
        else (f"{numbers.value(outcome.mean, abs(outcome.mean), sign=True)} (no interval yet)")
    )
    remaining = outcome.planned - outcome.repositories
    unused = f"; the other {count_of(remaining)} were not taken" if remaining else ""
    used = f"{outcome.repositories} of {count_of(outcome.planned)}"
    better, worse = (this, other) if (outcome.mean < 0) is gaps.scale.lower_is_better else (other, this)
    verdict = {
        Ending.DECIDED: f"Told apart: {better} beats {worse}",
        Ending.FUTILE: "Not told apart, and the rest would hardly do it if it went on like this",
        Ending.ALL: "Not told apart by all repositories",
    }[outcome.ending or Ending.ALL]
    return [
        f"{name}, {language}: {this} minus {other}, {gaps.metric}: {interval} {gaps.scale.unit} on {used}",
        f"{verdict} (p {numbers.p_value(outcome.p)} for all looks together, which keep the error at 5%).",
        f"Cost: {_cost(tables)}{unused}.",
        _CAVEAT,
    ]


def _cost(tables: Sequence[RunTable]) -> str:
    """Return what the two runs cost together, summaries among it; no price where that of a sample is not known."""

    def total(*names: str) -> float | None:
        columns = [column for table in tables for name in names if (column := table.costs.get(name))]
        costs = [cost for column in columns for cost in column if cost is not None]
        return math.fsum(costs) if costs else None

    parts = [f"{sum(len(table.sample) for table in tables):,} samples"]
    for words, names in _TOKENS.items():
        parts += [f"{count:,.0f} {words}"] if (count := total(*names)) is not None else []
    seconds = [total(name) or 0.0 for name in ("strategy_seconds", "generator_seconds", "test_seconds")]
    parts += [f"{sum(seconds):,.0f} s of strategies, model and tests"]
    if all(map(_priced, tables)) and (price := total(*_PRICES)) is not None:
        parts += [f"US$ {numbers.dollars(price)}"]
    return ", ".join(parts)


def _priced(table: RunTable) -> bool:
    """Return whether the price of every completed sample is known."""
    return all(
        None not in [column[row] for row in completed(table)] for name in _PRICES if (column := table.costs.get(name))
    )
