"""One repository: the file is the unit of its test, everywhere alike, and false leads stay few."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ctxbench.dashboard.views import compare as view
from ctxbench.harness.leaderboard import board, compare, pairs, render, signflip, stats
from ctxbench.harness.leaderboard.repetitions import pooled
from ctxbench.harness.leaderboard.sections import heading_of, headline
from ctxbench.harness.results import RunTable
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
        pytest.param(["a"] * 18, [*range(9), *range(9)], "repository", "of 9 files of a, and 10 are", id="few files"),
        pytest.param(
            ["a"] * 20, [0] * 10 + [*range(1, 11)], "repository", "one file of a has half", id="one large file"
        ),
        pytest.param(["a"] * 12, [*range(11), ""], "repository", "not all files", id="a file is not known"),
        pytest.param([], [], "repository", "", id="nothing"),
    ],
)
def test_samples_have_one_unit(repos: Sequence[str], files: Sequence[object], noun: str, refusal: str) -> None:
    of_repo = {str(index): repo for index, repo in enumerate(repos)}
    of_file = {str(index): str(file) for index, file in enumerate(files) if file != ""}
    unit, names = pairs.units_of(of_repo, of_file)
    assert unit.noun == noun and refusal in unit.refusal and bool(unit.refusal) is bool(refusal)
    assert names == (of_file if noun == "file" else of_repo)


def test_board_comparison_json_and_pages_test_over_the_same_files() -> None:
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


def test_what_is_not_tested_says_why() -> None:
    few = [f"f{index % 4}.py" for index in range(60)]
    group = board([run("lc.infile", 0.3, few), run("better", 0.5, few)]).groups[0]
    assert (group.rows[0].difference["es"].significant, group.family.claim()) == (False, "")
    why = "all samples are of 4 files of shop, and 10 are needed"
    assert group.family.verdict() == f"No difference can be significant here: {why}."
    assert why in render.comparison(compare.compare([run("lc.infile", 0.3, few), run("better", 0.5, few)]))


def test_pooled_runs_keep_their_files() -> None:
    seeds = [run("lc.random_windows", 0.4 + seed / 10, sampling=json.dumps({"seed": seed})) for seed in (0, 1)]
    (table,) = pooled(seeds)
    assert table.path == tuple(FILES)
    (row,) = board([table]).rows
    assert row.metrics["es"].over is stats.IntervalScope.FILES and set(row.variance["es"]) >= {"files", "samples"}


def test_false_leads_stay_few_over_files_and_not_over_samples() -> None:
    """Files resemble themselves: half of the variance of a difference is the file's."""
    random, shares = np.random.default_rng(11), {}
    files = np.repeat(np.arange(15), random.integers(2, 12, 15))
    for name, codes in {"file": files, "sample": np.arange(len(files))}.items():
        random = np.random.default_rng(12)
        sums = np.zeros((600, codes[-1] + 1))
        for row in sums:
            values = random.normal(size=15)[files] + random.normal(size=len(files))
            row[:] = stats.clustered(values, codes).sums
        shares[name] = np.mean(signflip.p_values(sums, seed="s") <= 0.05)
    assert shares["file"] <= 0.06 and shares["sample"] > 0.2
