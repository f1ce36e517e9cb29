"""The Cost page on a database of real runs: its numbers equal those of `ctxbench leaderboard`."""

from pathlib import Path

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.dashboard.views import cost as view
from ctxbench.harness.generators.base import Request
from ctxbench.harness.generators.scripted import Scripted
from tests.dashboard.browser import app
from tests.dashboard.stored import HARMFUL, PLANTED, make_runs, shows_amount
from tests.dashboard.test_compare_page import frame, page_text, stored
from tests.helpers.cli import run_cli
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cost", ["tokens_in", "tokens_out", "context_tokens", "calls", "seconds"])
def test_every_number_equals_that_of_the_leaderboard(database: Home, cost: str) -> None:
    page = app("cost", database.root, samples="demo", generator="incontext", metric="es", cost=cost)
    assert not page.exception and not page.error
    rows = {row["strategy"]: row for row in frame(page, "front")}
    records = [row for row in stored(database, "demo") if row["generator"] == "incontext"]
    assert rows.keys() == {record["strategy"] for record in records} and len(records) == 3
    for record in records:
        row, value = rows[record["strategy"]], record["es"]
        assert shows_amount(row[view.COSTS[cost]], record[cost])
        assert row["es [95%]"] == pytest.approx(value["mean"], abs=1e-6)
        beaten = any(
            other[cost] <= record[cost]
            and other["es"]["mean"] >= value["mean"]
            and (other[cost] < record[cost] or other["es"]["mean"] > value["mean"])
            for other in records
        )
        assert row["front"] == ("" if beaten else "on the front")


def test_the_time_per_sample_equals_that_of_the_leaderboard(database: Home) -> None:
    for name, title in (("strategy_seconds", "strategy"), ("generator_seconds", "model"), ("test_seconds", "tests")):
        page = app("cost", database.root, samples="functions", cost=name)
        assert not page.exception and not page.error
        rows = {row["strategy"]: row[f"seconds of the {title}"] for row in frame(page, f"seconds of the {title}")}
        records = {record["strategy"]: record[name] for record in stored(database, "functions")}
        # The page shows three digits, the JSON six decimals.
        assert rows == pytest.approx(records, rel=0.0051, abs=6e-7)


def test_imported_runs_are_reported_to_have_unknown_costs(database: Home) -> None:
    page = app("cost", database.root, samples="demo", generator=_recorder(database))
    assert not page.exception and "The costs of these runs are unknown" in page_text(page)
    assert PLANTED.strip() not in page_text(page)


def _recorder(home: Home) -> str:
    (generator,) = {row["generator"] for row in stored(home, "demo")} - {"incontext"}
    assert "harm" in HARMFUL and "harm" in generator
    return str(generator)


def test_runs_without_a_score_say_what_to_run(tmp_path: Path) -> None:
    home = Home(tmp_path / "failed")
    sample_set = make_set(home, repos=2, per_repo=2)

    def answer(request: Request) -> str:
        raise MachineFault("the server is down", where="here", cure="start it")

    make_runs(home, sample_set, Scripted(answer, version="1"), ("lc.infile", "lc.repocoder"))
    for name in ("cost", "compare"):
        page = app(name, home.root, samples="demo")
        assert not page.exception, name
        assert not page.dataframe and not page.error, name
        assert "has scores of this metric profile yet" in page_text(page) and "ctxbench run" in page_text(page), name
        assert "ctxbench rescore" in page_text(page), name


def test_strategies_with_several_budgets_are_drawn_as_a_curve(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    make_set(home, repos=3, per_repo=2)
    specs = ("--strategy", "lc.random_windows", "--strategy", "lc.random_windows(budget={64,256})")
    run = run_cli("run", "--home", str(home.root), "--samples", "demo", *specs, "--generator", "incontext")
    assert run.code == 0, run.err
    page = app("cost", home.root, samples="demo", generator="incontext", metric="es")
    assert not page.exception and not page.error
    [table] = [frame.value for frame in page.dataframe if "budget 64" in frame.value]
    printed = run_cli("leaderboard", "--home", str(home.root), "--samples", "demo", "--metric", "es", "--by", "budget")
    line = table.to_dict("records")[0]
    assert line["es % [95%]"] == "lc.random_windows" and len(line) == 4, "the default is a budget too"
    assert all(str(cell) in printed.out for cell in line.values())
    out = tmp_path / "report.html"
    assert (
        run_cli("report", "--home", str(home.root), "--samples", "demo", "--metric", "es", "--out", str(out)).code == 0
    )
    assert "es over budget" in out.read_text() and line["budget 64"] in out.read_text()
