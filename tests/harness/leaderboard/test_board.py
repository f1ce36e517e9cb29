"""Rows from stored runs: which samples count, which rows are compared, and which are ranked."""

import dataclasses
import itertools
import random
import statistics

import pytest

from ctxbench.bench.errors import UnknownName
from ctxbench.harness.leaderboard import board, pairs
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.rows import Standing
from ctxbench.harness.leaderboard.scales import scale_of
from ctxbench.harness.leaderboard.stats import IntervalScope
from ctxbench.harness.results import Origin, RunTable, Status
from tests.helpers.runs import make_table

REPOS = tuple(f"r{index % 8}" for index in range(80))


def noisy(strategy: str, mean: float, *, seed: str = "", **run: object) -> RunTable:
    """Return a run of 80 samples in 8 repositories whose ``es`` varies around `mean` in 0..1."""
    draw = random.Random(f"{strategy}{seed}")
    es = [min(1.0, max(0.0, draw.gauss(mean, 0.1))) for _ in REPOS]
    return make_table({"es": es, "em": [float(one > 0.6) for one in es]}, REPOS, strategy=strategy, **run)


def test_every_status_is_counted_separately() -> None:
    status = [Status.SCORED, Status.MODEL_FAILED, Status.INFRA_FAILED, Status.EXCLUDED, Status.SCORED]
    made = make_table({"es": [0.8, None, None, None, 0.4]}, ["a", "a", "b", "b", "c"], status=status)
    (row,) = board([made]).rows
    assert (row.n, row.model_failed, row.missing, row.excluded) == (3, 1, 1, 1)
    assert row.metrics["es"].mean == pytest.approx((80 + 0 + 40) / 3)
    assert row.sensitivity["es"].worst == pytest.approx(120 / 4)
    assert row.sensitivity["es"].best == pytest.approx(220 / 4)


def test_a_run_without_any_score_is_shown_and_not_ranked() -> None:
    failed = make_table({"es": [None] * 3}, "abc", status=[Status.INFRA_FAILED] * 3, strategy="x")
    rows = board([noisy("lc.infile", 0.4), failed]).rows
    assert [row.run.strategy for row in rows] == ["lc.infile", "x"]
    assert (rows[1].n, rows[1].missing, rows[1].rank_low, rows[1].metrics) == (0, 3, None, {})


def test_scales_come_from_the_profile() -> None:
    assert scale_of("ctxbench", "es").factor == 100
    assert scale_of("crosscodeeval", "es").factor == 1
    assert scale_of("ctxbench", "context_gain").unit == "bits"
    assert scale_of("ctxbench", "bits").lower_is_better
    assert scale_of("ctxbench", "pass@1").factor == 100
    with pytest.raises(UnknownName):
        scale_of("ctxbench", "esprit")


def test_bits_are_not_percent_and_include_failed_samples() -> None:
    made = make_table({"context_gain": [4.0, 8.0]}, "ab", status=[Status.SCORED, Status.MODEL_FAILED])
    assert board([made]).rows[0].metrics["context_gain"].mean == 6.0


def test_a_better_strategy_differs_significantly() -> None:
    group = board([noisy("lc.infile", 0.3), noisy("mid", 0.31), noisy("top", 0.6)], all_pairs=True).groups[0]
    assert group.rows[0].run.strategy == "top"
    assert [(row.letters, row.rank_low, row.rank_high) for row in group.rows] == [("a", 1, 1), ("b", 2, 3), ("b", 2, 3)]
    difference = group.rows[0].difference["es"]
    assert difference.p == pytest.approx(2 / 2**8) and difference.pairs == 3
    assert difference.wins > 70 and difference.wins + difference.ties + difference.losses == difference.n_common == 80
    family = group.family
    assert (family.pairs, family.units, family.decidable, group.baseline) == (3, 8, True, "lc.infile")
    assert family.visible is not None and 0 < family.visible < 15
    # The other two differ by little, so a significant difference needs many repositories.
    assert family.significant == 2 and family.needed is not None and family.needed > 8
    assert [(row.beats, row.standing, row.needed) for row in group.rows] == [
        ((1, 2), Standing.UNBEATEN, None),
        ((), Standing.BEATEN, None),
        ((), Standing.BEATEN, None),
    ]


def test_fewer_bits_win() -> None:
    few, many = ({"bits": [base + index % 3 for index in range(80)]} for base in (20.0, 60.0))
    runs = [make_table(many, REPOS, strategy="many"), make_table(few, REPOS, strategy="few")]
    rows = board(runs, metric="bits", baseline="many").rows
    assert [(row.run.strategy, row.letters, row.rank_low) for row in rows] == [("few", "a", 1), ("many", "b", 2)]
    assert (rows[0].difference["bits"].wins, rows[0].difference["bits"].losses) == (80, 0)


