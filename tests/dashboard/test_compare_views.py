"""Tables of the Compare page, from plain values."""

import json
from dataclasses import replace
from html import escape

import pytest

from ctxbench.dashboard.views import compare as view
from ctxbench.dashboard.views import metrics
from ctxbench.dashboard.views.leaderboard import markup
from ctxbench.harness.leaderboard import render
from ctxbench.harness.leaderboard.compare import compare
from ctxbench.harness.results import Origin
from tests.harness.leaderboard.test_board import noisy
from tests.helpers.runs import make_run, make_table

BASE = noisy("lc.infile", 0.3, id="base")
BETTER = noisy("lc.repocoder", 0.5, id="better")
ALIKE = noisy("c", 0.3, id="c")
TABLES = (BASE, BETTER, ALIKE)
NAMES = {"base": "lc.infile", "better": "lc.repocoder", "c": "c"}
HARM = "<script>x</script> **b** [l](http://h)"


def test_labels_contain_only_what_distinguishes_the_runs() -> None:
    runs = [
        make_run(id="1", strategy="a", generator="g"),
        make_run(id="2", strategy="a", generator="h"),
        make_run(id="3", strategy="b", generator="g"),
        make_run(id="4", strategy="b", generator="g", origin=Origin.IMPORTED),
        make_run(id="5", strategy="c"),
        make_run(id="6", strategy="c"),
        make_run(id="7", strategy="d", generator="other"),
    ]
    assert view.labels(runs) == (
        "a · g", "a · h", "b · g · run", "b · g · imported", "c · scripted · 5", "c · scripted · 6", "d · other"
    )  # fmt: skip
    assert view.labels(runs[4:6]) == ("c · 5", "c · 6") and view.labels(runs[::2][:1]) == ("a",)
    assert view.labels([]) == ()


def test_rows_equal_those_of_the_json() -> None:
    compared = compare(TABLES, metric="es")
    rows = view.difference_rows(compared, NAMES)
    records_of_cli = json.loads(render.comparison_json(compared))
    assert (
        [row["strategy"] for row in rows] == [record["strategy"] for record in records_of_cli] == ["lc.repocoder", "c"]
    )
    for row, record in zip(rows, records_of_cli, strict=True):
        difference = record["difference"]
        # Numbers have two digits of the interval's half width, which is between 1 and 10 here.
        assert 1 <= (difference["high"] - difference["low"]) / 2 < 10
        assert row["difference [95%]"] == pytest.approx(difference["mean"])
        shown = f"{difference['mean']:+.1f} [{difference['low']:+.1f}, {difference['high']:+.1f}]"
        assert getattr(row["difference [95%]"], "text", "") == shown
        assert row["over"] == "by the test"
        assert row["p"] == pytest.approx(difference["p"], abs=1e-6)
        assert getattr(row["p"], "text", "") == f"{difference['p']:.3f}"
        assert (row["better"], row["equal"], row["worse"]) == (
            difference["wins"],
            difference["ties"],
            difference["losses"],
        )
        assert (row["common"], row["repositories"]) == (difference["n_common"], difference["repositories"]) == (80, 8)


def test_the_table_draws_intervals_around_a_zero_line() -> None:
    compared = compare(TABLES, metric="es")
    table = view.difference_table(compared, NAMES, {})
    assert table.drawn is not None and table.caption == "es (%) minus the baseline lc.infile"
    assert [line[0] for line in table.lines] == ["lc.repocoder", "c"]
    axis, bars = table.drawn.axis, table.drawn.bars
    assert axis.least < 0 < axis.most and table.drawn.base == axis.place(0)
    for pair, bar in zip(compared, bars, strict=True):
        difference = pair.difference
        assert difference.mean is not None and bar == axis.bar((difference.mean, difference.low, difference.high))
    assert [str(standing) for standing in table.standings] == ["unbeaten", "undecided"]
    worse = view.difference_table(compare([BETTER, BASE], metric="es"), {**NAMES, BETTER.run.id: "a"}, {})
    assert [str(standing) for standing in worse.standings] == ["beaten"]


