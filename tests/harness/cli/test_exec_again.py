"""`ctxbench exec --again`: verdicts are given once more, all are kept, and the one that counts is confirmed alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text as sql

from ctxbench.bench.home import Home
from ctxbench.bench.testing.types import Judgement, Verdict
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
@pytest.mark.parametrize(
    ("first", "later", "counts", "alone"),
    [
        (F, (P, P), P, 1),
        (F, (P, F), F, 1),
        (F, (F,), F, 0),
        (P, (F, F), F, 1),
        (P, (F, P), P, 1),
        (P, (P,), P, 0),
    ],
)
def test_another_verdict_counts_if_a_second_one_alone_confirms_it(
    home: Home, fake: Fake, first: Verdict, later: tuple[Verdict, ...], counts: Verdict, alone: int
) -> None:
    fake.answer = script(first, *later)
    id_ = run(home).out.split()[0]
    assert board(home)["pass@1"]["mean"] == pytest.approx(100 / 6 * (first is P))
    result = execute(home, "--run", id_, "--again")
    assert result.code == 0, result
    row = next(row for row in records(result) if row["sample"] == CHANGING)
    assert (row["before"], row["anew"], row["verdict"]) == (first, list(later), counts)
    assert f"judged again 6  changed {int(first is not counts)}" in result.err
    assert fake.judges[-1].alone == alone
    assert board(home)["pass@1"]["mean"] == pytest.approx(100 / 6 * (counts is P))
    assert f"6 of 6 verdicts judged again, {int(first is not counts) or 'none'} changed" in board(home)["remarks"][0]
    assert rows(home, "SELECT count(*) FROM judged") == [(6,)]
    assert rows(home, "SELECT count(*) FROM verdict") == [(6 + 5 + len(later),)], "the first ones stay"


@pytest.mark.slow
def test_other_runs_read_the_verdict_that_counts(home: Home, fake: Fake) -> None:
    fake.answer = script(F, P, P)
    id_ = run(home).out.split()[0]
    assert execute(home, "--run", id_, "--again").code == 0
    asked = fake.asked
    other = run(home, "--seed", "5")
    assert other.out.split()[0] != id_ and "pass@1 16.7%" in other.out and fake.asked == asked


def test_a_file_of_completions_is_judged_again_too(home: Home, fake: Fake) -> None:
    path = write(home, [*completions(home)[:2], {"sample": CHANGING, "text": " "}])
    fake.answer = script(F, P, P)
    assert [row["verdict"] for row in records(execute(home, "--completions", str(path)))] == [F, F, F]
    result = execute(home, "--completions", str(path), "--again")
    assert [row["verdict"] for row in records(result)] == [P, F, F] and "judged again 2  changed 1" in result.err
    assert [row.get("before") for row in records(result)] == [F, F, None]
    assert [row["verdict"] for row in records(execute(home, "--completions", str(path)))] == [P, F, F]


@pytest.mark.slow
def test_a_broken_machine_changes_nothing(home: Home, fake: Fake) -> None:
    fake.answer = script(F, P, B)
    id_ = run(home).out.split()[0]
    assert_fault(execute(home, "--run", id_, "--again"), "1 verdict is missing", "run the same command again")
    assert board(home)["pass@1"]["mean"] == 0.0
    assert rows(home, "SELECT reason, missing FROM outcome ORDER BY attempt_id") == [("done", 0), ("faults", 1)]


@pytest.mark.slow
def test_a_run_without_verdicts_has_nothing_to_judge_again(home: Home, fake: Fake) -> None:
    id_ = run(home, "--sandbox", "none").out.split()[0]
    result = execute(home, "--run", id_, "--again")
    assert (result.code, result.out) == (0, "") and "nothing to judge" in result.err


def test_what_was_judged_twice_at_once_says_so(home: Home, fake: Fake) -> None:
    fake.answer = lambda sample, text: Judgement(verdict=P, earlier="FAILED: too\nlate")
    path = write(home, completions(home)[:1])
    for _ in range(2):
        [row] = records(execute(home, "--completions", str(path)))
        assert (row["verdict"], row["earlier"]) == (P, "FAILED: too late")
