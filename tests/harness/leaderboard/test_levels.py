"""CoderEval's levels, invalid samples and means over both languages."""

import dataclasses
import json
from typing import Any

import pytest

from ctxbench.harness.leaderboard import board, render
from ctxbench.harness.leaderboard.notes import notes
from ctxbench.harness.leaderboard.rows import Row
from ctxbench.harness.results import Origin, RunTable, Status
from tests.helpers.runs import make_table

LEVELS = ("class_runnable", "class_runnable", "class_runnable", "file_runnable", "project_runnable", "self_contained")
PASSES = (1.0, 0.5, 0.0, 1.0, 0.25, 1.0)


def coder_eval(passes: tuple[float | None, ...] = PASSES, **changes: Any) -> RunTable:
    """Return a run over a set like CoderEval: three class tasks and one task of each other level."""
    levels = changes.pop("level", LEVELS)
    run = {"samples": "ce-python", "strategy": "icl.direct", "benchmark": "codereval", "functions": True, **changes}
    return make_table({"pass@1": passes}, [f"r{i % 2}" for i in range(len(levels))], level=levels, **run)


def rows(*tables: RunTable, **how: Any) -> dict[str, Row]:
    made = board(tables, **how)
    return {group.level: group.rows[0] for group in made.groups}


def test_only_codereval_sets_are_shown_by_level_by_default() -> None:
    assert list(rows(coder_eval())) == [
        "all", "class+file+project", "class_runnable", "file_runnable", "project_runnable", "self_contained",
    ]  # fmt: skip
    assert list(rows(coder_eval(), by_level=False)) == ["all"]
    assert list(rows(coder_eval(benchmark="ctxbench"))) == ["all"]
    asked = rows(coder_eval(benchmark="ctxbench"), by_level=True)
    assert list(asked) == ["all", "class_runnable", "file_runnable", "project_runnable", "self_contained"]
    assert all(one.metrics["pass@1"].mean_of_levels is None for one in asked.values())


def test_levels_have_equal_weight_in_the_mean_of_levels() -> None:
    found = {level: row.metrics["pass@1"] for level, row in rows(coder_eval()).items()}
    combined, every = found["class+file+project"], found["all"]
    assert (combined.n, combined.mean) == (5, pytest.approx(275 / 5))
    assert combined.mean_of_levels == pytest.approx((50 + 100 + 25) / 3)
    assert every.mean_of_levels == pytest.approx((50 + 100 + 25 + 100) / 4)
    assert found["class_runnable"].mean == 50 and found["class_runnable"].mean_of_levels is None


def test_a_missing_level_removes_the_mean_of_levels() -> None:
    status = [Status.SCORED] * 3 + [Status.INFRA_FAILED] + [Status.SCORED] * 2
    found = rows(coder_eval((1.0, 0.5, 0.0, None, 0.25, 1.0), status=status))
    assert found["class+file+project"].metrics["pass@1"].mean_of_levels is None
    assert found["all"].metrics["pass@1"].mean_of_levels is None
    lacks = rows(coder_eval((1.0, 0.5), level=("class_runnable", "self_contained")))
    assert lacks["class+file+project"].metrics["pass@1"].mean_of_levels is None
    assert lacks["all"].metrics["pass@1"].mean_of_levels == 75
    assert "class+file+project" not in rows(coder_eval((1.0,), level=("self_contained",)))


def both(**changes: Any) -> list[RunTable]:
    java = (0.0, 0.0, 0.3, 0.0, 1.0, 0.0)
    return [coder_eval(**changes), coder_eval(java, samples="ce-java", language="java", **changes)]


def test_both_languages_are_averaged_as_in_the_paper() -> None:
    [overall] = board(both()).overall
    mean = overall.metrics["pass@1"]
    assert mean.mean_of_levels == pytest.approx(((50 + 100 + 25) / 3 + (10 + 0 + 100) / 3) / 2)
    assert (mean.n, mean.mean) == (10, pytest.approx((275 + 130) / 10))
    record = next(one for one in render.records(board(both())) if one["language"] == "both")
    assert record["level"] == "class+file+project" and record["samples"] == "ce-java + ce-python"
    assert record["pass@1"] == {"mean": 40.5, "mean_of_levels": pytest.approx(47.5), "n": 10}
    assert (record["origin"], record["rank_low"], record["n"]) == ("run", None, 10)
    assert "47.50, the mean of the two languages'" in " ".join(render.table(board(both())).split())


@pytest.mark.parametrize("change", [{"strategy": "other"}, {"generator": "b"}, {"origin": Origin.IMPORTED}])
def test_different_runs_have_no_mean_over_both_languages(change: dict[str, Any]) -> None:
    python, _ = both()
    _, java = both(**change)
    assert board([python, java]).overall == ()
    assert board([python]).overall == board(both(), by_level=False).overall == ()
    assert board(both(benchmark="ctxbench"), by_level=True).overall == ()
    # Two sets with the same name and language have no mean either.
    assert board([*both(), coder_eval(samples_digest="e" * 64)]).overall == ()


