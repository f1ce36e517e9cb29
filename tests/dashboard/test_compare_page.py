"""The Compare page on real runs: its numbers equal those of `ctxbench compare`, also across generators."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Capabilities
from ctxbench.harness.generators.fim import Template, family
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.run.spec import RunOptions
from tests.dashboard.browser import Site, app
from tests.dashboard.stored import HARMFUL, PLANTED, make_runs
from tests.dashboard.test_leaderboard import drawn_table, page_table
from tests.helpers.cli import run_cli
from tests.helpers.sets import make_set

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.slow
Records = list[dict[str, Any]]


def stored(home: Home, samples: str) -> Records:
    result = run_cli("leaderboard", "--published", "none", "--format", "json", "--home", str(home.root))
    assert result.code == 0, result.err
    return [row for row in json.loads(result.out) if row["samples"] == samples]


@pytest.fixture(scope="module")
def runs(database: Home) -> dict[str, str]:
    """Map each strategy to the id of its run over `demo`."""
    return {row["strategy"]: row["run"] for row in stored(database, "demo")}


def comparison(home: Home, ids: Sequence[str], metric: str) -> Records:
    result = run_cli("compare", *ids, "--metric", metric, "--format", "json", "--home", str(home.root))
    assert result.code == 0, result.err
    records: Records = json.loads(result.out)
    return records


def run_ids(runs: Mapping[str, str], *strategies: str) -> list[str]:
    return [runs[name] for name in strategies]


def frame(page: AppTest, key: str) -> list[dict[str, Any]]:
    """Return the rows of the table that has a column of this name."""
    (table,) = [element.value for element in page.dataframe if key in element.value.columns]
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows


def query_of(page: AppTest) -> dict[str, list[str]]:
    return {name: [value] if isinstance(value, str) else list(value) for name, value in page.query_params.items()}


def page_text(page: AppTest) -> str:
    """Return all text of the page except its tables."""
    parts = [
        str(getattr(element, "value", "") or getattr(element, "body", ""))
        for kind in ("html", "info", "error", "code")
        for element in page.get(kind)
    ]
    return "\n".join(parts)


def check_drawn(row: dict[str, str], difference: dict[str, Any]) -> None:
    """Compare a row of the table of differences with the command's record."""
    assert row["difference [95%]"] == scales.interval(
        difference["mean"], difference["low"], difference["high"], sign=True
    )
    assert row["p"] == scales.p_value(difference["p"])
    counts = {"better": "wins", "equal": "ties", "worse": "losses", "common": "n_common"}
    assert {name: row[name] for name in counts} == {name: str(difference[key]) for name, key in counts.items()}


@pytest.mark.parametrize("metric", ["copyable_bits", "es", "em"])
def test_every_number_equals_that_of_the_command(database: Home, runs: dict[str, str], metric: str) -> None:
    ids = run_ids(runs, "lc.infile", "lc.repocoder", "lc.random_windows")
    page = app("compare", database.root, samples="demo", metric=metric, first=ids[0], runs=ids[1:], detail=ids[2])
    assert not page.exception and not page.error
    printed = comparison(database, ids, metric)
    rows = drawn_table(page)
    assert (
        [row["strategy"] for row in rows]
        == [record["strategy"] for record in printed]
        == ["lc.repocoder", "lc.random_windows"]
    )
    for row, record in zip(rows, printed, strict=True):
        difference = record["difference"]
        check_drawn(row, difference)
        assert (row["common"], row["repositories"]) == ("24", "8")
    record = printed[1]
    levels = frame(page, "level")
    assert [(row["level"], row["samples"]) for row in levels] == [(at["level"], at["n"]) for at in record["levels"]]
    for row, at in zip(levels, record["levels"], strict=True):
        assert row["difference [95%]"] == pytest.approx(at["difference"]["mean"], abs=1e-6)
    (repositories,) = [
        element.value for element in page.dataframe if list(element.value.columns[:2]) == ["repository", "samples"]
    ]
    by_name = {row["repository"]: row for row in repositories.to_dict("records")}
    half = scales.half_width(record["difference"]["low"], record["difference"]["high"])
    for at in record["repositories"]:
        row = by_name.pop(at["repository"])
        assert row["samples"] == at["n"]
        assert row["baseline"] == float(scales.written(at["baseline"], half))
        assert row["difference"] == pytest.approx(at["this"] - at["baseline"], abs=0.51)
    assert not by_name


