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


def test_two_files_of_one_name_keep_their_folders() -> None:
    runs = [version("/a/mine.py@mine", "1", "r1"), version("/b/mine.py@mine", "2", "r2")]
    assert [table.run.strategy for table in file_labelled(runs)] == ["/a/mine.py@mine", "/b/mine.py@mine"]
