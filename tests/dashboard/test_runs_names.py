"""Names and deletion of runs, on the command line."""

import contextlib
import io
import json
import sqlite3
import sys
from pathlib import Path

import pytest
from sqlalchemy import insert

from ctxbench.bench.home import Home
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.store import open_store
from ctxbench.harness.store.notes import names
from ctxbench.harness.store.runs import find_run, run_tables
from ctxbench.harness.store.schema import METADATA, NAMED
from tests.dashboard.test_runs_page import begun, ended
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.sets import make_set


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    make_set(home)
    return home


def command(home: Home, *arguments: str) -> Result:
    return run_cli(*arguments, "--home", str(home.root))


def stored(home: Home) -> dict[str, str]:
    with open_store(home.database) as store, store.reading() as connection:
        return names(connection)


def test_a_name_can_replace_the_id_of_a_run(home: Home) -> None:
    run, other = ended(home), ended(home, strategy="gold", limit=2)
    assert command(home, "runs", "name", run[:8], "first").out == f"{run} is now named 'first'\n"
    assert command(home, "runs", "name", "first", "first").code == 0
    assert stored(home) == {run: "first"}
    assert "name: first" in command(home, "runs", "first").out
    assert command(home, "runs").out.splitlines()[2].startswith("first ")
    assert_fault(
        command(home, "runs", "name", other, "first"), f"the run {run} already has this name", "choose another"
    )
    assert command(home, "runs", "name", "first", "").out == f"{run} no longer has a name\n"
    assert command(home, "runs", "show", run).code == 0 and command(home, "runs", "first").code == 1


@pytest.mark.slow
def test_a_run_is_compared_by_its_name(home: Home) -> None:
    first, again, other = (
        ended(home, strategy=strategy, sampling=Sampling(temperature=0.8, seed=seed))
        for strategy, seed in (("lc.infile", 0), ("lc.infile", 1), ("other", 0))
    )
    command(home, "runs", "name", first, "plain")
    command(home, "runs", "name", again, "again")

    def compared(*runs: str) -> tuple[str, list[str]]:
        [row] = json.loads(command(home, "compare", *runs, "--metric", "em", "--format", "json").out)
        return row["baseline"], row["baseline_repetitions"]

    assert compared("plain", other) == (first, [first, again])
    assert compared("plain", "again") == (first, [])
    told = [
        command(home, "power", "--samples", "demo", "--effect", "3", "--baseline", run)
        for run in ("plain", "again", "lc.infile", "none")
    ]
    assert all("the runs share 2 repositories" in result.err for result in told[:3]), told
    assert_fault(told[3], "strategy of these runs", "none")


@pytest.mark.slow
def test_a_deleted_run_leaves_no_rows_and_tables_refuse_changes_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, other = ended(home), ended(home, strategy="lc.repocoder")
    command(home, "runs", "name", run, "bad")
    for answer, cure in (("", "not answered, so nothing was done; give --yes"), ("n\n", "answer y, or give --yes")):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        refused = run_cli("runs", "delete", "bad", "--home", str(home.root))
        assert refused.code == 1 and refused.err.endswith(f"{cure}\n"), refused
        assert run in command(home, "runs", run).out
    assert f"{run} deleted" in command(home, "runs", "delete", "bad", "--yes").out
    with contextlib.closing(sqlite3.connect(home.root / "results.db")) as connection:
        for table in METADATA.sorted_tables:
            for column in {"run_id", "id"} & set(table.c.keys()):
                rows = connection.execute(f"SELECT count(*) FROM {table.name} WHERE {column} = ?", (run,))
                assert rows.fetchone() == (0,), table.name
        assert connection.execute("SELECT count(*) FROM result WHERE run_id = ?", (other,)).fetchone() != (0,)
        with pytest.raises(sqlite3.IntegrityError, match="rows are appended"):
            connection.execute("DELETE FROM result_fact")
    connection.close()
    assert_fault(command(home, "runs", "delete", run, "--yes"), "no stored run", "ctxbench runs")


def test_a_run_in_progress_is_not_deleted(home: Home) -> None:
    run = begun(home, locked=True)
    with open_store(home.database) as store, store.run_lock(run):
        assert_fault(
            command(home, "runs", "delete", run, "--yes"), "a process is working on the run", "stop that process first"
        )


def test_a_run_that_resumes_during_the_question_is_not_deleted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(home)
    with open_store(home.database) as store, contextlib.ExitStack() as working:

        def work(*_: object, **__: object) -> bool:
            store.start_attempt(run, "process", locked=working.enter_context(store.run_lock(run)))
            return True

        monkeypatch.setattr("click.confirm", work)
        assert_fault(command(home, "runs", "delete", run), "a process is working on the run", "stop that process first")
    assert run in command(home, "runs").out


def test_testing_an_older_run_again_does_not_make_it_the_newest(home: Home) -> None:
    runs = [ended(home, sampling=Sampling(seed=seed)) for seed in (0, 1)]

    def in_order() -> list[str]:
        with open_store(home.database) as store:
            return [table.run.id for table in run_tables(store)]

    assert in_order() == runs
    with open_store(home.database) as store:
        attempt = store.start_attempt(runs[0], "tests again in bubblewrap")
        store.end_attempt(attempt, reason="done", finished=0, missing=0)
    assert in_order() == runs


def test_a_run_cannot_take_the_name_or_id_of_another_run(home: Home) -> None:
    run, other = ended(home), ended(home, strategy="lc.repocoder")
    assert_fault(command(home, "runs", "name", run, other), "the name is the id of a run", "another name")
    command(home, "runs", "name", run, "good")
    assert_fault(command(home, "runs", "name", other, "good"), f"the run {run} already has this name", "another")
    with open_store(home.database) as store:
        # The other run may be added later, for example from a shard.
        row = {"run_id": run, "ordinal": 5, "name": other}
        store.settle(lambda connection: connection.execute(insert(NAMED), row))
        assert find_run(store, other).id == other
