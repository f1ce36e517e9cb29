"""Numbers of `leaderboard` and `compare`, checked against a recomputation from the stored rows."""

import itertools
import json
import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.cli import run_cli
from tests.independent import recomputing as again
from tests.independent.drawing import STRATEGIES, Made
from tests.independent.inserting import Planned, Rows

CONTROLS = ("oracle-context",)
Record = dict[str, Any]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database with tables and no rows."""
    path = tmp_path_factory.mktemp("empty") / "results.db"
    Rows(path).close()
    return path


def board(path: Path, *arguments: str) -> list[Record]:
    found = run_cli("leaderboard", "--db", f"sqlite:///{path}", "--format", "json", *arguments)
    assert found.code == 0, found
    return json.loads(found.out)  # type: ignore[no-any-return]


def near(number: float | str | None) -> Any:
    return number if number is None or isinstance(number, str) else pytest.approx(number, rel=1e-6, abs=2e-6)


@pytest.mark.parametrize("seed", range(18))
def test_the_board_equals_a_recomputation_from_stored_rows(empty: Path, tmp_path: Path, seed: int) -> None:
    question = ("--all-pairs",) if seed % 3 == 0 else ()
    path = Path(shutil.copy(empty, tmp_path / "results.db"))
    Made(seed).write(path)
    runs, groups = again.read(path), defaultdict(list)
    for record in board(path, *question):
        groups[record["language"]].append(record)
        check_row(record, runs[record["run"], record["language"]])
    assert sum(map(len, groups.values())) == len(runs)
    for records in groups.values():
        check_differences(records, runs, all_pairs=bool(question))


def check_row(record: Record, run: again.Run) -> None:
    """Compare counts, costs, means and intervals."""
    counts = {"n": len(run.counts), "missing": len(run.missing), "model_failed": len(run.failed)}
    assert {name: record[name] for name in counts} == counts and record["excluded"] == len(run.invalid)
    assert {name: record[name] for name in again.COSTS} == {name: near(one) for name, one in run.costs.items()}
    for metric in run.metrics():
        values = run.values(metric)
        expected = again.estimate(values, run.repo, again.bounds(metric))
        assert {name: record[metric][name] for name in expected} == {name: near(x) for name, x in expected.items()}
        assert record[metric]["n"] == len(values)
        if run.missing and again.bounds(metric):
            ends = (0.0, 100.0) if metric not in again.LOWER_IS_BETTER else (100.0, 0.0)
            if_all = [
                near((sum(values.values()) + len(run.missing) * end) / (len(values) + len(run.missing))) for end in ends
            ]
            assert [record["sensitivity"][metric][name] for name in ("worst", "best")] == if_all


def check_differences(records: list[Record], runs: Mapping[tuple[str, str], again.Run], *, all_pairs: bool) -> None:
    """Compare all numbers of pairs: with the baseline, or among ranked rows."""
    of = {record["strategy"]: runs[record["run"], record["language"]] for record in records}
    metric, base = records[0]["ranked_by"], records[0]["baseline"] or records[0]["strategy"]
    ranked = [one for one in of if one not in CONTROLS and of[one].values(metric) and not of[one].missing]
    asked = [(name, base) for name in ranked if name != base and base in ranked]
    asked = list(itertools.combinations(ranked, 2)) if all_pairs else asked
    pairs = {(a, b): again.gaps(of[a], of[b], metric) for a, b in asked}
    repo = records_repo(of)
    family = again.Family({pair: gap for pair, gap in pairs.items() if gap}, repo)
    adjusted = family.p
    sign = -1 if metric in again.LOWER_IS_BETTER else 1
    beats = {
        (a, b) if sign * sum(pairs[a, b].values()) > 0 else (b, a) for (a, b), one in adjusted.items() if one <= 0.05
    }
    by_run = {record["run"]: record["strategy"] for record in records}
    for record in records:
        name = record["strategy"]
        if name in ranked:
            through = beats | {(a, d) for a, b in beats for c, d in beats if b == c}
            lost, won = sum(name == worse for _, worse in through), sum(name == better for better, _ in through)
            assert (record["rank_low"], record["rank_high"]) == (1 + lost, len(ranked) - won)
        else:
            assert record["rank_low"] is None and record["group"] == ""
        for one, found in record["difference"].items():
            check_difference(found, of[name], of[base], one)
            assert found["p"] is None or {name, base} <= set(ranked)
        assert {by_run[run] for run in record["beats"]} == {worse for better, worse in beats if better == name}
        if name in ranked and base in ranked and name != base:
            pair = (name, base) if (name, base) in pairs else (base, name)
            check_corrected(record["difference"][metric], family, pair, metric, is_turned=pair[0] == base)
    letters = {record["strategy"]: set(record["group"]) for record in records}
    for a, b in adjusted:
        assert bool(letters[a] & letters[b]) == (adjusted[a, b] > 0.05)
    for other in {one for record in records for one in record["difference"]} - {metric}:
        check_family(records, of, base, other)


def check_difference(found: Record, this: again.Run, other: again.Run, metric: str) -> None:
    gap = again.gaps(this, other, metric)
    assert found["n_common"] == len(gap)
    if not gap:
        assert found["mean"] is None and found["p"] is None
        return
    expected = again.estimate(gap, this.repo, again.bounds(metric, of_difference=True))
    del expected["mean_of_repositories"]
    if found["p"] is not None and any(gap.values()):
        # The test yields the interval; `check_corrected` checks it.
        expected = {"mean": expected["mean"]}
        assert found["interval"] == ("none" if found["low"] is None and found["high"] is None else "flips")
    assert {name: found[name] for name in expected} == {name: near(x) for name, x in expected.items()}
    sign = -1 if metric in again.LOWER_IS_BETTER else 1
    better = [sign * one for one in gap.values()]
    counts = [sum(one > 0 for one in better), better.count(0), sum(one < 0 for one in better)]
    assert [found["wins"], found["ties"], found["losses"]] == counts
    if this.strategy in CONTROLS or other.strategy in CONTROLS:
        assert [found[key] for key in ("p", "smallest_visible", "repositories_needed")] == [None] * 3


def check_corrected(found: Record, family: again.Family, pair: Any, metric: str, *, is_turned: bool = False) -> None:
    """Compare the corrected numbers of a pair. A pair without gaps must have none."""
    assert found["p"] == near(family.p.get(pair))
    if pair in family.p:
        if any(family.gaps[pair].values()):
            low, high = found["low"], found["high"]
            ends = (low, high) if not is_turned else tuple(None if end is None else -end for end in (high, low))
            assert family.has_interval(pair, *ends, again.bounds(metric, of_difference=True)), found
        assert found["pairs"] == len(family.p)
        assert found["smallest_visible"] == near(family.smallest_visible(pair))
        assert family.needs(pair, found["repositories_needed"])


def check_family(records: list[Record], of: Mapping[str, again.Run], base: str, metric: str) -> None:
    """Compare the correction for a metric that does not rank, over its pairs with the baseline."""
    found = {one["strategy"]: one["difference"].get(metric) for one in records if one["rank_low"] is not None}
    if found.keys() and base not in found:
        assert all(one is None or one["p"] is None for one in found.values())
        return
    found = {name: one for name, one in found.items() if of[base].values(metric) and of[name].values(metric)}
    gaps = {name: again.gaps(of[name], of[base], metric) for name, one in found.items() if one}
    family = again.Family({name: gap for name, gap in gaps.items() if gap}, records_repo(of))
    for name in gaps:
        check_corrected(found[name], family, name, metric)


def records_repo(runs: Mapping[Any, again.Run]) -> dict[str, str]:
    """Return sample -> repository, for all runs."""
    return {sample: repo for run in runs.values() for sample, repo in run.repo.items()}


@pytest.mark.parametrize("seed", range(0, 18, 4))
def test_compare_equals_a_recomputation_from_stored_rows(empty: Path, tmp_path: Path, seed: int) -> None:
    path = Path(shutil.copy(empty, tmp_path / "results.db"))
    Made(seed).write(path)
    runs = again.read(path)
    ids = sorted({run for run, _ in runs})
    if len(ids) < 2:
        assert run_cli("compare", *ids, "--db", f"sqlite:///{path}").code == 1
        return
    answer = run_cli("compare", *ids, "--db", f"sqlite:///{path}", "--format", "json")
    assert answer.code == 0, answer
    found = json.loads(answer.out)
    assert found
    for one in found:
        this, other = (runs[one[role], one["language"]] for role in ("run", "baseline"))
        check_difference(one["difference"], this, other, one["metric"])
        mine, its = this.values(one["metric"]), other.values(one["metric"])
        for part in one["repositories"]:
            ids_ = [id_ for id_ in mine.keys() & its.keys() if this.repo[id_] == part["repository"]]
            expected = [len(ids_), *(near(sum(x[id_] for id_ in ids_) / len(ids_)) for x in (mine, its))]
            assert [part["n"], part["this"], part["baseline"]] == expected
    families: dict[tuple[str, str], dict[str, Record]] = defaultdict(dict)
    for one in found:
        if not {one["strategy"], one["baseline_strategy"]} & set(CONTROLS):
            families[one["language"], one["metric"]][one["run"]] = one
    for (language, metric), members in families.items():
        gaps = {
            run: again.gaps(runs[run, language], runs[one["baseline"], language], metric)
            for run, one in members.items()
        }
        family = again.Family({run: gap for run, gap in gaps.items() if gap}, records_repo(runs))
        for run, one in members.items():
            check_corrected(one["difference"], family, run, metric)


def test_prices_are_recomputed_from_another_rate_file(empty: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(empty, tmp_path / "results.db"))
    made, rows, calls = Made(0), Rows(path), []
    rows.samples([Planned(id="s0", repo="r"), Planned(id="s1", repo="r")])
    for strategy in STRATEGIES[:2]:
        done = {id_: made.done(0.5) for id_ in ("s0", "s1")}
        rows.run(strategy, done, done, strategy=strategy, generator="openai(model=some-model-1, url='http://there')")
        calls.append([one for of in done.values() for one in of.calls])
    rows.close()
    rates = tmp_path / "rates.toml"
    rates.write_text(
        '[[rate]]\nmatch = "some-model-*"\ninput = 3.0\ncached = 0.5\noutput = 15.0\nper_hour = 2.0\nat_once = 4\n'
        'seen = 2026-01-01\n[[rate]]\nmatch = "*"\ninput = 99.0\noutput = 99.0\nseen = 2026-01-01\n'
    )
    found = {one["strategy"]: one["price"] for one in board(path, "--prices", str(rates))}
    for strategy, of in zip(STRATEGIES, calls, strict=False):
        millionths = sum(3.0 * (one.tokens_in - one.cached) + 0.5 * one.cached + 15.0 * one.tokens_out for one in of)
        hours = sum(one.seconds for one in of) / 3600
        assert found[strategy] == pytest.approx((millionths / 1e6 + 2.0 * hours / 4) / 2, rel=1e-9)


@pytest.mark.parametrize("seed", [2, 5, 8, 11])
def test_the_mean_with_invalid_samples_equals_that_of_a_board_with_them(empty: Path, tmp_path: Path, seed: int) -> None:
    path = Path(shutil.copy(empty, tmp_path / "results.db"))
    Made(seed).write(path)
    rows = Rows(path)
    for place in range(4):
        rows.add("mark", set_digest="d" * 64, sample_id=f"s{2 * place}", mark="vacuous", reason="", image="")
    rows.close()
    without, included = (
        {(one["run"], one["language"]): one for one in board(path, "--invalid", how)} for how in ("exclude", "include")
    )
    assert without.keys() == included.keys()
    for key, record in without.items():
        for metric in (one for one in record if one.startswith("pass@")):
            assert record[metric]["mean_with_invalid"] == near(included[key][metric]["mean"]), (key, metric)
