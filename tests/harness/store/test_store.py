"""Rows are appended once, looked up and never changed."""

import random
import threading
from collections.abc import Sequence

import pytest
from sqlalchemy import text

from ctxbench.bench.errors import MachineFault
from ctxbench.harness.results import Status
from ctxbench.harness.store import Store, samples, schema
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.work import run_works
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec


def count(store: Store, table: str) -> int:
    with store.reading() as connection:
        return int(connection.scalar(text(f"SELECT count(*) FROM {table}")))


def add_run(store: Store, samples: int = 3, *, done: Sequence[str] = (), **changes: object) -> str:
    """Store a run, with results of some of its samples."""
    run = store.add_run(make_spec(**changes), make_samples(samples))
    if done:
        store.add_generations([make_generation()])
    for sample in done:
        store.add_finished(run, "c", make_finished(sample))
    return run


def test_a_run_is_added_once(store: Store) -> None:
    assert add_run(store) == add_run(store)
    assert (count(store, "run"), count(store, "planned"), count(store, "sample")) == (1, 3, 3)
    add_run(store, strategy="lc.repocoder")
    assert (count(store, "run"), count(store, "planned"), count(store, "sample")) == (2, 6, 3)


def test_a_sample_is_finished_once(store: Store) -> None:
    run = add_run(store)
    store.add_generations([make_generation()])
    assert store.add_finished(run, "c", make_finished("demo/0")) is True
    before = [count(store, table) for table in ("result", "call", "block", "completion", "score", "bits")]
    assert store.add_finished(run, "c", make_finished("demo/0", context_tokens=99)) is False
    assert [count(store, table) for table in ("result", "call", "block", "completion", "score", "bits")] == before
    assert store.finished(run) == {"demo/0"}


def test_a_sample_that_cannot_be_stored_leaves_no_rows(store: Store) -> None:
    run = add_run(store)
    with pytest.raises(Exception, match="neither a planned sample nor a stored answer"):
        store.add_finished(run, "c", make_finished("demo/0"))  # its generation is not stored
    assert [count(store, table) for table in ("result", "prompt_fact", "pack", "score")] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "change", ["UPDATE score_fact SET value = 1", "DELETE FROM result_fact", "UPDATE generation_fact SET text=''"]
)
def test_rows_are_never_changed(store: Store, change: str) -> None:
    add_run(store, done=["demo/0"])
    with pytest.raises(Exception, match="appended, never changed"), store._engine.begin() as connection:
        connection.execute(text(change))


def test_generations_are_looked_up_by_id(store: Store) -> None:
    store.add_generations([make_generation(), make_generation(id="h", idx=1, text="\ud800\0 2")])
    store.add_generations([make_generation(text="other")])
    assert {key: answer.text for key, answer in store.generations(["g", "nothing"]).items()} == {"g": "1"}
    assert len(store.generations(str(n) for n in range(2000))) == 0


def test_bits_are_kept_by_coder(store: Store) -> None:
    add_run(store, done=["demo/0"])
    key = ("python", "p", "t")
    assert store.bits("c", [key, ("java", "p", "t")]) == {key: 3.0}
    assert store.bits("d", [key]) == {}


def test_many_threads_store_each_sample_once(store: Store) -> None:
    run = add_run(store, samples=20)
    store.add_generations([make_generation()])
    stored: list[bool] = []

    def work() -> None:
        stored.extend(store.add_finished(run, "c", make_finished(f"demo/{n}")) for n in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(stored) == 20 and len(stored) == 80
    assert count(store, "score") == 60


def test_a_full_disk_is_reported_and_loses_nothing(store: Store) -> None:
    run = add_run(store, done=["demo/0"])
    store.close()

    def small(connection: object, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]

    from sqlalchemy import event

    with store.reading() as connection:
        pages = connection.scalar(text("PRAGMA page_count"))
    store.close()
    event.listen(store._engine, "connect", small)
    with pytest.raises(MachineFault) as caught:
        for n in range(50):
            # Random text does not compress.
            prompt = make_generation(id=str(n), prompt_digest=str(n), prompt=random.Random(n).randbytes(9000).hex())
            store.add_generations([prompt])
    assert "disk is full" in str(caught.value) and "finished samples are kept" in str(caught.value)
    event.remove(store._engine, "connect", small)
    store.close()
    assert store.finished(run) == {"demo/0"}


def test_tables_show_missing_samples(store: Store) -> None:
    add_run(store, done=["demo/1"])
    [table] = run_tables(store)
    assert table.sample == ("demo/0", "demo/1", "demo/2")
    assert table.status == (Status.INFRA_FAILED, Status.SCORED, Status.INFRA_FAILED)
    assert table.metrics == {"bits": (None, 3.0, None), "em": (None, 1.0, None)}
    assert (table.context_tokens[1], table.calls[1], table.seconds[1]) == (2, 1, 0.75)
    assert run_tables(store, profile="crosscodeeval")[0].metrics["em"] == (None, 0.0, None)
    assert run_tables(store, samples="other") == []
    assert [(row.planned, row.finished) for row in run_works(store)] == [(3, 1)]


def test_a_number_stored_with_the_results_is_a_cost_of_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new numeric column of the result table is read without further changes."""
    monkeypatch.setitem(samples._NUMBERS, "energy", schema.RESULT_FACT.c.context_tokens + 1)
    store.add_generations([make_generation()])
    run = add_run(store, samples=2)
    store.add_finished(run, "c", make_finished("demo/0", context_tokens=7))
    [table] = run_tables(store)
    assert table.costs["energy"] == (8.0, None)
