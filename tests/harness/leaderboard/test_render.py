"""The board as text, Markdown, CSV and JSON, and curves over one parameter."""

import csv
import io
import itertools
import json
import random
import re
from typing import Any

import pytest

from ctxbench.bench.errors import UnknownName
from ctxbench.harness.leaderboard import board, render, scales
from ctxbench.harness.leaderboard.columns import label
from ctxbench.harness.leaderboard.curves import Blank, Curves, curves, parameters
from ctxbench.harness.leaderboard.headline import headline
from ctxbench.harness.leaderboard.latex import latex
from ctxbench.harness.leaderboard.notes import notes
from ctxbench.harness.leaderboard.render import markdown, table
from ctxbench.harness.leaderboard.rows import Board
from ctxbench.harness.leaderboard.sections import screen_table, sections, short_names
from ctxbench.harness.results import Origin, RunTable, Status
from ctxbench.strategies.registry import default_of
from tests.harness.leaderboard.test_board import REPOS, noisy
from tests.harness.leaderboard.test_latex import many
from tests.helpers.runs import make_table


def _notes(made: Board) -> str:
    return "\n".join(notes(made.groups[0]))


def test_the_table_has_the_answer_and_one_line_per_row() -> None:
    text = render.table(board(many()), width=100)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100 and text.isascii() and "\x1b" not in text
    assert lines[0] == "demo, Python, by incontext"
    answer = "Significantly better than infile: repocoder; significantly worse: random|windows."
    assert answer in " ".join(lines[1:3])
    [head] = [line for line in lines if line.startswith("rank ")]
    for words in ("rank", "strategy", "es %", "vs infile", "p", "tokens", "em %"):
        assert words in head
    assert "group" not in head and " group " in render.table(board(many(), all_pairs=True), width=100)
    rows = [match[1] for line in lines if (match := re.match(r" *(?:\d+(?:-\d+)?|-)  (\S+)", line))]
    assert rows == ["repocoder", "infile", "random|windows", "oracle", "begun"]
    # Warnings are always printed. Explanations of the numbers need an option.
    assert "lc.begun 2. Cure: run the same command again" in " ".join(text.split())
    assert "Ranked by" not in text and "Ranked by es (%" in render.table(board(many()), explain=True)


def test_a_table_of_17_rows_has_at_most_30_lines_of_100_columns() -> None:
    names = [f"lc.infercom(encoder=bm25, fsr={fsr}, limit={limit})" for fsr in ("false", "true") for limit in range(5)]
    names += [f"aim(encoder=bm25, inner=lc.repocoder(iterations={n}))" for n in range(1, 4)]
    names += ["lc.infile", "lc.repofuse(encoder=bm25, rationale=false)", "engine(ripgrep)", "engine(tantivy)"]
    assert len(names) == 17
    made = board([noisy(name, 0.3 + place / 40, generator="hf(model=one)") for place, name in enumerate(names)])
    lines = render.table(made, width=100).splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 100
    assert sum("infercom(fsr=" in line for line in lines) == 10 and "encoder" not in "".join(lines)


def test_names_are_shortened_as_far_as_they_stay_unique() -> None:
    names = ["lc.a(x=1, y=2)", "lc.a(x=1, y=3)", "lc.b(x=1)", "icl.b(x=2)", "mine.py@mine(z=1)", "engine(rg)"]
    runs = [noisy(name, 0.3 + place / 40) for place, name in enumerate(names)]
    [group] = board(
        [*runs, noisy("lc.b(x=1)", 0.2, origin=Origin.IMPORTED), noisy("gold", 0.9, control=True, ranked=False)]
    ).groups
    short = dict(zip([label(row) for row in group.rows], short_names(group), strict=True))
    assert short == {
        "lc.a(x=1, y=2)": "a(y=2)",
        "lc.a(x=1, y=3)": "a(y=3)",
        "lc.b(x=1)": "lc.b(x=1)",
        "icl.b(x=2)": "icl.b(x=2)",
        "mine.py@mine(z=1)": "mine.py@mine",
        "engine(rg)": "engine(rg)",
        "lc.b(x=1) (imported)": "b (imported)",
        "gold (control)": "gold (control)",
    }


def measured(strategy: str, **means: float) -> RunTable:
    draw = random.Random(strategy)
    values = {name: [mean + draw.gauss(0, 0.01) for _ in REPOS] for name, mean in means.items()}
    return make_table(values, REPOS, strategy=strategy)