def test_few_repositories_show_no_significant_difference() -> None:
    repos = [f"r{index % 5}" for index in range(50)]
    runs = [make_table({"es": [value] * 50}, repos, strategy=name) for name, value in (("lc.infile", 0.1), ("b", 0.9))]
    group = board(runs).groups[0]
    family = group.family
    assert not family.decidable and family.visible is None and family.smallest_p == 2 / 2**5
    assert family.needed == 6 and {row.needed for row in group.rows} == {6}
    assert {(row.rank_low, row.rank_high, row.letters) for row in group.rows} == {(1, 2, "a")}


def test_many_pairs_do_not_prevent_significance() -> None:
    draw = random.Random(2)
    repos = [f"r{index % 6}" for index in range(60)]
    runs = [
        make_table({"es": [0.1 * k + draw.random() / 100 for _ in repos]}, repos, strategy=f"s{k}")
        for k in range(1, 10)
    ]
    # A correction by the 36 pairs would require p below 0.0014, but with six repositories p is at least 0.03.
    group = board(runs, all_pairs=True).groups[0]
    assert group.family.pairs == group.family.significant == 36 and group.family.decidable
    assert [row.letters for row in group.rows] == list("abcdefghi")


def test_rows_that_do_not_differ_need_more_repositories() -> None:
    group = board([noisy("lc.infile", 0.3), noisy("b", 0.32), noisy("c", 0.34)]).groups[0]
    assert group.family.significant == 0 and {row.standing for row in group.rows} == {Standing.UNDECIDED}
    assert group.unbeaten == () and all(row.needed is not None and row.needed > 8 for row in group.rows)
    assert group.family.needed == min(row.needed or 0 for row in group.rows)


@pytest.mark.parametrize("count", [1, 3, 66, 300])
def test_more_repositories_show_smaller_differences(count: int) -> None:
    """The smallest sufficient number can therefore be found by bisection."""
    seen = [pairs.reach(number, count) for number in pairs.NUMBERS]
    assert all(more < less for less, more in itertools.pairwise(seen))


@pytest.mark.slow
def test_the_needed_number_of_repositories_is_about_enough() -> None:
    """With as many repositories as reported, most boards find the difference."""

    def leading(repositories: int, seed: int) -> Difference:
        draw = random.Random(seed)
        runs = []
        for name, mean in (("lc.infile", 0.50), ("b", 0.53), ("c", 0.50)):
            tastes = [draw.gauss(mean, 0.03) for _ in range(repositories)]
            repos = [f"r{index}" for index in range(repositories) for _ in range(4)]
            values = [tastes[index // 4] + draw.gauss(0, 0.02) for index in range(len(repos))]
            runs.append(make_table({"es": values}, repos, strategy=name))
        (row,) = [row for row in board(runs).groups[0].rows if row.run.strategy == "b"]
        return row.difference["es"]

    needed = statistics.median(found.needed or 0 for seed in range(40) if (found := leading(8, seed)).needed)
    found = [leading(round(needed), seed).significant for seed in range(40)]
    assert 12 <= needed <= 40 and sum(found) >= 24


def test_only_samples_that_both_completed_are_compared() -> None:
    this = make_table({"es": [None, *[0.5] * 5]}, "abcdef", strategy="lc.infile")
    other = make_table({"es": [0.7] * 6}, "defghi", strategy="b", first=3)
    difference = next(row for row in board([this, other]).rows if row.run.strategy == "b").difference["es"]
    assert (difference.n_common, difference.units, difference.over) == (3, 3, IntervalScope.NONE)
    assert difference.mean == pytest.approx(20)


def test_runs_without_a_common_sample_are_not_compared() -> None:
    this = make_table({"es": [0.5] * 6}, "abcdef", strategy="lc.infile")
    other = make_table({"es": [0.7] * 6}, "abcdef", strategy="b", first=100)
    group = board([this, other]).groups[0]
    found = next(row for row in group.rows if row.run.strategy == "b").difference["es"]
    assert (found.n_common, found.p, found.mean) == (0, None, None)
    assert all(row.letters == "a" for row in group.rows) and not group.family.decidable


def test_samples_on_which_a_row_is_better_equal_or_worse_are_counted() -> None:
    this = make_table({"em": [1, 1, 0, 0]}, "abcd", strategy="b")
    other = make_table({"em": [1, 0, 0, 0]}, "abcd", strategy="lc.infile")
    [difference] = [row.difference["em"] for row in board([other, this]).rows if row.run.strategy == "b"]
    assert (difference.wins, difference.ties, difference.losses) == (1, 3, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"samples": "other"},
        {"samples_digest": "e" * 64},
        {"language": "java"},
        {"generator": "incontext"},
        {"profile": "infercom"},
    ],
)
def test_runs_with_different_settings_are_never_ranked_together(change: dict[str, str]) -> None:
    made = board([noisy("lc.infile", 0.3), noisy("b", 0.6, **change)])
    assert [len(group.rows) for group in made.groups] == [1, 1]


