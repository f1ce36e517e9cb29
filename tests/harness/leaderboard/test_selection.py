"""Labels of strategies from files, and the runs and versions that a board selects."""

from dataclasses import replace
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.notes import group_warnings, notes
from ctxbench.harness.leaderboard.selection import (
    file_labelled,
    is_generator,
    load_of,
    newest_of,
    of_newest_run,
    of_one_coder,
    runs_over,
)
from ctxbench.harness.results import Load, Origin, RunTable, Status, file_label
from tests.helpers.runs import make_run, make_table


def version(spec: str, digest: str, run: str) -> RunTable:
    return make_table({"es": [0.5, 1.0]}, "ab", strategy=spec, id=run, versions={"strategy": digest})


def test_labels_of_files_omit_the_folder() -> None:
    assert file_label("/a/b/mine.py@mine(limit=3)") == "mine.py@mine(limit=3)"
    labels = ("lc.infile", "lc.repocoder(iterations=2)", "their retrieval (1)")
    assert tuple(map(file_label, labels)) == labels


def test_versions_of_a_moved_file_share_a_row() -> None:
    runs = [
        version("mine.py@mine", "1", "r1"),
        version("mine.py@mine", "2", "r2"),
        version("/new/mine.py@mine", "2", "r3"),
        version("/new/mine.py@mine", "3", "r4"),
    ]
    [group] = board(runs, baseline="/elsewhere/mine.py@mine").groups
    assert [(row.run.strategy, row.run.id) for row in group.rows] == [("mine.py@mine", "r4")]
    assert group.superseded == 3 and group.baseline == "mine.py@mine"


def test_bits_of_two_coders_are_never_combined() -> None:
    def measured(strategy: str, coder: str, *, gain: float) -> RunTable:
        metrics = {"es": [0.5, 0.75], "context_gain": [gain, gain + 1]}
        return make_table(metrics, "ab", strategy=strategy, id=strategy + coder, versions={"coder": coder})

    runs = [measured("lc.infile", "m 1", gain=0), measured("bm25", "m 2", gain=9), measured("aim", "m 2", gain=5)]
    [group] = board(runs, metric="context_gain").groups
    assert [(row.run.strategy, row.rank_low) for row in group.rows] == [("bm25", 1), ("aim", 1), ("lc.infile", None)]
    alone = group.rows[-1]
    assert (
        alone.metrics.keys() == {"es"}
        and "m 1 measured this row, but m 2 measured the other rows" in alone.run.remarks[0]
    )
    assert not any("context_gain" in row.difference for row in board(runs).rows if row.run.strategy == "lc.infile")
    [whole] = board([measured("lc.infile", "m 2", gain=0), *runs], metric="context_gain").groups
    assert {row.run.id for row in whole.ranked} == {"bm25m 2", "aimm 2"}, "the newest run of a strategy is shown"
    [same] = board(runs[1:], metric="context_gain").groups
    assert len(same.ranked) == 2 and not any(row.run.remarks for row in same.rows)


def test_two_files_with_the_same_name_keep_their_folders() -> None:
    runs = [version("/a/mine.py@mine", "1", "r1"), version("/b/mine.py@mine", "2", "r2")]
    assert [table.run.strategy for table in file_labelled(runs)] == ["/a/mine.py@mine", "/b/mine.py@mine"]


def stored(id_: str, strategy: str, **more: Any) -> RunTable:
    return make_table({"es": [0.5, 1.0]}, "ab", strategy=strategy, id=id_, **more)


