"""Runs that differ only in the seed are pooled into one row, which reports the variance due to repetition."""

import csv
import dataclasses
import io
import json
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ctxbench.dashboard.report import html, report
from ctxbench.dashboard.views import compare as compare_view
from ctxbench.harness.leaderboard import board, render, signflip, stats
from ctxbench.harness.leaderboard.compare import compare
from ctxbench.harness.leaderboard.notes import notes
from ctxbench.harness.leaderboard.render import comparison, table
from ctxbench.harness.leaderboard.repetitions import Noise, VarianceParts, pooled, variance_parts, variance_text
from ctxbench.harness.leaderboard.sections import screen_table
from ctxbench.harness.results import RunTable, Status
from tests.helpers.runs import make_run, make_table

DONE, FAILED, MISSING, INVALID = Status.SCORED, Status.MODEL_FAILED, Status.INFRA_FAILED, Status.EXCLUDED
REPOS = tuple(f"r{index % 6}" for index in range(24))


def repetition(seed: int, es: Sequence[float | None], repos: Sequence[str] = REPOS, **changes: Any) -> RunTable:
    """Return a run with its decoding settings and seed."""
    sampling = json.dumps({"temperature": 0.8, "seed": seed, **changes.pop("sampling", {})})
    strategy = changes.get("strategy", "lc.infile")
    named = {"id": f"{strategy}-{seed}", "sampling": sampling, "began": seed + 1.0, **changes}
    return make_table({"es": es}, repos, **named)


def drawn(strategy: str, mean: float, runs: int = 5, *, noise: float = 0.05) -> list[RunTable]:
    """Return repeated runs of a strategy over 24 samples of 6 repositories."""
    random = np.random.default_rng(len(strategy))
    level = mean + random.normal(0, 0.1, len(REPOS))
    return [
        repetition(seed, np.clip(level + random.normal(0, noise, len(REPOS)), 0, 1).tolist(), strategy=strategy)
        for seed in range(runs)
    ]


def parts(values: NDArray[np.float64], codes: Sequence[int]) -> VarianceParts:
    """Split the variance of the mean of values, shape (samples, repetitions)."""
    noise = Noise.of(values)
    assert noise is not None
    return variance_parts(np.nanmean(values, axis=1), np.array(codes, dtype=np.intp), noise)


# Variance components.


@pytest.mark.parametrize("deviations", [(3.0, 5.0, 4.0), (0.0, 5.0, 4.0), (3.0, 0.0, 4.0), (3.0, 5.0, 0.0)])
def test_known_components_are_recovered(deviations: tuple[float, float, float]) -> None:
    random = np.random.default_rng(7)
    sizes = random.integers(1, 12, 3000)
    codes = np.repeat(np.arange(3000), sizes)
    repo, sample, single = deviations
    values = (
        random.normal(0, repo, 3000)[codes, np.newaxis]
        + random.normal(0, sample, (len(codes), 1))
        + random.normal(0, single, (len(codes), 5))
    )
    # Unbalanced in repetitions too.
    values[random.random(values.shape) < 0.2] = np.nan
    keep = ~np.isnan(values).all(axis=1)
    split = parts(values[keep], codes[keep].tolist())
    # The estimates vary: 0.4 is about 10% of a component, and the error of a zero component is larger.
    for name, expected in zip(("repositories", "samples", "repetition"), deviations, strict=True):
        assert split[name].deviation == pytest.approx(expected, abs=0.4 if expected else 1.0), name
    n, squares = keep.sum(), np.square(np.bincount(codes[keep])).sum()
    in_mean = [
        repo**2 * squares / n**2,
        sample**2 / n,
        single**2 * (1 / (~np.isnan(values[keep])).sum(axis=1)).sum() / n**2,
    ]
    assert [source.share for source in split.values()] == pytest.approx(np.array(in_mean) / sum(in_mean), abs=0.1)


