"""`ctxbench exec --run RUN --anew`: the verdicts of a run are deleted, and given anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text as sql

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.harness.store import open_store
from tests.harness.cli.test_exec import Fake, completions, execute, fake, home, records, run, write
from tests.helpers.cli import assert_fault, run_cli

pytestmark = pytest.mark.usefixtures("inline_cells")
__all__ = ["fake", "home"]

P, F, B = Verdict.PASSED, Verdict.FAILED, Verdict.BROKEN
CHANGING = "kit0/kit/tax.py#times_2"


def script(*verdicts: Verdict) -> Callable[..., Judgement]:
    """Return what gives one sample these verdicts in turn, and fails every other."""
    left: Iterator[Verdict] = iter(verdicts)

    def answer(sample: Any, text: str) -> Judgement:
        verdict = next(left) if sample.id == CHANGING else F
        return Judgement(verdict=verdict, reason=f"was {verdict}" if verdict is not P else "")

    return answer


def board(home: Home) -> Any:
    [row] = json.loads(run_cli("leaderboard", "--home", str(home.root), "--format", "json").out)
    return row


def rows(home: Home, query: str) -> list[tuple[Any, ...]]:
    with open_store(home.database) as store, store.reading() as connection:
        return [tuple(row) for row in connection.execute(sql(query))]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "later"), [(F, P), (P, F), (F, F)])
def test_the_new_verdicts_count_and_the_old_ones_are_gone(
    home: Home, fake: Fake, first: Verdict, later: Verdict
) -> None:
    fake.answer = script(first, later)
    id_ = run(home).out.split()[0]
    assert board(home)["pass@1"]["mean"] == pytest.approx(100 / 6 * (first is P))
    stored = rows(home, "SELECT count(*) FROM verdict")
    result = execute(home, "--run", id_, "--anew")
    assert result.code == 0, result
    assert len(records(result)) == 6
    assert next(row for row in records(result) if row["sample"] == CHANGING)["verdict"] == later
    assert board(home)["pass@1"]["mean"] == pytest.approx(100 / 6 * (later is P))
    assert rows(home, "SELECT count(*) FROM judged") == [(6,)] and rows(home, "SELECT count(*) FROM verdict") == stored
    with pytest.raises(Exception, match="appended, never changed"):
        rows(home, "DELETE FROM verdict")


@pytest.mark.slow
def test_other_runs_get_the_new_verdict_by_the_same_command_without_anew(home: Home, fake: Fake) -> None:
    fake.answer = script(F, P)
    id_ = run(home).out.split()[0]
    other = run(home, "--seed", "5").out.split()[0]
    assert other != id_ and execute(home, "--run", id_, "--anew").code == 0
    asked = fake.asked
    result = execute(home, "--run", other)
    assert next(row for row in records(result) if row["sample"] == CHANGING)["verdict"] == P
    assert len(records(result)) == 6 and fake.asked == asked


@pytest.mark.slow
def test_what_a_broken_machine_left_is_done_by_the_same_command_without_anew(home: Home, fake: Fake) -> None:
    fake.answer = script(F, B, P)
    id_ = run(home).out.split()[0]
    words = "run the same command again, without --anew; it does only what is missing"
    assert_fault(execute(home, "--run", id_, "--anew"), "1 verdict is missing", words)
    asked = fake.asked
    result = execute(home, "--run", id_)
    assert [row["verdict"] for row in records(result)] == [P] and fake.asked == asked + 1


@pytest.mark.slow
def test_nothing_is_deleted_where_no_tests_can_run_or_a_process_works_at_the_run(
    home: Home, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = run(home).out.split()[0]
    with open_store(home.database) as store, store.run_lock(id_) as locked:
        attempt = store.start_attempt(id_, "process", locked=locked)
        assert_fault(execute(home, "--run", id_, "--anew"), "a process works at it", "end that first")
        store.end_attempt(attempt, reason="done", finished=0, missing=0)

    def none(*_: Any, **__: Any) -> Any:
        raise InputFault("there is no sandbox", cure="install one")

    monkeypatch.setattr("ctxbench.harness.run.execution.open_executor", none)
    assert_fault(execute(home, "--run", id_, "--anew"), "there is no sandbox")
    assert rows(home, "SELECT count(*) FROM judged") == [(6,)]


def test_anew_is_for_runs(home: Home, fake: Fake) -> None:
    path = write(home, completions(home)[:1])
    result = execute(home, "--completions", str(path), "--anew")
    assert result.code == 2 and "--anew is for --run" in result.err


def test_what_was_judged_twice_at_once_says_so(home: Home, fake: Fake) -> None:
    fake.answer = lambda sample, text: Judgement(verdict=P, earlier="FAILED: too\nlate")
    path = write(home, completions(home)[:1])
    for _ in range(2):
        [row] = records(execute(home, "--completions", str(path)))
        assert (row["verdict"], row["earlier"]) == (P, "FAILED: too late")
