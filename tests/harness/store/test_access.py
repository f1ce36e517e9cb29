"""What strategies looked at: kept with each sample, read back, none for samples of before, gone with its run."""

from __future__ import annotations

from sqlalchemy import text

from ctxbench.harness.results import ACCESS
from ctxbench.harness.store import Store
from ctxbench.harness.store.details import steps_of
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.shard import Shard, encode, unpack
from ctxbench.harness.store.tables import delete_run
from ctxbench.harness.store.write import StoredAccess
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec

LOOKED = StoredAccess(
    opened=1,
    searches=2,
    characters=99,
    explored_files=2,
    explored_recall=0.5,
    explored_precision=0.25,
    shown_recall=0.0,
    shown_precision=None,
)


def test_samples_have_what_was_noted_and_those_of_before_have_nothing(store: Store) -> None:
    run = store.add_run(make_spec(), make_samples(2))
    store.add_generations([make_generation()])
    store.add_finished(run, "c", make_finished("demo/0", access=LOOKED))
    store.add_finished(run, "c", make_finished("demo/1"))
    [table] = run_tables(store)
    assert [table.costs[name][:2] for name in ACCESS] == [
        (0.5, None),
        (0.25, None),
        (0.0, None),
        (None, None),
        (2, None),
    ]
    assert steps_of(store, run, "demo/0") == ()
    other = store.add_run(make_spec(seed=7), make_samples(2))
    store.add_finished(other, "c", make_finished("demo/0"))
    # A run without any has no such costs at all.
    [costs] = [table.costs for table in run_tables(store) if table.run.id == other]
    assert not set(ACCESS) & set(costs)
    delete_run(store, run)
    with store.reading() as connection:
        assert connection.scalar(text("SELECT count(*) FROM access")) == 0


def test_a_shard_holds_it() -> None:
    samples = (make_finished("demo/0", access=LOOKED), make_finished("demo/1"))
    shard = Shard(
        samples="demo", samples_digest="d" * 64, spec=make_spec(), generations=(make_generation(),), finished=samples
    )
    name, content = encode(shard)
    assert [sample.access for sample in unpack(name, content).finished] == [LOOKED, None]