def test_by_default_the_best_runs_are_compared_and_put_into_the_address(database: Home, runs: dict[str, str]) -> None:
    page = app("compare", database.root, samples="demo", generator="incontext")
    assert not page.exception and not page.error
    assert query_of(page)["first"] == [runs["lc.infile"]]
    assert set(query_of(page)["runs"]) == {runs["lc.repocoder"], runs["lc.random_windows"]}
    again = app("compare", database.root, **query_of(page))
    assert drawn_table(again) == drawn_table(page) and page_text(again) == page_text(page)


def test_a_single_run_shows_a_command_to_run(database: Home, runs: dict[str, str]) -> None:
    page = app("compare", database.root, samples="demo", first=runs["lc.infile"], runs="")
    assert (
        not page.exception
        and "two runs over the same sample set" in page_text(page)
        and "ctxbench run" in page_text(page)
    )
    part = app("compare", database.root, samples="demo[:4]", generator="incontext")
    assert not part.exception and {row["common"] for row in drawn_table(part)} == {"4"}, "beside those over more"


def test_a_run_of_another_set_is_refused_in_one_line(database: Home, runs: dict[str, str]) -> None:
    asked = {"first": "0" * 12, "runs": [runs["lc.repocoder"], "<b>nobody</b>"], "generator": "incontext"}
    page = app("compare", database.root, samples="demo", **asked)
    assert not page.exception and "Baseline: 000000000000 does not exist here" in page_text(page)
    assert drawn_table(page)[0]["strategy"] == "lc.repocoder"


def test_a_metric_that_one_run_lacks_is_reported_in_one_line(database: Home, runs: dict[str, str]) -> None:
    hostile = runs[PLANTED.strip()]
    generators = sorted({row["generator"] for row in stored(database, "demo")})
    assert len(generators) == 2
    page = app(
        "compare",
        database.root,
        samples="demo",
        metric="copyable_bits",
        generator=generators,
        first=runs["lc.infile"],
        runs=hostile,
    )
    assert not page.exception
    assert "metric that these runs share" in page_text(page)


def test_the_browser_shows_equal_numbers_and_escapes_hostile_names(
    database: Home, server: Site, page: Page, runs: dict[str, str]
) -> None:
    hostile = PLANTED.strip()
    generators = sorted({row["generator"] for row in stored(database, "demo")})
    ids = run_ids(runs, "lc.infile", hostile, "lc.repocoder")
    server.visit(
        page,
        "compare",
        samples="demo",
        metric="em",
        generator=generators,
        first=ids[0],
        runs=ids[1:],
    )
    printed = comparison(database, ids, "em")
    rows = page_table(str(page.locator("table.board").first.evaluate("table => table.outerHTML")))
    # With two generators, a run's name includes its generator.
    assert [row["strategy"] for row in rows] == [f"{hostile} · {HARMFUL}", "lc.repocoder · incontext"]
    for row, record in zip(rows, printed, strict=True):
        check_drawn(row, record["difference"])
    # The page draws a mark for each difference.
    assert page.locator("table .mean:visible").count() == 2
    text = page.locator("[data-testid=stMainBlockContainer]").inner_text()
    assert "<script>" in text and "Exception" not in text


def test_runs_that_differ_only_in_the_seed_are_one_row_on_every_page(tmp_path: Path) -> None:
    home = Home(tmp_path)
    model = Scripted(lambda request: f"apply_tax(cart_{request.sampling.seed}, rate)", version="1")
    choices = RunOptions(temperature=0.8, repeat=3)
    make_runs(home, make_set(home, repos=6, per_repo=2), model, ("lc.infile", "lc.repocoder"), choices=choices)
    rows = {row["strategy"]: row for row in stored(home, "demo")}
    difference = comparison(home, [rows[name]["repetitions"][2] for name in ("lc.infile", "lc.repocoder")], "es")[0]
    page = app("compare", home.root, samples="demo", first=rows["lc.infile"]["run"], runs=rows["lc.repocoder"]["run"])
    assert not page.exception and not page.error
    assert len(drawn_table(page)) == 1 and difference["repetitions"] == rows["lc.repocoder"]["repetitions"]
    assert "variance of the difference" in page_text(page)
    page = app("leaderboard", home.root, samples="demo", metric="es")
    assert [row["runs"] for row in drawn_table(page)] == ["3", "3"]
    assert "Sources of the uncertainty of lc.repocoder (variance): its es: " in page_text(page)
    page = app("cost", home.root, samples="demo", metric="es")
    assert not page.exception and len(frame(page, "front")) == 2


