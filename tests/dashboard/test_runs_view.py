"""States, speed and sentences of the Runs page, from plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctxbench.dashboard.views import runs as view
from ctxbench.dashboard.views.runs import Sighting
from ctxbench.harness.run.spec import StoredChoices
from ctxbench.harness.store.work import Attempted, FaultGroup, RunWork

NOW = 1_000_000.0


def attempt(started: float = NOW - 60, ended: float | None = None, **changes: Any) -> Attempted:
    fields: dict[str, Any] = {
        "id": 1,
        "started": started,
        "isolation": "process",
        "ended": ended,
        "reason": "" if ended is None else "done",
        "finished": None if ended is None else 0,
        "missing": None if ended is None else 0,
        "faults": 0,
    }
    return Attempted(**{**fields, **changes})


def work(finished: int = 30, attempts: Sequence[Attempted] = (), **changes: Any) -> RunWork:
    fields: dict[str, Any] = {
        "id": "0123456789ab",
        "choices": StoredChoices(
            samples="demo",
            limit=None,
            strategy="lc.infile",
            generator="incontext",
            n=1,
            seed=0,
            sampling='{"temperature": 0.0, "top_p": 1.0}',
        ),
        "samples_digest": "d" * 64,
        "versions": {},
        "planned": 90,
        "statuses": {"scored": finished} if finished else {},
        "unjudged": 0,
        "languages": ("python",),
        "functions": False,
        "attempts": tuple(attempts),
        "remarks": (),
        "imported": None,
        "file": None,
    }
    return RunWork(**{**fields, **changes})


def sighting_of(since: float = NOW - 10, first: int = 30, grew: float | None = None, last: int = 30) -> Sighting:
    return Sighting(since=since, first=first, grew=grew, last=last)


@pytest.mark.parametrize(
    ("run", "sighting", "expected"),
    [
        (work(), None, "not begun"),
        (work(attempts=[attempt()]), None, "no end noted"),
        (work(attempts=[attempt()]), sighting_of(), "no end noted"),
        (work(attempts=[attempt()]), sighting_of(grew=NOW), "goes on"),
        (work(attempts=[attempt()], alive=True), None, "goes on"),
        (work(attempts=[attempt(), attempt(ended=NOW)], alive=True), None, "goes on"),
        (work(attempts=[attempt()], alive=False), None, "died"),
        (work(attempts=[attempt()], alive=False), sighting_of(grew=NOW), "died"),
        (work(90, [attempt()], alive=False), None, "done"),
        (work(attempts=[attempt(), attempt(ended=NOW)]), sighting_of(grew=NOW), "left"),
        (work(90, [attempt(), attempt(ended=NOW)]), None, "done"),
        (work(90, [attempt(ended=NOW)], unjudged=2), None, "unjudged"),
    ],
)
def test_a_state_says_what_is_known_and_no_more(run: RunWork, sighting: Sighting | None, expected: str) -> None:
    assert view.state(run, sighting) == expected
    assert expected in view.STATES


def test_the_pace_since_the_attempt_began() -> None:
    speed = view.speed(work(30, [attempt(NOW - 60)], alive=True), NOW)
    assert speed == view.Speed(per_minute=30.0, seconds_left=120.0)


def test_what_an_earlier_attempt_stored_is_not_this_ones() -> None:
    earlier = attempt(NOW - 900, NOW - 600, finished=20)
    assert view.speed(work(30, [earlier, attempt(NOW - 60)], alive=True), NOW) == view.Speed(
        per_minute=10.0, seconds_left=360.0
    )


def test_after_a_killed_attempt_only_watching_tells_the_pace() -> None:
    run = work(30, [attempt(NOW - 9000), attempt(NOW - 60)], alive=True)
    assert view.speed(run, NOW) is None
    speed = view.speed(run, NOW, sighting_of(since=NOW - 30, first=20, grew=NOW - 1))
    assert speed == view.Speed(per_minute=20.0, seconds_left=180.0)


@pytest.mark.parametrize(
    ("run", "sighting"),
    [
        (work(30, [attempt(ended=NOW)]), None),
        (work(0, [attempt()], alive=True), None),
        (work(30, [attempt(NOW + 5)], alive=True), None),
        (work(30, [attempt(NOW - 60)], alive=True), sighting_of(since=NOW - 61)),
        (work(30, [attempt(NOW - 600)], alive=True), sighting_of(since=NOW - 100, first=20, grew=NOW - 70)),
        # Whether it goes on nobody knows; and that it does not.
        (work(30, [attempt(NOW - 60)]), None),
        (work(30, [attempt(NOW - 60)], alive=False), None),
        (work(30, [attempt(NOW - 60)], alive=False), sighting_of(grew=NOW - 1)),
    ],
)
def test_no_pace_where_nothing_tells_one(run: RunWork, sighting: Sighting | None) -> None:
    assert view.speed(run, NOW, sighting) is None


def test_what_a_reader_saw() -> None:
    run = work(30, [attempt()])
    first = view.sightings({}, [run], NOW)
    assert first == {run.id: Sighting(since=NOW, first=30, grew=None, last=30)}
    again = view.sightings(first, [run], NOW + 5)
    assert again == first
    more = view.sightings(again, [work(31, [attempt()])], NOW + 9)
    assert more == {run.id: Sighting(since=NOW, first=30, grew=NOW + 9, last=31)}


def test_how_far_it_is_in_words() -> None:
    run = work(30, [attempt(NOW - 60)], statuses={"scored": 25, "model-failed": 5}, alive=True)
    text = view.sentence(run, NOW)
    assert text == "30 of 90 samples, 5 failed by the model, 30 a minute, about 2 min left: goes on"
    assert view.sentence(replace(run, alive=False), NOW) == "30 of 90 samples, 5 failed by the model: died"
    run = replace(run, alive=None)
    still = view.sentence(run, NOW, sighting_of(since=NOW - 600))
    assert still == "30 of 90 samples, 5 failed by the model, no new sample for 10 min: no end noted"
    functions = work(90, [attempt(ended=NOW)], unjudged=3, functions=True)
    assert view.sentence(functions, NOW) == "90 of 90 samples, 3 completions without a verdict: unjudged"


def test_a_line_of_the_table() -> None:
    run = work(30, [attempt(NOW - 60, faults=2)], statuses={"scored": 25, "model-failed": 5}, alive=True)
    row = view.row(run, NOW)
    assert set(row) == set(view.HELP)
    assert (row["progress"], row["model-failed"], row["unjudged"], row["faults"]) == (
        pytest.approx(100 / 3),
        5,
        None,
        2,
    )
    assert (row["a minute"], row["left"], row["last began"]) == (30, "2 min", "1970-01-12 13:45")
    assert view.row(work(0, planned=0), NOW)["progress"] == 0.0


def test_a_limited_run_and_one_that_shows_what_follows_the_cursor() -> None:
    run = work()
    limited = replace(run, choices=replace(run.choices, limit=10, sampling='{"fim": true}'))
    assert (view.label(limited), view.generator(limited)) == ("demo[:10]", "incontext [fim]")
    assert (view.label(run), view.generator(run)) == ("demo", "incontext")


def test_attempts_last_first() -> None:
    attempts = [attempt(NOW - 7200, NOW - 3600, reason="faults", finished=5, missing=2, faults=2), attempt(NOW - 60)]
    last, first = view.attempt_rows(attempts)
    assert (first["took"], first["end"], first["finished"]) == ("60 min", "faults", 5)
    assert (last["took"], last["end"], last["finished"]) == ("", "no end noted", None)
    assert set(last) == set(view.ATTEMPT_HELP)


def test_a_long_message_is_cut_in_the_table() -> None:
    group = FaultGroup(
        kind="machine",
        message="x" * 5000,
        count=9,
        attempt=1,
        started=NOW,
        samples=("a", "b", "c", "d"),
        detail="",
    )
    (row,) = view.fault_rows([group])
    assert row["message"] == "x" * view.MESSAGE + " …" and row["samples"] == "a, b, c …"
    assert set(row) == set(view.FAULT_HELP)


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0 s"), (12.4, "12 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert view.duration(seconds) == text
