"""`ctxbench report`: one file with the numbers of the leaderboard, in which stored texts are never markup."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxbench.bench.escaping import visible
from ctxbench.bench.home import Home
from ctxbench.dashboard import report as page
from ctxbench.dashboard.views.leaderboard import Axis
from ctxbench.harness.leaderboard import board, scales
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store import open_store
from ctxbench.harness.store.write import StoredCompletion
from tests.dashboard.browser import DESKTOP, PHONE
from tests.dashboard.test_show import contrast
from tests.harness.leaderboard.test_levels import coder_eval
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.runs import make_table

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "</bdi></td><script>alert(1)</script><img src=x onerror=alert(2)> *a* [b](javascript:c) \"q' &amp; \u202e\x0b"
VOID = {"meta", "img", "br", "link", "input", "hr", "circle", "line"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    def all(self, tag: str) -> Iterator[Node]:
        for child in self.children:
            if isinstance(child, Node):
                if child.tag == tag:
                    yield child
                yield from child.all(tag)

    def nodes(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.nodes()

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children).strip()


class Tree(HTMLParser):
    """A strict parser of a page: every element must be closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Node("#", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def read(text: str) -> Node:
    return Tree(text).root


def lines(table: Node) -> list[list[str]]:
    """Return the headings and the cells of a table, without its drawings."""
    fields = [[node for node in row.children if isinstance(node, Node)] for row in table.all("tr")]
    drawn = [at for at, field in enumerate(fields[0]) if "bar" in str(field.attributes.get("class")).split()]
    return [[field.text for at, field in enumerate(row) if at not in drawn] for row in fields]


def fill(home: Path, *names: str, attempts: bool = True) -> dict[str, RunSpec]:
    """Store one run per strategy over 12 samples in 6 repositories. Later strategies score higher."""
    samples = [sample for repo in "abcdef" for sample in make_samples(2, f"org/{repo}")]
    specs = {}
    with open_store(f"sqlite:///{home / 'results.db'}") as store:
        store.add_generations([make_generation()])
        for place, name in enumerate(names):
            specs[name] = make_spec(strategy=name)
            run = store.add_run(specs[name], samples)
            attempt = store.start_attempt(run, "cells") if attempts else 0
            for index, sample in enumerate(samples):
                es = min(1.0, 0.2 + 0.25 * place + 0.01237 * (index * (7 + 4 * place) % 13))
                completion = StoredCompletion(
                    generation_id="g",
                    status=make_finished(sample.id).status,
                    text="1",
                    flags=(),
                    scores={
                        ("ctxbench", "es"): es,
                        ("ctxbench", "em"): float(index % 3 == 0),
                        ("context", "bits"): 3 - es,
                    },
                )
                store.add_finished(run, "c", make_finished(sample.id, completions=(completion,)))
            if attempts:
                store.end_attempt(attempt, reason="done", finished=len(samples), missing=0)
    return specs


def report(home: Path, out: Path, *options: str) -> Result:
    return run_cli("report", "--home", str(home), "--out", str(out), *options)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    fill(home, "lc.infile", "lc.repocoder(window=20)", HOSTILE)
    return home


def test_every_number_equals_that_of_the_leaderboard(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert report(home, out).code == 0
    records = json.loads(run_cli("leaderboard", "--home", str(home), "--format", "json").out)
    ranking, beside, *_ = read(out.read_text(encoding="utf-8")).all("table")
    head, *rows = lines(ranking)
    assert len(rows) == len(records) == 3
    for row, record in zip(rows, records, strict=True):
        cell = dict(zip(head, row, strict=True))
        es = record["es"]
        assert cell["es % [95%]"] == scales.interval(es["mean"], es["low"], es["high"])
        assert cell["n"] == "12" and not {"group", "missing"} & set(cell)
        low, high = record["rank_low"], record["rank_high"]
        assert cell["rank"] == (str(low) if low == high else f"{low}-{high}")
        if record["baseline"]:
            difference = record["difference"]["es"]
            assert cell["vs lc.infile"] == scales.interval(
                difference["mean"], difference["low"], difference["high"], sign=True
            )
            assert cell["p"] == scales.p_value(difference["p"])
    head, *rows = lines(beside)
    for row, record in zip(rows, records, strict=True):
        cell = dict(zip(head, row, strict=True))
        assert cell["em % [95%]"] == scales.interval(*(record["em"][part] for part in ("mean", "low", "high")))
        assert [cell[name] for name in ("calls", "seconds")] == ["1", "0.75"]


def test_bars_are_drawn_at_their_numbers(home: Path, tmp_path: Path) -> None:
    report(home, tmp_path / "r.html", "--metric", "em")
    records = json.loads(run_cli("leaderboard", "--home", str(home), "--metric", "em", "--format", "json").out)
    table = next(iter(read((tmp_path / "r.html").read_text(encoding="utf-8")).all("table")))
    (scale,) = (span for span in table.all("span") if span.attributes["class"] == "track ticks")
    ticks = [(percent(tick, "left"), float(tick.text)) for tick in scale.all("i")]
    assert len(ticks) >= 2
    (x0, v0), (x1, v1) = ticks[0], ticks[-1]
    drawn = [field for field in table.all("td") if field.attributes.get("class") == "bar"]
    assert len(drawn) == len(records)
    for cell, record in zip(drawn, records, strict=True):
        parts = {part.attributes["class"]: part for part in cell.all("i")}
        low = percent(parts["reach"], "left")
        places = percent(parts["mean"], "left"), low, low + percent(parts["reach"], "width")
        drawn_ends = tuple(v0 + (place - x0) * (v1 - v0) / (x1 - x0) for place in places)
        numbers_of_cli = tuple(record["em"][part] for part in ("mean", "low", "high"))
        assert drawn_ends == pytest.approx(numbers_of_cli, abs=0.3)


def percent(part: Node, name: str) -> float:
    """Return a length from the style of a drawing's part, in percent of its cell."""
    style = dict(field.split(":") for field in str(part.attributes["style"]).split(";"))
    return float(style[name].removesuffix("%"))


@pytest.mark.slow
def test_stored_texts_are_never_markup(home: Path, tmp_path: Path) -> None:
    report(home, tmp_path / "hostile.html")
    other = tmp_path / "tame"
    other.mkdir()
    fill(other, "lc.infile", "lc.repocoder(window=20)", "tame")
    report(other, tmp_path / "tame.html")
    hostile, tame = (read((tmp_path / f"{name}.html").read_text(encoding="utf-8")) for name in ("hostile", "tame"))
    for node, other in zip(hostile.nodes(), tame.nodes(), strict=True):
        assert (node.tag, node.attributes) == (other.tag, other.attributes)
    assert "script" not in {node.tag for node in hostile.nodes()}
    printable = visible(HOSTILE)
    assert [heading.text for heading in hostile.all("th")].count(printable) == 2


def test_the_page_loads_nothing_and_allows_only_its_own_style(home: Path, tmp_path: Path) -> None:
    report(home, tmp_path / "r.html")
    tree = read((tmp_path / "r.html").read_text(encoding="utf-8"))
    policy = next(
        meta
        for meta in tree.all("meta")
        if (meta.attributes.get("http-equiv") or "").lower() == "content-security-policy"
    )
    assert re.fullmatch(
        r"default-src 'none'; style-src-elem 'sha256-[\w+/=]{44}'; style-src-attr 'unsafe-inline'; base-uri 'none'; "
        r"form-action 'none'",
        policy.attributes["content"] or "",
    )
    for node in tree.nodes():
        assert not {"src", "srcset", "action", "data"} & node.attributes.keys()
        assert re.fullmatch(r"(?:left:[\d.]+%(?:;width:[\d.]+%)?)?", node.attributes.get("style") or "")
        assert not any(name.startswith("on") for name in node.attributes)
        assert node.attributes.get("href", "#").startswith("#")  # type: ignore[union-attr]
    assert "url(" not in next(iter(tree.all("style"))).text and "@import" not in next(iter(tree.all("style"))).text
    for table in tree.all("table"):
        assert next(iter(table.all("caption"))).text
        assert all(heading.attributes.get("scope") in ("col", "row") for heading in table.all("th"))


def test_reports_of_the_same_runs_are_equal_and_dated_by_the_newest_run(home: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "one.html", tmp_path / "two.html"
    second.write_text("what stood here before", encoding="utf-8")
    report(home, first)
    report(home, second)
    assert first.read_bytes() == second.read_bytes()
    assert re.search(r"Newest run: 20\d\d-\d\d-\d\d \d\d:\d\d UTC", first.read_text(encoding="utf-8"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "one.html", "two.html"]


def test_the_report_contains_the_command_of_each_row(home: Path, tmp_path: Path) -> None:
    report(home, tmp_path / "r.html")
    text = read((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert "ctxbench run --samples demo --strategy 'lc.repocoder(window=20)' --generator scripted" in text
    assert "d" * 64 in text and make_spec(strategy="lc.infile").id in text
    assert "Ranked by es (%; mean over samples" in text and "sign flips of whole repositories" in text


def test_faults_are_one_line_and_keep_the_old_file(home: Path, tmp_path: Path) -> None:
    untouched = tmp_path / "kept.html"
    untouched.write_text("old", encoding="utf-8")
    assert_fault(report(home, tmp_path / "none" / "r.html"), "the folder does not exist", "--out")
    assert_fault(report(home, tmp_path), "is a folder")
    assert_fault(report(home, tmp_path / "table.tex"), "a report is an HTML file", "leaderboard --format")
    assert_fault(report(home, untouched, "--metric", "esprit"), "esprit")
    assert_fault(report(home, untouched, "--samples", "demmo"), "demo")
    assert_fault(report(tmp_path / "nowhere", untouched), "no runs are stored")
    assert untouched.read_text(encoding="utf-8") == "old"
    assert not (tmp_path / "nowhere").exists()


def test_levels_and_published_rows_have_separate_tables(tmp_path: Path) -> None:
    ranked = board([coder_eval()], published="auto")
    tree = read(page.html(page.report(ranked, {})))
    titles = [heading.text for heading in tree.all("h2")]
    at = next(index for index, text in enumerate(titles) if text.startswith("published numbers"))
    section = list(tree.all("section"))[at]
    assert "never ranked" in section.text and not list(section.all("i"))
    captions = [caption.text for caption in tree.all("caption")]
    assert "pass@1 by level" in captions and any(caption.endswith("as printed") for caption in captions)
    assert not re.search(r"Newest run", tree.text)


def test_scores_per_budget_are_a_table_below_the_ranking() -> None:
    runs = [
        make_table({"es": [at / 10] * 4}, "abcd", id=f"{name}{at}", strategy=f"{name}(budget={4**at})")
        for name in "ab"
        for at in (1, 2)
    ]
    tree = read(page.html(page.report(board(runs), {})))
    table = list(tree.all("table"))[-1]
    assert next(iter(table.all("caption"))).text == "es over budget, with 95% intervals"
    names, *values = zip(
        *([cell.text for cell in row.children if isinstance(cell, Node)] for row in table.all("tr")), strict=True
    )
    assert [head for head, *_ in values] == ["budget 4", "budget 16"] and len(names) == 3
    assert values[0][1].startswith("10") and not list(tree.all("script"))


def test_a_group_without_a_single_value_has_no_bars() -> None:
    from ctxbench.harness.results import Status

    failed = make_table({"es": [None] * 3}, "abc", status=[Status.INFRA_FAILED] * 3)
    tree = read(page.html(page.report(board([failed]), {})))
    assert not list(tree.all("i")) and "no run is ranked" in tree.text


def test_the_report_of_an_empty_board_says_that_no_runs_are_stored() -> None:
    assert "No runs are stored." in read(page.html(page.report(board([]), {}))).text


@pytest.mark.parametrize(
    ("least", "most"),
    [(0.0, 100.0), (41.2, 41.9), (-3.0, 12.0), (99.99999, 100.0), (-1e-9, 1e-9), (5.0, 5.0), (0.0, 0.0)],
)
def test_axes_contain_their_intervals_and_have_ticks(least: float, most: float) -> None:
    mean = (least + most) / 2
    scale = Axis.of([(mean, least, most), (mean, None, None)])
    assert scale is not None
    assert 0 <= scale.place(least) <= scale.place(most) <= 100
    assert 1 <= len(scale.ticks) <= 6 and all(0 <= tick.x <= 100 for tick in scale.ticks)
    bar = scale.bar((mean, None, None))
    assert bar.low == bar.mean == bar.high and math.isfinite(bar.mean)


def test_contrast_is_sufficient_in_both_schemes() -> None:
    css, drawn = (
        (Path(page.__file__).parent / name).read_text(encoding="utf-8") for name in ("report.css", "table.css")
    )
    marks = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", drawn))
    assert len(marks) == 3
    for colours in re.findall(r":root \{(.*?)\}", css):
        palette = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", colours))
        for name in ("ink", "soft", "first"):
            for ground in ("ground", "shade"):
                assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground, colours)
        assert all(contrast(colour, palette["ground"]) >= 3 for colour in marks.values())


_TABLES = """() => [...document.querySelectorAll("section")].map(section => ({
    title: section.querySelector("h2").innerText,
    rows: [...section.querySelector("table").rows].map(row => [...row.cells].map(cell => cell.innerText.trim())),
}))"""


@pytest.mark.slow
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_a_browser_shows_the_report(
    database: Home, browser: Browser, tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    out = tmp_path / "report.html"
    assert run_cli("report", "--home", str(database.root), "--out", str(out)).code == 0
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(out.as_uri())
    # If the policy refused the style sheet, the page would have the browser's default style and report an error.
    assert page.evaluate("getComputedStyle(document.querySelector('caption')).textAlign") == "left"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 29)")
    tables = page.evaluate(_TABLES)
    context.close()
    assert (errors, requests) == ([], [out.as_uri()])
    _same_numbers(tables, database)


def _same_numbers(tables: list[dict[str, object]], database: Home) -> None:
    records = json.loads(run_cli("leaderboard", "--home", str(database.root), "--format", "json").out)
    records = [record for record in records if record["origin"] != "published" and record["language"] != "both"]
    cells = []
    for section in tables:
        head, *rows = section["rows"]  # type: ignore[misc]
        at = next((place for place, text in enumerate(head) if text.endswith("[95%]")), None)
        cells += [] if at is None else [row[at] for row in rows]
    expected = []
    for record in records:
        value = record.get(record["ranked_by"])
        expected.append(scales.interval(value["mean"], value["low"], value["high"]) if value else scales.UNKNOWN)
    assert cells == expected and len(expected) > 3