def test_the_answer_says_whether_other_metrics_agree() -> None:
    base = measured("lc.infile", es=0.3, em=0.3, id_f1=0.5, context_gain=1.0)
    made = board([base, measured("lc.repocoder", es=0.5, em=0.4, id_f1=0.3, context_gain=1.0)])
    answer = headline(made.groups[0])
    assert answer.endswith(
        "Against lc.infile, em favours lc.repocoder; id_f1 favours lc.infile; context_gain shows no significant "
        "difference."
    )
    # Fewer bits are better, so the sign alone does not decide which row is favoured.
    bits = [measured(name, bits=bits, es=es) for name, bits, es in (("lc.infile", 9.0, 0.3), ("b", 4.0, 0.5))]
    assert headline(board(bits, metric="bits").groups[0]).endswith("Against lc.infile, es favours b.")
    assert "favour" not in headline(board([base]).groups[0])


def test_a_mean_that_depends_on_few_samples_is_noted_with_its_median() -> None:
    gains = [-1.0] * 76 + [100.0] * 4
    made = board([make_table({"context_gain": gains}, REPOS, strategy="lc.repocoder")], metric="context_gain")
    value = made.rows[0].metrics["context_gain"]
    assert (value.mean, value.median, value.trimmed) == (pytest.approx(4.05), -1.0, -1.0)
    words = "without a tenth of the samples at each end, the sign of the mean changes for lc.repocoder (+4.0 and -1.0)"
    assert words in _notes(made) and words in " ".join(render.table(made).split())
    assert render.records(made)[0]["context_gain"]["trimmed_mean"] == -1.0
    lines = render.table(made, columns=["median"]).splitlines()
    assert any("repocoder" in line and line.endswith(" -1.0") for line in lines), lines
    assert board([measured("lc.infile", es=0.3)]).rows[0].metrics["es"].median is None


@pytest.mark.parametrize(
    "names",
    [
        ["k.n(c=1)", "m.n", "m.n(b=2)", "n(b=2)"],
        ["k.n(a=1)", "k.n(a=2, b=2)", "k.n(b=2)", "n(b=2)"],
        ["m.n(b=2)", "n", "n(b=2)"],
    ],
)
def test_a_short_name_is_never_the_full_name_of_another_row(names: list[str]) -> None:
    [group] = board([noisy(name, 0.3 + place / 40) for place, name in enumerate(names)]).groups
    short = short_names(group)
    assert len(set(short)) == len(short)
    for name, row in zip(short, group.rows, strict=True):
        assert name == row.run.strategy or name not in [other.run.strategy for other in group.rows]


def test_the_answer_explains_why_nothing_is_ranked_or_tested() -> None:
    half = [Status.SCORED] * 40 + [Status.INFRA_FAILED] * 40
    begun = noisy("lc.infile", 0.3, status=half)
    assert headline(board([begun]).groups[0]) == "No run here is complete: nothing is ranked."
    control = noisy("gold", 0.9, control=True, ranked=False)
    assert headline(board([control]).groups[0]) == "These rows are controls: nothing is ranked."
    two = [noisy("a", 0.3), noisy("b", 0.4)]
    assert headline(board([*two, control], baseline="gold").groups[0]).endswith(
        "Nothing is tested: the baseline gold (control) is a control."
    )
    assert headline(board([*two, begun], baseline="lc.infile").groups[0]).endswith(
        "the baseline lc.infile is incomplete."
    )
    others = [noisy("c", 0.9, origin=Origin.REFERENCE)]
    assert headline(board([*two, *others]).groups[0]).startswith("Among your rows, b has the best es: ")
    # Names with brackets or numbers are printed unchanged.
    runs = [
        noisy(name, mean, origin=Origin.IMPORTED) for name, mean in (("my model (v1)", 0.3), ("my model (v2)", 0.6))
    ]
    assert "my model (v2) has the best es" in render.table(board(runs))


def test_a_column_is_omitted_in_groups_without_values() -> None:
    runs = [noisy("a", 0.3), make_table({"copyable_bits": [1.0, 2.0]}, "ab", generator="incontext")]
    shown = render.table(board(runs), columns=["es"])
    assert shown.count("es % [95%]") == 1


