"""A database of many scores for `benchmarks.million`, filled through the store's own tables."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert

from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.run.spec import RunSpec, sampling_key
from ctxbench.harness.store import Store
from ctxbench.harness.store import schema as t

PAGE_METRICS = {
    "ctxbench": ("em", "es", "id_em", "id_f1", "id_precision", "id_recall"),
    "context": ("bits", "context_gain", "api_recall", "context_waste"),
}
"""Profile -> metrics that a page of that profile reads."""
LINE_METRICS = {
    **PAGE_METRICS,
    "crosscodeeval": ("em", "es", "id_em", "id_f1"),
    "infercom": ("em", "es", "id_em", "id_f1"),
    "repocoder": ("em", "es"),
}
"""What a run of lines stores: twenty scores a sample."""
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
        """How many runs it holds."""
        return self.sets * self.generators * self.strategies

    @property
    def scores(self) -> int:
        """How many scores it holds."""
        return self.runs * self.samples * sum(map(len, self.metrics.values()))


SHAPES = {
    "sets": DatabaseShape(sets=5, generators=2, strategies=5, samples=1_000, metrics=LINE_METRICS),
    "group": DatabaseShape(sets=1, generators=1, strategies=25, samples=4_000, metrics=PAGE_METRICS),
}
"""A million scores each: of many groups, one of which is shown; and of a single one."""


def fill(store: Store, shape: DatabaseShape) -> None:
    """Store the runs of a shape, through the store's own tables."""
    random.seed(repr(shape))
    with store._writing() as connection:
        connection.execute(insert(t.PROMPT), {"digest": "p", "text": "x = "})
        for of_set in range(shape.sets):
            digest = f"{of_set:064x}"
            connection.execute(insert(t.SAMPLE), [_sample(digest, n) for n in range(shape.samples)])
            for generator in range(shape.generators):
                for strategy in range(shape.strategies):
                    _run(connection, shape, digest, (f"set{of_set}", f"model{generator}", strategy))


def _sample(digest: str, number: int) -> dict[str, Any]:
    repo = f"org/repo{number % REPOSITORIES:02}"
    kind = ("single-line", "next-line")[number % 2]
    return {
        "set_digest": digest, "id": f"{repo}/{number:05}", "benchmark": "ctxbench", "language": "python",
        "kind": "line", "subkind": kind, "repo": repo, "path": f"src/file{number}.py", "line": number, "col": 4,
    }  # fmt: skip


def _run(connection: Connection, shape: DatabaseShape, digest: str, names: tuple[str, str, int]) -> None:
    samples, generator, strategy = names
    spec = RunSpec(
        samples=samples, samples_digest=digest, strategy=f"lc.method{strategy:02}", strategy_version="1",
        generator=generator, generator_version="1", coder="", sampling=Sampling(), tokenizer="t", code="0",
    )  # fmt: skip
    row = {column.name: getattr(spec, column.name) for column in t.RUN.c if hasattr(spec, column.name)}
    connection.execute(insert(t.RUN), {**row, "sampling": sampling_key(spec.sampling), "sample_limit": None})
    ids = [_sample(digest, number)["id"] for number in range(shape.samples)]
    key = {"run_id": spec.id}
    plan = [{**key, "sample_id": id_, "set_digest": digest, "ordinal": place} for place, id_ in enumerate(ids)]
    connection.execute(insert(t.PLANNED), plan)
    result = {
        **key, "status": "scored", "prompt_digest": "p", "calls": 1, "flags": "[]", "strategy_seconds": 0.1,
        "generator_seconds": 0.4,
    }  # fmt: skip
    connection.execute(
        insert(t.RESULT), [{**result, "sample_id": id_, "context_tokens": 2000 + n % 97} for n, id_ in enumerate(ids)]
    )
    calls = [
        {**key, "sample_id": id_, "ordinal": 0, "role": "final", "generation_id": f"{spec.id}{id_}"} for id_ in ids
    ]
    answer = {
        "generator": generator, "version": "1", "prompt_digest": "p", "sampling": "{}", "idx": 0, "text": "total = 1",
        "finish": "stop", "tokens_in": 2000, "tokens_out": 9, "cached": 0, "seconds": 0.4, "price": 0.001,
    }  # fmt: skip
    completion = {**key, "idx": 0, "status": "scored", "text": "total = 1", "flags": "[]"}
    connection.execute(insert(t.GENERATION), [{**answer, "id": call["generation_id"]} for call in calls])
    connection.execute(insert(t.CALL), calls)
    completions = [
        {**completion, "sample_id": call["sample_id"], "generation_id": call["generation_id"]} for call in calls
    ]
    connection.execute(insert(t.COMPLETION), completions)
    scores = [
        {**key, "profile": profile, "metric": metric, "sample_id": id_, "idx": 0, "value": _value(metric, strategy)}
        for profile, metrics in shape.metrics.items()
        for metric in metrics
        for id_ in sorted(ids)
    ]
    connection.execute(insert(t.SCORE), scores)


def _value(metric: str, strategy: int) -> float:
    drawn = min(1.0, max(0.0, random.gauss(0.3 + 0.004 * strategy, 0.2)))
    return float(drawn > 0.5) if metric.endswith("em") else drawn
