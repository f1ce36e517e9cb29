"""Correct numbers that may mislead: what the leaderboard shows and warns of if runs are not quite alike."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.cli import run_cli
from tests.independent.inserting import GREEDY, Done, Planned, Rows

PLANNED = [Planned(id=f"s{place:02}", repo=f"r{place % 6}") for place in range(12)]
IDS = [one.id for one in PLANNED]


class Shelf:
    """A database that a test fills and then shows as a board."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.rows = Rows(path)
        self.rows.samples(PLANNED)

    def run(self, id_: str, values: dict[str, float], **run: Any) -> None:
        """Store a run with these edit similarities, 0 to 1."""
        done = {sample: Done(scores={("ctxbench", "es"): [value]}) for sample, value in values.items()}
        self.rows.run(id_, IDS, done, **run)

    def shown(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the board's records."""
        return json.loads(self._board("json", *arguments))  # type: ignore[no-any-return]

    def said(self, *arguments: str) -> str:
        """Return the board as text, on one line."""
        return " ".join(self._board("table", "--explain", *arguments).split())

    def _board(self, form: str, *arguments: str) -> str:
        self.rows.keep()
        found = run_cli("leaderboard", "--db", self.url, "--format", form, *arguments)
        assert found.code == 0, found
        return found.out


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """Return an empty database over twelve samples of six repositories."""
    made = Shelf(tmp_path / "results.db")
    yield made
    made.rows.close()


@pytest.mark.parametrize(("first", "second"), [("aaa", "bbb"), ("bbb", "aaa")])
def test_the_newest_run_of_an_edited_strategy_is_shown_whatever_its_id(shelf: Shelf, first: str, second: str) -> None:
    shelf.run(first, dict.fromkeys(IDS, 0.9), strategy_version="before", begun=[10.0, 11.0])
    shelf.run(second, dict.fromkeys(IDS, 0.2), strategy_version="after", begun=[20.0])
    [row] = shelf.shown()
    assert (row["run"], row["es"]["mean"]) == (second, 20.0)
    assert "1 run is not shown" in shelf.said()


def test_an_incomplete_newer_run_does_not_hide_a_complete_run(shelf: Shelf) -> None:
    shelf.run("aaa", dict.fromkeys(IDS, 0.9), strategy_version="before", begun=[10.0])
    shelf.run("bbb", dict.fromkeys(IDS[:3], 0.2), strategy_version="after", begun=[20.0])
    [row] = shelf.shown()
    assert (row["run"], row["n"], row["missing"]) == ("aaa", 12, 0)
    assert "1 run is not shown" in shelf.said() and "earlier" not in shelf.said()


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [
        ("generator_version", "gpt-1 of May", "gpt-1 of June"),
        ("coder", "incontext 1-a", "incontext 1-b"),
        ("code", "0.1.0", "0.2.0"),
        ("tokenizer", "ctxcode-1", "ctxcode-2"),
    ],
)
def test_rows_with_different_versions_say_so(shelf: Shelf, column: str, old: str, new: str) -> None:
    shelf.run("aaa", dict.fromkeys(IDS, 0.5), **{column: old})
    shelf.run("bbb", dict.fromkeys(IDS, 0.6), strategy="lc.repocoder", **{column: old})
    assert "different versions" not in shelf.said()
    shelf.run("ccc", dict.fromkeys(IDS, 0.7), strategy="lc.repofuse", strategy_version="other", **{column: new})
    said = shelf.said()
    assert "different versions, which affects their differences" in said
    assert f"{old})" in said and f"{new})" in said and "other" not in said.partition("used different versions")[2]
    assert {one["versions"]["strategy"] for one in shelf.shown()} == {"s1", "other"}


@pytest.mark.parametrize(("name", "value"), [("max_tokens", 64), ("top_p", 0.5), ("stop", ["\n"]), ("seed", 7)])
def test_rows_with_different_decoding_name_the_setting(shelf: Shelf, name: str, value: Any) -> None:
    shelf.run("aaa", dict.fromkeys(IDS, 0.5))
    shelf.run("bbb", dict.fromkeys(IDS, 0.6), strategy="lc.repocoder", sampling=json.dumps({**GREEDY, name: value}))
    told = f"lc.repocoder 1 per sample at temperature 0, {name} {json.dumps(value)}"
    assert told in shelf.said()
    assert {json.dumps(one["sampling"][name]) for one in shelf.shown()} == {json.dumps(value), json.dumps(GREEDY[name])}