def test_unranked_rows_are_shown_last_outside_the_family() -> None:
    group = board([noisy("lc.infile", 0.3), noisy("b", 0.5), noisy("oracle", 0.9, ranked=False)]).groups[0]
    last = group.rows[-1]
    assert (last.run.strategy, last.rank_low, last.letters) == ("oracle", None, "")
    assert last.difference["es"].mean is not None and last.difference["es"].p is None
    assert group.family.pairs == 1


OWN = (noisy("lc.infile", 0.3), noisy("b", 0.34), noisy("c", 0.5), noisy("d", 0.31))
REFERENCE = [
    noisy(name, mean, origin=Origin.REFERENCE) for name, mean in (("b", 0.4), ("x", 0.6), ("y", 0.33), ("z", 0.32))
]


def test_importing_does_not_change_own_rows() -> None:
    alone, beside = board(OWN).groups[0], board([*OWN, *REFERENCE]).groups[0]
    own = {row.run.strategy: row for row in beside.rows if row.run.origin is Origin.RUN}
    assert len(own) == 4 and len(beside.rows) == 7
    for row in alone.rows:
        assert own[row.run.strategy] == row
    assert beside.family == alone.family
    theirs = [row for row in beside.rows if row.run.origin is Origin.REFERENCE]
    assert [(row.rank_low, row.difference["es"].pairs) for row in theirs] == [(None, 3)] * 3
    assert any(row.difference["es"].significant for row in theirs)


def test_reference_rows_alone_are_ranked() -> None:
    group = board(REFERENCE, baseline="y").groups[0]
    assert [row.run.strategy for row in group.ranked] == ["x", "b", "y", "z"] and group.family.pairs == 3


def test_a_single_own_row_that_is_the_baseline_is_not_tested() -> None:
    own = noisy("lc.infile", 0.3)
    alone = board([own]).groups[0]
    beside = board([own, noisy("lc.repocoder", 0.6, origin=Origin.REFERENCE)]).groups[0]
    assert beside.rows[0] == alone.rows[0] and beside.family == alone.family
    assert beside.rows[0].standing is Standing.UNDECIDED and beside.rows[1].difference["es"].significant


def test_reference_rows_do_not_change_the_metric_that_ranks_own_rows() -> None:
    own = [make_table({"es": [0.1, 0.2]}, "ab", strategy=name, generator="incontext") for name in ("lc.infile", "mine")]
    theirs = {"es": [0.3, 0.4], "context_gain": [1.0, 2.0]}
    reference = make_table(theirs, "ab", strategy="aim", generator="incontext", origin=Origin.REFERENCE)
    group = board([*own, reference]).groups[0]
    assert (group.metric, {row.run.strategy for row in group.ranked}) == ("es", {"lc.infile", "mine"})
    bits = {"es": [0.1, 0.2], "context_gain": [1.0, 2.0]}
    own = [
        make_table(bits, "ab", strategy=name, generator="incontext", versions={"coder": "A"})
        for name in ("lc.infile", "mine")
    ]
    newer = dataclasses.replace(reference, run=dataclasses.replace(reference.run, versions={"coder": "B"}))
    assert {row.run.strategy for row in board([*own, newer]).groups[0].ranked} == {"lc.infile", "mine"}


def test_an_own_run_is_preferred_as_the_baseline() -> None:
    runs = [noisy("lc.infile", 0.7, origin=Origin.IMPORTED), noisy("lc.infile", 0.3), noisy("mine", 0.4)]
    asked, unasked = board(runs, baseline="lc.infile").groups[0], board(runs).groups[0]
    assert asked.rows == unasked.rows and asked.base is not None and asked.base.run.origin is Origin.RUN


def test_a_run_with_a_missing_sample_is_ranked_at_no_level() -> None:
    level, status = ["x", "y"] * 40, [Status.INFRA_FAILED] + [Status.SCORED] * 79
    runs = [noisy("lc.infile", 0.3, level=level), noisy("begun", 0.6, level=level, status=status)]
    for group in board(runs, by_level=True).groups:
        assert [row.run.strategy for row in group.ranked] == ["lc.infile"] and group.family.pairs == 0


def test_a_significant_difference_keeps_the_lower_end_of_its_interval() -> None:
    sizes, draw = [1, 1, 1, 1, 1, 8], random.Random(50)
    repos = [f"r{repo}" for repo, size in enumerate(sizes) for _ in range(size)]
    runs = [
        make_table({"context_gain": [mean + draw.gauss(0, 0.5) for _ in repos]}, repos, strategy=name)
        for name, mean in (("lc.infile", 3.0), ("a", 5.0), ("b", 6.0))
    ]
    *others, _ = board(runs, metric="context_gain").groups[0].rows
    for found in (row.difference["context_gain"] for row in others):
        assert found.p == 2 / 2**6 and found.mean is not None and found.low is not None and 0 < found.low < found.mean
    assert [row.difference["context_gain"].high is None for row in others] == [True, False]


