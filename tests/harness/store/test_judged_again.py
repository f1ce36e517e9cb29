"""Completions that were judged again: every verdict is kept, and all that reads one reads what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from ctxbench.harness.store import Store, open_store, verdicts
from ctxbench.harness.store.details import completion_texts, detail
from ctxbench.harness.store.runs import completed, run_tables
from ctxbench.harness.store.search import Measure, SampleFilter, facets, search
from tests.harness.store.test_verdicts import add_run, completion, count, finish, make_verdict


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'home' / 'results.db'}")


FIRST, OTHER = "f" * 64, "o" * 64


def filled(store: Store) -> str:
    """Store a run of three samples; the tests failed the text of the first two, and passed that of the third."""
    run = add_run(store)
    failed = verdicts.add(store, make_verdict(key=FIRST, verdict="FAILED", reason="late"))
    passed = verdicts.add(store, make_verdict(key=OTHER))
    for number, one in enumerate((failed, failed, passed)):
        finish(store, run, f"demo/{number}", completion("a", em=0.5))
        store.link_verdicts(run, f"demo/{number}", {0: one})
    return run


def again(store: Store, verdict: str, *, counts: bool, key: str = FIRST) -> None:
    verdicts.add_again(store, key, make_verdict(verdict=verdict, output=f"said {verdict}", seconds=2.0), counts=counts)


def test_everything_reads_the_verdict_that_counts(store: Store) -> None:
    run = filled(store)
    again(store, "PASSED", counts=False)
    [table] = run_tables(store)
    assert table.metrics["pass@1"] == (0.0, 0.0, 1.0), "one that does not count changes nothing"
    again(store, "PASSED", counts=True)
    [table] = run_tables(store)
    assert table.metrics["pass@1"] == (1.0, 1.0, 1.0) and table.metrics["em"] == (0.5, 0.5, 0.5)
    assert verdicts.passes(store, run, 1) == [1, 1, 1]
    assert facets(store, run).verdicts == ("PASSED",)
    assert [one.verdict for texts in completed(store, run).texts.values() for one in texts] == ["PASSED"] * 3
    of_first = detail(store, run, "demo/0").completions[0]
    assert of_first.scores["ctxbench", "pass"] == 1.0 and of_first.scores["ctxbench", "em"] == 0.5
    texts = completion_texts(store, run, "demo/0", 0)
    assert texts is not None and texts.output == "said PASSED"
    wanted = SampleFilter(
        run=run, measure=Measure(profile="ctxbench", metric="pass", worst=0.0), verdict="PASSED", low=1.0
    )
    assert len(search(store, wanted, order="plan")[1]) == 3


def test_the_first_verdict_stays_and_all_are_told(store: Store) -> None:
    run = filled(store)
    for said, counts in (("PASSED", False), ("PASSED", True), ("FAILED", False)):
        again(store, said, counts=counts)
    assert verdicts.find(store, [FIRST])[FIRST].verdict == "FAILED"
    assert verdicts.counting(store, [FIRST, OTHER, "none"]) == {
        FIRST: make_verdict(key=FIRST, output="said PASSED", seconds=2.0),
        OTHER: make_verdict(key=OTHER),
    }
    judged = detail(store, run, "demo/0").completions[0].judged
    assert judged is not None and judged.verdict == "PASSED"
    assert judged.verdicts == ("FAILED", "PASSED", "PASSED", "FAILED")
    untouched = detail(store, run, "demo/2").completions[0].judged
    assert untouched is not None and untouched.verdicts == ("PASSED",)
    assert count(store, "score") == 6 and count(store, "judged") == 3


def test_the_board_says_how_many_verdicts_changed(store: Store) -> None:
    run = filled(store)
    assert run_tables(store)[0].run.remarks == () and facets(store, run).judged_again == ""
    again(store, "PASSED", counts=False, key=OTHER)
    assert run_tables(store)[0].run.remarks == ("1 of 3 verdicts judged again, none changed: see docs/verdicts.md.",)
    again(store, "PASSED", counts=True)
    remark = "3 of 3 verdicts judged again, 2 changed: see docs/verdicts.md."
    assert run_tables(store)[0].run.remarks == (remark,) and facets(store, run).judged_again == remark
    assert [one.key for one in verdicts.judged(store, run)] == [FIRST, FIRST, OTHER]


def test_a_verdict_that_went_back_is_not_changed(store: Store) -> None:
    filled(store)
    again(store, "PASSED", counts=True)
    again(store, "FAILED", counts=True)
    [table] = run_tables(store)
    assert table.metrics["pass@1"] == (0.0, 0.0, 1.0)
    assert table.run.remarks == ("2 of 3 verdicts judged again, none changed: see docs/verdicts.md.",)


@pytest.mark.parametrize("change", ["UPDATE rejudged SET counts = 0", "DELETE FROM rejudged"])
def test_what_was_said_again_is_never_changed(store: Store, change: str) -> None:
    filled(store)
    again(store, "PASSED", counts=True)
    with pytest.raises(Exception, match="appended, never changed"), store._engine.begin() as connection:
        connection.execute(text(change))
