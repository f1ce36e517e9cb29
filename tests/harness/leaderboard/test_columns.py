"""A column of the leaderboard is declared once, and stands wherever its key is listed."""

import csv
import dataclasses
import io
import json

import pytest

from ctxbench.dashboard.report import html, report
from ctxbench.harness.leaderboard import Board, board, columns, render, sections
from ctxbench.harness.leaderboard.columns import COLUMNS, cost_column
from ctxbench.harness.leaderboard.latex import latex
from ctxbench.harness.leaderboard.render import markdown, table
from tests.helpers.runs import make_table

HELP = "Mean energy of the machine for a sample, in joules."


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Board:
    """Return a board of runs with a cost that no list named before, declared as CONTRIBUTING.md says."""
    monkeypatch.setitem(COLUMNS, "energy", cost_column("energy", "energy J", HELP))
    for module, name in ((sections, "BESIDE"), (render, "RECORD")):
        assert getattr(module, name) is getattr(columns, name), "no other list says what stands there"
        monkeypatch.setattr(module, name, (*getattr(module, name), "energy"))
    runs = [make_table({"es": [0.5, 0.25]}, "ab", strategy=name) for name in ("lc.infile", "lc.repocoder")]
    return board([dataclasses.replace(run, costs={"energy": (2.5, 4.75)}) for run in runs])


def test_a_new_column_stands_in_every_form(shown: Board) -> None:
    asked = table(shown, columns=["energy"])
    assert "energy J" in asked and "3.62" in asked and "energy" not in table(shown)
    assert "| energy J |" in markdown(shown) and "| 3.62 |" in markdown(shown)
    assert "energy J" in latex(shown) and "3.62" in latex(shown)
    assert [record["energy"] for record in json.loads(render.to_json(shown))] == [3.625, 3.625]
    assert [line["energy"] for line in csv.DictReader(io.StringIO(render.to_csv(shown)))] == ["3.625", "3.625"]
    assert f'<abbr title="{HELP}"><bdi>energy J</bdi></abbr>' in html(report(shown, {}))
    [group] = shown.groups
    table_of_page = sections.screen_table(group, page=True)
    [at] = [at for at, head in enumerate(table_of_page.heads) if (head.text, head.help) == ("energy J", HELP)]
    assert [line[at] for line in table_of_page.lines] == ["3.62", "3.62"]


def test_every_shown_column_has_help_and_every_key_of_a_list_is_declared() -> None:
    assert all(COLUMNS[key].help for keys in (columns.RANKING, columns.BESIDE) for key in keys)
    assert set(columns.RECORD) <= set(COLUMNS)


def test_hover_text_and_report_say_where_a_metric_is_from() -> None:
    [group] = board([make_table({"es": [0.5], "pass@1": [1.0]}, "a")]).groups
    helps = {head.text: head.help for head in sections.screen_table(group, page=True).heads}
    assert "In percent. Source: ctxbench." in helps["es % [95%]"] and "Source: HumanEval." in helps["pass@1 %"]
    text = html(report(board([make_table({"es": [0.5]}, "a", profile="repocoder")]), {}))
    assert "Source: RepoCoder&#39;s released scorer." in text
