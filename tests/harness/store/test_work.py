"""Stored runs as work: their progress, attempts, faults and construction times."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event

from ctxbench.bench.types import Kind
from ctxbench.harness.results import Load, Status
from ctxbench.harness.store import Store, notes, open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.work import ConstructionTime, construction_times, faults_of, run_works, watched
from ctxbench.harness.store.write import StoredConstruction, StoredFault
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as opened:
        opened.add_generations([make_generation()])
        yield opened


def begun(store: Store, samples: int = 4, **changes: object) -> str:
    return store.add_run(make_spec(**changes), make_samples(samples))


def test_running_and_ended_runs_have_progress_and_attempts(store: Store) -> None:
    ended = begun(store, strategy="lc.repocoder")
    attempt = store.start_attempt(ended, "process, tests in docker")
    store.add_finished(ended, "", make_finished("demo/0"))
    store.add_finished(ended, "", make_finished("demo/1", status=Status.MODEL_FAILED))
    store.end_attempt(attempt, reason="interrupted", finished=2, missing=2)
    going = begun(store)
    store.start_attempt(going, "process")
    store.add_finished(going, "", make_finished("demo/2"))
    notes.add_remarks(store, ended, ["Beware."])
    first, second = run_works(store)
    assert (first.id, first.planned, first.finished, first.statuses) == (going, 4, 1, {"scored": 1})
    assert (first.attempts[0].ended, first.attempts[0].reason, first.attempts[0].finished) == (None, "", None)
    assert (second.id, second.statuses, second.remarks) == (ended, {"model-failed": 1, "scored": 1}, ("Beware.",))
    assert second.attempts[0].reason == "interrupted" and second.attempts[0].missing == 2
    assert second.attempts[0].started <= (second.attempts[0].ended or 0)
    assert (second.attempts[0].sandbox, first.attempts[0].sandbox) == ("docker", "")
    assert first.choices.versions == {"ctxbench": "0", "strategy": "1", "generator": "1", "tokenizer": "t"}
    assert [one.id for one in run_works(store, [ended])] == [ended]
    began = {table.run.id: table.run.began for table in run_tables(store)}
    assert began == {going: first.attempts[0].started, ended: second.attempts[0].started}


def test_a_run_knows_whether_a_process_works_on_it(store: Store) -> None:
    run = begun(store)
    unlocked = store.start_attempt(run, "process")
    assert run_works(store)[0].alive is None
    with store.run_lock(run) as locked:
        first = store.start_attempt(run, "process", locked=locked)
        (work,) = run_works(store)
        assert work.alive and [attempt.locked for attempt in work.attempts] == [False, True]
    # Its process is gone, and no end was recorded.
    (work,) = run_works(store)
    assert work.alive is False and watched(store, [work]) == [work]
    with store.run_lock(run) as locked:
        second = store.start_attempt(run, "process", locked=locked)
        assert run_works(store)[0].alive
        store.end_attempt(second, reason="done", finished=0, missing=4)
    assert run_works(store)[0].alive is None, "the last attempt has an end"
    assert second > first > unlocked


def test_watching_checks_again_whether_a_run_is_alive(store: Store) -> None:
    run = begun(store)
    with store.run_lock(run) as locked:
        store.start_attempt(run, "process", locked=locked)
        (kept,) = run_works(store)
    assert kept.alive and [one.alive for one in watched(store, [kept])] == [False]


def test_the_load_of_each_attempt_is_stored(store: Store) -> None:
    run = begun(store)
    load = Load(workers=2, requests=16, cores=4)
    for number, one in enumerate((load, load, None)):
        store.end_attempt(store.start_attempt(run, "process", load=one), reason="done", finished=number, missing=0)
    store.start_attempt(run, "tests in docker")
    assert [one.load for one in run_works(store)[0].attempts] == [load, load, None, None]
    [table] = run_tables(store)
    # The first attempt stored no samples, and the last attempt only judged.
    assert table.run.loads == (load, None)


@pytest.mark.parametrize(
    ("isolations", "sandbox"),
    [
        (("process",), "none"),
        (("process, tests in docker", "process"), "docker"),
        (("process", "cells on 2 Ray nodes"), ""),
        (("cells on 2 Ray nodes", "process, tests in bubblewrap"), "bubblewrap"),
        (("cells on 2 Ray nodes, tests in bubblewrap",), "bubblewrap"),
        (("cells on 2 Ray nodes without tests",), "none"),
    ],
)
def test_the_sandbox_of_a_run_comes_from_its_attempts(store: Store, isolations: tuple[str, ...], sandbox: str) -> None:
    samples = [replace(sample, kind=Kind.FUNCTION, subkind="self_contained") for sample in make_samples(1)]
    run = store.add_run(make_spec(samples_digest="f" * 64), samples)
    for isolation in isolations:
        store.start_attempt(run, isolation)
    assert run_works(store)[0].sandbox == sandbox


def test_functions_without_a_verdict_are_counted_as_unjudged(store: Store) -> None:
    samples = [replace(sample, kind=Kind.FUNCTION, subkind="self_contained") for sample in make_samples(3)]
    run = store.add_run(make_spec(samples="functions", samples_digest="f" * 64), samples)
    store.add_finished(run, "", make_finished("demo/0"))
    (one,) = run_works(store)
    assert one.functions and one.unjudged == 1


def test_equal_faults_are_grouped_with_the_latest_detail(store: Store) -> None:
    run = begun(store, samples=30)
    first = store.start_attempt(run, "process")
    for number in range(25):
        store.add_fault(first, StoredFault(sample_id=f"demo/{number}", kind="machine", message="server down"))
    store.add_fault(first, StoredFault(sample_id="demo/1", kind="strategy", message="KeyError", detail="old"))
    second = store.start_attempt(run, "process")
    store.add_fault(second, StoredFault(sample_id="demo/2", kind="strategy", message="KeyError", detail="new"))
    error, down = faults_of(store, run)
    assert (error.kind, error.count, error.attempt, error.detail) == ("strategy", 2, second, "new")
    assert error.samples == ("demo/1", "demo/2")
    assert (down.count, len(down.samples), down.attempt) == (25, 20, first)
    assert run_works(store)[0].attempts[0].faults == 26


def test_the_number_of_statements_does_not_grow_with_the_runs(store: Store) -> None:
    statements: list[str] = []
    event.listen(store._engine, "before_cursor_execute", lambda *found: statements.append(found[2]))
    counted = []
    for number in range(3):
        run = begun(store, strategy=f"s{number}")
        store.start_attempt(run, "process")
        statements.clear()
        run_works(store)
        counted.append(len(statements))
    assert counted[0] == counted[1] == counted[2]


def test_construction_times_are_read_in_order(store: Store) -> None:
    run = store.add_run(make_spec(), make_samples(1))
    attempt = store.start_attempt(run, "process")
    made = (("b", "units", 2.0), ("a", "index", 1.0))
    store.add_construction(attempt, [StoredConstruction(repo=r, stage=stage, seconds=s) for r, stage, s in made])
    assert construction_times(store, [run]) == [
        ConstructionTime(run=run, attempt=attempt, repo="b", stage="units", seconds=2.0),
        ConstructionTime(run=run, attempt=attempt, repo="a", stage="index", seconds=1.0),
    ]
    assert construction_times(store, ["none"]) == []