@pytest.mark.slow
def test_components_are_unbiased_on_few_repositories() -> None:
    """The mean over many small boards equals the truth. Negative estimates, which are set to 0, are rare here."""
    random = np.random.default_rng(3)
    codes = np.repeat(np.arange(8), (3, 9, 5, 7, 4, 6, 8, 6))
    found = []
    for _ in range(2000):
        values = random.normal(0, 6, 8)[codes, np.newaxis] + random.normal(0, 6, (len(codes), 1))
        split = parts(values + random.normal(0, 3, (len(codes), 4)), codes.tolist())
        found.append([split[name].deviation ** 2 for name in ("repositories", "samples", "repetition")])
    assert np.mean(found, axis=0) == pytest.approx([36, 36, 9], rel=0.04)


def test_components_of_a_balanced_table_match_a_calculation_by_hand() -> None:
    """Two repositories have two samples each, and every sample is run twice."""
    values = np.array([[1.0, 3.0], [5.0, 7.0], [9.0, 11.0], [17.0, 19.0]])
    split = parts(values, [0, 0, 1, 1])
    # Within a sample each residual is 1: 8 / 4 = 2. Sample means 2, 6 | 10, 18: (8 + 32) / 2 degrees - 2 / 2.
    assert split["repetition"].deviation ** 2 == pytest.approx(2.0)
    assert split["samples"].deviation ** 2 == pytest.approx(20.0 - 1.0)
    # Means 4 and 14: 2 (25 + 25) = 100 with 1 degree equals 2 x repositories + samples + 2 / 2.
    assert split["repositories"].deviation ** 2 == pytest.approx((100.0 - 20.0) / 2)
    shares = np.array([40 / 2, 19 / 4, 2 / 8])
    assert [source.share for source in split.values()] == pytest.approx(shares / shares.sum())
    # On a balanced table, the parts add up to the squared standard error of the interval.
    means = stats.clustered(values.mean(axis=1), np.array([0, 0, 1, 1]))
    assert shares.sum() == pytest.approx(means.error**2)


def test_a_negative_variance_is_set_to_zero_and_reported() -> None:
    # Both repositories have the same mean, and their samples differ.
    split = parts(np.array([[0.0, 1.0], [10.0, 11.0], [0.0, 1.0], [10.0, 11.0]]), [0, 0, 1, 1])
    assert (split["repositories"].share, split["repositories"].negative) == (0.0, True)
    repeated = make_run(repetitions=("a", "b"))
    assert "0% repositories (estimated below 0, set to 0), " in variance_text(split, repeated)


def test_components_that_cannot_be_estimated_are_omitted() -> None:
    single = parts(np.array([[1.0, 2.0], [5.0, 7.0]]), [0, 0])
    assert list(single) == ["samples", "repetition"]
    thin = parts(np.array([[1.0, 2.0], [5.0, 7.0]]), [0, 1])
    assert list(thin) == ["repositories", "repetition"]
    assert Noise.of(np.array([[1.0, np.nan], [np.nan, 2.0]])) is None, "no sample was repeated"
    # Rounding errors of equal numbers do not count as noise.
    flat = parts(np.array([[0.1] * 3, [0.1] * 3]), [0, 1])
    assert variance_text(flat, make_run(repetitions=("a", "b"))) == "nothing varies"


@pytest.mark.parametrize("single", [1, 5])
def test_false_positives_stay_at_the_nominal_level(single: int) -> None:
    """Both rows are right by chance equally often. Five runs are compared with `single` runs."""
    random = np.random.default_rng(5)
    sizes = np.array([20, 12, 8, 6, 5, 4, 3, 3, 2, 2])
    chance = np.repeat(random.beta(0.4, 1.2, (1500, len(sizes))), sizes, axis=1)
    gaps = random.binomial(5, chance) / 5 - random.binomial(single, chance) / single
    sums = np.add.reduceat(gaps, np.concatenate(([0], np.cumsum(sizes)[:-1])), axis=1)
    assert (signflip.p_values(sums, seed="simulation") <= signflip.ALPHA).mean() <= 0.055


# Pooling.


