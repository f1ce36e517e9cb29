"""An external metric and a new column are shown, ranked and bounded as declared, in every output format."""

import csv
import dataclasses
import io
import json

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.dashboard.report import html, report
from ctxbench.harness import metrics
from ctxbench.harness.leaderboard import Board, board, columns, render, sections
from ctxbench.harness.leaderboard.columns import COLUMNS, cost_column
from ctxbench.harness.leaderboard.latex import latex
from ctxbench.harness.leaderboard.render import markdown, table
from ctxbench.harness.leaderboard.scales import scale_of
from ctxbench.harness.metrics import MetricInfo, Profile, Values, profile
from ctxbench.harness.results import RunTable, Status
from tests.helpers.runs import make_table

REPOS = [f"r{n % 8}" for n in range(16)]
EDITS = MetricInfo(
    name="edits",
    help="Characters to insert, delete or replace until the completion is the reference.",
    source="a test",
    unit="edits",
    lower_is_better=True,
    bounds=(0.0, None),
)


def score(_language: str, _prompt: str, prediction: str, ground_truth: str) -> Values:
    return {"edits": float(abs(len(prediction) - len(ground_truth)))}


@pytest.fixture(autouse=True)
def _edits() -> None:
    profile(Profile(name="edits", summary="Edits.", metrics=(EDITS,), score=score))


def runs(**columns: float) -> list[RunTable]:
    """Return a run for each strategy whose edits vary around the given number."""
    return [
        make_table({"edits": [mean + n % 3 for n in range(16)]}, REPOS, strategy=name, profile="edits")
        for name, mean in columns.items()
    ]


def test_fewer_edits_rank_first_and_keep_their_unit_and_scale() -> None:
    group = board(runs(many=140.0, few=1.0)).groups[0]
    assert (group.metric, [row.run.strategy for row in group.rows]) == ("edits", ["few", "many"])
    many = group.rows[1].metrics["edits"]
    assert many.mean is not None and many.high is not None and 140 < many.mean < many.high < 150
    text = table(board(runs(many=140.0, few=1.0)), columns=["edits"], explain=True)
    assert "edits [95%]" in text and "Ranked by edits (edits, lower is better;" in text and "%;" not in text


def test_intervals_are_cut_at_declared_bounds() -> None:
    values = [0.0] * 14 + [0.0, 9.0]
    made = make_table({"edits": values}, REPOS, strategy="few", profile="edits")
    estimate = board([made]).rows[0].metrics["edits"]
    assert estimate.low == 0.0 and estimate.high is not None and estimate.high > 1.0
    perfect = board([make_table({"edits": [0.0] * 16}, REPOS, strategy="few", profile="edits")]).rows[0]
    assert (perfect.metrics["edits"].low, perfect.metrics["edits"].high) == (0.0, 0.0), "no range to be unsure over"


def test_a_failed_sample_without_a_worst_value_counts_as_its_own() -> None:
    status = [Status.SCORED, Status.MODEL_FAILED, Status.INFRA_FAILED]
    made = make_table({"edits": [2.0, 6.0, None]}, "abc", status=status, profile="edits")
    row = board([made]).rows[0]
    assert row.metrics["edits"].mean == 4.0 and row.sensitivity == {}, "what is missing could be any number"


def test_help_and_heading_come_from_the_declaration() -> None:
    scale = scale_of("edits", "edits")
    assert scale.help == f"{EDITS.help} In edits; lower is better." and scale.heading("edits") == "edits"
    assert (
        scale_of("ctxbench", "es").help.endswith(" In percent.") and scale_of("ctxbench", "es").heading("es") == "es %"
    )


def test_a_board_without_scores_of_the_profile_suggests_rescore() -> None:
    bare = make_table({"context_gain": [1.0, 2.0]}, "ab", strategy="bare", profile="edits")
    cure = "Strategies without scores of profile edits: bare. `ctxbench rescore --profile edits` adds"
    alone = table(board([bare]), width=400)
    assert "No run here has edits, so no run is ranked." in alone and cure in alone
    assert "Ranked by" not in alone, "no other metric under the profile's name"
    beside = table(board([*runs(few=1.0), bare]), width=400)
    assert "Not ranked, because they lack edits: bare." in beside and cure in beside
    # Generators that measure contexts are ranked by context metrics under every profile.
    measured = make_table({"copyable_bits": [1.0, 2.0]}, "ab", strategy="bare", profile="edits", generator="incontext")
    assert "has the best copyable_bits" in table(board([measured])) and cure in table(board([measured]), width=400)
    functions = make_table({"bits": [1.0, 2.0]}, "ab", strategy="bare", profile="edits", functions=True)
    assert "rescore" not in table(board([functions]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": " "}, "has no unit"),
        ({"help": ""}, "has no help"),
        ({"bounds": (1.0, 0.0)}, "has the bounds 1.0, 0.0"),
    ],
)
def test_an_incomplete_declaration_is_refused(changes: dict[str, object], message: str) -> None:
    fields = {"name": "edits", "help": "Edits.", "source": "a test", "unit": "edits"}
    with pytest.raises(InputFault, match=message):
        MetricInfo(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["bits", "pass", "pass@3", "context_gain"])
def test_a_profile_cannot_reuse_the_name_of_a_standard_column(name: str) -> None:
    clash = MetricInfo(name=name, help="Bits.", source="a test", unit="bits")
    with pytest.raises(InputFault, match="give it another name"):
        profile(Profile(name="clash", summary="Clash.", metrics=(clash,), score=score))
    assert "clash" not in metrics.PROFILES


HELP = "Mean energy of the machine for a sample, in joules."


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Board:
    """Return a board of runs with a new cost, declared as CONTRIBUTING.md says."""
    monkeypatch.setitem(COLUMNS, "energy", cost_column("energy", "energy J", HELP))
    for module, name in ((sections, "BESIDE"), (render, "RECORD")):
        assert getattr(module, name) is getattr(columns, name), "no other list says what stands there"
        monkeypatch.setattr(module, name, (*getattr(module, name), "energy"))
    runs = [make_table({"es": [0.5, 0.25]}, "ab", strategy=name) for name in ("lc.infile", "lc.repocoder")]
    return board([dataclasses.replace(run, costs={"energy": (2.5, 4.75)}) for run in runs])


def test_a_new_column_appears_in_every_format(shown: Board) -> None:
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


def test_shown_columns_have_help_and_recorded_columns_are_declared() -> None:
    assert all(COLUMNS[key].help for keys in (columns.RANKING, columns.BESIDE) for key in keys)
    assert set(columns.RECORD) <= set(COLUMNS)


def test_hover_text_and_report_name_the_source_of_a_metric() -> None:
    [group] = board([make_table({"es": [0.5], "pass@1": [1.0]}, "a")]).groups
    helps = {head.text: head.help for head in sections.screen_table(group, page=True).heads}
    assert "In percent. Source: ctxbench." in helps["es % [95%]"] and "Source: HumanEval." in helps["pass@1 %"]
    text = html(report(board([make_table({"es": [0.5]}, "a", profile="repocoder")]), {}))
    assert "Source: RepoCoder&#39;s released scorer." in text
