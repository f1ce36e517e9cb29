"""`ctxbench run --until-decided`: what is taken, stored, printed and kept apart."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.bench import samples
from ctxbench.bench.home import Home
from ctxbench.harness.cli import decided
from ctxbench.harness.cli.decided import by_repository
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.runs import make_table
from tests.helpers.sets import make_set

pytestmark = pytest.mark.usefixtures("inline_cells")
STRATEGIES = """
from pathlib import Path
from ctxbench import Prompt, strategy
from ctxbench.harness.cells import StrategyFault
from ctxbench.strategies.api import text_block

def prompt(query, words):
    return Prompt(blocks=(text_block(words + query.prefix),))

@strategy("hinted")
def hinted(query, repo):
    return prompt(query, "HINT\\n")

@strategy("bare")
def bare(query, repo):
    if (Path(__file__).parent / "broken").exists():
        raise StrategyFault("oh no", where="bare", cure="mend it")
    return prompt(query, "")

@strategy("twin")
def twin(query, repo):
    return prompt(query, "TWIN\\n")
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    place = Home(tmp_path / "home")
    make_set(place, repos=12, per_repo=2)
    (tmp_path / "mine.py").write_text(STRATEGIES)
    answers = [{"contains": "HINT", "text": "apply_tax(cart_0, rate)"}, {"text": "x"}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in answers))
    return place


def command(home: Home, *options: str) -> list[str]:
    folder = home.root.parent
    where = ["--generator", f"scripted(answers='{folder}/answers.jsonl')", "--home", str(home.root)]
    return ["run", "--samples", "demo", *where, *options]


def decide(home: Home, this: str = "hinted", other: str = "bare", *options: str) -> Result:
    place = f"{home.root.parent}/mine.py@"
    return run_cli(*command(home, "--until-decided", place + this, place + other, *options))


