"""Sets of one repository are tested over files in every output, with few false positives."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ctxbench.dashboard.views import compare as view
from ctxbench.harness.leaderboard import board, compare, pairs, render, stats
from ctxbench.harness.leaderboard.headline import heading_of, headline
from ctxbench.harness.leaderboard.power import WITHIN_ONE, detectable, spread
from ctxbench.harness.leaderboard.repetitions import pooled
from ctxbench.harness.results import RunTable
from scripts.one_repository import Differences
from tests.helpers.runs import make_table

FILES = [f"src/f{index % 12:02}.py" for index in range(60)]


def run(strategy: str, mean: float, files: Sequence[str] = FILES, repo: str = "shop", **more: Any) -> RunTable:
    random = np.random.default_rng(len(strategy))
    es = np.clip(random.normal(mean, 0.1, len(files)), 0, 1).tolist()
    return make_table({"es": es}, [repo] * len(files), path=files, strategy=strategy, id=strategy, **more)


@pytest.mark.parametrize(
    ("repos", "files", "noun", "refusal"),
    [
        pytest.param(["a", "b"] * 10, range(20), "repository", "", id="several repositories"),
        pytest.param(["a"] * 20, range(20), "file", "", id="one repository"),
        pytest.param(["a"] * 18, [*range(9), *range(9)], "repository", "of 9 files of a, but 10 are", id="few files"),
        pytest.param(
            ["a"] * 20, [0] * 10 + [*range(1, 11)], "repository", "one file of a has at least half", id="one large file"
        ),
        pytest.param(["a"] * 12, [*range(11), ""], "repository", "files of some samples", id="a file is not known"),
        pytest.param([], [], "repository", "", id="nothing"),
    ],
)
def test_the_unit_is_repository_or_file(repos: Sequence[str], files: Sequence[object], noun: str, refusal: str) -> None:
    of_repo = {str(index): repo for index, repo in enumerate(repos)}
    of_file = {str(index): str(file) for index, file in enumerate(files) if file != ""}
    unit, names = pairs.units_of(of_repo, of_file)
    assert unit.noun == noun and refusal in unit.refusal and bool(unit.refusal) is bool(refusal)
    assert names == (of_file if noun == "file" else of_repo)


def test_every_output_tests_over_the_same_files() -> None:
    tables = [run("lc.infile", 0.3), run("better", 0.5)]
    group = board(tables).groups[0]
    difference = group.rows[0].difference["es"]
    assert (difference.units, difference.significant, group.family.units) == (12, True, 12)
    assert difference.p is not None and difference.p == pytest.approx(2 / 2**12)
    claim = "Tested over 12 files of shop; the claim is limited to this repository."
    assert "12 files of shop" in heading_of(group) and headline(group).endswith(claim)
    (pair,) = compare.compare(tables, metric="es")
    assert pair.difference == difference
    text = render.comparison([pair])
    assert claim in text and "sign flips of 12 files of shop" in text
    (record,) = json.loads(render.comparison_json([pair]))
    assert [part["file"] for part in record["files"]] == sorted(set(FILES)) and record["difference"]["files"] == 12
    assert record["difference"]["files_needed"] is None and "repositories" not in record
    names = {"lc.infile": "lc.infile", "better": "better"}
    assert view.remarks([pair], names)[0] == claim
    assert view.difference_rows([pair], names)[0]["files"] == 12
    assert {row["file"] for row in view.unit_rows(pair)} == set(FILES)
    assert view.sample_rows(pair, str)[0]["file"] in FILES


def test_a_repository_with_few_files_explains_why_it_is_not_tested() -> None:
    few = [f"f{index % 4}.py" for index in range(60)]
    group = board([run("lc.infile", 0.3, few), run("better", 0.5, few)]).groups[0]
    assert (group.rows[0].difference["es"].significant, group.family.claim()) == (False, "")
    why = "all samples are of 4 files of shop, but 10 are needed"
    assert group.family.verdict() == f"No difference can be significant here: {why}."
    assert why in render.comparison(compare.compare([run("lc.infile", 0.3, few), run("better", 0.5, few)]))


def test_pooled_runs_keep_their_files() -> None:
    seeds = [run("lc.random_windows", 0.4 + seed / 10, sampling=json.dumps({"seed": seed})) for seed in (0, 1)]
    (table,) = pooled(seeds)
    assert table.path == tuple(FILES)
    (row,) = board([table]).rows
    assert row.metrics["es"].over is stats.IntervalScope.FILES and set(row.variance["es"]) >= {"files", "samples"}


def repository(files: int = 30, each: int = 5, *, between: float = 1.0, within: float = 1.0) -> Differences:
    """Return differences of mean 3: files vary by `between` and samples within a file by `within`."""
    random = np.random.default_rng(11)
    of_file = np.repeat(np.arange(files), each)
    values = 3 + between * random.normal(size=files)[of_file] + within * random.normal(size=len(of_file))
    return Differences(
        repo="shop", metric="es", values=values, groups={"file": of_file, "sample": np.arange(len(of_file))}
    )


@pytest.mark.parametrize("swapped", [True, False], ids=["places changed", "mean taken away"])
def test_false_positives_are_few_over_files_but_not_over_samples(swapped: bool) -> None:
    shares = {
        unit: sum(repository().leads(unit, "file", 150, swapped=swapped, runs=4_000)) for unit in ("file", "sample")
    }
    assert 0.03 <= shares["file"] <= 0.06 and shares["sample"] > 0.15


def test_a_predicted_detectable_difference_is_found_in_four_of_five() -> None:
    drawn = repository(between=1.5)
    sizes = [5] * 30
    expected = spread(stats.clustered(drawn.values, drawn.groups["file"]))
    assert expected is not None and detectable(sizes[:9], expected) is None
    effect = detectable(sizes, expected)
    assert effect is not None and 0.74 <= drawn.leads("file", "file", 150, effect=effect)[1] <= 0.86
    twice, corrected = detectable([10] * 30, expected), detectable(sizes, expected, pairs=5)
    # More samples of the same files reduce only the variance within files.
    assert twice is not None and corrected is not None and 0.9 * effect < twice < effect < corrected
    uneven = detectable([121, *[1] * 29], expected)
    assert uneven is not None and uneven > 1.5 * effect
    assert set(WITHIN_ONE) == {"es", "copyable_bits"}