def test_a_single_own_row_is_tested_against_the_reference_baseline() -> None:
    own, infile = noisy("mine", 0.5), noisy("lc.infile", 0.3, origin=Origin.REFERENCE)
    group = board([infile, own]).groups[0]
    assert group.baseline == "lc.infile" and group.family.pairs == 1 and group.family.significant == 1
    assert [(row.run.strategy, row.rank_low, row.beats) for row in group.rows] == [
        ("mine", 1, (1,)),
        ("lc.infile", None, ()),
    ]


def test_rows_are_tested_against_the_baseline_or_in_all_pairs() -> None:
    asked, all_pairs = board(OWN).groups[0], board(OWN, all_pairs=True).groups[0]
    assert (asked.family.pairs, asked.family.question()) == (3, "each of 3 strategies against lc.infile")
    assert (all_pairs.family.pairs, all_pairs.family.question()) == (6, "all 6 pairs of 4 strategies")
    by_name = {row.run.strategy: row.difference.get("es") for row in asked.rows}
    for row in all_pairs.rows:
        found = row.difference.get("es")
        if found is not None:
            one = by_name[row.run.strategy]
            # Fewer pairs in a test mean a smaller p and a narrower interval.
            assert one and one.p is not None and found.p is not None and one.p <= found.p
            assert None not in (one.low, one.high, found.low, found.high)
            assert found.low <= one.low and one.high <= found.high  # type: ignore[operator]


def test_the_newest_complete_run_of_a_strategy_is_shown() -> None:
    partial = make_table({"es": [0.9, None]}, "ab", status=[Status.SCORED, Status.INFRA_FAILED], id="partial")
    old, new = (make_table({"es": [value] * 2}, "ab", id=name) for name, value in (("old", 0.1), ("new", 0.2)))
    for runs, shown in (([old, new, partial], "new"), ([old, partial], "old"), ([partial], "partial")):
        group = board(runs).groups[0]
        assert ([row.run.id for row in group.rows], group.superseded) == ([shown], len(runs) - 1)


def test_the_default_metric_depends_on_the_generator() -> None:
    columns = {"es": [0.5], "em": [1.0], "copyable_bits": [3.0]}
    assert board([make_table(columns, "a", generator="incontext(beam=4)")]).groups[0].metric == "copyable_bits"
    assert board([make_table(columns, "a", generator="hf(model=x)")]).groups[0].metric == "es"
    assert board([make_table({"em": [1.0]}, "a")]).groups[0].metric == "em"
    assert board([make_table({"em": [1.0], "es": [0.1]}, "a")], metric="em").groups[0].metric == "em"


@pytest.mark.parametrize(
    ("strategies", "asked", "expected"),
    [
        (["z", "lc.infile", "a"], None, "lc.infile"),
        (["z", "lc.infile(limit=5)", "a"], None, "lc.infile(limit=5)"),
        (["z", "a"], None, "z"),
        (["z", "a"], "a", "a"),
        (["z", "s(b=2, a=1)", "s"], "s(a=1, b=2)", "s(a=1, b=2)"),
        (["z", "s(a=1)", "s"], "s", "s"),
        (["z", "s(a=1)"], "s", "s(a=1)"),
    ],
)
def test_the_baseline_is_found_by_name_or_default(strategies: list[str], asked: str | None, expected: str) -> None:
    runs = [noisy("s(a=1, b=2)" if one == "s(b=2, a=1)" else one, 0.4) for one in strategies]
    made = board(runs, baseline=asked)
    assert made.groups[0].baseline == expected
    assert {row.baseline for row in made.rows if row.run.strategy != expected} == {expected}


def test_a_group_without_the_metric_is_not_ranked() -> None:
    made = board([make_table({"em": [1.0]}, "a"), noisy("b", 0.4, language="java")], metric="es")
    assert [group.rows[0].rank_low for group in made.groups] == [1, None]


def test_equal_runs_result_in_equal_boards() -> None:
    repos = [f"r{index % 20}" for index in range(80)]
    draw = random.Random("same")
    runs = [
        make_table({"es": [draw.random() for _ in repos]}, repos, strategy=name) for name in ("lc.infile", "b", "c")
    ]
    assert board(runs) == board(runs)
    renamed = [make_table(run.metrics, repos, strategy=run.run.strategy, id="another") for run in runs]
    numbers = [[(row.metrics, row.difference) for row in board(some).rows] for some in (runs, renamed)]
    assert numbers[0] == numbers[1]
