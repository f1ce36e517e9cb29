"""`ctxbench power` as a user calls it."""

import contextlib
import json

import pytest

from ctxbench.harness.results import RunInfo, RunTable
from ctxbench.harness.store.runs import whole_id
from tests.harness.leaderboard.test_board import noisy
from tests.helpers.cli import assert_fault, run_cli

STORED = (
    noisy("lc.infile", 0.3, id="aa11"),
    noisy("lc.repocoder", 0.5, id="ab22"),
    noisy("lc.infile", 0.3, id="cc33", language="java"),
)
COMMAND = ("power", "--db=sqlite:///anything.db", "--samples", "demo", "--effect", "3")


@pytest.fixture(autouse=True)
def _stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_tables(*_: object, **__: object) -> list[RunTable]:
        return list(STORED)

    def find_run(_: object, run: str) -> RunInfo:
        id_ = whole_id(run, sorted({table.run.id for table in STORED}))
        return next(table.run for table in STORED if table.run.id == id_)

    monkeypatch.setattr("ctxbench.harness.store.store.open_reader", contextlib.nullcontext)
    monkeypatch.setattr("ctxbench.harness.store.runs.find_run", find_run)
    monkeypatch.setattr("ctxbench.harness.store.runs.run_tables", run_tables)


@pytest.mark.slow
def test_a_table_a_sentence_and_what_cannot_be_told() -> None:
    result = run_cli(*COMMAND, "--baseline", "lc.infile")
    assert result.code == 0
    assert "demo, python, scripted: power for es" in result.out and "repositories  5 samples each" in result.out
    assert "A difference of 3.0 % needs about" in result.out and "beside lc.repocoder on 8 repositories" in result.out
    assert "demo, java, scripted: no other run is paired with lc.infile" in result.err
    [plan] = json.loads(run_cli(*COMMAND, "--baseline", "aa", "--format", "json").out)
    assert plan["baseline"] == "lc.infile" and len(plan["table"]) == 28


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--baseline", "lc.infil"], ["did you mean lc.infile"]),
        (["--baseline", "cc33"], ["no other run is paired", "ctxbench run --samples demo"]),
        (["--baseline", "aa11", "--metric", "esx"], ["did you mean es"]),
    ],
)
def test_faults(arguments: list[str], words: list[str]) -> None:
    assert_fault(run_cli(*COMMAND, *arguments), *words)


def test_no_effect_is_a_usage_error() -> None:
    assert run_cli(*COMMAND, "--baseline", "aa11", "--effect", "0").code == 2