def undefined(ids: list[str], others: dict[str, float]) -> dict[str, Done]:
    """Return results of all samples. The samples `ids` have a score only under another metric."""
    done = {one: Done(scores={("ctxbench", "es"): [value]}) for one, value in others.items()}
    return done | {one: Done(scores={("ctxbench", "em"): [0.0]}) for one in ids}


def test_an_unfinished_run_of_easy_samples_is_neither_ranked_nor_tested(shelf: Shelf) -> None:
    hard = {one: 0.1 if one in IDS[:6] else 0.9 for one in IDS}
    shelf.run("aaa", hard)
    shelf.run("ccc", {one: value + 0.01 for one, value in hard.items()}, strategy="lc.repofuse")
    alone = shelf.shown()
    shelf.run("bbb", {one: hard[one] + 0.05 for one in IDS[6:]}, strategy="lc.repocoder")
    *others, last = shelf.shown()
    assert others == alone and (last["run"], last["n"], last["missing"]) == ("bbb", 6, 6)
    assert (last["rank_low"], last["difference"]["es"]["p"], last["beats"]) == (None, None, [])
    assert (
        "Not ranked, because samples are missing (never counted as 0): lc.repocoder 6. Cure: run the same"
        in shelf.said()
    )


def test_a_leading_mean_over_fewer_and_easier_samples_has_a_warning(shelf: Shelf) -> None:
    hard = {one: 0.1 if one in IDS[:6] else 0.9 for one in IDS}
    gaps = dict(zip(IDS[6:], (-0.05, -0.05, -0.05, -0.05, -0.06, 0.02), strict=True))
    shelf.run("aaa", hard)
    easy = {one: hard[one] + gap for one, gap in gaps.items()}
    shelf.rows.run("bbb", IDS, undefined(IDS[:6], easy), strategy="lc.repocoder")
    first, second = shelf.shown("--metric", "es")
    assert (first["run"], first["n"], first["es"]["n"], first["missing"]) == ("bbb", 12, 6, 0)
    assert first["difference"]["es"]["mean"] == -4.0 and (first["rank_high"], second["rank_high"]) == (2, 2)
    assert (first["es"]["mean"], second["es"]["mean"]) == (86.0, 50.0)
    assert "Rows have es for different samples" in shelf.said()
    assert "(lc.repocoder 6, lc.infile 12)" in shelf.said()


def test_rows_with_equally_many_but_different_samples_say_so(shelf: Shelf) -> None:
    shelf.rows.run("aaa", IDS, undefined(IDS[:1], dict.fromkeys(IDS[1:], 0.5)))
    shelf.rows.run("bbb", IDS, undefined(IDS[-1:], dict.fromkeys(IDS[:-1], 0.5)), strategy="lc.repocoder")
    assert "Rows have es for different samples" in shelf.said()


def test_rows_over_the_same_samples_have_no_warning(shelf: Shelf) -> None:
    shelf.run("aaa", dict.fromkeys(IDS, 0.5))
    shelf.run("bbb", dict.fromkeys(IDS, 0.6), strategy="lc.repocoder")
    assert not [word for word in ("Not every row", "different versions", "different ways") if word in shelf.said()]


def test_two_runs_that_never_differ_still_have_an_interval(shelf: Shelf) -> None:
    shelf.run("aaa", dict.fromkeys(IDS, 0.5))
    shelf.run("bbb", dict.fromkeys(IDS, 0.5), strategy="lc.repocoder")
    gap = next(one["difference"]["es"] for one in shelf.shown() if one["run"] == "bbb")
    assert (gap["mean"], gap["p"], gap["ties"], gap["interval"]) == (0.0, 1.0, 12, "samples")
    z2 = 1.96**2
    assert gap["high"] == -gap["low"] == pytest.approx(100 * z2 / (12 + z2), abs=1e-3)
    assert gap["smallest_visible"] is None and "smallest difference" not in shelf.said()


def test_a_difference_of_percentages_stays_within_minus_100_and_100(shelf: Shelf) -> None:
    shelf.run("aaa", dict.fromkeys(IDS, 0.0))
    shelf.run("bbb", {one: float(one not in IDS[:2]) for one in IDS}, strategy="lc.repocoder")
    gap = next(one["difference"]["es"] for one in shelf.shown() if one["run"] == "bbb")
    assert (gap["interval"], gap["high"]) == ("flips", 100.0) and gap["low"] < 60


