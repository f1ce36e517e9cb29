"""The Leaderboard page shows only the board's numbers, with the usual rounding."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.dashboard.report import report
from ctxbench.dashboard.views import leaderboard as view
from ctxbench.dashboard.views import metrics
from ctxbench.harness.leaderboard import Group, board, scales
from ctxbench.harness.leaderboard.headline import headline
from ctxbench.harness.leaderboard.notes import PAGE, notes
from ctxbench.harness.results import Origin, RunTable, Status
from tests.dashboard.browser import Site, app, settled
from tests.dashboard.stored import HARMFUL, PLANTED, STRATEGIES, shows_amount
from tests.dashboard.test_report import lines, read
from tests.dashboard.test_runs_page import ended
from tests.helpers.cli import run_cli
from tests.helpers.runs import make_table
from tests.helpers.sets import make_set

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from streamlit.testing.v1 import AppTest

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


def table_of(group: Group, *more: str) -> list[dict[str, str]]:
    """Return the rows of the page's table from its markup: heading -> cell."""
    return page_table(view.markup(view.ranking(group, {}, more)))


def drawn_table(page: AppTest) -> list[dict[str, str]]:
    """Return the rows of a page's first drawn table: heading -> cell."""
    return page_table(next(element.proto.body for element in page.get("html") if "<table" in element.proto.body))


def page_table(markup: str) -> list[dict[str, str]]:
    head, *rows = lines(next(iter(read(markup).all("table"))))
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_lines_equal_the_rows_of_the_group_in_order(group: Group) -> None:
    found = table_of(group)
    assert [line["strategy"] for line in found] == ["repocoder", "infile", "theirs (imported)", "oracle (control)"]
    first, row = found[0], group.rows[0]
    value, difference = row.metrics["es"], row.difference["es"]
    assert first["es % [95%]"] == scales.interval(value.mean, value.low, value.high)
    assert first["vs infile"].startswith("+50.0 [") and first["p"] == scales.p_value(difference.p)
    assert [line["rank"] for line in found] == ["1", "2", "-", "-"]
    assert [line["verdict"] for line in found] == ["better", "baseline", "not significant", "control"]


def test_a_verdict_states_the_result_of_the_test() -> None:
    base, low = table("lc.infile", [0.3] * 16), table("low", [0.1] * 16)
    part = table("part", [0.3] * 16, status=[Status.INFRA_FAILED] + [Status.SCORED] * 15)
    one, other = table("x", [0.3] * 2), table("y", [0.4] * 2)
    assert [line["verdict"] for line in table_of(board([base, low, part]).groups[0])] == [
        "baseline", "worse", "incomplete",
    ]  # fmt: skip
    assert table_of(board([one, other], baseline="x").groups[0])[0]["verdict"] == "not significant"
    bits = [make_table({"bits": [at] * 8}, "abcdefgh", id=name, strategy=name) for name, at in (("a", 9.0), ("b", 5.0))]
    assert table_of(board(bits, metric="bits", baseline="a").groups[0])[0]["verdict"] == "better", (
        "where lower is better"
    )


def test_empty_columns_are_hidden_and_more_columns_can_be_chosen(group: Group) -> None:
    assert "US$" not in table_of(group)[0] and "n" not in table_of(group)[0]
    assert {"n", "by repo", "origin"} <= set(table_of(group, "n", "mean_of_repositories", "origin")[0])
    more = view.more_columns(group)
    assert {"n", "origin", "beats"} <= set(more) and not {"p", "rank", "es", "rank_low"} & set(more)
    assert set(table_of(group, *more)[0]) > set(table_of(group)[0])


def test_cells_contain_links_and_full_names_are_below_short_ones(group: Group) -> None:
    links = {"lc.repocoder": {"strategy": "/samples?run=a&b=%22", "difference": "/compare?runs=a"}}
    tree = read(view.markup(view.ranking(group, links)))
    found = [(link.text, link.attributes["href"]) for link in tree.all("a")]
    assert found == [("repocoder", "/samples?run=a&b=%22"), (table_of(group)[0]["vs infile"], "/compare?runs=a")]
    assert not list(tree.all("small")), "nothing but the family is left out"
    same = [table(f"lc.infercom(encoder=bm25, fsr={fsr})", [0.5] * 16) for fsr in ("true", "false")]
    assert [small.text for small in read(view.markup(view.ranking(board(same).groups[0], {}))).all("small")] == [
        row.run.strategy for row in board(same).groups[0].rows
    ]


def test_the_headline_states_which_differences_are_significant(group: Group) -> None:
    assert headline(group).startswith("lc.repocoder has the best es: 60.75 [")
    assert "Significantly better than lc.infile: lc.repocoder." in headline(group)
    two = [table("a", [0.5, 0.6] * 8), table("b", [0.6, 0.5] * 8)]
    assert "No other strategy is significantly different from a" in headline(board(two).groups[0])
    assert "No pair is significantly different" in headline(board(two, all_pairs=True).groups[0])
    third = board([*two, table("c", [0.1] * 16)]).groups[0]
    assert "Significantly worse than a: c; not significantly different: b." in headline(third)
    third = board([*two, table("c", [0.1] * 16)], all_pairs=True).groups[0]
    assert "is not significantly better than b." in headline(third)
    strangers = board([table("a", [0.5] * 16), table("b", [0.6] * 16, first=100)]).groups[0]
    assert "No two of the tested rows share a completed sample" in headline(strangers)
    alone = board([table("a", [0.5] * 16)]).groups[0]
    assert "Only one row is ranked" in headline(alone)
    few = [make_table({"es": [0.1, 0.2]}, ["x", "y"], id=name, strategy=name) for name in "ab"]
    assert "with 2 repositories the smallest possible p is 0.500" in headline(board(few).groups[0])


