from __future__ import annotations

import json
from typing import Any

import pytest

from ctxbench.bench.testing.python.judging import Twins, forged, survived
from ctxbench.bench.testing.python.reports import Malformed
from tests.bench.testing.told import NONCE, TESTS, Event, events, outcome, phases, result

NONE = frozenset[int]()
ENDED = frozenset(("returns", "raises", "idles"))


def run(*tests: int) -> list[Event]:
    """Return the events of one way in which these tests pass."""
    return [event for test in range(3) for event in phases(test, "passed" if test in tests else "failed")] + [
        ["loaded", True],
        ["end", 1],
    ]


def said(returns: list[Event], raises: list[Event], idles: list[Event]) -> dict[str, Any]:
    ways = {"returns": returns, "raises": raises, "idles": idles}
    return result([events()[0], *(event for way, seen in ways.items() for event in (["way", way], *seen))])


def read(told: object, **changes: Any) -> Twins:
    return survived(TESTS, NONCE, outcome(told, **changes))


def test_a_function_whose_tests_all_fail_without_its_value_is_plain() -> None:
    assert read(said(run(), [["end", 5]], [["end", 5]])).plain


def test_survivors_are_told_by_their_way() -> None:
    found = read(said(run(0, 2), run(0), run(2)))
    assert found.survivors == {"returns": {0, 2}, "raises": {0}, "idles": {2}} and found.ended == ENDED
    assert not found.plain


def test_a_test_that_did_not_pass_to_its_end_is_no_survivor() -> None:
    unfinished = [phases(0)[0], phases(0)[1], ["end", 2]]
    assert read(said(unfinished, [["end", 5]], [["end", 5]])).plain


def test_a_way_that_broke_off_has_not_ended() -> None:
    found = read(said(run(1)[:-1], run(), run()))
    assert found.ended == {"raises", "idles"} and found.survivors["returns"] == {1} and not found.plain


def test_no_result_is_no_end_of_any_way() -> None:
    assert read(None) == Twins({})


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({**said(run(), run(), run()), "nonce": "other"}, "not this job's"),
        (said(run(), run(), run())["events"], "events are no text"),
        (result([["way", "returns"], ["way", "returns"]]), "a way comes twice"),
        (result([["way", "back"]]), "an event of no known kind"),
        (result([["way", "returns"], ["flag", "good"]]), "a flag of no known name"),
        (result([["way", "returns"], ["end", 1], ["phase", 0]]), "something came after the end"),
    ],
)
def test_what_the_runner_does_not_write_is_malformed(told: object, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        read(told)


def test_flags_of_every_way_are_kept() -> None:
    told = said([["flag", "gc"], *run()], [["flag", "ctypes"], ["end", 5]], [["end", 5]])
    assert read(told).flags == {"gc", "ctypes"}


def test_the_events_of_twins_are_no_events_of_tests() -> None:
    from ctxbench.bench.testing.python.reports import read_run as read_tests

    with pytest.raises(Malformed, match="no known kind"):
        read_tests({**result(), "events": json.dumps(["way", "returns"]) + "\n"})


def twins(returns: frozenset[int] = NONE, raises: frozenset[int] = NONE, ended: frozenset[str] = ENDED) -> Twins:
    return Twins({"returns": returns, "raises": raises, "idles": NONE}, ended)


def test_tests_that_survive_where_the_references_do_speak_against_nothing() -> None:
    assert forged(TESTS, twins(frozenset({0})), twins(frozenset({0, 1}))) == ""


def test_a_test_that_survives_where_the_references_fails_is_tampered_with() -> None:
    wanted = "tampered: 2 of 3 tests passed although the function gave them nothing: t.py::test_b[1]"
    assert forged(TESTS, twins(frozenset({0, 1}), frozenset({2})), twins(frozenset({0}))) == wanted
    assert forged(TESTS, twins(raises=frozenset({0})), twins(returns=frozenset({0}))).startswith("tampered: 1 of 3")


def test_twins_that_end_early_where_the_references_do_not_are_tampered_with() -> None:
    early = twins(ended=ENDED - {"idles"})
    assert "came to no end" in forged(TESTS, early, twins())
    assert forged(TESTS, early, early) == ""
