"""`ctxbench compare` as a user calls it."""

import json

import pytest

from ctxbench.harness.results import Status
from tests.harness.leaderboard.test_board import noisy
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.runs import make_table, put_runs

DB = "--db=sqlite:///anything.db"
STORED = (
    noisy("lc.infile", 0.3, id="aa11"),
    noisy("lc.repocoder", 0.5, id="ab22"),
    noisy("lc.infile", 0.3, id="cc33", samples_digest="e" * 64),
    noisy("bm25", 0.4, id="dd44"),
    noisy("bm25", 0.4, id="dd44", language="java"),
    noisy("aim", 0.4, id="ee55", language="java"),
    make_table({}, "ab", status=[Status.INFRA_FAILED] * 2, strategy="begun", id="ff66"),
)


@pytest.fixture(autouse=True)
def _stored(monkeypatch: pytest.MonkeyPatch) -> None:
    put_runs(monkeypatch, *STORED)


def test_two_runs_by_the_beginnings_of_their_ids() -> None:
    assert "lc.repocoder (ab22) minus lc.infile (aa11)" in run_cli("compare", DB, "aa", "ab22").out
    rows = json.loads(run_cli("compare", DB, "aa", "ab", "--metric", "es", "--format", "json").out)
    assert [(row["metric"], row["baseline"]) for row in rows] == [("es", "aa11")]
    assert rows[0]["difference"]["mean"] > 10


def test_two_strategies_by_their_names() -> None:
    assert "lc.repocoder (ab22) minus lc.infile (aa11)" in run_cli("compare", DB, "lc.infile", "lc.repocoder").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["aa11"], ["at least two runs"]),
        (["aa11", "zz"], ["no stored run or strategy is called 'zz'", "known: aa11"]),
        (["aa11", "bm26"], ["did you mean bm25"]),
        (
            ["aa11", "begun"],
            ["no complete runs of begun are over the same samples, by the same generator as the other named run"],
        ),
        (["aa11", "ab23"], ["did you mean ab22"]),
        (["a", "cc33"], ["2 run ids begin with 'a'", "aa11, ab22"]),
        (["aa11", "cc33"], ["different sample sets"]),
        (["aa11", "ee55"], ["no other run has samples in a language of the first run, aa11"]),
        (["aa11", "ff66"], ["share no metric of profile ctxbench", "finish the runs with the same commands"]),
        (["aa11", "ab22", "--metric", "esx"], ["did you mean es"]),
        (["aa11", "ab22", "--profile", "infercom"], ["no runs with scores of profile infercom"]),
    ],
)
def test_faults(arguments: list[str], words: list[str]) -> None:
    assert_fault(run_cli("compare", DB, *arguments), *words)


def test_a_language_that_only_some_runs_have_is_left_out_with_a_word() -> None:
    result = run_cli("compare", DB, "aa", "dd", "ee", "--metric", "es", "--format", "json")
    assert [(row["baseline"], row["run"], row["language"]) for row in json.loads(result.out)] == [
        ("aa11", "dd44", "python")
    ]
    assert "left out: java" in result.err
