"""The page Cost on a database of real runs: what it says is what `ctxbench leaderboard` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.dashboard.views import cost as view
from ctxbench.harness.generators.base import Request
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.store import open_store
from ctxbench.harness.store.attempts import construction
from tests.dashboard.browser import Site, app, cells, settled
from tests.dashboard.stored import HARMFUL, PLANTED, make_runs
from tests.dashboard.test_compare_page import frame, said, stored
from tests.helpers.sets import make_set

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


def amount(number: float | None) -> float | None:
    """Return a cost as the table shows it."""
    return None if number is None else float(numbers.amount(number))


@pytest.mark.parametrize("cost", ["tokens_in", "tokens_out", "context_tokens", "calls", "seconds"])
def test_every_number_is_that_of_the_leaderboard(database: Home, cost: str) -> None:
    shown = app("cost", database.root, samples="demo", generator="incontext", metric="es", cost=cost)
    assert not shown.exception and not shown.error
    rows = {row["strategy"]: row for row in frame(shown, "front")}
    told = [row for row in stored(database, "demo") if row["generator"] == "incontext"]
    assert rows.keys() == {one["strategy"] for one in told} and len(told) == 3
    for one in told:
        row, found = rows[one["strategy"]], one["es"]
        assert one[cost] is not None and row[view.COSTS[cost]] == amount(one[cost])
        half = numbers.half_width(found["low"], found["high"])
        assert row["es"] == float(numbers.value(found["mean"], half))
        assert row["95% interval"] == f"[{numbers.value(found['low'], half)}, {numbers.value(found['high'], half)}]"
        beaten = any(
            other[cost] <= one[cost]
            and other["es"]["mean"] >= found["mean"]
            and (other[cost] < one[cost] or other["es"]["mean"] > found["mean"])
            for other in told
        )
        assert row["front"] == ("" if beaten else "on the front")


def test_a_samples_time_is_that_of_the_leaderboard(database: Home) -> None:
    shown = app("cost", database.root, samples="functions")
    assert not shown.exception and not shown.error
    rows = {row["strategy"]: row for row in frame(shown, "method")}
    told = stored(database, "functions")
    assert rows.keys() == {one["strategy"] for one in told}
    for one in told:
        row = rows[one["strategy"]]
        wanted = [one[name] for name in ("strategy_seconds", "generator_seconds", "test_seconds")]
        # Three digits of it; the JSON has six decimals.
        assert [row[stage] for stage in ("method", "model", "tests")] == pytest.approx(wanted, rel=0.0051, abs=6e-7)


def test_construction_is_what_the_store_holds(database: Home) -> None:
    shown = app("cost", database.root, samples="demo", generator="incontext")
    runs = [one["run"] for one in stored(database, "demo") if one["generator"] == "incontext"]
    with open_store(database.database) as store:
        built = construction(store, runs)
    assert built
    rows = frame(shown, "stage")
    assert {(row["repository"], row["stage"]) for row in rows} == {(one.repo, one.stage) for one in built}
    for row in rows:
        mine = [one for one in built if (one.repo, one.stage) == (row["repository"], row["stage"])]
        assert row["attempts"] == len({one.attempt for one in mine})
        assert row["seconds"] == amount(sum(one.seconds for one in mine) / row["attempts"])


def test_what_others_recorded_has_no_cost_and_that_is_said(database: Home) -> None:
    shown = app("cost", database.root, samples="demo", generator=_recorder(database))
    assert not shown.exception and "Nobody knows what these runs cost" in said(shown)
    assert PLANTED.strip() not in said(shown)


def _recorder(home: Home) -> str:
    (found,) = {row["generator"] for row in stored(home, "demo")} - {"incontext"}
    assert "harm" in HARMFUL and "harm" in found
    return str(found)


def test_no_run_at_all(empty_home: Home) -> None:
    shown = app("cost", empty_home.root)
    assert not shown.exception and "ctxbench quickstart" in said(shown)


def test_a_database_that_is_none_is_one_line(tmp_path: Path) -> None:
    home = Home(tmp_path / "broken")
    home.root.mkdir()
    Path(home.database.removeprefix("sqlite:///")).write_bytes(b"no database at all" * 100)
    for name in ("cost", "compare"):
        shown = app(name, home.root)
        assert not shown.exception and len(shown.error) == 1


def test_runs_without_a_score_say_what_to_run(tmp_path: Path) -> None:
    home = Home(tmp_path / "failed")
    made = make_set(home, repos=2, per_repo=2)

    def answer(request: Request) -> str:
        raise MachineFault("the server is down", where="here", cure="start it")

    make_runs(home, made, Scripted(answer, version="1"), ("lc.infile", "lc.repocoder"))
    for name in ("cost", "compare"):
        shown = app(name, home.root, samples="demo")
        assert not shown.exception, name
        assert not shown.dataframe and not shown.error, name
        assert "has a score of this metric profile yet" in said(shown) and "ctxbench run" in said(shown), name
        assert "ctxbench rescore" in said(shown), name


def test_a_browser_shows_the_leaderboards_numbers(database: Home, server: Site, page: Page) -> None:
    server.visit(page, "cost", samples="demo", generator="incontext", metric="es", cost="tokens_in")
    told = {row["strategy"]: row for row in stored(database, "demo") if row["generator"] == "incontext"}
    rows: list[dict[str, Any]] = cells(page)
    assert {row["strategy"] for row in rows} == told.keys()
    for row in rows:
        one = told[row["strategy"]]
        assert float(row["tokens in"].replace(",", "")) == amount(one["tokens_in"])
        half = numbers.half_width(one["es"]["low"], one["es"]["high"])
        assert float(row["es"]) == float(numbers.value(one["es"]["mean"], half))
    # Accuracy against cost, time by stage, construction.
    assert page.locator("[data-testid=stVegaLiteChart]:visible").count() == 3
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    server.check(page)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390, json.dumps({"the page is wider than a phone": wide})
