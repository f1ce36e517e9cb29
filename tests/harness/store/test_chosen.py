"""Reading selected runs returns the same tables as reading all runs, without reading rows of other runs."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.results import RunTable, Status
from ctxbench.harness.store import Store, database, open_store
from ctxbench.harness.store.notes import add_marks
from ctxbench.harness.store.runs import RunFilter, run_tables
from ctxbench.harness.store.write import Mark, StoredCompletion
from tests.harness.store.making import make_finished, make_generation, make_spec
from tests.helpers.samples import make_sample

DIGESTS = {"demo": "d" * 64, "other": "e" * 64}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Yield a store with full and limited runs of two generators over two sets in two languages."""
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as opened:
        opened.add_generations([make_generation()])
        for name, digest in DIGESTS.items():
            samples = [
                make_sample(id=f"{name}/{language}/{n}", repo=f"r{n}", language=language)
                for n in range(4)
                for language in (PYTHON, JAVA)
            ]
            for limit in (None, 3):
                for generator, fim in (("one", False), ("one", True), ("two", False)):
                    choices = {"limit": limit, "generator": generator, "sampling": Sampling(fim=fim), "n": 2}
                    spec = make_spec(samples=name, samples_digest=digest, **choices)
                    run = opened.add_run(spec, samples[:limit])
                    # The last sample has no result: it is missing.
                    for place, sample in enumerate(samples[:limit][:-1]):
                        opened.add_finished(run, "c", make_finished(sample.id, completions=_completions(place)))
        add_marks(opened, DIGESTS["demo"], [Mark(sample_id="demo/python/1", mark="broken")])
        yield opened


def _completions(place: int) -> tuple[StoredCompletion, ...]:
    return tuple(
        StoredCompletion(
            generation_id="g",
            status=Status.SCORED,
            text="1",
            flags=(),
            scores={
                ("ctxbench", "es"): None if place == 2 and idx else place / 4 + idx,
                ("context", "bits"): 3.0 + place,
                ("crosscodeeval", "es"): 7.0,
            },
        )
        for idx in range(2)
    )


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"samples": "demo"},
        {"samples": "demo[:3]"},
        {"digest": DIGESTS["other"]},
        {"language": "java"},
        {"generator": "one"},
        {"generator": "one [fim]"},
        {"samples": "other", "digest": DIGESTS["other"], "language": "python", "generator": "two"},
        {"samples": "demo", "digest": DIGESTS["other"]},
        {"language": "kotlin"},
    ],
)
def test_selected_runs_equal_all_runs_after_filtering(store: Store, wanted: dict[str, str]) -> None:
    def fits(one: RunTable) -> bool:
        facts = {"samples": one.run.samples, "digest": one.run.samples_digest, "language": one.run.language}
        return wanted.items() <= {**facts, "generator": one.run.generator}.items()

    every = run_tables(store)
    assert len(every) == 24
    assert run_tables(store, selection=RunFilter(**wanted)) == [one for one in every if fits(one)]
    assert run_tables(store, samples="demo", selection=RunFilter(**wanted)) == [
        one for one in every if fits(one) and one.run.samples.startswith("demo")
    ]


def test_columns_are_means_over_completions_in_the_plans_order(store: Store) -> None:
    (table,) = run_tables(store, selection=RunFilter(samples="demo", language="python", generator="two"))
    assert table.sample == tuple(f"demo/python/{n}" for n in range(4))
    assert table.repo == ("r0", "r1", "r2", "r3") and len(table.path) == 4 and all(table.path)
    # A value is the mean over completions with a value. An invalid sample keeps its value but does not count.
    assert table.metrics == {"bits": (3.0, 5.0, 7.0, 9.0), "es": (0.5, 0.5, 1.5, 2.0)}
    assert table.status == (Status.SCORED, Status.EXCLUDED, Status.SCORED, Status.SCORED)
    assert table.mark == ("", "broken", "", "")
    (java,) = run_tables(store, selection=RunFilter(samples="demo", language="java", generator="two"))
    assert java.status[-1] is Status.INFRA_FAILED and java.metrics["es"][-1] is None
    assert java.seconds == (0.75, 0.75, 0.75, None)


def test_scores_of_other_languages_and_runs_are_not_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[Any, ...]] = []
    real = database.fetched

    def fetched(*arguments: Any, **named: Any) -> list[tuple[Any, ...]]:
        found = real(*arguments, **named)
        read.extend(found)
        return found

    monkeypatch.setattr("ctxbench.harness.store.samples.fetched", fetched)
    run_tables(store, selection=RunFilter(samples="demo", language="java", generator="two"))
    scores = [row for row in read if len(row) == 3]
    with store.reading() as connection:
        keys = set(connection.scalars(text("SELECT key FROM planned WHERE sample_id LIKE '%/java/%'")))
    # Three samples, two completions, two metrics.
    assert len(scores) == 3 * 2 * 2 and all(row[1] in keys for row in scores)


def test_reading_restores_the_state_of_the_garbage_collector(store: Store) -> None:
    assert gc.isenabled()
    run_tables(store)
    assert gc.isenabled()
    gc.disable()
    try:
        run_tables(store)
        assert not gc.isenabled()
    finally:
        gc.enable()