def test_names_select_the_newest_whole_runs_with_equal_settings() -> None:
    begun = replace(stored("r5", "aim"), status=(Status.SCORED, Status.INFRA_FAILED))
    runs = [
        stored("r1", "lc.infile"),
        stored("r2", "aim"),
        stored("r3", "lc.infile", generator="g2"),
        stored("r4", "lc.infile"),
        begun,
        stored("r6", "lc.infile", generator="g3"),
    ]
    assert newest_of(runs, ["lc.infile", "aim"]) == {"lc.infile": "r4", "aim": "r2"}
    assert newest_of(runs, ["lc.infile"]) == {"lc.infile": "r6"}
    assert newest_of(runs, ["lc.infile"], beside=["r3"]) == {"lc.infile": "r3"}
    with pytest.raises(
        InputFault,
        match="no complete runs of aim have the same samples and the same generator as the other named run",
    ):
        newest_of(runs, ["aim"], beside=["r3"])


def test_a_bare_name_must_match_one_strategy() -> None:
    runs = [stored("r1", "bm25(limit=1)"), stored("r2", "bm25(limit=2)")]
    with pytest.raises(InputFault, match=r"'bm25' matches several strategies: bm25\(limit=1\) and bm25\(limit=2\)"):
        newest_of(runs, ["bm25"])
    assert newest_of(runs, ["bm25(limit=1)"]) == {"bm25(limit=1)": "r1"}
    assert newest_of([*runs, stored("r3", "bm25")], ["bm25"]) == {"bm25": "r3"}
    assert newest_of([stored("r3", "bm25"), *runs], ["bm25"]) == {"bm25": "r3"}


def part_of(size: int, strategy: str, **more: Any) -> RunTable:
    """Return a run over the first samples of a set of six."""
    samples = "demo" if size == 6 else f"demo[:{size}]"
    es = [0.1 * at for at in range(size)]
    return make_table({"es": es}, "abcdef"[:size], strategy=strategy, id=f"{strategy}{size}", samples=samples, **more)


def test_rows_over_more_samples_are_cut_to_the_part() -> None:
    reference, own = part_of(6, "aim", origin=Origin.REFERENCE), part_of(3, "lc.infile")
    more = part_of(4, "more")
    stored_runs = [reference, part_of(2, "early"), own, more, part_of(6, "lc.infile", language="java")]
    shown = runs_over(stored_runs, "demo[:3]")
    assert [(table.run.strategy, table.run.samples, len(table.sample)) for table in shown] == [
        ("aim", "demo[:3]", 3),
        ("lc.infile", "demo[:3]", 3),
        ("more", "demo[:3]", 3),
    ]
    assert shown[0].metrics["es"] == reference.metrics["es"][:3] and shown[1] is own
    assert [table.run.strategy for table in runs_over(stored_runs, "demo[:4]")] == ["aim", "more"], "one's own too"
    assert [table.run.strategy for table in runs_over(stored_runs, "demo")] == ["aim", "lc.infile"]
    # A run that lacks a sample of the part is not comparable.
    other = replace(part_of(6, "other"), sample=("x0", *part_of(6, "other").sample[1:]))
    assert runs_over([own, other], "demo[:3]") == [own]


def test_names_select_comparable_runs_and_prefer_own_runs() -> None:
    older = [stored("o0", "lc.infile"), stored("o1", "bm25(limit=1)"), stored("o2", "bm25(limit=2)")]
    newer = [stored("n0", "lc.infile", generator="g"), stored("n2", "bm25(limit=2)", generator="g")]
    assert newest_of([*older, *newer], ["lc.infile", "bm25"]) == {"lc.infile": "n0", "bm25": "n2"}
    apart = [stored("p", "lc.infile", generator="h"), stored("j", "aim", generator="h", language="java")]
    assert newest_of([stored("o3", "aim"), *older, *apart], ["lc.infile", "aim"]) == {"lc.infile": "o0", "aim": "o3"}
    others = [stored("R", "lc.infile", origin=Origin.REFERENCE), stored("I", "aim", origin=Origin.IMPORTED)]
    assert newest_of([stored("o3", "aim"), *older, *others], ["lc.infile", "aim"]) == {"lc.infile": "o0", "aim": "o3"}