def test_a_difference_over_too_few_repositories_has_no_interval(shelf: Shelf) -> None:
    few = IDS[:5]
    for id_, value, strategy in (("aaa", 0.1, "lc.infile"), ("bbb", 0.9, "lc.repocoder")):
        done = {one: Done(scores={("ctxbench", "es"): [value]}) for one in few}
        shelf.rows.run(id_, few, done, strategy=strategy)
    gap = next(one["difference"]["es"] for one in shelf.shown() if one["run"] == "bbb")
    assert (gap["p"], gap["interval"], gap["low"], gap["high"]) == (2 / 2**5, "none", None, None)


def test_rows_with_few_repositories_say_that_their_intervals_use_samples(shelf: Shelf) -> None:
    shelf.run("aaa", {one: 0.1 * place for place, one in enumerate(IDS[:9])})
    shelf.run(
        "bbb", {one.id: 0.3 + 0.05 * n for n, one in enumerate(PLANNED) if one.repo < "r3"}, strategy="lc.partial"
    )
    assert {one["run"]: one["es"]["interval"] for one in shelf.shown()} == {"aaa": "repositories", "bbb": "samples"}
    assert "fewer than 5 repositories (lc.partial)" in shelf.said()


def test_a_row_that_loses_on_all_common_samples_does_not_lead(shelf: Shelf) -> None:
    # The second row has the highest mean, but only over six easy samples, and it loses on each of them.
    shelf.run("aaa", {one: 0.1 if one in IDS[:6] else 0.9 for one in IDS})
    shelf.rows.run("bbb", IDS, undefined(IDS[:6], dict.fromkeys(IDS[6:], 0.8)), strategy="lc.repocoder")
    first, second = shelf.shown()
    assert [first["es"]["mean"], second["es"]["mean"]] == [50.0, 80.0]
    assert (first["run"], first["rank_low"], first["rank_high"], first["group"]) == ("aaa", 1, 1, "a")
    assert (second["run"], second["rank_low"], second["rank_high"], second["group"]) == ("bbb", 2, 2, "b")
    assert second["difference"]["es"]["mean"] == -10.0 and second["difference"]["es"]["p"] == 0.03125
    assert "Rows have es for different samples" in shelf.said()


def test_three_equal_completions_are_not_better_than_one(shelf: Shelf) -> None:
    # The sum of three equal floats, divided by three, may differ from them in the last bit.
    near = {one: (7 * place + 1) / 10007 for place, one in enumerate(IDS)}
    assert any(sum([value] * 3) / 3 != value for value in near.values())
    shelf.run("aaa", near)
    thrice = {one: Done(scores={("ctxbench", "es"): [value] * 3}, completions=3) for one, value in near.items()}
    shelf.rows.run("bbb", IDS, thrice, strategy="lc.repocoder", n=3)
    gap = next(one["difference"]["es"] for one in shelf.shown() if one["run"] == "bbb")
    assert (gap["wins"], gap["ties"], gap["losses"], gap["mean"]) == (0, 12, 0, 0.0) and gap["high"] > 20


def test_compare_shows_other_differences_between_two_runs(shelf: Shelf) -> None:
    shelf.run("aaa", dict.fromkeys(IDS, 0.5))
    shelf.run("bbb", dict.fromkeys(IDS, 0.6), strategy_version="edited", n=2)
    shelf.run("ccc", dict.fromkeys(IDS, 0.7), generator="another", generator_version="of its own")
    shelf.rows.keep()
    told = " ".join(run_cli("compare", "aaa", "bbb", "ccc", "--db", shelf.url).out.split())
    one, other = told.split("lc.infile (ccc) minus")
    assert "lc.infile 1 per sample at temperature 0; lc.infile 2 per sample at temperature 0" in one
    assert "(strategy edited)" in one and "(strategy s1)" in one
    assert "generator another minus scripted" in other and "of its own" not in other


def test_all_levels_of_a_strategy_come_from_one_run(shelf: Shelf) -> None:
    levels = [Planned(id=f"t{place}", repo="r0", subkind=("next-line", "single-line")[place % 2]) for place in range(6)]
    shelf.rows.samples(levels, digest="e" * 64)
    ids = [one.id for one in levels]
    for run, begun, missing in (("aaa", 1.0, 0), ("bbb", 2.0, 1)):
        done = {one: Done(scores={("ctxbench", "es"): [0.5]}) for one in ids[missing:]}
        shelf.rows.run(run, ids, done, begun=[begun], samples_digest="e" * 64)
    shown = {one["level"]: one["run"] for one in shelf.shown("--by-level")}
    # The newer run lacks a next-line sample, but has all single-line samples.
    assert shown == {"all": "aaa", "next-line": "aaa", "single-line": "aaa"}
