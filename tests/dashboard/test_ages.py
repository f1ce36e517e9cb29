"""The pages' filter for newer samples, and the Leaderboard page's scores before and after a model's cutoff."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard.columns import CUTOFF
from tests.dashboard.browser import app
from tests.dashboard.stored import make_runs
from tests.dashboard.test_leaderboard import drawn_table
from tests.helpers.cli import run_cli
from tests.helpers.sets import make_set

_DAYS = ("2023-01-01", "2024-06-01", "2025-03-01", None)
"""Days of the samples in each of the two repositories."""
_CUTOFF = "2024-06-01"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with two runs. Their samples date from before and after the cutoff that the model's spec states."""
    home = Home(tmp_path_factory.mktemp("ages"))
    undated = make_set(home, per_repo=len(_DAYS), name="undated")
    samples = [
        replace(sample, dated=date.fromisoformat(day) if (day := _DAYS[at % len(_DAYS)]) else None)
        for at, sample in enumerate(undated.samples)
    ]
    sample_set = sets.save(home, "demo", samples, undated.references.values(), undated.manifest)
    model = Scripted(lambda request: request.prompt.text[-1:] + "apply_tax(cart_2, rate)", version="1")
    make_runs(home, sample_set, model, ("lc.infile", "lc.repocoder"), generator=f"scripted(cutoff={_CUTOFF})")
    return home.root


def records(home: Path, *options: str) -> list[dict[str, object]]:
    result = run_cli("leaderboard", "--home", str(home), "--format", "json", *options)
    assert result.code == 0, result.err
    rows: list[dict[str, object]] = json.loads(result.out)
    return rows


@pytest.mark.slow
def test_page_and_command_show_equal_scores_before_and_after_the_cutoff(home: Path) -> None:
    page = app("leaderboard", home, columns=CUTOFF)
    for line, record in zip(drawn_table(page), records(home), strict=True):
        assert str(record["strategy"]).endswith(line["strategy"])
        assert (line[f"n up to {_CUTOFF}"], line[f"n after {_CUTOFF}"]) == ("4", "2")
        for heading, key in ((f"up to {_CUTOFF} [95%]", "before_cutoff"), (f"after {_CUTOFF} [95%]", "after_cutoff")):
            assert float(line[heading].partition(" ")[0]) == pytest.approx(record[key], abs=0.6)
        assert record["after_cutoff"] != record["before_cutoff"]
    assert any(
        "may have read 4 of these samples, but not the 2 newer ones" in note.proto.body for note in page.get("html")
    )


@pytest.mark.slow
def test_a_day_in_the_address_keeps_only_newer_samples(home: Path) -> None:
    page = app("leaderboard", home, after="2024-01-01", columns="n")
    lines = drawn_table(page)
    assert page.query_params["after"] == "2024-01-01"
    assert [line["n"] for line in lines] == ["4", "4"]
    expected = records(home, "--after", "2024-01-01")
    assert [line["rank"] for line in lines] == [f"{of['rank_low']}-{of['rank_high']}" for of in expected]
    assert [record["es"]["mean"] for record in expected] != [record["es"]["mean"] for record in records(home)]  # type: ignore[index]
    # The baseline is not compared with itself.
    assert sum(element.proto.body.count("after=2024-01-01") for element in page.get("html")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compare", "cost"])
def test_other_pages_also_filter_samples_by_day(home: Path, name: str) -> None:
    page = app(name, home, after="2024-01-01")
    assert not page.exception and page.dataframe and page.query_params["after"] == "2024-01-01"
    whole = app(name, home)
    assert not whole.text_input(key="url/widget/after").value
    for shown, expected in ((page, records(home, "--after", "2024-01-01")), (whole, records(home))):
        if name == "compare":
            assert [line["common"] for line in drawn_table(shown)] == [str(expected[0]["n"])]
        else:
            means = [record["es"]["mean"] for record in expected]  # type: ignore[index]
            assert list(shown.dataframe[0].value["es [95%]"]) == pytest.approx(means)


@pytest.mark.slow
def test_an_invalid_day_is_reported_and_excludes_nothing(home: Path) -> None:
    page = app("leaderboard", home, after="lately", columns="n")
    assert any("lately is not a day such as 2024-06-01" in note.proto.body for note in page.get("html"))
    assert [line["n"] for line in drawn_table(page)] == ["8", "8"]


def test_a_day_after_every_sample_is_reported_in_one_line(home: Path) -> None:
    page = app("leaderboard", home, after="2025-03-01")
    assert not page.exception and not page.dataframe
    [error] = page.error
    assert "is dated after 2025" in error.value and "the newest is dated 2025" in error.value
