"""`ctxbench leaderboard` as a user calls it."""

import contextlib
import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.harness.results import Origin, RunTable
from tests.harness.leaderboard.test_board import noisy
from tests.harness.leaderboard.test_levels import coder_eval
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.runs import put_runs

DB = "--db=sqlite:///anything.db"
Fill = Callable[..., None]


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Return a function that puts runs into a store."""
    return functools.partial(put_runs, monkeypatch)


def test_formats(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3), noisy("lc.repocoder", 0.6))
    assert "Ranked by es" in run_cli("leaderboard", DB, "--explain").out
    assert run_cli("leaderboard", DB, "--format", "markdown").out.startswith("## demo")
    assert run_cli("leaderboard", DB, "--format", "csv").out.startswith("samples,language,level,strategy")
    rows = json.loads(run_cli("leaderboard", DB, "--format", "json").out)
    assert [(row["strategy"], row["group"]) for row in rows] == [("lc.repocoder", "a"), ("lc.infile", "b")]


def test_a_screen_shows_what_was_run_last_and_names_the_rest(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3, generator="a"), noisy("lc.infile", 0.4, generator="b"))
    printed = run_cli("leaderboard", DB).out
    assert printed.count("by b") == 1 and "by a\n" in printed.partition("Also stored")[2]
    assert run_cli("leaderboard", DB, "--all").out.count("by a") == 1
    assert "by a" in run_cli("leaderboard", DB, "--generator", "a").out
    assert_fault(run_cli("leaderboard", DB, "--generator", "c"), "no generator of the stored runs is called 'c'")
    assert len(json.loads(run_cli("leaderboard", DB, "--format", "json").out)) == 2
    result = run_cli("leaderboard", DB, "--explain", "--format", "json")
    assert result.code == 2 and "the other formats print everything" in result.err


def test_importing_over_the_whole_set_leaves_a_board_over_a_part_of_it(stored: Fill) -> None:
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


def test_published_numbers_stand_below_runs_of_their_benchmark(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3, benchmark="projbench"))
    rows = json.loads(run_cli("leaderboard", DB, "--format", "json").out)
    assert {row["origin"] for row in rows} == {"run", "published"}
    assert {row["benchmark"] for row in rows} == {"projbench"}
    assert "published numbers: ProjBench, python" in run_cli("leaderboard", DB).out
    none = run_cli("leaderboard", DB, "--published", "none")
    assert "published" not in none.out and none.code == 0


def test_all_published_numbers_need_no_run(stored: Fill, tmp_path: Path) -> None:
    stored()
    rows = json.loads(run_cli("leaderboard", DB, "--published", "all", "--format", "json").out)
    assert {row["benchmark"] for row in rows} == {"codereval", "crosscodeeval", "projbench", "sota_test"}
    home = tmp_path / "home"
    assert "CrossCodeEval, java" in run_cli("leaderboard", "--home", str(home), "--published", "all").out
    assert not home.exists()
    assert_fault(run_cli("leaderboard", DB, "--published", "all", "--samples", "demo"), "no runs", "ctxbench run")


def test_levels_of_codereval_are_shown_unasked_in_one_table(stored: Fill) -> None:
    stored(coder_eval())
    rows = json.loads(run_cli("leaderboard", DB, "--published", "none", "--format", "json").out)
    assert "class+file+project" in {row["level"] for row in rows}
    rows = json.loads(run_cli("leaderboard", DB, "--published", "none", "--no-by-level", "--format", "json").out)
    assert {row["level"] for row in rows} == {"all"}
    assert run_cli("leaderboard", DB, "--explain").out.count("Ranked by") == 1
    assert run_cli("leaderboard", DB, "--by-level", "--explain").out.count("Ranked by") == 6


def test_invalid_samples_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run_tables(_: object, *, invalid: str, **__: object) -> list[RunTable]:
        asked.append(invalid)
        return [noisy("lc.infile", 0.3)]

    monkeypatch.setattr("ctxbench.harness.store.store.open_reader", contextlib.nullcontext)
    monkeypatch.setattr("ctxbench.harness.store.runs.run_tables", run_tables)
    assert run_cli("leaderboard", DB).code == run_cli("leaderboard", DB, "--invalid", "include").code == 0
    assert asked == ["exclude", "include"]


def test_limited_runs_answer_for_a_set_without_full_ones(stored: Fill) -> None:
    stored(noisy("lc.infile", 0.3, samples="demo[:80]"), noisy("lc.infile", 0.3, samples="demo2"))
    rows = json.loads(run_cli("leaderboard", DB, "--samples", "demo", "--format", "json").out)
    assert [row["samples"] for row in rows] == ["demo[:80]"]


def test_limited_runs_do_not_stand_beside_full_ones(stored: Fill) -> None:
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
def test_names_that_are_not_there(stored: Fill, arguments: list[str], words: list[str]) -> None:
    stored(noisy("lc.infile", 0.3))
    assert_fault(run_cli("leaderboard", DB, *arguments), *words)


def test_no_store_at_all_is_said_and_none_is_made(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert_fault(run_cli("leaderboard", "--home", str(home)), "no runs are stored", "ctxbench quickstart")
    assert not home.exists()