@pytest.mark.parametrize(
    ("asked", "generator", "is_it"),
    [
        ("incontext", "incontext", True),
        ("hf", "hf(model=tiny)", True),
        ("tiny", "hf(model=tiny)", True),
        ("hf(model=tiny)", "hf(model=tiny)", True),
        ("hf(model=other)", "hf(model=tiny)", False),
        ("tin", "hf(model=tiny)", False),
        ("their model (1)", "their model (1)", True),
    ],
)
def test_a_generator_is_found_by_spec_name_or_model(asked: str, generator: str, is_it: bool) -> None:
    assert is_generator(asked, generator) is is_it


ALONE, MANY = Load(workers=1, requests=1, cores=1), Load(workers=4, requests=16, cores=8)
Loads = tuple[Load | None, ...]


def timed(*loads: Loads) -> list[RunTable]:
    return [
        make_table({"es": [50.0, 60.0]}, ["a", "b"], id=f"r{number}", strategy=f"lc.{number}", loads=loads_)
        for number, loads_ in enumerate(loads)
    ]


def said(*loads: Loads) -> list[str]:
    [group] = board(timed(*loads)).groups
    return [line for line in notes(group) if "load" in line]


def test_missing_metric_values_do_not_count_as_different_samples() -> None:
    values: list[float | None] = [None, 60.0]
    tables = [
        make_table({"es": values}, ["a", "b"], id="r0"),
        make_table({"es": values, "block_gain": [1.0, 2.0]}, ["a", "b"], id="r1", strategy="bm25"),
    ]
    [group] = board(tables).groups
    for metric in ("es", "block_gain"):
        assert not [line for line in group_warnings(replace(group, metric=metric)) if "same samples" in line]


@pytest.mark.parametrize("loads", [((), ()), ((ALONE,), (ALONE,)), ((None,), (None,)), ((ALONE,), ())])
def test_seconds_under_one_load_have_no_note(loads: tuple[Loads, ...]) -> None:
    assert not said(*loads)


def test_seconds_under_different_loads_have_a_warning() -> None:
    assert said((ALONE,), (MANY, ALONE), (None,)) == [
        "Seconds were measured under different loads, and cannot be compared: "
        "lc.0 1 strategy and 1 request at once on 1 core; "
        "lc.1 4 strategies and 16 requests at once on 8 cores, then 1 strategy and 1 request at once on 1 core; "
        "lc.2 not recorded."
    ]


def test_a_load_shared_by_all_runs_is_described() -> None:
    assert load_of([make_run(loads=(MANY,)), make_run(loads=(MANY,))]) == (
        "Seconds were measured with 4 strategies and 16 requests at once on 8 cores; any other load of the "
        "machines is unknown."
    )
    assert load_of([make_run(loads=(None,))]).startswith("The load under which")
    assert not load_of([make_run(loads=(MANY,)), make_run(loads=(None,))]) and not load_of([make_run()])


def test_the_newest_run_is_the_one_that_began_last() -> None:
    tables = [
        stored("a", "lc.infile", samples="alpha", began=3.0),
        stored("b", "lc.infile", samples="zeta", began=2.0),
        stored("c", "lc.infile", samples="zeta", generator="g", began=4.0, origin=Origin.REFERENCE),
    ]
    shown, others = of_newest_run(tables)
    assert [table.run.id for table in shown] == ["a"] and others == [("zeta", "scripted"), ("zeta", "g")]
    assert newest_of(tables[:2], ["lc.infile"]) == {"lc.infile": "a"}


def test_a_board_keeps_the_bits_of_the_model_that_measured_the_run_that_began_last() -> None:
    bits = {"copyable_bits": [1.0, 2.0]}
    first = make_table(bits, "ab", strategy="lc.infile", id="a", began=2.0, versions={"coder": "new"})
    second = make_table(bits, "ab", strategy="lc.repocoder", id="b", began=1.0, versions={"coder": "old"})
    tables = [first, second]
    assert ["copyable_bits" in table.metrics for table in of_one_coder(tables, tables)] == [True, False]