def test_levels_and_repositories_equal_those_of_the_json() -> None:
    level = tuple("next-line" if index % 4 == 0 else "single-line" for index in range(80))
    compared = compare([replace(BASE, level=level), replace(BETTER, level=level)], metric="es")
    (record,) = json.loads(render.comparison_json(compared))
    rows = view.level_rows(compared[0])
    # No column of numbers is called "strategy", which is a column of names.
    assert not any("strategy" in row for row in [*rows, *view.unit_rows(compared[0])])
    assert [(row["level"], row["samples"]) for row in rows] == [("next-line", 20), ("single-line", 60)]
    for row, level in zip(rows, record["levels"], strict=True):
        assert row["difference [95%]"] == pytest.approx(level["difference"]["mean"])
        assert row["baseline"] == pytest.approx(level["baseline"], abs=0.05)
        assert row["this run"] == pytest.approx(level["this"], abs=0.05)
    by_repo = {row["repository"]: row for row in view.unit_rows(compared[0])}
    assert sorted(by_repo) == [repository["repository"] for repository in record["repositories"]]
    for repository in record["repositories"]:
        row = by_repo[repository["repository"]]
        assert row["samples"] == repository["n"] and row["baseline"] == pytest.approx(repository["baseline"], abs=0.05)
        assert row["difference"] == pytest.approx(repository["this"] - repository["baseline"], abs=0.05)


def test_repositories_are_sorted_by_their_gain() -> None:
    count = 12
    repos = [f"r{index:02}" for index in range(count)]
    base = make_table({"es": [0.5] * count}, repos, id="a")
    other = make_table({"es": [0.5 + (index - 5) / 100 for index in range(count)]}, repos, id="b")
    (pair,) = compare([base, other], metric="es")
    rows = view.unit_rows(pair)
    assert [row["repository"] for row in rows] == repos[::-1]
    samples = view.sample_rows(pair, lambda sample: f"/{sample}")
    differences = [abs(row["difference"]) for row in samples]
    assert differences == sorted(differences, reverse=True) and len(samples) == count - 1
    assert samples[0]["open"] == f"/{samples[0]['sample']}"


def test_remarks_explain_untested_rows_and_missing_significance() -> None:
    control = noisy("gold", 0.9, id="gold", ranked=False, control=True)
    names = {**NAMES, "gold": "gold"}
    compared = compare([*TABLES, control], metric="es")
    sentences = view.remarks(compared, names)
    assert sentences[0].startswith("The p-values and intervals are for the 2 comparisons shown, corrected together")
    assert "gold is a control: its difference is shown but not tested." in sentences
    assert view.difference_rows(compared, names)[-1]["p"] is None
    # One of the two differences is significant and needs no remark.
    (open_pair,) = [sentence for sentence in sentences if "not significant" in sentence]
    assert (
        "would be significant in about four of five cases" in open_pair
        and "repositories like these would show the difference" in open_pair
    )
    few = [make_table({"es": [value] * 4}, "aabb", id=str(value)) for value in (0.1, 0.9)]
    sentences = view.remarks(compare(few, metric="es"), {"0.1": "x", "0.9": "y"})
    assert sentences[1:] == ["y: no difference over 2 repositories can be significant at 5%; at least 6 are needed."]
    same = [noisy("a", 0.3, seed="s", id="0"), noisy("a", 0.3, seed="s", id="1")]
    assert view.remarks(compare(same, metric="es"), {"0": "x", "1": "y"})[1:] == [
        "y: both runs have the same value on every sample."
    ]
    apart = [make_table({"es": [0.5]}, "a", id="0"), make_table({"es": [0.5]}, "a", id="1", first=7)]
    compared = compare(apart, metric="es")
    assert view.remarks(compared, {"0": "x", "1": "y"}) == ["y shares no completed sample with the baseline."]
    (row,) = view.difference_rows(compared, {"0": "x", "1": "y"})
    assert (row["difference [95%]"], row["p"], row["over"]) == (None, None, "no interval")
    table = view.difference_table(compared, {"0": "x", "1": "y"}, {})
    assert table.drawn is None and str(table.standings[0]) == "unranked"


