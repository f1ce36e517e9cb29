"""`ctxbench reproduce` as a user calls it: a paper's table on the user's own samples."""

import json
import sqlite3
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.extras import needed
from tests.helpers.sets import make_set

TABLE = "infercom-table6"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    found = Home(tmp_path_factory.mktemp("reproduce") / "home")
    make_set(found, name="ctxbench-2-lite", repos=2, per_repo=2)
    make_set(found, name="more", repos=1, per_repo=2)
    return found


def reproduce(home: Home, *arguments: str, table: str = TABLE) -> Result:
    chosen = ["--generator", "scripted(text=apply_tax)", "--encoder", "hashed", "--home", str(home.root)]
    return run_cli("reproduce", table, *chosen, *arguments)


def runs(home: Home) -> list[str]:
    if not (home.root / "results.db").exists():
        return []
    with sqlite3.connect(home.root / "results.db") as connection:
        found = [strategy for (strategy,) in connection.execute("SELECT strategy FROM run ORDER BY strategy")]
    connection.close()
    return found


@pytest.mark.slow
def test_each_strategy_is_run_once_and_shown_beside_the_papers_row(home: Home) -> None:
    first = reproduce(home)
    assert first.code == 0, first.err
    assert first.out.startswith("infercom-table6: InferCom paper, Table 6\n")
    assert "encoder: ours hashed for every row" in first.out and "not a reproduction" in first.out
    assert first.out.count("ours: ctxbench-2-lite, scripted(text=apply_tax)") == 3
    assert [line.split()[-2:] for line in first.out.splitlines() if " paper: " in line] == [
        ["624.35", "3.46"],
        ["91.43", "3.90"],
        ["348.95", "4.23"],
    ]
    once = runs(home)
    assert once == [
        "lc.infercom(encoder=hashed)",
        "lc.repocoder(empty_header=true)",
        "lc.repofuse(encoder=hashed, unmasked=true)",
    ]
    again = reproduce(home)
    assert (again.code, again.out) == (0, first.out) and runs(home) == once
    assert "tasks solved by each strategy: ctxbench-2-lite, python, scripted(text=apply_tax), by em" in first.out


@pytest.mark.slow
def test_another_table_runs_its_own_strategies(home: Home) -> None:
    assert reproduce(home).code == 0
    found = reproduce(home, "--format", "json", table="infercom-table4")
    assert found.code == 0, found.err
    rows = json.loads(found.out)["rows"]
    assert {row["language"] for row in rows} == {"python"} and len(rows) == 6
    assert [row["paper"]["em"] for row in rows if row["benchmark"] == "ProjBench"] == [24.3, 27.34, 29.25]
    assert {row["strategy"] for row in rows} == {
        "lc.infercom(encoder=hashed, fsr=false, uer=false)",
        "lc.infercom(encoder=hashed, fsr=true, uer=false)",
        "lc.infercom(encoder=hashed, fsr=false, uer=true)",
    }
    ours = rows[0]["ours"][0]
    assert ours["samples"] == "ctxbench-2-lite" and ours["missing"] == 0 and ours["em"]["n"] == 4


@pytest.mark.slow
def test_several_sample_sets_are_shown_in_markdown_with_a_limit(home: Home) -> None:
    found = reproduce(home, "--samples", "ctxbench-2-lite", "--samples", "more", "--limit", "2", "--format", "markdown")
    assert found.code == 0, found.err
    assert "| ours: ctxbench-2-lite[:2], scripted(text=apply_tax) |" in found.out
    assert "| ours: more, scripted(text=apply_tax) |" in found.out
    assert "ctxbench-2-lite[:2] (2 tasks in Python), more (2 tasks in Python)" in found.out