def test_a_pooled_row_matches_a_calculation_by_hand() -> None:
    status = [DONE, DONE, FAILED, INVALID]
    runs = [
        repetition(0, [0.2, 0.4, None, 0.9], "aabb", status=status),
        repetition(1, [0.6, None, 0.8, 0.7], "aabb", status=[DONE, MISSING, DONE, INVALID]),
        repetition(2, [0.7, None, None, 0.8], "aabb", status=[DONE, MISSING, FAILED, INVALID]),
    ]
    [group] = board(runs).groups
    [row] = group.rows
    expected = [50.0, 40.0, 80 / 3]
    estimate = row.metrics["es"]
    assert (estimate.mean, estimate.n) == (pytest.approx(statistics.fmean(expected)), 3)
    assert estimate.mean_with_invalid == pytest.approx(statistics.fmean([*expected, 80.0]))
    assert (row.n, row.model_failed, row.missing, row.excluded) == (3, 0, 0, 1)
    # Missing and unusable answers are reported.
    assert (row.answers.missing, row.answers.failed) == (2, 2)
    assert row.sensitivity["es"].worst == pytest.approx((50 + 40 / 3 + 80 / 3) / 3)
    assert row.sensitivity["es"].best == pytest.approx((50 + (40 + 200) / 3 + 80 / 3) / 3)
    assert (row.run.id, row.run.repetitions) == ("lc.infile-0", ("lc.infile-0", "lc.infile-1", "lc.infile-2"))
    text = " ".join(notes(group))
    assert "row's runs (a sample's value is its mean over the other runs): lc.infile 2. Cure: run the same" in text
    assert "Unusable answers to samples that other runs scored: lc.infile 2." in text


def test_a_level_counts_only_repetitions_of_its_samples() -> None:
    levels = ["a", "b"] * 12
    runs = [
        repetition(0, [0.5, 0.25] * 12, level=levels),
        repetition(1, [0.5, 0.75] * 12, level=levels, status=[DONE] * 23 + [MISSING]),
    ]
    groups = {group.level: group.rows[0] for group in board(runs, by_level=True).groups}
    deviations = {level: row.variance["es"]["repetition"].deviation for level, row in groups.items()}
    assert (deviations["a"], deviations["b"]) == (0.0, pytest.approx(25 * 2**0.5))
    assert {level: (row.n, row.answers.missing) for level, row in groups.items()} == {
        "all": (24, 1),
        "a": (12, 0),
        "b": (12, 1),
    }


def test_answers_without_a_value_of_the_metric_are_reported() -> None:
    """One of several repeated runs may lack scores of a profile."""
    runs = [repetition(0, [0.2, 0.4, None], "abc"), repetition(1, [None, 0.6, None], "abc")]
    [group] = board(runs).groups
    [row] = group.rows
    assert (row.answers.missing, row.answers.undefined, row.metrics["es"].mean) == (0, 1, pytest.approx(35.0))
    assert "without es to samples for which other runs have es: lc.infile 1." in " ".join(notes(group))


def test_costs_are_means_over_the_runs_that_have_them() -> None:
    runs = [
        dataclasses.replace(
            repetition(seed, [0.5, 0.5], "ab", status=[DONE, status]),
            costs={"price": (price, price), "summary_price": (price, price), "tokens_in": (10.0 * seed, 30.0)},
            calls=(seed + 1.0, seed + 1.0),
        )
        for seed, status, price in ((0, DONE, 0.25), (1, MISSING, None))
    ]
    [row] = board(runs).rows
    # A price unknown in one run is unknown for the row. A missing sample adds no costs.
    assert row.costs["price"] is None and row.costs["summary_price"] is None
    assert row.costs["tokens_in"] == pytest.approx((5.0 + 30.0) / 2) and row.costs["calls"] == pytest.approx(
        (1.5 + 1.0) / 2
    )