def test_requested_columns_replace_the_default_ones() -> None:
    text = render.table(board(many()), columns=["em", "n", "beats"])
    [head] = [line for line in text.splitlines() if line.startswith("rank")]
    assert head.split() == ["rank", "strategy", "em", "%", "[95%]", "n", "beats"]
    with pytest.raises(UnknownName, match="no column or metric of this board is called 'emm'.*did you mean em"):
        render.table(board(many()), columns=["emm"])


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_cell_is_cut_off_on_a_narrow_screen(width: int) -> None:
    runs = [
        noisy(f"{name}(budget={256 * 2**place})", 0.3 + place / 40)
        for place in range(8)
        for name in ("lc.repocoder", "lc.infercom")
    ]
    made = board([noisy("lc.infile", 0.3), *runs])
    lines = render.table(made, width=width, by="budget").splitlines()
    [section] = sections(made, by="budget")
    ranking = screen_table(made.groups[0])
    # The ranking columns and their test appear at every width, and a requested table is complete.
    shown = [[cells[:5] for cells in ([head.text for head in ranking.heads], *ranking.lines)]]
    shown += [[[head.text for head in section.over[0].heads], *section.over[0].lines]]
    for cells in itertools.chain.from_iterable(shown):
        assert any(all(_begins(cell, lines[at:]) for cell in cells) for at in range(len(lines))), cells


def _begins(cell: str, lines: list[str]) -> bool:
    """Return whether a cell begins in the first line and continues, folded, to its end in the lines below."""
    return any(
        all(cell[at : at + size] in line for at, line in zip(range(0, len(cell), size), lines, strict=False))
        for size in range(12, max(12, len(cell)) + 1)
    )


def test_notes_of_a_full_board_explain_ranking_and_tests() -> None:
    text = _notes(board(many()))
    for words in (
        "Ranked by es (%; mean over samples",
        "Tested: each of 2 strategies against lc.infile. p: sign flips of whole repositories (8 repositories, exact), "
        "corrected for these tests together (step-down maximum statistic).",
        "--all-pairs tests every pair",
        "would be significant in about four of five such boards (80% power; the median over the pairs)",
        "95%, over repositories",
        "Not ranked, because samples are missing (never counted as 0): lc.begun 2. Cure: run the same command again.",
        "if all were right",
        "count as the worst value: lc.repocoder(iterations=2, window=20) 1",
        "do not predict a language model",
        "shown but never ranked",
    ):
        assert words in text, words


def test_notes_of_few_repositories_say_that_nothing_is_significant() -> None:
    repos = [f"r{index % 3}" for index in range(30)]
    runs = [make_table({"es": [0.1 * (i % 4) for i in range(30)]}, repos, strategy=name) for name in ("lc.infile", "b")]
    text = _notes(board(runs))
    assert "No difference can be significant here: with 3 repositories the smallest possible p is 0.250" in text
    assert "over samples of these 3 repositories only" in text
    assert "would be significant" not in text


def test_notes_of_one_run_claim_no_test() -> None:
    text = _notes(board([noisy("lc.infile", 0.4)]))
    assert "Tested:" not in text and "significant" not in text and "missing" not in text and "skill" not in text


def test_notes_explain_boards_of_one_sample_or_none() -> None:
    assert "a single sample has none" in _notes(board([make_table({"es": [0.4]}, "a")]))
    empty = make_table({"es": [None]}, "a", status=[Status.INFRA_FAILED])
    assert "no run is ranked" in _notes(board([empty]))
    assert render.table(board([empty])) and render.markdown(board([empty])) and render.to_csv(board([empty]))


def test_notes_name_rows_without_an_interval() -> None:
    status = [Status.SCORED] + [Status.INFRA_FAILED] * 79
    begun = noisy("lc.begun", 0.5, status=status)
    [sentence] = [line for line in notes(board([noisy("lc.infile", 0.3), begun]).groups[0]) if "Intervals: " in line]
    assert sentence == (
        "Intervals: 95%, over repositories (cluster-robust, Student t); none for a single sample (lc.begun)."
    )
    few = noisy("lc.few", 0.4, status=[*[Status.SCORED] * 2, *[Status.INFRA_FAILED] * 78])
    text = _notes(board([noisy("lc.infile", 0.3), begun, few]))
    assert "with fewer than 5 repositories (lc.few); none for a single sample (lc.begun)." in text


def test_an_empty_board_is_printed_as_empty_text() -> None:
    made = board([])
    assert render.table(made) == render.markdown(made) == ""
    assert json.loads(render.to_json(made)) == []


