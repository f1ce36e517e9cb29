"""Costs of samples in tables are sums over calls and tests, and unknown costs stay unknown."""

from datetime import date
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.harness.prices import Prices, Rate
from ctxbench.harness.results import COSTS
from ctxbench.harness.store import Store, verdicts
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.write import Imported, StoredConstruction
from tests.harness.store.making import make_finished, make_generation, make_verdict
from tests.harness.store.test_store import add_run, count
from tests.harness.store.test_verdicts import completion, finish

RATE = Rate(match=("scripted",), looked_up=date(2026, 11, 21), input=2.0, cached=0.5, output=8.0)


def costs(store: Store, **how: Any) -> dict[str, tuple[float | None, ...]]:
    [table] = run_tables(store, **how)
    assert tuple(table.costs) == COSTS
    return dict(table.costs)


def answers(store: Store, *priced: float | None) -> tuple[tuple[str, str], ...]:
    """Add an answer with 10, 20, … tokens for each price, and return the answers as calls."""
    made = [
        make_generation(
            id=f"g{n}", idx=n, tokens_in=10 * n, tokens_out=n, cached=n, seconds=0.1, price=price, text=str(n)
        )
        for n, price in enumerate(priced, 1)
    ]
    store.add_generations([make_generation(), *made])
    return tuple(("draft", one.id) for one in made)


def test_costs_of_a_samples_calls_add_up(store: Store) -> None:
    run = add_run(store)
    calls = answers(store, 0.1, 0.2, 0.3)
    store.add_finished(run, "c", make_finished("demo/1", calls=calls, strategy_seconds=0.25, generator_seconds=0.5))
    found = costs(store)
    assert found["tokens_in"] == (None, 60.0, None)
    assert found["tokens_out"] == found["tokens_cached"] == (None, 6.0, None)
    # Adding 0.1 + 0.2 + 0.3 one by one results in 0.6000000000000001. The table has the exact sum.
    assert found["price"] == (None, 0.6, None)
    assert (found["strategy_seconds"], found["generator_seconds"]) == ((None, 0.25, None), (None, 0.5, None))
    assert found["test_seconds"] == (None,) * 3


def test_a_call_made_twice_costs_twice(store: Store) -> None:
    run = add_run(store)
    [call] = answers(store, 0.25)
    store.add_finished(run, "c", make_finished("demo/0", calls=(call, ("final", call[1]))))
    found = costs(store)
    assert (found["tokens_in"][0], found["price"][0]) == (20.0, 0.5)


def test_one_unknown_price_makes_the_samples_price_unknown(store: Store) -> None:
    run = add_run(store)
    calls = answers(store, 0.1, None)
    store.add_finished(run, "c", make_finished("demo/0", calls=calls))
    store.add_finished(run, "c", make_finished("demo/1", calls=calls[:1]))
    found = costs(store)
    assert found["price"] == (None, 0.1, None) and found["tokens_in"] == (30.0, 10.0, None)


def test_stored_tokens_are_priced_again_without_changing_rows(store: Store) -> None:
    run = add_run(store)
    store.add_finished(run, "c", make_finished("demo/0", calls=answers(store, 0.1, None)))
    before = store.generations(["g1", "g2"])
    # 30 input tokens, 3 of them cached, and 3 output tokens.
    assert costs(store, prices=Prices((RATE,)))["price"][0] == pytest.approx((27 * 2 + 3 * 0.5 + 3 * 8) / 1e6)
    assert costs(store, prices=Prices())["price"][0] is None
    assert store.generations(["g1", "g2"]) == before and before["g1"].cached == 1
    other = add_run(store, strategy="b")
    store.add_finished(other, "c", make_finished("demo/0", calls=(("final", "g1"),)))
    kept = [table.costs["price"][0] for table in run_tables(store, prices=Prices())]
    assert kept == [0.1, None] or kept == [None, 0.1], "a price that no rate is known for stays as stored"


def test_seconds_of_a_samples_tests_add_up(store: Store) -> None:
    run = add_run(store, n=2)
    store.add_generations([make_generation()])
    one = verdicts.add(store, make_verdict(key="a" * 64, seconds=0.1))
    two = verdicts.add(store, make_verdict(key="b" * 64, seconds=0.2))
    finish(store, run, "demo/0", completion("a", verdict=one.key), completion("b", verdict=two.key))
    finish(store, run, "demo/1", completion("a", verdict=one.key), completion("b", verdict=one.key))
    found = costs(store)["test_seconds"]
    assert found[:3] == (0.3, 0.2, None)


def test_imported_runs_have_unknown_costs(store: Store) -> None:
    run = add_run(store)
    with store._engine.begin() as connection:
        connection.execute(
            text("INSERT INTO imported VALUES (:run_id, :format, :source, :sha256)"),
            {"run_id": run, "format": Imported.__name__, "source": "f", "sha256": "0" * 64},
        )
    store.add_finished(run, "c", make_finished("demo/0", calls=answers(store, 0.1)))
    assert all(column == (None,) * 3 for column in costs(store, prices=Prices((RATE,))).values())


def test_construction_times_keep_their_order_and_never_change(store: Store) -> None:
    attempt = store.start_attempt(add_run(store), "process")
    built = [StoredConstruction(repo=repo, stage="units function", seconds=0.5) for repo in ("b", "a", "b")]
    store.add_construction(attempt, [])
    store.add_construction(attempt, built)
    with store.reading() as connection:
        rows = connection.execute(text("SELECT ordinal, repo, stage, seconds FROM construction ORDER BY ordinal")).all()
    assert [tuple(row) for row in rows] == [(n, one.repo, one.stage, 0.5) for n, one in enumerate(built)]
    assert count(store, "construction") == 3
    with pytest.raises(Exception, match="appended, never changed"), store._engine.begin() as connection:
        connection.execute(text("UPDATE construction SET seconds = 0"))