def test_a_single_run_is_not_pooled() -> None:
    alone = repetition(3, [0.5] * 24)
    assert pooled([alone]) == [alone] and pooled([alone])[0] is alone
    assert "runs" not in table(board([alone])).splitlines()[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"sampling": {"temperature": 0.7}},
        {"versions": {"strategy": "2"}},
        {"completions": 2},
        {"samples": "demo[:24]"},
        {"generator": "other"},
        {"samples_digest": "e" * 64},
    ],
)
def test_runs_that_differ_in_more_than_the_seed_are_not_pooled(changes: dict[str, Any]) -> None:
    runs = [repetition(0, [0.5] * 24), repetition(1, [0.6] * 24, **changes)]
    assert pooled(runs) == runs


def test_equal_temperatures_in_different_spellings_are_pooled() -> None:
    runs = [repetition(seed, [0.5] * 24, sampling={"temperature": zero}) for seed, zero in enumerate((0.0, 0))]
    assert len(pooled(runs)) == 1


def test_runs_with_unknown_decoding_are_not_pooled() -> None:
    runs = [make_table({"es": [0.5] * 24}, REPOS, id=id_) for id_ in "ab"]
    assert pooled(runs) == runs


def test_the_newest_version_is_shown_with_all_its_repetitions() -> None:
    old = [repetition(seed, [0.1] * 24, id=f"old{seed}", versions={"strategy": "1"}) for seed in (0, 1)]
    new = [repetition(seed, [0.5] * 24, versions={"strategy": "2"}) for seed in (0, 1, 2)]
    [group] = board([old[0], new[0], old[1], new[1], new[2]]).groups
    assert [row.metrics["es"].mean for row in group.rows] == [pytest.approx(50)] and group.superseded == 2


def test_an_unfinished_repetition_does_not_hide_the_others() -> None:
    begun = repetition(1, [0.9, *([None] * 23)], status=[DONE, *([MISSING] * 23)])
    [row] = board([repetition(0, [0.5] * 24), begun]).rows
    assert (row.n, row.missing, row.answers.missing) == (24, 0, 23)
    assert row.metrics["es"].mean == pytest.approx((23 * 50 + 70) / 24)


def test_runs_over_different_samples_are_aligned_by_sample() -> None:
    """A filter by date may leave different samples in runs of different versions."""
    runs = [
        repetition(0, [0.2, 0.4], "ab"),
        repetition(1, [0.6], "b", first=1),
    ]
    [one] = pooled(runs)
    assert one.sample == ("s00000", "s00001") and one.metrics["es"] == (0.2, 0.5)
    assert one.outcomes == ((DONE, MISSING), (DONE, DONE)) and one.repeated["es"] == ((0.2, None), (0.4, 0.6))


def test_pass_at_k_is_the_mean_of_the_runs_estimates() -> None:
    runs = [
        dataclasses.replace(repetition(seed, [0.0] * 2, "ab", completions=2, functions=True), metrics=metrics)
        for seed, metrics in enumerate(
            ({"pass@1": (0.5, 0.0), "pass@2": (1.0, 0.0)}, {"pass@1": (1.0, 0.5), "pass@2": (1.0, 1.0)})
        )
    ]
    [row] = board(runs).rows
    # Each run has two completions per task. Both runs together do not result in pass@4.
    assert row.run.completions == 2 and set(row.metrics) == {"pass@1", "pass@2"}
    assert [row.metrics[name].mean for name in ("pass@1", "pass@2")] == pytest.approx([50.0, 75.0])


# The board and its notes.