@pytest.mark.parametrize(
    ("arguments", "table", "words"),
    [
        ([], "infercom-table9", ["did you mean", "infercom-table6"]),
        (["--samples", "none"], TABLE, ["no sample set", "ctxbench samples list"]),
        ([], "icl-table1", ["quickstart-functions", "not built", "`ctxbench quickstart`"]),
        (["--samples", "more"], "icl-table1", ["function samples", "more"]),
        (["--encoder", "no_such_encoder"], TABLE, ["no encoder is called 'no_such_encoder'"]),
        (["--encoder", "hashed("], TABLE, ["key=value"]),
        (["--generator", "nothing"], TABLE, ["nothing", "ctxbench generator list"]),
        (["--generator", "openai(url=http://127.0.0.1:1)"], TABLE, ["openai", "model"]),
        (["--generator", "hf:/no/such/folder"], TABLE, ["hf", "/no/such/folder"]),
        (["--encoder", "bm25(split=words)"], TABLE, ["split=words is invalid"]),
    ],
)
def test_invalid_arguments_are_a_one_line_fault(home: Home, arguments: list[str], table: str, words: list[str]) -> None:
    if any("hf:" in word for word in arguments):
        needed("torch", "hf")
    before = runs(home)
    assert_fault(reproduce(home, *arguments, table=table), *words)
    assert runs(home) == before


def test_without_a_generator_only_the_papers_numbers_are_shown(tmp_path: Path) -> None:
    words = ("reproduce", "infercom-table3", "--home", str(tmp_path / "home"))
    alone = run_cli(*words)
    assert alone.code == 0 and alone.out.split("\n")[-2].split()[-4:] == ["5.91", "3.31", "6.26", "4.12"], alone
    assert not (tmp_path / "home").exists()
    for option in (("--stored",), ("--limit", "3"), ("--encoder", "bm25"), ("--samples", "demo")):
        refused = run_cli(*words, *option)
        assert refused.code != 0 and f"{option[0]} needs --generator too" in refused.err


@pytest.mark.slow
def test_a_preset_is_run_as_its_strategy(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    make_set(home, repos=1, per_repo=1)
    chosen = ["--samples", "demo", "--generator", "scripted(text=x)", "--home", str(home.root)]
    found = run_cli("run", *chosen, "--strategy", "ic-t3-projbench-py-codellama-7b-repocoder")
    assert found.code == 0 and found.out.split()[1] == "lc.repocoder(empty_header=true)", found
    assert_fault(run_cli("run", *chosen, "--strategy", "ic-t3-projbench-py-codellama-7b-repocodr"), "did you mean")


@pytest.mark.slow
def test_stored_runs_are_shown_over_their_common_samples(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    make_set(home, name="demo", repos=2, per_repo=3)
    words = ("--generator", "scripted(text=apply_tax)", "--home", str(home.root), "--samples", "demo")
    assert_fault(run_cli("reproduce", TABLE, "--stored", *words), "no run of infercom-table6", "leave out --stored")
    for strategy, limit in (("lc.infercom(encoder=bm25)", "4"), ("lc.repocoder(empty_header=true)", "6")):
        assert run_cli("run", "--strategy", strategy, "--limit", limit, *words).code == 0
    for option in (("--limit", "3"), ("--summariser", "incontext"), ("--seed", "1")):
        refused = run_cli("reproduce", TABLE, "--stored", *option, *words)
        assert refused.code != 0 and f"--stored runs nothing; leave out {option[0]}" in refused.err
    before = runs(home)
    result = run_cli("reproduce", TABLE, "--stored", "--encoder", "bm25", "--format", "json", *words)
    assert result.code == 0 and runs(home) == before, result
    table = json.loads(result.out)
    ours = {row["strategy"]: [own["samples"] for own in row["ours"]] for row in table["rows"]}
    assert ours == {
        "lc.infercom(encoder=bm25, fsr=true, uer=true)": ["demo[:4]"],
        "lc.repocoder(empty_header=true)": ["demo"],
        "lc.repofuse(encoder=bm25, unmasked=true)": [],
    }
    assert {own["counts"]["single-line"] for row in table["rows"] for own in row["ours"]} == {4}
    assert any("lc.repofuse(encoder=bm25, unmasked=true)" in note for note in table["notes"])
    assert any(note.startswith("nothing was run") for note in table["notes"])
