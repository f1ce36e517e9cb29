"""States, speed and sentences of the Runs page, from plain values."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctxbench.dashboard.views import runs as view
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.store.work import Attempted, FaultGroup, RunWork
from tests.harness.store.making import make_spec

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
        "choices": make_spec(generator="incontext"),
        "sandbox": "",
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


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (work(), "not started"),
        (work(attempts=[attempt()]), "no end recorded"),
        (work(attempts=[attempt()], alive=True), "running"),
        (work(attempts=[attempt(), attempt(ended=NOW)], alive=True), "running"),
        (work(attempts=[attempt()], alive=False), "died"),
        (work(attempts=[attempt(), attempt(ended=NOW)]), "incomplete"),
        (work(90, [attempt()], alive=False), "done"),
        (work(90, [attempt(), attempt(ended=NOW)]), "done"),
        (work(90, [attempt(ended=NOW)], unjudged=2), "unjudged"),
    ],
)
def test_a_state_claims_only_what_is_known(run: RunWork, expected: str) -> None:
    assert view.state(run) == expected
    assert expected in view.STATES


def test_a_sentence_describes_the_progress() -> None:
    run = work(30, [attempt(NOW - 60)], statuses={"scored": 25, "model-failed": 5}, alive=True)
    assert view.sentence(run) == "30 of 90 samples, 5 without a usable answer: running"
    assert view.sentence(replace(run, alive=False)) == "30 of 90 samples, 5 without a usable answer: died"
    assert view.sentence(replace(run, alive=None)) == "30 of 90 samples, 5 without a usable answer: no end recorded"
    functions = work(90, [attempt(ended=NOW)], unjudged=3, functions=True)
    assert view.sentence(functions) == "90 of 90 samples, 3 completions without a verdict: unjudged"


def test_a_run_becomes_a_row_of_the_table() -> None:
    run = work(30, [attempt(NOW - 60, faults=2)], statuses={"scored": 25, "model-failed": 5}, alive=True)
    row = view.row(run)
    assert set(row) == {"strategy", "generator", *view.HELP}
    assert (row["progress"], row["model-failed"], row["unjudged"], row["faults"]) == (
        pytest.approx(100 / 3),
        5,
        None,
        2,
    )
    assert row["last start"] == "1970-01-12 13:45"
    assert view.row(work(0, planned=0))["progress"] == 0.0


def test_limits_and_fim_are_part_of_the_labels() -> None:
    run = work()
    limited = replace(run, choices=replace(run.choices, limit=10, sampling=Sampling(fim=True)))
    assert (view.label(limited), view.generator(limited)) == ("demo[:10]", "incontext [fim]")
    assert (view.label(run), view.generator(run)) == ("demo", "incontext")


def test_attempts_are_sorted_newest_first() -> None:
    attempts = [attempt(NOW - 7200, NOW - 3600, reason="faults", finished=5, missing=2, faults=2), attempt(NOW - 60)]
    last, first = view.attempt_rows(attempts)
    assert (first["took"], first["end"], first["finished"]) == ("60 min", "faults", 5)
    assert (last["took"], last["end"], last["finished"]) == ("", "no end recorded", None)
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
def test_durations_are_shown_in_a_fitting_unit(seconds: float, text: str) -> None:
    assert view.duration(seconds) == text
