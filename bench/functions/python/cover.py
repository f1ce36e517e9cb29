"""Which test of a suite runs which line: the suite once under coverage, in the sandbox; kept for good."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import read_text, sha256, write_atomic
from ctxbench.bench.functions.mining import Project, Report
from ctxbench.bench.manifest_types import TestSuite
from ctxbench.bench.testing.coverage import Covered, read
from ctxbench.bench.testing.events import Malformed
from ctxbench.bench.testing.python import PythonSuite
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.types import MIB, Ended, Job, Outcome, Sandbox

SECONDS = 900.0
"""For the whole suite; coverage by test costs two to six times the plain run."""
_NEEDED = {"memory": 4096 * MIB, "disk": 512 * MIB, "result": 64 * MIB}
_TAIL = 400
_RAN = (0, 1)
"""pytest's exit statuses when tests ran: all passed, some failed."""


def cover(project: Project, suite: PythonSuite, tests: TestSuite, sandbox: Sandbox, report: Report) -> Covered:
    """Return the coverage of a suite by test; it is kept in the home folder for as long as nothing of it changes.

    Raises:
        InputFault: if the suite cannot be run.
        MachineFault: if the sandbox failed.
    """
    name = project.manifest.name
    asked = suite.cover(tests, SECONDS)
    # What is asked for is no part of the environment: which tests are left out, and arguments.
    key = sha256(f"{suite.environment.digest} {asked.action}")
    place = project.home.cache / "coverage" / f"{key[:32]}.json"
    with contextlib.suppress(InputFault, ValueError):
        found = read(json.loads(read_text(place)))
        report(f"{name}: coverage of {len(found.tests)} tests is known")
        return found
    report(f"{name}: running its tests under coverage")
    outcome = _run(suite, asked, sandbox, report)
    result = _checked(name, outcome)
    found = read(result)
    passed = sum(test.outcome == "passed" for test in found.tests)
    report(f"{name}: {passed} of {len(found.tests)} tests passed in {outcome.seconds:.1f} s")
    for where, what in found.broken:
        report(f"{name}: {where} cannot be collected: {' '.join(what.split())[-_TAIL:]}")
    write_atomic(place, json.dumps(result) + "\n")
    return found


def _run(suite: PythonSuite, asked: Job, sandbox: Sandbox, report: Report) -> Outcome:
    limits = replace(suite.limits, **_NEEDED)
    try:
        sandbox.prepare(suite.environment, report)
        with sandbox.open(suite.environment, limits=limits) as pool:
            return pool.run(asked)
    except (SandboxUnavailable, SandboxLost) as error:
        raise MachineFault(error.what, where=error.where, cure=error.cure) from error


def _checked(name: str, outcome: Outcome) -> Any:
    """Return the result of a run in which tests ran.

    Raises:
        InputFault: if none did.
    """
    said = " ".join(outcome.output[-_TAIL:].split()) or "no output"
    cure = "mend its [tests]: requirements, pythonpath, paths, arguments, deselect"
    if outcome.ended is Ended.TIMED_OUT:
        raise InputFault(f"its tests take longer than {SECONDS:.0f} s", where=name, cure="deselect the slow ones")
    try:
        found = read(outcome.result)
    except Malformed:
        raise InputFault(f"its tests cannot be run ({outcome.ended}): {said}", where=name, cure=cure) from None
    if found.exit not in _RAN or not found.tests:
        raise InputFault(f"pytest ended with status {found.exit}: {said}", where=name, cure=cure)
    return outcome.result
