"""Which test of a suite runs which line: the suite once under coverage, in the sandbox; kept for good."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import read_text, sha256, write_atomic
from ctxbench.bench.functions.mining import Project, Report
from ctxbench.bench.functions.python.clocks import clock_tests
from ctxbench.bench.manifest import TestSuite
from ctxbench.bench.testing.coverage import Covered, read, replaced
from ctxbench.bench.testing.events import Malformed
from ctxbench.bench.testing.python import PythonSuite
from ctxbench.bench.testing.turns import Turns
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.types import MIB, Ended, Job, Outcome, Sandbox

SECONDS = 900.0
"""For the whole suite; coverage by test costs two to six times the plain run."""
_NEEDED = {"memory": 4096 * MIB, "disk": 512 * MIB, "result": 64 * MIB}
_TAIL = 400
_CURE_OF_SLOW = "deselect the slow ones, and those that wait for a server: `pytest --durations=10` names them"
_RAN = (0, 1)
"""pytest's exit statuses when tests ran: all passed, some failed."""


def cover(project: Project, suite: PythonSuite, tests: TestSuite, sandbox: Sandbox, report: Report) -> Covered:
    """Return the coverage of a suite by test; it is kept in the home folder for as long as nothing of it changes.

    Tests that failed and read a clock run once more, with no other job of the home folder beside them, since the
    machine may have been busy; those that pass then stand as they ran then.

    Raises:
        InputFault: if the suite cannot be run.
        MachineFault: if the sandbox failed.
    """
    name = project.manifest.name
    job = suite.cover(tests, SECONDS)
    # What is asked for is no part of the environment: which tests are left out, and arguments.
    key = sha256(f"{suite.environment.digest} {job.action}")
    place = project.home.cache / "coverage" / f"{key[:32]}.json"
    results = _stored(place)
    if results:
        covered = read(results[0])
        report(f"{name}: coverage of {len(covered.tests)} tests is known")
    else:
        report(f"{name}: running its tests under coverage")
        outcome = _run(suite, job, sandbox, report)
        results = [_checked(name, outcome, report)]
        covered = read(results[0])
        passed = sum(test.outcome == "passed" for test in covered.tests)
        report(f"{name}: {passed} of {len(covered.tests)} tests passed in {outcome.seconds:.1f} s")
        write_atomic(place, json.dumps(results) + "\n")
    failed = {test.id for test in covered.tests if test.outcome == "failed"}
    doubtful = failed and failed & clock_tests(covered, suite.environment.tree)
    if not doubtful:
        return covered
    if len(results) == 1:
        report(f"{name}: running tests that failed and read a clock once more, alone: {len(doubtful)}")
        with Turns(project.home.cache).alone():
            results.append(_run(suite, suite.cover(tests, SECONDS, only=doubtful), sandbox, report).result)
        write_atomic(place, json.dumps(results) + "\n")
    try:
        alone = read(results[1])
    except Malformed as error:
        report(f"{name}: they could not run alone: {error}")
        return covered
    passed_alone = doubtful & {test.id for test in alone.tests if test.outcome == "passed"}
    report(f"{name}: {len(passed_alone)} of them passed")
    return replaced(covered, alone, passed_alone)


def _stored(place: Path) -> list[Any]:
    """Return the results of the suite's runs as they are kept, none where they are not; one run was kept by itself."""
    with contextlib.suppress(InputFault, ValueError):
        record = json.loads(read_text(place))
        results = record if isinstance(record, list) else [record]
        read(results[0])
        return results
    return []


def _run(suite: PythonSuite, job: Job, sandbox: Sandbox, report: Report) -> Outcome:
    limits = replace(suite.limits, **_NEEDED)
    try:
        sandbox.prepare(suite.environment, report)
        with sandbox.open(suite.environment, limits=limits) as pool:
            return pool.run(job)
    except (SandboxUnavailable, SandboxLost) as error:
        raise MachineFault(error.what, where=error.where, cure=error.cure) from error


def _checked(name: str, outcome: Outcome, report: Report) -> Any:
    """Return the result of a run in which tests ran, and tell what could not be collected.

    Raises:
        InputFault: if none did.
    """
    output = " ".join(outcome.output[-_TAIL:].split()) or "no output"
    cure = "mend its [tests]: requirements, pythonpath, paths, arguments, deselect"
    if outcome.ended is Ended.TIMED_OUT:
        raise InputFault(f"its tests take longer than {SECONDS:.0f} s", where=name, cure=_CURE_OF_SLOW)
    try:
        covered = read(outcome.result)
    except Malformed:
        raise InputFault(f"its tests cannot be run ({outcome.ended}): {output}", where=name, cure=cure) from None
    for where, what in covered.broken:
        report(f"{name}: {where} cannot be collected: {' '.join(what.split())[-_TAIL:]}")
    if covered.broken and not covered.tests:
        files = ", ".join(where for where, _ in covered.broken)
        cure = "add what they import to its requirements, or name them under deselect"
        raise InputFault(f"{files} cannot be collected", where=name, cure=cure)
    if covered.exit not in _RAN or not covered.tests:
        raise InputFault(f"pytest ended with status {covered.exit}: {output}", where=name, cure=cure)
    return outcome.result
