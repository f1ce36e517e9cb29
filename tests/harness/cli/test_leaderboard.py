"""`ctxbench leaderboard`, `compare` and `power` as a user calls them."""

import contextlib
import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.harness.results import Origin, RunTable, Status
from tests.harness.leaderboard.test_board import noisy
from tests.harness.leaderboard.test_levels import coder_eval
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.runs import make_table, put_runs

DB = "--db=sqlite:///anything.db"
Fill = Callable[..., None]


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Return a function that puts runs into a store."""
    return functools.partial(put_runs, monkeypatch)


def test_every_format_shows_the_board(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3), noisy("lc.repocoder", 0.6))
    assert "Ranked by es" in run_cli("leaderboard", DB, "--explain").out
    assert run_cli("leaderboard", DB, "--format", "markdown").out.startswith("## demo")
    assert run_cli("leaderboard", DB, "--format", "csv").out.startswith("samples,language,level,strategy")
    rows = json.loads(run_cli("leaderboard", DB, "--format", "json").out)
    assert [(row["strategy"], row["group"]) for row in rows] == [("lc.repocoder", "a"), ("lc.infile", "b")]


def test_the_terminal_shows_the_latest_generator_and_names_the_others(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3, generator="a"), noisy("lc.infile", 0.4, generator="b"))
    printed = run_cli("leaderboard", DB).out
    assert printed.count("by b") == 1 and "by a\n" in printed.partition("Also stored")[2]
    assert run_cli("leaderboard", DB, "--all").out.count("by a") == 1
    assert "by a" in run_cli("leaderboard", DB, "--generator", "a").out
    assert_fault(run_cli("leaderboard", DB, "--generator", "c"), "no generator of the stored runs is called 'c'")
    assert len(json.loads(run_cli("leaderboard", DB, "--format", "json").out)) == 2
    result = run_cli("leaderboard", DB, "--explain", "--format", "json")
    assert result.code == 2 and "the other formats print everything" in result.err


def test_reference_rows_do_not_change_rows_of_limited_runs(stored: Fill) -> None:
    own = [noisy(name, 0.3, samples="demo[:80]") for name in ("lc.infile", "mine")]
    stored(*own)
    alone = json.loads(run_cli("leaderboard", DB, "--samples", "demo", "--format", "json").out)
    stored(*own, noisy("aim", 0.6, origin=Origin.REFERENCE), noisy("lc.infile", 0.3, origin=Origin.REFERENCE))
    beside = json.loads(run_cli("leaderboard", DB, "--samples", "demo", "--format", "json").out)
    assert [row["strategy"] for row in beside] == [*(row["strategy"] for row in alone), "aim"]
    assert beside[:2] == alone and "aim (reference)" in run_cli("leaderboard", DB, "--samples", "demo").out


def test_options_reach_the_board(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3), noisy("b", 0.6), noisy("b", 0.6, samples="other"))
    result = run_cli(
        "leaderboard", DB, "--samples", "demo", "--metric", "em", "--baseline", "b", "--by-level", "--format", "json"
    )
    rows = json.loads(result.out)
    assert {row["samples"] for row in rows} == {"demo"} and {row["ranked_by"] for row in rows} == {"em"}
    assert {row["level"] for row in rows} == {"all", "single-line"}
    assert {row["baseline"] for row in rows} == {None, "b"}


def test_published_numbers_are_shown_with_runs_of_their_benchmark(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3, benchmark="projbench"))
    rows = json.loads(run_cli("leaderboard", DB, "--format", "json").out)
    assert {row["origin"] for row in rows} == {"run", "published"}
    assert {row["benchmark"] for row in rows} == {"projbench"}
    assert "published numbers: ProjBench, python" in run_cli("leaderboard", DB).out
    none = run_cli("leaderboard", DB, "--published", "none")
    assert "published" not in none.out and none.code == 0


def test_all_published_numbers_are_shown_without_runs(stored: Fill, tmp_path: Path) -> None:
    stored()
    rows = json.loads(run_cli("leaderboard", DB, "--published", "all", "--format", "json").out)
    assert {row["benchmark"] for row in rows} == {"codereval", "crosscodeeval", "projbench", "sota_test"}
    home = tmp_path / "home"
    assert "CrossCodeEval, java" in run_cli("leaderboard", "--home", str(home), "--published", "all").out
    assert not home.exists()
    assert_fault(run_cli("leaderboard", DB, "--published", "all", "--samples", "demo"), "no runs", "ctxbench run")


def test_codereval_levels_are_shown_in_one_table_by_default(stored: Fill) -> None:
    stored(coder_eval())
    rows = json.loads(run_cli("leaderboard", DB, "--published", "none", "--no-by-level", "--format", "json").out)
    assert {row["level"] for row in rows} == {"all"}
    assert run_cli("leaderboard", DB, "--explain").out.count("Ranked by") == 1
    assert run_cli("leaderboard", DB, "--by-level", "--explain").out.count("Ranked by") == 6


def test_the_invalid_option_reaches_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run_tables(_: object, *, invalid: str, **__: object) -> list[RunTable]:
        asked.append(invalid)
        return [noisy("lc.infile", 0.3)]

    monkeypatch.setattr("ctxbench.harness.store.store.open_reader", contextlib.nullcontext)
    monkeypatch.setattr("ctxbench.harness.store.runs.run_tables", run_tables)
    assert run_cli("leaderboard", DB).code == run_cli("leaderboard", DB, "--invalid", "include").code == 0
    assert asked == ["exclude", "include"]


def test_limited_runs_are_shown_if_a_set_has_no_full_runs(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3, samples="demo[:80]"), noisy("lc.infile", 0.3, samples="demo2"))
    rows = json.loads(run_cli("leaderboard", DB, "--samples", "demo", "--format", "json").out)
    assert [row["samples"] for row in rows] == ["demo[:80]"]


def test_limited_and_full_runs_are_not_shown_together(stored: Fill) -> None:
    part, other = noisy("lc.infile", 0.3, id="part", samples="demo[:80]"), noisy("lc.infile", 0.3, id="x", samples="x")
    stored(noisy("lc.infile", 0.3), part, other)
    for asked in ("demo", "demo[:80]"):
        rows = json.loads(run_cli("leaderboard", DB, "--samples", asked, "--format", "json").out)
        assert [row["samples"] for row in rows] == [asked]
    assert_fault(run_cli("leaderboard", DB, "--samples", "demo[:7]"), "demo[:7]", "demo[:80]")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--samples", "dmo"], ["dmo", "did you mean demo"]),
        (["--samples", "zzz"], ["zzz", "known: demo"]),
        (["--metric", "esx"], ["esx", "did you mean es"]),
        (["--metric", "zzz"], ["known: em, es"]),
        (["--baseline", "lc.infle"], ["lc.infle", "did you mean lc.infile"]),
        (["--baseline", "lc.infile("], ["did you mean lc.infile"]),
        (["--profile", "ctxbnch"], ["metric profile", "did you mean ctxbench"]),
        (["--profile", "infercom"], ["no runs with scores of profile infercom", "ctxbench run"]),
    ],
)
def test_unknown_names_are_refused_with_suggestions(stored: Fill, arguments: list[str], words: list[str]) -> None:
    stored(noisy("lc.infile", 0.3))
    assert_fault(run_cli("leaderboard", DB, *arguments), *words)


def test_a_missing_store_is_reported_and_not_created(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert_fault(run_cli("leaderboard", "--home", str(home)), "no runs are stored", "ctxbench quickstart")
    assert not home.exists()


POWERED = (
    noisy("lc.infile", 0.3, id="aa11"),
    noisy("lc.repocoder", 0.5, id="ab22"),
    noisy("lc.infile", 0.3, id="cc33", language="java"),
)
COMMAND = ("power", DB, "--samples", "demo", "--effect", "3")


@pytest.fixture
def powered(monkeypatch: pytest.MonkeyPatch) -> None:
    put_runs(monkeypatch, *POWERED)


@pytest.mark.slow
def test_power_prints_a_table_a_sentence_and_unpaired_groups(powered: None) -> None:
    result = run_cli(*COMMAND, "--baseline", "lc.infile")
    assert result.code == 0
    assert "demo, python, scripted: power for es" in result.out and "repositories  5 samples each" in result.out
    assert "A difference of 3.0 % needs about" in result.out and "and lc.repocoder on 8 repositories" in result.out
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
def test_power_without_usable_runs_is_a_one_line_fault(powered: None, arguments: list[str], words: list[str]) -> None:
    assert_fault(run_cli(*COMMAND, *arguments), *words)


COMPARED = (
    noisy("lc.infile", 0.3, id="aa11"),
    noisy("lc.repocoder", 0.5, id="ab22"),
    noisy("lc.infile", 0.3, id="cc33", samples_digest="e" * 64),
    noisy("bm25", 0.4, id="dd44"),
    noisy("bm25", 0.4, id="dd44", language="java"),
    noisy("aim", 0.4, id="ee55", language="java"),
    make_table({}, "ab", status=[Status.INFRA_FAILED] * 2, strategy="begun", id="ff66"),
)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    put_runs(monkeypatch, *COMPARED)


def test_two_runs_are_compared_by_prefixes_of_their_ids(compared: None) -> None:
    assert "lc.repocoder (ab22) minus lc.infile (aa11)" in run_cli("compare", DB, "aa", "ab22").out
    rows = json.loads(run_cli("compare", DB, "aa", "ab", "--metric", "es", "--format", "json").out)
    assert [(row["metric"], row["baseline"]) for row in rows] == [("es", "aa11")]
    assert rows[0]["difference"]["mean"] > 10


def test_two_strategies_are_compared_by_name(compared: None) -> None:
    assert "lc.repocoder (ab22) minus lc.infile (aa11)" in run_cli("compare", DB, "lc.infile", "lc.repocoder").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["aa11"], ["at least two runs", "name another run"]),
        (["aa11", "zz"], ["no stored run or strategy is called 'zz'", "known: aa11"]),
        (["aa11", "bm26"], ["did you mean bm25"]),
        (
            ["aa11", "begun"],
            ["no complete runs of begun have the same samples and the same generator as the other named run"],
        ),
        (["aa11", "ab23"], ["did you mean ab22"]),
        (["a", "cc33"], ["2 run ids begin with 'a'", "aa11, ab22"]),
        (["aa11", "cc33"], ["different sample sets"]),
        (["aa11", "ee55"], ["no other run has samples in a language of the first run, 'aa11'"]),
        (["aa11", "ff66"], ["share no metric of profile ctxbench", "finish the runs with the same commands"]),
        (["aa11", "ab22", "--metric", "esx"], ["did you mean es"]),
        (["aa11", "ab22", "--profile", "infercom"], ["no runs with scores of profile infercom"]),
    ],
)
def test_runs_that_cannot_be_compared_are_named(compared: None, arguments: list[str], words: list[str]) -> None:
    assert_fault(run_cli("compare", DB, *arguments), *words)


def test_a_language_of_only_some_runs_is_left_out_with_a_note(compared: None) -> None:
    result = run_cli("compare", DB, "aa", "dd", "ee", "--metric", "es", "--format", "json")
    assert [(row["baseline"], row["run"], row["language"]) for row in json.loads(result.out)] == [
        ("aa11", "dd44", "python")
    ]
    assert "java is left out" in result.err