def test_three_strategies_with_five_runs_each_become_three_rows() -> None:
    names = ("lc.infile", "lc.random_windows", "lc.repocoder")
    runs = [drawn(name, mean) for name, mean in zip(names, (0.3, 0.35, 0.6), strict=True)]
    by_seed = [run for repetitions in zip(*runs, strict=True) for run in repetitions]
    made = board(by_seed)
    [group] = made.groups
    assert len(group.rows) == 3 and group.superseded == 0
    # The test and the interval use one value per sample: the mean over runs.
    averaged = [
        make_table(
            {"es": [statistics.fmean(cells) for cells in zip(*(run.metrics["es"] for run in of), strict=True)]},
            REPOS,
            strategy=name,
        )
        for name, of in zip(names, runs, strict=True)
    ]
    for row, expected in zip(group.rows, board(averaged).groups[0].rows, strict=True):
        assert row.run.strategy == expected.run.strategy and row.letters == expected.letters
        mine, its = row.metrics["es"], expected.metrics["es"]
        assert [mine.mean, mine.low, mine.high] == pytest.approx([its.mean, its.low, its.high])
        if expected.difference:
            assert row.difference["es"].p == expected.difference["es"].p
    # Every format reports the runs.
    text = table(made, width=200, explain=True)
    assert " runs " in text.splitlines()[3] and "their mean over them" not in text
    assert "one row; a sample's value is its mean over these runs: lc.repocoder 5," in text.replace("\n  ", " ")
    for name in names:
        [sentence] = [line for line in notes(group) if line.startswith(f"Sources of the uncertainty of {name}")]
        assert sentence.count("% repetition") == (1 if name == group.baseline else 2)
        assert (" its difference from lc.infile: " in sentence) == (name != group.baseline)
    assert not any(line.startswith("Runs were decoded in different ways") for line in notes(group))
    rows = json.loads(render.to_json(made))
    assert [(row["runs"], len(row["repetitions"])) for row in rows] == [(5, 5)] * 3
    assert rows[0]["sampling"]["seed"] == [0, 1, 2, 3, 4]
    shares = [part["share"] for part in rows[0]["variance"]["es"].values()]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    cells = next(iter(csv.DictReader(io.StringIO(render.to_csv(made)))))
    assert cells["runs"] == "5" and float(cells["variance_es_repetition_share"]) == pytest.approx(shares[-1])
    assert [line[-1] for line in screen_table(group, ["runs"]).lines] == ["5", "5", "5"]
    assert html(report(made, {})).count("Sources of the uncertainty of ") == 3


def test_rows_of_several_runs_and_of_one_run_are_compared_by_means() -> None:
    several, single = drawn("lc.infile", 0.3), drawn("lc.repocoder", 0.5, runs=1)
    [group] = board([*several, *single]).groups
    [lead, base] = group.rows
    assert (lead.variance, set(base.variance)) == ({}, {"es"})
    assert lead.difference["es"].n_common == 24
    [sentence] = [line for line in notes(group) if line.startswith("Sources of the uncertainty of ")]
    assert "uncertainty of lc.infile (variance): its es: " in sentence and "lc.repocoder" not in sentence
    assert [line[-1] for line in screen_table(group, ["runs"]).lines] == ["1", "5"]


def test_compare_reports_the_variance_of_a_difference() -> None:
    several, single = pooled(drawn("lc.repocoder", 0.5)), drawn("lc.infile", 0.3, runs=1)
    [pair] = compare([*single, *several])
    assert pair.difference.mean == pytest.approx(board([*several, *single]).groups[0].rows[0].difference["es"].mean)
    text = comparison([pair])
    assert "lc.repocoder (lc.repocoder-0, 5 runs) minus lc.infile (lc.infile-0)" in text
    assert (
        "    sources of the variance: " in text
        and "% repetition (the repetition of lc.infile, a single run, is in samples)" in text
    )
    assert render.comparison_json([pair]).count('"share"') == 3
    [sentence] = [
        line for line in compare_view.remarks([pair], {"lc.repocoder-0": "x", "lc.infile-0": "y"}) if "variance" in line
    ]
    assert sentence.startswith("x: variance of the difference: ")


def test_the_noise_of_a_difference_includes_both_rows() -> None:
    noisy, steady = drawn("lc.repocoder", 0.5, noise=0.1), drawn("lc.infile", 0.3, noise=0.05)
    [pair] = compare([*pooled(steady), *pooled(noisy)])
    rows = {row.run.strategy: row for row in board([*noisy, *steady]).rows}
    singles = [rows[name].variance["es"]["repetition"].deviation for name in ("lc.infile", "lc.repocoder")]
    both = pair.difference.variance["repetition"].deviation
    assert both**2 == pytest.approx(singles[0] ** 2 + singles[1] ** 2)