def test_json_keys_and_their_order_follow_the_contract() -> None:
    rows = json.loads(render.to_json(board(many())))
    expected = [
        "samples", "language", "level", "strategy", "generator", "origin", "n", "missing",
        "em", "es", "context_tokens", "calls", "seconds", "rank_low", "rank_high",
    ]  # fmt: skip
    assert len(rows) == 5
    for row in rows:
        assert list(row)[: len(expected)] == expected
        assert {"run", "profile", "group", "model_failed", "excluded", "sensitivity", "difference"} <= set(row)
        for metric in ("em", "es"):
            assert list(row[metric])[:3] == ["mean", "low", "high"]
            assert row[metric]["low"] <= row[metric]["mean"] <= row[metric]["high"]
    best = rows[0]
    assert (best["strategy"], best["origin"], best["level"], best["model_failed"]) == (
        "lc.repocoder(iterations=2, window=20)", "run", "all", 1,
    )  # fmt: skip
    assert {"mean", "low", "high", "p", "pairs", "n_common", "wins", "ties", "losses"} <= set(best["difference"]["es"])
    assert best["es"]["interval"] == "repositories" and "mean_of_repositories" in best["es"]
    begun = next(row for row in rows if row["strategy"] == "lc.begun")
    assert set(begun["sensitivity"]["es"]) == {"worst", "best"} and (begun["missing"], begun["rank_low"]) == (2, None)
    assert rows[1]["baseline"] is None and rows[1]["difference"] == {}


def test_csv_has_a_line_per_row_and_a_column_per_number() -> None:
    rows = list(csv.DictReader(io.StringIO(render.to_csv(board(many())))))
    assert len(rows) == 5
    assert float(rows[0]["es_low"]) < float(rows[0]["es"]) < float(rows[0]["es_high"])
    assert float(rows[0]["difference_es_p"]) < 0.05 and rows[1]["difference_es_p"] == ""
    assert rows[0]["es_mean_of_repositories"] and rows[3]["rank_low"] == ""


def test_markdown_tables_escape_bars_in_names() -> None:
    text = render.markdown(board(many()))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 * (5 + 2)
    assert len({line.replace("\\|", "").count("|") for line in lines[:6]}) == 1


@pytest.mark.parametrize(
    ("number", "low", "high", "text"),
    [
        (34.6789, 31.234, 38.123, "34.7 [31.2, 38.1]"),
        (34.6789, 12.0, 57.3, "35 [12, 57]"),
        (34.6789, 34.5, 34.9, "34.68 [34.50, 34.90]"),
        (34.6789, None, None, "34.7"),
        (None, None, None, "-"),
        (0.0, 0.0, 0.0, "0.0 [0.0, 0.0]"),
        (-0.01, -3.0, 3.0, "0.0 [-3.0, 3.0]"),
    ],
)
def test_digits_follow_the_interval(number: float | None, low: float | None, high: float | None, text: str) -> None:
    assert scales.interval(number, low, high) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.00001, "<0.001"),
        (0.0123, "0.012"),
        (0.05, "0.050"),
        (0.0501, "0.0501"),
        (1001 / 20001, "0.05005"),
        (1.0, "1.000"),
        (None, "-"),
    ],
)
def test_p_values_are_not_rounded_into_significance(p: float | None, text: str) -> None:
    assert scales.p_value(p) == text


def test_amounts_are_printed_with_about_three_digits() -> None:
    assert [scales.amount(one) for one in (None, 0.0, 1.0, 0.05123, 12.345, 1234.5)] == [
        "-",
        "0",
        "1",
        "0.0512",
        "12.3",
        "1234",
    ]


def test_diagnostics_have_their_own_table() -> None:
    values = {
        "es": [0.5] * 80,
        "api_recall": [0.25] * 80,
        "hallucinated": [0.5, None] * 40,
        "made_up_names": [2.0] * 80,
    }
    made = board([make_table(values, REPOS)])
    plain, shown = render.table(made), render.table(made, diagnostics=True)
    for heading in ("api_recall % [95%]", "hallucinated % [95%]", "made_up_names [95%]"):
        assert heading in shown and heading not in plain
    assert "api_recall" in render.markdown(made, diagnostics=True)
    [record] = render.records(made)
    assert (record["api_recall"]["mean"], record["hallucinated"]["mean"], record["hallucinated"]["n"]) == (25, 50, 40)


def test_a_control_is_marked() -> None:
    made = board([noisy("lc.infile", 0.3), noisy("gold", 0.9, ranked=False, control=True)])
    assert "gold (control)" in render.table(made) and "never ranked or tested" in _notes(made)
    assert [(one["control"], one["rank_low"]) for one in render.records(made)] == [(False, 1), (True, None)]
    [row] = [row for row in made.rows if row.run.control]
    assert {(found.p, found.visible, found.needed) for found in row.difference.values()} == {(None, None, None)}


def test_no_row_is_tested_against_a_control_as_baseline() -> None:
    runs = [noisy("lc.infile", 0.3), noisy("lc.repocoder", 0.4), noisy("gold", 0.9, ranked=False, control=True)]
    made = board(runs, baseline="gold")
    differences = [found for row in made.rows for found in row.difference.values()]
    assert differences and all(found.p is None for found in differences if found.n_common)
    assert made.groups[0].family.pairs == 0 and board(runs, baseline="gold", all_pairs=True).groups[0].family.pairs == 1


