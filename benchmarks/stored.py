"""A database of many scores for `benchmarks.million`, filled as by runs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Cursor, Kind, Sample
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.results import Status
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store import Store
from ctxbench.harness.store.write import Finished, StoredCompletion, StoredGeneration

PAGE_METRICS = {
    "ctxbench": ("em", "es", "id_em", "id_f1", "id_precision", "id_recall"),
    "context": ("bits", "copyable_bits", "api_recall", "context_waste"),
}
"""Profile -> metrics that a page of the profile reads."""
LINE_METRICS = {
    **PAGE_METRICS,
    "crosscodeeval": ("em", "es", "id_em", "id_f1"),
    "infercom": ("em", "es", "id_em", "id_f1"),
    "repocoder": ("em", "es"),
}
"""Metrics stored for a run of lines: twenty scores per sample."""
REPOSITORIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseShape:
    """The size of a database: a run for each set, generator and strategy."""

    sets: int
    generators: int
    strategies: int
    samples: int
    metrics: Mapping[str, Sequence[str]]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.sets * self.generators * self.strategies

    @property
    def scores(self) -> int:
        """Number of scores."""
        return self.runs * self.samples * sum(map(len, self.metrics.values()))


SHAPES = {
    "sets": DatabaseShape(sets=5, generators=2, strategies=5, samples=1_000, metrics=LINE_METRICS),
    "group": DatabaseShape(sets=1, generators=1, strategies=25, samples=4_000, metrics=PAGE_METRICS),
}
"""Name -> shape with a million scores: in many groups, or in a single group."""


def fill(store: Store, shape: DatabaseShape) -> None:
    """Store the runs of a shape, each in one transaction."""
    random.seed(repr(shape))
    for of_set in range(shape.sets):
        samples = [_sample(number) for number in range(shape.samples)]
        for generator in range(shape.generators):
            for strategy in range(shape.strategies):
                spec = RunSpec(
                    samples=f"set{of_set}", samples_digest=f"{of_set:064x}", strategy=f"lc.method{strategy:02}",
                    strategy_version="1", generator=f"model{generator}", generator_version="1", coder="",
                    sampling=Sampling(), tokenizer="t", code="0",
                )  # fmt: skip
                run = store.add_run(spec, samples)
                answers = [_answer(spec, sample.id) for sample in samples]
                finished = [
                    _finished(shape, strategy, number, sample.id, answers[number].id)
                    for number, sample in enumerate(samples)
                ]
                store.add_all_finished(run, spec.coder, finished, generations=answers)


def _sample(number: int) -> Sample:
    repo = f"org/repo{number % REPOSITORIES:02}"
    return Sample(
        id=f"{repo}/{number:05}", benchmark="ctxbench", language=Language("python"), kind=Kind.LINE,
        subkind=("single-line", "next-line")[number % 2], repo=repo, path=f"src/file{number}.py",
        cursor=Cursor(line=number, column=4), prefix="",
    )  # fmt: skip


def _answer(spec: RunSpec, sample: str) -> StoredGeneration:
    return StoredGeneration(
        id=f"{spec.id}{sample}", generator=spec.generator, version="1", prompt_digest="p", prompt="x = ",
        sampling="{}", idx=0, text="total = 1", finish="stop", tokens_in=2000, tokens_out=9, seconds=0.4, price=0.001,
    )  # fmt: skip


def _finished(shape: DatabaseShape, strategy: int, number: int, sample: str, answer: str) -> Finished:
    scores = {
        (profile, metric): _value(metric, strategy) for profile, metrics in shape.metrics.items() for metric in metrics
    }
    completion = StoredCompletion(generation_id=answer, status=Status.SCORED, text="total = 1", flags=(), scores=scores)
    return Finished(
        sample_id=sample, status=Status.SCORED, prompt_digest="p", prompt="x = ", context_tokens=2000 + number % 97,
        flags=(), strategy_seconds=0.1, generator_seconds=0.4, calls=(("final", answer),), blocks=(),
        completions=(completion,), bits=(),
    )  # fmt: skip


def _value(metric: str, strategy: int) -> float:
    drawn = min(1.0, max(0.0, random.gauss(0.3 + 0.004 * strategy, 0.2)))
    return float(drawn > 0.5) if metric.endswith("em") else drawn
