"""The Leaderboard page shows the board's numbers, rounded as everywhere, and nothing that is not in it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.dashboard.report import report
from ctxbench.dashboard.views import leaderboard as view
from ctxbench.dashboard.views import metrics
from ctxbench.dashboard.views.leaderboard import chart
from ctxbench.harness.leaderboard import Group, board, numbers
from ctxbench.harness.leaderboard.notes import PAGE, notes
from ctxbench.harness.leaderboard.sections import headline
from ctxbench.harness.results import Origin, RunTable, Status
from tests.dashboard.browser import PHONE, Site, app, cells, settled
from tests.dashboard.stored import HARMFUL, PLANTED, STRATEGIES, shows_amount
from tests.dashboard.test_runs_page import ended
from tests.helpers.cli import run_cli
from tests.helpers.runs import make_table
from tests.helpers.sets import make_set

if TYPE_CHECKING:
    from playwright.sync_api import Page

_REPOS = 8


def table(strategy: str, values: list[float], **changes: Any) -> RunTable:
    repos = [f"r{index % _REPOS}" for index in range(len(values))]
    return make_table({"es": values}, repos, id=strategy, strategy=strategy, **changes)


@pytest.fixture
def group() -> Group:
    low = [0.1 + index / 1000 for index in range(16)]
    tables = [
        table("lc.infile", low),
        table("lc.repocoder", [value + 0.5 for value in low]),
        table("oracle", [1.0] * 16, ranked=False, control=True),
        table("theirs", low, origin=Origin.IMPORTED),
    ]
    return board(tables).groups[0]


def test_lines_are_the_groups_rows_in_its_order(group: Group) -> None:
    lines = view.lines(group)
    assert [line["strategy"] for line in lines] == ["lc.repocoder", "lc.infile", "theirs", "oracle (control)"]
    assert [row.run.strategy for row in group.rows] == ["lc.repocoder", "lc.infile", "theirs", "oracle"]
    first, row = lines[0], group.rows[0]
    value = row.metrics["es"]
    assert first["es % [95%]"] == value.mean and first["n"] == 16
    assert getattr(first["es % [95%]"], "text", "") == numbers.interval(value.mean, value.low, value.high)
    assert [line["rank"] for line in lines][-1] == "-" and lines[-1]["origin"] == "control"
    assert {line["origin"] for line in lines} == {"run", "imported", "control"}


def test_figures_keep_their_last_zero(group: Group) -> None:
    first = view.lines(group)[0]
    texts = {name: getattr(first[name], "text", None) for name in ("es % [95%]", "to lc.infile", "p")}
    difference = group.rows[0].difference["es"]
    assert str(texts["to lc.infile"]).startswith("+50.0 [") and texts["p"] == numbers.p_value(difference.p)
    assert first["p"] == difference.p and re.match(r"\d+\.\d\d \[", str(texts["es % [95%]"]))


def test_columns_that_nobody_fills_are_left_out(group: Group) -> None:
    assert "price US$" not in view.lines(group)[0] and "marked" not in view.lines(group)[0]


def test_links_stand_behind_their_rows(group: Group) -> None:
    lines = view.lines(group, {"lc.repocoder": {"samples": "/samples?run=lc.repocoder"}})
    assert [line.get("samples") for line in lines] == [
        "/samples?run=lc.repocoder" if line["strategy"] == "lc.repocoder" else None for line in lines
    ]


def test_the_headline_says_whether_the_lead_is_real(group: Group) -> None:
    assert headline(group).startswith("Of yours, lc.repocoder has the best es: 60.75 [")
    assert "Significantly better than lc.infile: lc.repocoder." in headline(group)
    two = [table("a", [0.5, 0.6] * 8), table("b", [0.6, 0.5] * 8)]
    assert "Significantly different from a: none." in headline(board(two).groups[0])
    assert "Significant: none." in headline(board(two, all_pairs=True).groups[0])
    third = board([*two, table("c", [0.1] * 16)]).groups[0]
    assert "Significantly worse than a: c; not significantly different: b." in headline(third)
    third = board([*two, table("c", [0.1] * 16)], all_pairs=True).groups[0]
    assert "It is not significantly better than b." in headline(third)
    strangers = board([table("a", [0.5] * 16), table("b", [0.6] * 16, first=100)]).groups[0]
    assert "No two rows of the question share a completed sample" in headline(strangers)
    alone = board([table("a", [0.5] * 16)]).groups[0]
    assert "Nothing else here is ranked" in headline(alone)
    few = [make_table({"es": [0.1, 0.2]}, ["x", "y"], id=name, strategy=name) for name in "ab"]
    assert "with 2 repositories the smallest possible p is 0.500" in headline(board(few).groups[0])


def test_the_headline_claims_no_best_mean_where_another_is_better_over_easier_samples() -> None:
    easy = [index < 16 for index in range(32)]
    whole = table("a", [(0.9 if is_easy else 0.3) + index / 1000 for index, is_easy in enumerate(easy)])
    part = table("b", [0.8 + index / 1000 if is_easy else None for index, is_easy in enumerate(easy)])
    group = board([whole, part]).groups[0]
    first, second = group.ranked
    assert first.run.strategy == "a" and (first.metrics["es"].mean or 0) < (second.metrics["es"].mean or 0)
    assert headline(group).startswith("a ranks first, with es 61.55 [") and "best" not in headline(group)
    assert "Significantly worse than a: b." in headline(group)


def test_what_is_not_significantly_different_is_grey() -> None:
    same = board([table("a", [0.5, 0.6] * 8), table("b", [0.6, 0.5] * 8)]).groups[0]
    runs = [table("a", [0.5, 0.6] * 8), table("b", [0.6, 0.5] * 8), table("c", [0.1] * 16)]
    apart = board(runs, all_pairs=True).groups[0]
    best, worst = "significantly better than another", "significantly worse than another"
    for group, states in (
        (same, ["not significantly different"] * 2),
        (apart, [best, best, worst]),
    ):
        drawn = chart(group)
        assert drawn is not None
        spec = drawn.to_dict()
        points = spec["datasets"][spec["layer"][-1]["data"]["name"]]
        assert [point["state"] for point in points] == states
    scale = spec["layer"][-1]["encoding"]["color"]["scale"]
    assert scale["domain"] == [best, worst]
    (grey,) = chart(same).to_dict()["layer"][-1]["encoding"]["color"]["scale"]["range"]  # type: ignore[union-attr]
    red, green, blue = (int(grey[at : at + 2], 16) for at in (1, 3, 5))
    assert max(red, green, blue) - min(red, green, blue) < 20


def test_nothing_scored_is_said_and_not_drawn() -> None:
    lost = make_table({}, ["r"] * 2, status=[Status.INFRA_FAILED] * 2, functions=True)
    group = board([lost]).groups[0]
    assert "nothing is ranked" in headline(group) and chart(group) is None
    assert "pass@1" not in view.lines(group)[0] and view.lines(group)[0]["missing"] == 2


def test_the_chart_draws_means_intervals_and_the_baseline(group: Group) -> None:
    drawn = chart(group)
    assert drawn is not None
    spec = drawn.to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["rule", "bar", "text", "point"]
    rule, points = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"][:2])
    assert [point["strategy"] for point in points] == [row.run.strategy for row in group.rows]
    for point, row in zip(points, group.rows, strict=True):
        value = row.metrics["es"]
        assert (point["low"], point["value"], point["high"]) == (value.low, value.mean, value.high)
    [base] = [row for row in group.rows if row.run.strategy == "lc.infile"]
    assert rule == [{"value": base.metrics["es"].mean}]


def test_the_baseline_is_one_row_also_where_its_strategy_has_two() -> None:
    low = [0.1 + index / 1000 for index in range(16)]
    status = [Status.INFRA_FAILED] * 2 + [Status.SCORED] * 14
    runs = [
        table("lc.infile", low, origin=Origin.REFERENCE),
        table("lc.infile", [value + 0.3 for value in low], status=status),
        table("other", [value + 0.2 for value in low]),
    ]
    group = (ranked := board(runs)).groups[0]
    assert group.base is not None and group.base.run.origin is Origin.REFERENCE
    assert [row.run.strategy for row in group.rows] == ["other", "lc.infile", "lc.infile"]
    assert group.rows[1] is group.base and group.rows[0].difference["es"].mean == pytest.approx(20)
    assert "to lc.infile (reference)" in view.lines(group)[0]
    spec = chart(group).to_dict()  # type: ignore[union-attr]
    assert spec["datasets"][spec["layer"][0]["data"]["name"]] == [{"value": group.base.metrics["es"].mean}]
    [ranking, *_] = report(ranked, {}).sections[0].tables
    assert ranking.drawn and ranking.drawn.bars[1] and ranking.drawn.bars[1].mean == ranking.drawn.base


def test_a_page_says_what_to_do_on_a_page() -> None:
    status = [Status.SCORED] * 3 + [Status.INFRA_FAILED]
    values = {"pass@1": [1.0, 1.0, 0.0, None]}
    run: dict[str, Any] = {"functions": True, "benchmark": "codereval", "level": ["class_runnable"] * 4}
    ranked = board([make_table(values, "abcd", id="x", status=status, **run)], published="auto")
    [some] = view.published(ranked, ranked.groups[0])
    sentences = [*notes(ranked.groups[0], PAGE), *some.notes]
    assert len(some.lines) < 66 and any("--published all" in note for note in some.notes)
    assert any("the page Runs has the command" in sentence for sentence in sentences)
    options = [sentence for sentence in sentences if "--" in sentence]
    assert all("--sandbox none" in sentence or "--published all" in sentence for sentence in options)
    lines = make_table({"es": [0.5] * 3}, "abc", benchmark="projbench")
    beside = board([lines], published="auto")
    assert any("below More choices" in note for note in view.published(beside, beside.groups[0])[0].notes)


def test_metrics_and_levels_that_can_be_chosen() -> None:
    runs = [make_table({"em": [0.0, 1.0], "es": [0.5, None]}, ["r"] * 2)]
    assert metrics(runs) == ["es", "em"] and view.levels(runs) == ["all"]
    assert metrics([]) == [] and metrics([make_table({}, ["r"])]) == []


def rows(home: Home, *arguments: str) -> list[dict[str, Any]]:
    result = run_cli("leaderboard", "--home", str(home.root), "--format", "json", *arguments)
    assert result.code == 0, result.err
    records: list[dict[str, Any]] = json.loads(result.out)
    # Limited runs have no ranking with the others.
    return [row for row in records if "[:" not in row["samples"]]


_AMOUNTS = {
    "tokens": "context_tokens",
    "calls": "calls",
    "seconds": "seconds",
    "tokens in": "tokens_in",
    "tokens out": "tokens_out",
    "cached": "tokens_cached",
    "explored": "explored_files",
}


def expected(record: dict[str, Any], metric: str, names: dict[str, str]) -> dict[str, Any]:
    """Return what the page must show of a row of the JSON, which has full precision: heading -> cell."""
    value = record[metric]
    cells: dict[str, Any] = {name: record[name] for name in ("strategy", "n", "origin")}
    cells["missing"] = record["missing"]
    ranks = sorted({record["rank_low"], record["rank_high"]})
    cells["rank"] = "-".join(map(str, ranks))
    cells[_heading(metric)] = value["mean"]
    cells["by repo"] = float(
        numbers.written(value["mean_of_repositories"], numbers.half_width(value["low"], value["high"]))
    )
    cells |= {"beats": ", ".join(names[run] for run in record["beats"]) or None, "needs": record["repositories_needed"]}
    for name, key in _AMOUNTS.items():
        cells[name] = record[key]
    if other := record["difference"].get(metric):
        cells[f"to {record['baseline']}"] = other["mean"]
        cells["p"] = other["p"]
    for name, value in record.items():
        if isinstance(value, dict) and "mean" in value and name not in (metric, "made_up_names"):
            cells[_heading(name)] = value["mean"]
    return cells


def _heading(metric: str) -> str:
    unit = "" if metric == "bits" else " bits" if metric in ("context_gain", "block_gain") else " %"
    return f"{metric}{unit} [95%]"


def _width(value: Any) -> float | None:
    return numbers.half_width(value["low"], value["high"]) if isinstance(value, dict) and "low" in value else None


def check(lines: list[dict[str, Any]], records: list[dict[str, Any]], metric: str) -> None:
    """Compare every cell of a table with the JSON, and ask for every number of the JSON that is there at all."""
    assert len(lines) == len(records) > 0
    names = {row["run"]: row["strategy"] for row in records}
    full = [expected(row, metric, names) for row in records]
    alike = {"by repo"} if any(_width(row[metric]) == 0 for row in records) else set()
    headings = set(lines[0]) - {"compare", "samples"}
    assert headings <= {name for row in full for name in row}
    for line, row in zip(lines, full, strict=True):
        for name, value in row.items():
            if name not in headings:
                # A column that is empty in every row is left out.
                assert all(record.get(name) is None for record in full), name
                continue
            cell = line[name]
            missing = cell is None or cell != cell
            # Where all repositories agree, an interval of nothing is 0 in the JSON, and its digits a matter of noise.
            same = cell == value or (name in alike and cell == pytest.approx(value, abs=0.051))
            same = same or (name in _AMOUNTS and value is not None and shows_amount(cell, value))
            # The JSON has six decimals.
            exact = name == "p" or name.startswith("to ") or name.endswith("[95%]")
            same = same or (exact and cell == pytest.approx(value, abs=1e-6))
            assert missing if value is None else same, (row["strategy"], name, cell, value)
        assert all(line[name] is None or line[name] != line[name] for name in headings - row.keys())


@pytest.mark.slow
def test_every_number_of_the_page_is_the_json(database: Home) -> None:
    records = [*rows(database, "--samples", "demo"), *rows(database, "--samples", "functions")]
    for samples, generator, metric in (
        ("demo", "incontext", "context_gain"),
        ("demo", HARMFUL, "es"),
        ("functions", "scripted", "pass@1"),
    ):
        test = app("leaderboard", database.root, samples=samples, generator=generator)
        assert not test.exception, test.exception
        matching = [row for row in records if (row["samples"], row["generator"]) == (samples, generator)]
        check(test.dataframe[0].value.to_dict("records"), matching, metric)


@pytest.mark.slow
def test_another_metric_and_baseline_rank_anew(database: Home) -> None:
    query = {"samples": "demo", "generator": "incontext", "metric": "es", "baseline": "lc.repocoder"}
    lines = app("leaderboard", database.root, **query).dataframe[0].value.to_dict("records")
    records = rows(database, "--samples", "demo", "--metric", "es", "--baseline", "lc.repocoder")
    check(lines, [row for row in records if row["generator"] == "incontext"], "es")
    assert "to lc.repocoder" in lines[0]


@pytest.mark.slow
def test_a_control_is_no_baseline_unasked_and_no_row_is_compared_with_itself(tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_set(home)
    for strategy in ("gold", "mine/own.py@own", "other"):
        ended(home, strategy=strategy)
    page = app("leaderboard", home.root)
    [baseline] = [box for box in page.selectbox if box.label == "Baseline"]
    assert (baseline.value, baseline.options) == ("own.py@own", ["gold", "other", "own.py@own"])
    lines = page.dataframe[0].value.to_dict("records")
    compared = {line["strategy"] for line in lines if str(line["compare"]).startswith("/compare?")}
    assert compared == {"gold (control)", "other"}


@pytest.mark.slow
def test_the_csv_is_the_commands(database: Home) -> None:
    from ctxbench.dashboard import data

    app("leaderboard", database.root, samples="demo", generator="incontext")
    ranked = data.board("demo", "python", "incontext")
    text = view.csv(ranked, ranked.groups[0])
    result = run_cli("leaderboard", "--home", str(database.root), "--samples", "demo", "--format", "csv")
    printed = [row for row in csv.DictReader(io.StringIO(result.out)) if "[:" not in row["samples"]]
    printed = [row for row in printed if row["generator"] == "incontext"]
    ours = list(csv.DictReader(io.StringIO(text)))
    assert len(ours) == len(printed) == len(STRATEGIES)
    for line, other in zip(ours, printed, strict=True):
        assert line == {name: other[name] for name in line}


@pytest.mark.slow
def test_the_browser_shows_the_same_numbers(database: Home, server: Site, page: Page) -> None:
    server.visit(page, "leaderboard", samples="demo", generator="incontext")
    records = [row for row in rows(database, "--samples", "demo") if row["generator"] == "incontext"]
    for line, row in zip(cells(page), records, strict=True):
        for name, text in expected_of_sight(row).items():
            # A number is read aloud as itself; that its text is seen says the next test.
            alike = (
                float(line[name]) == pytest.approx(row[name.split()[0]]["mean"], abs=1e-6)
                if "[" in text
                else line[name] == text
            )
            assert alike, (name, line[name], text)
    assert page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").count() == 1
    assert "metric=context_gain" in page.url and "baseline=lc.infile" in page.url


@pytest.mark.slow
def test_what_is_seen_has_the_digits_of_the_command(database: Home) -> None:
    from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

    [sent] = [
        element.proto for element in app("leaderboard", database.root, samples="demo", generator="incontext").dataframe
    ]
    displayed = convert_arrow_bytes_to_pandas_df(sent.arrow_data.styler.display_values).to_dict("records")
    records = [row for row in rows(database, "--samples", "demo") if row["generator"] == "incontext"]
    for line, row in zip(displayed, records, strict=True):
        full = expected_of_sight(row)
        assert {name: line[name] for name in full} == full
    other = records[0]["difference"]["context_gain"]
    assert displayed[0]["p"] == numbers.p_value(other["p"])


def expected_of_sight(row: dict[str, Any]) -> dict[str, str]:
    """Return the first cells as they are seen: numbers with the digits of the command."""
    ranks = sorted({row["rank_low"], row["rank_high"]})
    means = {
        _heading(name): numbers.interval(row[name]["mean"], row[name]["low"], row[name]["high"])
        for name in ("context_gain", "em", "es", "id_f1")
    }
    return {"rank": "-".join(map(str, ranks)), "strategy": row["strategy"], **means}


@pytest.mark.slow
def test_a_view_is_shared_by_its_address_and_left_by_going_back(server: Site, page: Page) -> None:
    server.visit(page, "leaderboard", samples="demo", generator="incontext", metric="em")
    shared = page.url
    page.get_by_role("combobox", name="Metric").focus()
    page.keyboard.type("es")
    page.keyboard.press("Enter")
    page.wait_for_url("**metric=es**")
    page.go_back()
    page.wait_for_url(shared)
    settled(page)
    server.check(page)


@pytest.mark.slow
def test_the_site_opens_with_the_leaderboard(server: Site, page: Page) -> None:
    server.visit(page, "")
    page.wait_for_url("**/leaderboard?**")
    settled(page)
    server.check(page)
    assert page.locator("h1").inner_text() == "Leaderboard"


@pytest.mark.slow
def test_on_a_phone_nothing_is_wider_than_the_screen(server: Site, page: Page) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    server.visit(page, "leaderboard", samples="demo")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= PHONE[0]


@pytest.mark.slow
def test_a_harmful_name_is_text(server: Site, page: Page) -> None:
    server.visit(page, "leaderboard", samples="demo", generator=HARMFUL)
    assert cells(page)[0]["strategy"] == PLANTED.strip()
    assert page.get_by_text("<script>window.harmed = 1</script>").count() > 0
    for selector in ("img[src=x]", "a[href*='harm.example']", "strong strong", "[data-testid=stMain] script"):
        assert page.locator(selector).count() == 0, selector


@pytest.mark.slow
def test_a_choice_is_carried_to_the_next_page(server: Site, page: Page) -> None:
    server.visit(page, "leaderboard", samples="functions", metric="em")
    page.get_by_role("link", name="Cost").click()
    page.wait_for_url("**/cost?**")
    settled(page)
    server.check(page)
    assert "samples=functions" in page.url and "metric=em" in page.url