def test_by_default_the_best_runs_are_compared_with_lc_infile() -> None:
    control = noisy("gold", 0.9, id="gold", ranked=False, control=True)
    worst = noisy("w", 0.1, id="w")
    tables = [control, worst, BETTER, ALIKE, noisy("lc.infile", 0.3, id="older"), BASE]
    base = view.usual_baseline(tables)
    assert base.run.id == "base"
    assert [table.run.id for table in view.usual_others(tables, base, "es")] == ["better", "c"]
    assert metrics(tables) == ["es", "em"]
    assert metrics([make_table({"es": [None], "em": [1.0]}, "a")]) == ["em"]
    assert metrics([]) == []
    assert view.spelled(BASE) == "lc.infile · base"
    assert view.spelled(BASE, generator=True) == "lc.infile · scripted · base"


def test_by_default_runs_of_one_generator_are_compared() -> None:
    other = noisy("lc.repocoder", 0.9, id="other", generator="h")
    assert [table.run.id for table in view.usual_others([BASE, ALIKE, other], BASE, "es")] == ["c"]
    itself = noisy("lc.infile", 0.4, id="itself", generator="h")
    assert [table.run.id for table in view.usual_others([BASE, other, itself], BASE, "es")] == ["itself"]
    assert [table.run.id for table in view.usual_others([BASE, other], BASE, "es")] == ["other"]
    assert view.usual_others([BASE], BASE, "es") == []


def test_remarks_name_differences_besides_the_strategy() -> None:
    runs = [
        replace(run, run=replace(run.run, **changes))
        for run, changes in (
            (BASE, {"sampling": '{"temperature": 0.0}', "versions": {"tokenizer": "1"}}),
            (BETTER, {"sampling": '{"temperature": 0.8}', "versions": {"tokenizer": "2"}, "generator": "h"}),
        )
    ]
    decoded, tokenizers, _, both, *_ = view.remarks(compare(runs, metric="es"), {"base": "x", BETTER.run.id: "y"})
    assert "temperature 0.8" in decoded and "tokenizer 2" in tokenizers
    assert both == "y: strategy and generator both differ from the baseline, so neither effect can be isolated."


def test_remarks_say_that_bits_of_two_models_are_left_out() -> None:
    runs = [
        replace(run, run=replace(run.run, versions={"coder": coder}))
        for run, coder in ((BASE, "incontext 1"), (BETTER, "hf 2"))
    ]
    sentences = view.remarks(compare(runs), {"base": "x", BETTER.run.id: "y"})
    assert any("Bits are left out" in sentence and "hf 2, incontext 1" in sentence for sentence in sentences)


def test_the_lowest_runs_are_the_best_if_lower_is_better() -> None:
    tables = [make_table({"bits": [value]}, "a", id=str(value), strategy=f"s{value}") for value in (5.0, 9.0, 1.0, 7.0)]
    assert [table.run.id for table in view.usual_others(tables, tables[0], "bits")] == ["1.0", "7.0"]


def test_stored_names_are_escaped_in_tables() -> None:
    base = make_table({"es": [0.5] * 6}, ["a", "b", HARM, "d", "e", "f"], id="a", level=[HARM] * 6)
    other = make_table({"es": [0.9] * 6}, ["a", "b", HARM, "d", "e", "f"], id="b", level=[HARM] * 6)
    written = markup(view.difference_table(compare([base, other], metric="es"), {"a": HARM, "b": HARM}, {}))
    assert escape(HARM) in written and HARM not in written
