"""What boards call strategies of files, and which of their versions are one row."""

from __future__ import annotations

from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.choices import file_labelled
from ctxbench.harness.results import RunTable, file_label
from tests.helpers.runs import make_table


def version(spec: str, digest: str, run: str) -> RunTable:
    return make_table({"es": [0.5, 1.0]}, "ab", strategy=spec, id=run, versions={"strategy": digest})


def test_a_file_goes_without_its_folder_and_other_labels_stay() -> None:
    assert file_label("/a/b/mine.py@mine(limit=3)") == "mine.py@mine(limit=3)"
    labels = ("lc.infile", "lc.repocoder(iterations=2)", "their retrieval (1)")
    assert tuple(map(file_label, labels)) == labels


def test_versions_of_a_file_are_one_row_also_from_where_it_was_moved_to() -> None:
    runs = [
        version("mine.py@mine", "1", "r1"),
        version("mine.py@mine", "2", "r2"),
        version("/new/mine.py@mine", "2", "r3"),
        version("/new/mine.py@mine", "3", "r4"),
    ]
    [group] = board(runs, baseline="/elsewhere/mine.py@mine").groups
    assert [(row.run.strategy, row.run.id) for row in group.rows] == [("mine.py@mine", "r4")]
    assert group.superseded == 3 and group.baseline == "mine.py@mine"


def test_bits_of_two_coders_are_in_no_number_together() -> None:
    def measured(strategy: str, coder: str, *, gain: float) -> RunTable:
        metrics = {"es": [0.5, 0.75], "context_gain": [gain, gain + 1]}
        return make_table(metrics, "ab", strategy=strategy, id=strategy + coder, versions={"coder": coder})

    runs = [measured("lc.infile", "m 1", gain=0), measured("bm25", "m 2", gain=9), measured("aim", "m 2", gain=5)]
    [group] = board(runs, metric="context_gain").groups
    assert [(row.run.strategy, row.rank_low) for row in group.rows] == [("bm25", 1), ("aim", 1), ("lc.infile", None)]
    alone = group.rows[-1]
    assert (
        alone.metrics.keys() == {"es"} and "measured by m 1, and those of the other rows by m 2" in alone.run.remarks[0]
    )
    assert not any("context_gain" in row.difference for row in board(runs).rows if row.run.strategy == "lc.infile")
    [whole] = board([measured("lc.infile", "m 2", gain=0), *runs], metric="context_gain").groups
    assert {row.run.id for row in whole.ranked} == {"bm25m 2", "aimm 2"}, "the newest run of a strategy is shown"
    [same] = board(runs[1:], metric="context_gain").groups
    assert len(same.ranked) == 2 and not any(row.run.remarks for row in same.rows)


def test_two_files_of_one_name_keep_their_folders() -> None:
    runs = [version("/a/mine.py@mine", "1", "r1"), version("/b/mine.py@mine", "2", "r2")]
    assert [table.run.strategy for table in file_labelled(runs)] == ["/a/mine.py@mine", "/b/mine.py@mine"]
