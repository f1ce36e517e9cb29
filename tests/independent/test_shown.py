"""Displayed numbers: pages and tables show the numbers of the JSON, rounded by their interval."""

import re
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.dashboard.views.leaderboard import ranking
from ctxbench.harness.leaderboard import board as make_board
from ctxbench.harness.leaderboard.columns import heading
from ctxbench.harness.query import BoardQuery
from tests.independent.drawing import Made
from tests.independent.test_recomputed import board

SEEDS = (0, 3, 4, 8, 12, 17)


@pytest.fixture(scope="module", params=SEEDS)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database of runs."""
    path = tmp_path_factory.mktemp("shown") / "results.db"
    Made(request.param).write(path)
    return path


def assert_rounded(text: str, number: float, low: float | None, high: float | None) -> None:
    """Check that a text is the number rounded to two digits of half its interval, or to one decimal without it."""
    half = None if low is None or high is None else (high - low) / 2
    decimals = 1 if not half else 0 if half >= 10 else 1 if half >= 1 else 2
    digits = text.partition(".")[2]
    assert len(digits) == decimals, (text, number, half)
    # The JSON itself is rounded to six decimals.
    assert abs(float(text) - number) <= 0.5 * 10**-decimals + 1e-6, (text, number)
    assert text.lstrip("+") not in ("-0", "-0.0", "-0.00")


def test_the_leaderboard_page_shows_the_jsons_numbers(stored: Path) -> None:
    tables = BoardQuery(home=Home(stored.parent), db=f"sqlite:///{stored}").tables()
    records = {(one["run"], one["language"]): one for one in board(stored)}
    shown = 0
    for group in make_board(tables).groups:
        table = ranking(group, {}, ("n", "missing", "mean_of_repositories"))
        heads = [head.text for head in table.heads]
        for cells, row in zip(table.lines, group.rows, strict=True):
            line = dict(zip(heads, cells, strict=True))
            record = records.pop((row.run.id, row.run.language))
            shown += _shown(line, record, heading(group, group.metric))
            ranks = "-" if record["rank_low"] is None else f"{record['rank_low']}-{record['rank_high']}"
            assert line["rank"] in (ranks, str(record["rank_low"]), "", "-")
            assert (line["n"], line["missing"]) == (str(record["n"]), str(record["missing"]))
    assert not records and shown


def _shown(line: dict[str, str], record: dict[str, Any], name: str) -> int:
    found, gap = record.get(record["ranked_by"]), record["difference"].get(record["ranked_by"])
    cells = [(f"{name} [95%]", found, ("mean", "low", "high"))]
    if record["baseline"]:
        versus = next((head for head in line if head.startswith("vs ")), "")
        cells += [("by repo", found, ("mean_of_repositories",)), (versus, gap, ("mean", "low", "high"))]
    count = 0
    for column, values, keys in cells:
        cell = line.get(column, "")
        if values is None or values[keys[0]] is None:
            assert cell in ("", "-")
            continue
        numbers = [values[key] for key in keys if values[key] is not None]
        for text, number in zip(re.findall(r"[-+]?[\d.]+", cell), numbers, strict=True):
            assert_rounded(text, number, values["low"], values["high"])
        count += 1
    return count