def test_the_headline_claims_no_best_mean_if_easier_samples_inflate_another() -> None:
    easy = [index < 16 for index in range(32)]
    whole = table("a", [(0.9 if is_easy else 0.3) + index / 1000 for index, is_easy in enumerate(easy)])
    part = table("b", [0.8 + index / 1000 if is_easy else None for index, is_easy in enumerate(easy)])
    group = board([whole, part]).groups[0]
    first, second = group.ranked
    assert first.run.strategy == "a" and (first.metrics["es"].mean or 0) < (second.metrics["es"].mean or 0)
    assert headline(group).startswith("a ranks first, with es 61.55 [") and "best" not in headline(group)
    assert "Significantly worse than a: b." in headline(group)


def test_rows_are_styled_by_significance() -> None:
    same = board([table("a", [0.5, 0.6] * 8), table("b", [0.6, 0.5] * 8)]).groups[0]
    runs = [table("a", [0.5, 0.6] * 8), table("b", [0.6, 0.5] * 8), table("c", [0.1] * 16)]
    apart = board(runs, all_pairs=True).groups[0]
    for group, standings in ((same, ["undecided"] * 2), (apart, ["unbeaten", "unbeaten", "beaten"])):
        rows = read(view.markup(view.ranking(group, {}))).all("tr")
        assert [row.attributes["class"] for row in rows if "class" in row.attributes] == standings


def test_a_group_without_scores_is_reported_and_not_drawn() -> None:
    lost = make_table({}, ["r"] * 2, status=[Status.INFRA_FAILED] * 2, functions=True)
    group = board([lost]).groups[0]
    assert "nothing is ranked" in headline(group) and view.ranking(group, {}).drawn is None
    assert "pass@1" not in table_of(group)[0] and table_of(group, "missing")[0]["missing"] == "2"


def test_the_baseline_is_one_row_even_if_its_strategy_has_two() -> None:
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
    assert [line["verdict"] for line in table_of(group)] == ["better", "baseline", "incomplete"]
    [ranking, *_] = report(ranked, {}).sections[0].tables
    for drawn in (ranking.drawn, view.ranking(group, {}).drawn):
        assert drawn and drawn.bars[1] and drawn.bars[1].mean == drawn.base


def test_notes_on_a_page_refer_to_the_controls_of_the_page() -> None:
    status = [Status.SCORED] * 3 + [Status.INFRA_FAILED]
    values = {"pass@1": [1.0, 1.0, 0.0, None]}
    run: dict[str, Any] = {"functions": True, "benchmark": "codereval", "level": ["class_runnable"] * 4}
    ranked = board([make_table(values, "abcd", id="x", status=status, **run)], published="auto")
    [(_, some, remarks)] = view.published(ranked, ranked.groups[0])
    sentences = [*notes(ranked.groups[0], PAGE), *remarks]
    assert len(some.lines) < 66 and any("--published all" in note for note in remarks)
    assert any("the Runs page has the command" in sentence for sentence in sentences)
    options = [sentence for sentence in sentences if "--" in sentence]
    assert all("--sandbox none" in sentence or "--published all" in sentence for sentence in options)
    lines = make_table({"es": [0.5] * 3}, "abc", benchmark="projbench")
    beside = board([lines], published="auto")
    assert any("below More choices" in note for note in view.published(beside, beside.groups[0])[0][2])


def test_only_metrics_and_levels_with_scores_can_be_chosen() -> None:
    runs = [make_table({"em": [0.0, 1.0], "es": [0.5, None]}, ["r"] * 2)]
    assert metrics(runs) == ["es", "em"] and view.levels(runs) == ["all"]
    assert metrics([]) == [] and metrics([make_table({}, ["r"])]) == []


def rows(home: Home, *arguments: str) -> list[dict[str, Any]]:
    result = run_cli("leaderboard", "--home", str(home.root), "--format", "json", *arguments)
    assert result.code == 0, result.err
    records: list[dict[str, Any]] = json.loads(result.out)
    # Limited runs are ranked separately.
    return [row for row in records if "[:" not in row["samples"]]