REPOS_OF_16 = [f"r{index % 8}" for index in range(16)]
VALUES = {
    "engine(repomap)": 0.5,
    "engine(repomap, budget=256)": 0.2,
    "engine(repomap, budget=1024)": 0.4,
    "lc.random_windows(budget=256, seed=3)": 0.1,
    "lc.random_windows(budget=1024, seed=3)": 0.15,
    "lc.random_windows(budget=1024)": 0.16,
    "lc.infile": 0.0,
}


def board_of(values: dict[str, float], **changes: Any) -> Board:
    spread = [index / 1000 for index in range(16)]
    return board(
        [
            make_table({"es": [value + more for more in spread]}, REPOS_OF_16, id=name, strategy=name, **changes)
            for name, value in values.items()
        ]
    )


def over_budget(values: dict[str, float], **changes: Any) -> Curves | Blank:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ctxbench.harness.leaderboard.curves.default_of", lambda name, _: 4096 if name == "engine" else None
        )
        return curves(board_of(values, **changes).groups[0])


def as_curves(picture: Curves | Blank) -> Curves:
    assert isinstance(picture, Curves), picture
    return picture


def test_a_curve_joins_rows_that_differ_only_in_the_parameter() -> None:
    picture = as_curves(over_budget(VALUES))
    points = {curve.strategy: [point.at for point in curve.points] for curve in picture.curves}
    assert points == {"engine(repomap)": [256, 1024, 4096], "lc.random_windows(seed=3)": [256, 1024]}
    assert picture.curves[0].strategy == "engine(repomap)", "what ranks best is first"
    assert picture.values == (256, 1024, 4096) and picture.logarithmic
    means = [point.row.metrics["es"].mean for point in picture.curves[0].points]
    assert means == pytest.approx([20.75, 40.75, 50.75])


def test_a_default_value_is_used_only_if_it_is_known() -> None:
    values = {"lc.random_windows": 0.1, "lc.random_windows(budget=1024)": 0.2}
    nothing = over_budget(values)
    assert isinstance(nothing, Blank) and "budget={256,512}" in nothing.why
    assert as_curves(curves(board_of(values).groups[0])).values == (1024, default_of("lc.random_windows", "budget"))


def test_only_built_in_strategies_have_known_defaults() -> None:
    assert default_of("lc.repocoder", "iterations") == 2
    assert default_of("lc.repocoder", "none") is None and default_of("file.py@mine", "budget") is None
    assert default_of("oracle-context", "budget") is None and default_of("nowhere", "budget") is None


def test_curves_do_not_mix_origins_or_include_controls() -> None:
    origins = {"a(budget=1)": Origin.RUN, "a(budget=2)": Origin.IMPORTED}
    runs = [
        make_table({"es": [0.1] * 16}, REPOS_OF_16, id=name, strategy=name, origin=origin)
        for name, origin in origins.items()
    ]
    assert isinstance(curves(board(runs).groups[0]), Blank)
    assert isinstance(over_budget({"a(budget=1)": 0.1, "a(budget=2)": 0.2}, ranked=False, control=True), Blank)


def test_invalid_specs_and_values_are_left_out_of_curves() -> None:
    assert isinstance(
        over_budget({"what (ever": 0.1, "a(budget=x)": 0.1, "a(budget=true)": 0.2, "b(budget=1)": 0.1}), Blank
    )


def test_every_format_prints_the_table_by_a_parameter() -> None:
    ranked = board_of(VALUES)
    point = as_curves(over_budget(VALUES)).curves[0].points[0].row.metrics["es"]
    cell = scales.interval(point.mean, point.low, point.high)
    assert re.search(r"es % \[95%\] +budget 256 +budget 1024", table(ranked, by="budget"))
    assert f"| engine(repomap) | {cell} |" in markdown(ranked, by="budget")
    assert "budget 256" in latex(ranked, by="budget") and "budget 256" not in latex(ranked)
    # Only rows of the ranking are bold.
    of_curves = latex(ranked, by="budget").split("budget 256")[1].split("tabular")[0]
    assert "textbf" not in of_curves


def test_an_unknown_parameter_gets_a_suggestion() -> None:
    ranked = board_of(VALUES)
    # lc.random_windows without a seed uses the default seed.
    assert parameters(ranked.groups) == ["budget", "seed"]
    with pytest.raises(UnknownName, match="budgt") as caught:
        table(ranked, by="budgt")
    assert "did you mean budget" in caught.value.cure