def rows(home: Home, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(home.root / "results.db") as connection:
        return connection.execute(query).fetchall()


@pytest.mark.slow
def test_two_runs_end_once_they_are_told_apart(home: Home) -> None:
    result = decide(home)
    assert result.code == 0, result.err
    first, verdict, cost, caveat = result.out.splitlines()
    # Six repositories may spend 0.56 %, and give 3.1 % at best; eight give 0.8 %, and may spend 2.4 %.
    assert "python: +" in result.err and "on 6 of 12 repositories, p 0.031: not decided, more are added" in result.err
    assert (
        first.startswith("demo, python: ")
        and "mine.py@hinted minus " in first
        and first.endswith(" % on 8 of 12 repositories")
    )
    low, high = first.partition("[")[2].partition("]")[0].split(", ")
    assert 0 < float(low) <= float(high)
    assert verdict.startswith("Told apart: ") and "(p 0.008 for all looks together" in verdict
    assert cost.startswith("Cost: 32 samples, ") and "the other 4 repositories were not taken" in cost
    assert "tends to be too large after an early end" in caveat
    assert rows(home, "SELECT count(*) FROM planned GROUP BY run_id") == [(16,), (16,)]
    again = decide(home)
    assert (again.code, again.out) == (0, result.out)
    assert rows(home, "SELECT count(*) FROM attempt") == [(4,)]


@pytest.mark.slow
def test_boards_keep_them_apart_and_say_what_their_p_is_not(home: Home) -> None:
    assert decide(home).code == 0
    place = f"{home.root.parent}/mine.py@"
    assert run_cli(*command(home, "--strategy", place + "bare")).code == 0
    board = ["leaderboard", "--home", str(home.root)]
    records = json.loads(run_cli(*board, "--format", "json").out)
    parts = {row["samples"]: row["n"] for row in records}
    [label] = [name for name in parts if name != "demo"]
    assert parts == {"demo": 24, label: 16} and label.startswith("demo[until ") and label.endswith("mine.py@bare]")
    text = " ".join(run_cli(*board, "--samples", label).out.split())
    assert "p-values and intervals here take their number as fixed, so p is too small" in text
    assert "take their number as fixed" not in run_cli(*board, "--samples", "demo").out
    ids = [str(id_) for (id_,) in rows(home, "SELECT id FROM run WHERE until_decided IS NOT NULL")]
    assert "take their number as fixed" in run_cli("compare", "--home", str(home.root), *ids).out
    [listed] = {row["samples"] for row in json.loads(run_cli(*board, "--samples", "demo", "--format", "json").out)}
    assert listed == "demo"


@pytest.mark.slow
def test_a_fault_stops_it_before_the_look_and_the_same_command_goes_on(home: Home) -> None:
    (home.root.parent / "broken").touch()
    stopped = decide(home)
    assert_fault(stopped, "12 samples are missing", "oh no")
    assert "repositories, p" not in stopped.err and not stopped.out
    (home.root.parent / "broken").unlink()
    resumed = decide(home)
    assert resumed.code == 0 and "Told apart" in resumed.out
    # The finished half of the first batch is not done again.
    assert rows(home, "SELECT max(finished) FROM outcome WHERE finished > 0") == [(12,)]


@pytest.mark.slow
def test_it_gives_up_where_nothing_differs(home: Home) -> None:
    result = decide(home, "bare", "twin")
    assert result.code == 0
    assert "on 6 of 12 repositories" in result.out
    assert "Not told apart, and the rest would hardly do it if it went on like this (p 1.000" in result.out


def test_repositories_come_in_the_order_of_a_standard_set_else_of_the_set(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_set = samples.load(home, "demo")
    assert list(by_repository(sample_set, sample_set.samples)["python"])[:4] == ["shop0", "shop1", "shop2", "shop3"]
    monkeypatch.setattr("ctxbench.bench.standard.order_of", lambda digest: ("shop7", "shop11") * (len(digest) == 64))
    ordered = by_repository(sample_set, sample_set.samples)["python"]
    assert list(ordered)[:3] == ["shop7", "shop11", "shop0"]
    assert all(len(of_repository) == 2 for of_repository in ordered.values())


def test_revisions_of_a_project_are_added_together(home: Home) -> None:
    sample_set = samples.load(home, "demo")
    revisions = [replace(sample, repo=f"shop@{place}") for place, sample in enumerate(sample_set.samples[:3])]
    assert by_repository(sample_set, revisions) == {"python": {"shop": revisions}}


@pytest.mark.parametrize(
    ("prices", "summaries", "said"),
    [
        ((0.25, 0.5), (0.0, 1.0), "2 samples, 220 tokens in, 0 s of strategies, model and tests, US$ 1.75"),
        ((0.25, None), (0.0, 1.0), "2 samples, 220 tokens in, 0 s of strategies, model and tests"),
        ((0.25, 0.5), (0.0, None), "2 samples, 220 tokens in, 0 s of strategies, model and tests"),
    ],
)
def test_a_price_is_said_where_it_is_known_whole_and_with_its_summaries(
    prices: tuple[float | None, ...], summaries: tuple[float | None, ...], said: str
) -> None:
    costs = {
        "tokens_in": (100.0, 100.0),
        "summary_tokens_in": (20.0, None),
        "price": prices,
        "summary_price": summaries,
    }
    assert decided._cost([replace(make_table({"es": [0.5, 0.5]}, "ab"), costs=costs)]) == said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["lc.infile", "gold"], ["gold is a control"]),
        (["lc.infile", "lc.infile"], ["between two strategies"]),
        (["lc.infile", "lc.repocoder", "--limit", "3"], ["--limit takes samples of all repositories"]),
        (["lc.infile", "lc.repocoder", "--repeat", "2"], ["leave it out with --until-decided"]),
        (["lc.infile", "lc.infil"], ["did you mean lc.infile"]),
    ],
)
def test_what_no_rule_decides(home: Home, options: list[str], words: list[str]) -> None:
    assert_fault(run_cli(*command(home, "--until-decided", *options)), *words)
    assert not rows(home, "SELECT id FROM run") if (home.root / "results.db").exists() else True


def test_a_small_set_is_refused_before_anything_runs(home: Home) -> None:
    make_set(home, name="small", repos=5, per_repo=1)
    result = run_cli(*command(home, "--samples", "small", "--until-decided", "lc.infile", "lc.repocoder"))
    assert_fault(result, "no difference of 5 repositories (python) can be significant", "6 repositories or more")
    assert not rows(home, "SELECT id FROM run")


@pytest.mark.parametrize("options", [[], ["--strategy", "lc.infile", "--until-decided", "lc.infile", "lc.repocoder"]])
def test_it_is_strategies_or_a_pair(home: Home, options: list[str]) -> None:
    assert run_cli(*command(home, *options)).code == 2
