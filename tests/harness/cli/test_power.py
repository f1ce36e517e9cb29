"""`ctxbench power` as a user calls it."""

import json

import pytest

from tests.harness.leaderboard.test_board import noisy
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.runs import put_runs

STORED = (
    noisy("lc.infile", 0.3, id="aa11"),
    noisy("lc.repocoder", 0.5, id="ab22"),
    noisy("lc.infile", 0.3, id="cc33", language="java"),
)
COMMAND = ("power", "--db=sqlite:///anything.db", "--samples", "demo", "--effect", "3")


@pytest.fixture(autouse=True)
def _stored(monkeypatch: pytest.MonkeyPatch) -> None:
    put_runs(monkeypatch, *STORED)


@pytest.mark.slow
def test_a_table_a_sentence_and_what_cannot_be_told() -> None:
    result = run_cli(*COMMAND, "--baseline", "lc.infile")
    assert result.code == 0
    assert "demo, python, scripted: power for es" in result.out and "repositories  5 samples each" in result.out
    assert "A difference of 3.0 % needs about" in result.out and "beside lc.repocoder on 8 repositories" in result.out
    assert "demo, java, scripted: " in result.err
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