def expected(record: dict[str, Any], metric: str, beside: set[str]) -> dict[str, str]:
    """Return the cells that the page must show for a row of the JSON, which has full precision: column -> cell."""

    def interval(of: dict[str, Any], *, sign: bool = False) -> str:
        return scales.interval(of["mean"], of["low"], of["high"], sign=sign)

    ranks = sorted({record["rank_low"], record["rank_high"]})
    cells = {"rank": "-".join(map(str, ranks)), "n": str(record["n"]), "missing": str(record["missing"])}
    cells |= {"origin": record["origin"], f"{metric} % [95%]": interval(record[metric])}
    if (other := record["difference"].get(metric)) and record["baseline"]:
        cells |= {"vs": interval(other, sign=True), "p": scales.p_value(other["p"])}
    for name, value in record.items():
        if name in beside:
            half = scales.half_width(value["low"], value["high"])
            cells[f"{name} %"] = scales.written(value["mean"], half)
    return cells


def check(found: list[dict[str, str]], records: list[dict[str, Any]], metric: str) -> None:
    assert len(found) == len(records) > 0
    for line, row in zip(found, records, strict=True):
        named = {"vs" if of.startswith("vs ") else of.replace("_bits ", "_bits % "): cell for of, cell in line.items()}
        beside = {"em", "es", "id_f1"} - {metric} if metric != "pass@1" else {"es", "id_f1"}
        full = expected(row, metric, beside)
        assert {name: named.get(name) for name in full} == full
        tokens = row["context_tokens"]
        cost = line.get("cost: tokens")
        assert cost is None if tokens is None else shows_amount(float(str(cost)), tokens)


_MORE = ("n", "missing", "origin")
_ANEW = {"metric": "es", "baseline": "lc.repocoder"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("samples", "generator", "metric", "choices"),
    [
        ("demo", "incontext", "copyable_bits", {}),
        ("demo", HARMFUL, "es", {}),
        ("functions", "scripted", "pass@1", {}),
        ("demo", "incontext", "es", _ANEW),
    ],
)
def test_every_number_of_the_page_equals_the_json(
    database: Home, samples: str, generator: str, metric: str, choices: dict[str, str]
) -> None:
    options = [word for name, value in choices.items() for word in (f"--{name}", value)]
    records = [row for row in rows(database, "--samples", samples, *options) if row["generator"] == generator]
    test = app("leaderboard", database.root, columns=_MORE, samples=samples, generator=generator, **choices)
    assert not test.exception, test.exception
    found = drawn_table(test)
    check(found, records, metric)
    assert ("vs repocoder" in found[0]) == bool(choices)


@pytest.mark.slow
def test_the_default_baseline_is_no_control_and_has_no_comparison_link(tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_set(home)
    for strategy in ("gold", "mine/own.py@own", "other"):
        ended(home, strategy=strategy)
    page = app("leaderboard", home.root)
    [baseline] = [box for box in page.selectbox if box.label == "Baseline"]
    assert (baseline.value, baseline.options) == ("own.py@own", ["gold", "other", "own.py@own"])
    [markup] = [element.proto.body for element in page.get("html") if "<table" in element.proto.body]
    compared = [link for link in read(markup).all("a") if str(link.attributes["href"]).startswith("/compare?")]
    verdicts = {line["strategy"]: line["verdict"] for line in page_table(markup)}
    assert verdicts["own.py@own"] == "baseline" and len(compared) == 2 == len(verdicts) - 1


@pytest.mark.slow
def test_the_csv_equals_that_of_the_command(database: Home) -> None:
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
    server.visit(page, "leaderboard", samples="demo", generator="incontext", columns=_MORE)
    records = [row for row in rows(database, "--samples", "demo") if row["generator"] == "incontext"]
    table = page.locator("table.board").first
    check(page_table(str(table.evaluate("table => table.outerHTML"))), records, "copyable_bits")
    means = [box["x"] for dot in table.locator("i.mean").all() if (box := dot.bounding_box())]
    gains = [row["copyable_bits"]["mean"] for row in records]
    assert sorted(range(len(means)), key=means.__getitem__) == sorted(range(len(gains)), key=gains.__getitem__)
    assert "metric=copyable_bits" in page.url and "baseline=lc.infile" in page.url
    board = page.url

    def follow() -> None:
        table.get_by_role("link").first.click()
        page.wait_for_url("**/samples?**")

    server.load(page, lambda: page.goto(board), follow)
    server.check(page)


@pytest.mark.slow
def test_a_choice_changes_the_address_and_going_back_undoes_it(server: Site, page: Page) -> None:
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
def test_a_harmful_name_is_shown_as_text(server: Site, page: Page) -> None:
    server.visit(page, "leaderboard", samples="demo", generator=HARMFUL)
    assert page.locator("table.board tbody th").first.inner_text() == PLANTED.strip()
    assert page.get_by_text("<script>window.harmed = 1</script>").count() > 0
    for selector in ("img[src=x]", "a[href*='harm.example']", "strong strong", "[data-testid=stMain] script"):
        assert page.locator(selector).count() == 0, selector


@pytest.mark.slow
def test_a_choice_is_carried_to_the_next_page(server: Site, page: Page) -> None:
    server.visit(page, "leaderboard", samples="functions", metric="em")
    board = page.url

    def follow() -> None:
        page.get_by_role("link", name="Cost").click()
        page.wait_for_url("**/cost?**")

    server.load(page, lambda: page.goto(board), follow)
    server.check(page)
    assert "samples=functions" in page.url and "metric=em" in page.url