OTHER = base.canonical("openai:other@http://127.0.0.1:1/v1")
"""The name of a second model, whose server is never called."""


class _Middle(Scripted):
    """A model that also reads the code after the cursor (FIM)."""

    capabilities = Capabilities(batch_size=16, instructs=True, fills=True)

    def infilling(self) -> Template:
        return family("qwen", where="test")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(Path(tmp_path_factory.mktemp("models")) / "home")
    sample_set = make_set(home, repos=6, per_repo=2, suffix="def refund(rate):\n    return rate\n")
    middle = _Middle(lambda request: "apply_tax(cart_0, rate)", version="1")
    make_runs(home, sample_set, middle, ("lc.infile", "lc.repocoder"), generator="scripted")
    make_runs(home, sample_set, middle, ("lc.infile",), generator="scripted", choices=RunOptions(fim=True))
    other = Scripted(lambda request: "nothing", version="1")
    make_runs(home, sample_set, other, ("lc.infile",), generator=OTHER)
    return home


def test_runs_of_all_generators_are_offered(models: Home) -> None:
    ids = {(row["strategy"], row["generator"]): row["run"] for row in stored(models, "demo")}
    assert set(ids) == {
        ("lc.infile", "scripted"),
        ("lc.repocoder", "scripted"),
        ("lc.infile", "scripted [fim]"),
        ("lc.infile", OTHER),
    }
    page = app("compare", models.root, samples="demo", metric="es")
    assert not page.exception and not page.error
    # By default the page compares two strategies of one model. All other runs can be chosen.
    assert names(page) == ["lc.repocoder"]
    assert query_of(page)["first"] == [ids["lc.infile", "scripted"]]
    [options] = [box.options for box in page.multiselect if box.label == "Compared runs"]
    assert {option.rpartition(" · ")[0] for option in options} == {
        "lc.repocoder · scripted",
        "lc.infile · scripted [fim]",
        f"lc.infile · {OTHER}",
    }


def test_runs_of_several_generators_and_of_fim_are_compared(models: Home) -> None:
    ids = {(row["strategy"], row["generator"]): row["run"] for row in stored(models, "demo")}
    first, *others = (
        ids[run] for run in (("lc.repocoder", "scripted"), ("lc.infile", "scripted [fim]"), ("lc.infile", OTHER))
    )
    page = app("compare", models.root, samples="demo", metric="es", first=first, runs=others)
    assert not page.exception and not page.error
    rows, printed = drawn_table(page), comparison(models, [first, *others], "es")
    assert names(page) == ["lc.infile · scripted [fim]", f"lc.infile · {OTHER}"]
    for row, record in zip(rows, printed, strict=True):
        assert [row[name] for name in ("better", "equal", "worse")] == [
            str(record["difference"][name]) for name in ("wins", "ties", "losses")
        ]
        assert row["common"] == "12"
    text = page_text(page)
    assert text.count("strategy and generator both differ from the baseline") == 2
    alone = app("compare", models.root, samples="demo", metric="es", first=others[0], runs=others[1])
    assert "differ from the baseline" not in page_text(alone), (
        "of one strategy the generator alone makes the difference"
    )


def test_the_generator_filter_restricts_the_compared_runs(models: Home) -> None:
    page = app("compare", models.root, samples="demo", generator=OTHER)
    assert not page.exception and "two runs over the same sample set" in page_text(page)
    both = app("compare", models.root, samples="demo", metric="es", generator=[OTHER, "scripted [fim]"])
    # Both runs use the same strategy, so the strategy is compared with itself under the other generator.
    assert {*names(both)} < {"lc.infile · scripted [fim]", f"lc.infile · {OTHER}"} and len(names(both)) == 1


def names(page: AppTest) -> list[str]:
    return [row["strategy"] for row in drawn_table(page)]
