"""States and tables of the stored runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ctxbench.harness.results import Status
from ctxbench.harness.store.work import Attempted, FaultGroup, RunWork

GOING_ON, DIED, NO_END = "running", "died", "no end recorded"
COMPLETE, INCOMPLETE, UNJUDGED, NOT_BEGUN = "done", "incomplete", "unjudged", "not started"
STATES: Mapping[str, str] = {
    GOING_ON: "A process is working on the run.",
    DIED: "An attempt has no recorded end, and its process is gone: it was killed, or its machine or the connection "
    "to the database failed. Run the same command again to complete the run.",
    NO_END: "An attempt has no recorded end: it is still running, or its process was killed. The state is unknown, "
    "because the database is on another machine.",
    COMPLETE: "Every planned sample has a result, and every function its verdict.",
    INCOMPLETE: "The last attempt ended, but samples are missing. Run the same command again to complete the run.",
    UNJUDGED: "Every sample has a result, but some functions have no verdict yet.",
    NOT_BEGUN: "The run is planned; no attempt is stored.",
}
MESSAGE = 300
"""Maximum characters of a message in a table."""


def is_open(work: RunWork) -> bool:
    """Return whether the latest attempt of a run has no recorded end."""
    return bool(work.attempts) and work.attempts[-1].ended is None


def state(work: RunWork) -> str:
    """Return the state of a run, a key of `STATES`."""
    if work.alive:
        return GOING_ON
    if is_open(work) and work.alive is None:
        return NO_END
    if work.finished < work.planned:
        if is_open(work):
            return DIED
        return INCOMPLETE if work.attempts else NOT_BEGUN
    return UNJUDGED if work.unjudged else COMPLETE


def headline(states: Sequence[str]) -> str:
    """Return a sentence that states the number of finished runs, and the number of others in each state."""
    counts = Counter(states)
    complete = counts.pop(COMPLETE, 0)
    others = ", ".join(f"{counts[name]} {name}" for name in STATES if counts[name])
    are = "1 run is" if len(states) == 1 else f"{len(states)} runs are"
    return f"{complete} of {are} done{f'; {others}' if others else ''}."


def sentence(work: RunWork) -> str:
    """Return a phrase about the progress of a run."""
    text = f"{work.finished} of {work.planned} samples"
    if (failed := work.statuses.get(Status.MODEL_FAILED, 0)) > 0:
        text += f", {failed} without a usable answer"
    if work.unjudged:
        text += f", {work.unjudged} completions without a verdict"
    return f"{text}: {state(work)}"


def row(work: RunWork) -> dict[str, object]:
    """Return a run's row in the table of runs. `HELP` explains the headings."""
    return {
        "strategy": work.choices.strategy,
        "state": state(work),
        "progress": 100 * work.finished / work.planned if work.planned else 0.0,
        "finished": work.finished,
        "planned": work.planned,
        "run": called(work),
        "generator": generator(work),
        "samples": label(work),
        "model-failed": work.statuses.get(Status.MODEL_FAILED, 0),
        "unjudged": work.unjudged if work.functions else None,
        "faults": work.attempts[-1].faults if work.attempts else 0,
        "last start": when(work.attempts[-1].started) if work.attempts else "",
        "origin": str(work.origin),
    }


HELP: Mapping[str, str] = {
    "run": "The run's name, or its id: a digest of all settings and versions that affect its numbers.",
    "samples": "The sample set; [:N] means N of its samples, from the repositories in turn.",
    "state": " ".join(f"{name}: {says}" for name, says in STATES.items()),
    "progress": "Share of planned samples with a result, in percent.",
    "finished": "Samples with a result.",
    "planned": "Planned samples.",
    "model-failed": "Samples without a usable answer of the model; they count as the worst value.",
    "unjudged": "Completions of functions that tests have not judged yet.",
    "faults": "Faults of the last attempt; a sample with a fault is missing until it is repeated.",
    "last start": "Start of the last attempt, in UTC.",
    "origin": "run: measured here. imported: recorded elsewhere and read from a file. "
    "reference: ships with ctxbench, as scores without prompts.",
}


def label(work: RunWork) -> str:
    """Return the label of a run's sample set on leaderboards."""
    return work.choices.shown_samples


def called(work: RunWork) -> str:
    """Return a run's name, or its id if it has none."""
    return work.name or work.id


def generator(work: RunWork) -> str:
    """Return the label of a run's generator on leaderboards."""
    return work.choices.shown_generator


def attempt_rows(attempts: Sequence[Attempted]) -> list[dict[str, object]]:
    """Return one row per attempt of a run, the latest first."""
    return [
        {
            "began": when(attempt.started),
            "took": "" if attempt.ended is None else duration(attempt.ended - attempt.started),
            "end": attempt.reason or NO_END,
            "finished": attempt.finished,
            "missing": attempt.missing,
            "faults": attempt.faults,
            "load": "" if attempt.load is None else str(attempt.load),
            "isolation": attempt.isolation,
        }
        for attempt in reversed(attempts)
    ]


ATTEMPT_HELP: Mapping[str, str] = {
    "began": "Start of the attempt, in UTC.",
    "took": "Duration of the attempt; unknown for an attempt without an end.",
    "end": "faults: some samples failed; interrupted: the user stopped it; failed: a fault ended it.",
    "finished": "Samples stored by the attempt.",
    "missing": "Samples that the attempt planned and did not finish.",
    "faults": "Faults of the attempt.",
    "load": "Parallel work of the attempt, which affects measured seconds; empty if not recorded.",
    "isolation": "How strategies were isolated from the answers, and where tests ran.",
}


def fault_rows(groups: Sequence[FaultGroup]) -> list[dict[str, object]]:
    """Return one row per group of equal faults of a run."""
    return [
        {
            "kind": fault.kind,
            "message": fault.message if len(fault.message) <= MESSAGE else f"{fault.message[:MESSAGE]} …",
            "count": fault.count,
            "last attempt": when(fault.started),
            "samples": ", ".join(fault.samples[:3]) + (" …" if fault.count > 3 else ""),
        }
        for fault in groups
    ]


FAULT_HELP: Mapping[str, str] = {
    "kind": "machine: a machine or server failed; strategy: the strategy itself failed, or its prompt was "
    "too long for the model.",
    "message": "The error message, on one line.",
    "count": "Number of faults in all attempts.",
    "last attempt": "Start of the last attempt with the fault, in UTC; faults have no time of their own.",
    "samples": "Some of the samples that are missing because of the fault.",
}


def when(seconds: float) -> str:
    """Format a time, in seconds since 1970, as UTC to the minute: ``2024-06-01 09:30``."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit: ``12 s``, ``4 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
