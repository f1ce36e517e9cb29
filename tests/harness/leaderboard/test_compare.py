"""Paired differences of chosen runs."""

import json
from dataclasses import replace

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.leaderboard import board, render
from ctxbench.harness.leaderboard.compare import compare
from ctxbench.harness.leaderboard.stats import IntervalScope
from ctxbench.harness.results import RunTable
from tests.harness.leaderboard.test_board import noisy
from tests.helpers.runs import make_table

BASE = noisy("lc.infile", 0.3, id="base")
BETTER = noisy("lc.repocoder", 0.5, id="better")


def test_a_difference_equals_that_of_the_leaderboard() -> None:
    found = {one.metric: one.difference for one in compare([BASE, BETTER])}
    assert list(found) == ["es", "em"]
    row = board([BASE, BETTER]).rows[0]
    assert found == dict(row.difference)


def test_differences_of_repositories_add_up_to_the_total() -> None:
    one = compare([BASE, BETTER], metric="es")[0]
    assert [part.name for part in one.units] == [f"r{index}" for index in range(8)]
    total = sum(part.n * (part.this - part.other) for part in one.units)
    assert total / one.difference.n_common == pytest.approx(one.difference.mean)


def test_differences_of_levels_add_up_and_are_not_tested() -> None:
    level = ["next-line" if index % 4 == 0 else "single-line" for index in range(80)]
    runs = [replace(one, level=tuple(level)) for one in (BASE, BETTER)]
    one = compare(runs, metric="es")[0]
    assert [(part.level, part.n) for part in one.levels] == [("next-line", 20), ("single-line", 60)]
    total = sum(part.n * (part.this - part.other) for part in one.levels)
    assert total / one.difference.n_common == pytest.approx(one.difference.mean)
    for part in one.levels:
        assert part.low is not None and part.high is not None
        assert part.mean == pytest.approx(part.this - part.other) and part.low < part.mean < part.high
    text = render.comparison([one])
    assert f"level next-line    n   20  es {one.levels[0].other:.1f} -> {one.levels[0].this:.1f}" in text
    assert "level" not in render.comparison(compare([BASE, BETTER]))
    # Showing levels does not change the tests.
    assert one.difference == compare([BASE, BETTER], metric="es")[0].difference


def test_an_interval_of_a_level_names_its_unit() -> None:
    rising = [make_table({"es": [at / 100, 0.3, 0.5, 0.1]}, "aabb", id=str(at)) for at in (10, 90)]
    (one,) = compare(rising, metric="es")[0].levels
    assert one.over is IntervalScope.SAMPLES
    alone = [make_table({"es": [at]}, "a", id=str(at)) for at in (0.1, 0.9)]
    (one,) = compare(alone, metric="es")[0].levels
    assert (one.n, one.low, one.over) == (1, None, IntervalScope.NONE)


def test_all_runs_are_compared_with_the_first_under_one_correction() -> None:
    found = compare([BASE, BETTER, noisy("c", 0.3, id="c")], metric="es")
    assert [(one.this.id, one.other.id, one.difference.pairs) for one in found] == [
        ("better", "base", 2),
        ("c", "base", 2),
    ]
    assert found[0].difference.p == 2 / 2**8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples_digest": "e" * 64}, "different sample sets"),
        ({"language": "java"}, "different languages"),
        ({"profile": "infercom"}, "different metric profiles"),
    ],
)
def test_runs_with_different_settings_cannot_be_compared(change: dict[str, str], words: str) -> None:
    with pytest.raises(InputFault, match=words):
        compare([BASE, noisy("b", 0.4, **change)])


def test_a_comparison_is_printed_as_text_and_json() -> None:
    made = compare([BASE, BETTER])
    text = render.comparison(made)
    assert "lc.repocoder (better) minus lc.infile (base)" in text and "sign flips of 8 repositories" in text
    assert text.count("r3 ") == 1
    rows = json.loads(render.comparison_json(made))
    assert [row["metric"] for row in rows] == ["es", "em"] and len(rows[0]["repositories"]) == 8


def test_a_control_is_compared_without_a_test() -> None:
    control = noisy("gold", 0.9, id="gold", ranked=False, control=True)
    found = compare([BASE, BETTER, control], metric="es")
    assert [one.difference.p is None for one in found] == [False, True]
    assert found[0].difference.pairs == 1 and found[0].difference.p == pytest.approx(2 / 2**8)
    assert found[1].difference.mean is not None and "a control: not tested" in render.comparison(found)


def test_bits_of_two_models_are_not_compared() -> None:
    """Bits depend on the model that measured them. Scores of completions can be compared."""

    def priced(strategy: str, coder: str) -> RunTable:
        values = {"context_gain": [1.0] * 4, "es": [0.5] * 4}
        return make_table(values, "aabb", id=strategy, strategy=strategy, versions={"coder": coder} if coder else {})

    alike = compare([priced("a", "incontext 1"), priced("b", "incontext 1")])
    assert [one.metric for one in alike] == ["es", "context_gain"]
    assert "left out" not in render.comparison(alike)
    for other in ("hf(model=m) 2", "incontext 2", ""):
        runs = [priced("a", "incontext 1"), priced("b", other)]
        assert [one.metric for one in compare(runs)] == ["es"]
        assert (
            f"in different units: {', '.join(sorted(('incontext 1', other)))}." in render.comparison(compare(runs))
        ) == bool(other)
        with pytest.raises(InputFault, match="different models"):
            compare(runs, metric="context_gain")