def test_one_table_shows_all_levels_and_full_ranks_each_level() -> None:
    made = board([coder_eval(), coder_eval((0.0,) * 6, strategy="lc.infile")])
    text = render.table(made)
    [line] = [one for one in text.splitlines() if one.startswith("icl.direct") and "58.33" in one]
    assert line.split() == ["icl.direct", "50.00", "100.00", "25.00", "100.00", "55.00", "58.33"]
    assert "tasks: class 3, file 1, project 1, self_contained 1" in text
    explained = render.table(made, explain=True)
    assert explained.count("Ranked by") == 1 and "tasks: class 3, file 1, project 1" in explained
    assert "Level file has a single task, which alone moves the mean of 3 levels by 33.33." in text
    full = render.table(made, full=True, explain=True)
    assert full.count("Ranked by") == 6 and "ce-python, Python, class+file+project, by scripted" in full
    assert max(map(len, text.splitlines())) <= 120


def invalid(**changes: Any) -> RunTable:
    """Return a run whose file task is broken and whose self-contained task is vacuous."""
    status = [Status.SCORED] * 3 + [Status.EXCLUDED, Status.SCORED, Status.EXCLUDED]
    table = coder_eval(**{"status": status, **changes})
    return dataclasses.replace(table, mark=("", "", "", "broken", "", "vacuous"))


def test_excluded_invalid_samples_and_their_effect_are_reported() -> None:
    row = rows(invalid())["all"]
    assert (row.n, row.excluded, row.marks) == (4, 2, {"broken": 1, "vacuous": 1})
    found = row.metrics["pass@1"]
    assert (found.mean, found.mean_with_invalid) == (pytest.approx(175 / 4), pytest.approx(375 / 6))
    text = "\n".join(notes(board([invalid()]).groups[0]))
    assert "Invalid samples are left out: 2 (1 broken: the reference fails its tests; 1 vacuous" in text
    assert "If invalid samples counted, pass@1 would be: icl.direct 62.50 (--invalid include)" in text
    assert "Invalid samples are left out: 2" in render.table(board([invalid()]))


def test_included_invalid_samples_are_reported() -> None:
    row = rows(invalid(status=[Status.SCORED] * 6))["all"]
    found = row.metrics["pass@1"]
    assert row.excluded == 0 and found.mean == found.mean_with_invalid == pytest.approx(375 / 6)
    text = "\n".join(notes(board([invalid(status=[Status.SCORED] * 6)]).groups[0]))
    assert "Invalid samples are counted: 2 (1 broken" in text and "If invalid samples counted" not in text
    assert "arked" not in "\n".join(notes(board([coder_eval()]).groups[0]))


def test_a_level_of_only_invalid_samples_has_only_a_mean_with_invalid() -> None:
    record = next(one for one in render.records(board([invalid()])) if one["level"] == "file_runnable")
    assert (record["n"], record["excluded"], record["marks"]) == (0, 1, {"broken": 1})
    assert (record["pass@1"]["mean"], record["pass@1"]["mean_with_invalid"]) == (None, 100)
    assert record["rank_low"] is None
    assert render.table(board([invalid()]), full=True) and render.markdown(board([invalid()]), full=True)


def test_a_level_without_valid_samples_removes_the_mean_of_levels() -> None:
    found = rows(invalid())
    assert found["class+file+project"].metrics["pass@1"].mean_of_levels is None
    assert found["all"].metrics["pass@1"].mean_of_levels == pytest.approx((50 + 25) / 2)


def test_remarks_of_runs_appear_in_notes_json_and_csv() -> None:
    runs = [coder_eval(remarks=("hygiene is off",)), coder_eval(strategy="b", remarks=("hygiene is off", "only b"))]
    text = notes(board(runs).groups[0])
    assert "hygiene is off" in text and "b: only b" in text
    found = json.loads(render.to_json(board(runs, by_level=False)))
    assert sorted(one["remarks"] for one in found) == [["hygiene is off"], ["hygiene is off", "only b"]]
    assert "hygiene is off; only b" in render.to_csv(board(runs))


def test_imported_rows_are_marked_and_listed_below_runs() -> None:
    made = board([coder_eval(), coder_eval((0.0,) * 6, strategy="recorded", origin=Origin.IMPORTED)])
    assert [(row.run.origin, row.rank_low) for row in made.groups[0].rows] == [("run", 1), ("imported", None)]
    for text in (render.table(made, explain=True), render.markdown(made)):
        assert "recorded (imported)" in text and "recorded elsewhere" in " ".join(text.split())
    assert "recorded elsewhere" not in render.table(board([coder_eval()]))
