"""What the store tells of the samples of a set."""

from __future__ import annotations

from ctxbench.harness.store import Store
from ctxbench.harness.store.samples import SampleCount, contents
from ctxbench.harness.store.work import ConstructionTime, construction_times
from ctxbench.harness.store.write import StoredConstruction
from tests.harness.store.making import make_samples, make_spec


def test_samples_are_counted_by_what_they_are(store: Store) -> None:
    store.add_run(make_spec(), [*make_samples(3, "b"), *make_samples(2, "a")])
    store.add_run(make_spec(samples="other", samples_digest="e" * 64), make_samples(9, "c"))
    found = contents(store, "d" * 64)
    assert [(one.repo, one.samples) for one in found] == [("a", 2), ("b", 3)]
    first = make_samples(1)[0]
    assert found[0] == SampleCount(
        benchmark=first.benchmark, repo="a", language="python", kind="line", level=first.subkind, samples=2
    )
    assert contents(store, "f" * 64) == []


def test_what_took_long_is_told_in_the_order_in_which_it_happened(store: Store) -> None:
    run = store.add_run(make_spec(), make_samples(1))
    attempt = store.start_attempt(run, "process")
    made = (("b", "units", 2.0), ("a", "index", 1.0))
    store.add_construction(attempt, [StoredConstruction(repo=r, stage=stage, seconds=s) for r, stage, s in made])
    assert construction_times(store, [run]) == [
        ConstructionTime(run=run, attempt=attempt, repo="b", stage="units", seconds=2.0),
        ConstructionTime(run=run, attempt=attempt, repo="a", stage="index", seconds=1.0),
    ]
    assert construction_times(store, ["none"]) == []
