"""Which test of a suite runs which block of which method: the suite once with probes, in a box; kept for good."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.errors import InputFault
from bench.files import read_text, sha256, write_atomic
from bench.functions.java.definitions import Definition
from bench.functions.java.probes import numbered, probed
from bench.functions.mining import Project, Report
from bench.functions.static import Known
from bench.testing import java_guest
from bench.testing.java import JavaSuite, sources
from bench.testing.java_build import run_big, told
from sandbox.types import Call, Job, Sandbox

SECONDS = 1800.0
"""For compiling, for the whole suite, and for its tests one by one."""
UNSELECTABLE = "unselectable"
"""The state of a test that passes with the suite, but neither alone nor with its class: it cannot judge."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One test of the suite, all its invocations together."""

    id: str
    state: str
    """``passed``, `UNSELECTABLE`, ``skipped`` or ``failed``; the worst of its invocations."""
    seconds: float
    hits: frozenset[int]
    """Numbers of the probes that it met."""


def cover(
    project: Project, suite: JavaSuite, known: Sequence[Known[Definition]], sandbox: Sandbox, report: Report
) -> tuple[Ran, ...]:
    """Run every test once; what came out is kept in the home folder.

    Args:
        project: the repository.
        suite: its suite.
        known: methods; probe numbers count their blocks in this order.
        sandbox: where it runs.
        report: told what happens.

    Raises:
        InputFault: if the tests cannot be run.
        MachineFault: if the sandbox failed.
    """
    name = project.manifest.name
    places = numbered((each.path, block) for each in known for block in each.definition.blocks)
    files = {path: probed(suite.tree[path], suite.layout.encoding, spots) for path, spots in sorted(places.items())}
    key = [suite.environment.digest, suite.layout.flags, [[path, sha256(files[path])] for path in files]]
    place = project.home.cache / "coverage" / f"{sha256(json.dumps(key))[:32]}.json"
    with contextlib.suppress(InputFault, ValueError):
        return merged(json.loads(read_text(place)))
    report(f"{name}: running its tests with probes")
    arguments = {
        "main": list(suite.layout.main),
        "probes": sum(len(spots) for spots in places.values()),
        **suite.layout.running(),
    }
    job = Job(action=Call(function=java_guest.SURVEY, arguments=arguments), files=files, seconds=SECONDS)
    outcome = run_big(sources(suite.tests, suite.tree, suite.build), job, sandbox, report)
    found = told(outcome, "running its tests")["tests"]
    ran = merged(found)
    passed = sum(each.state == "passed" for each in ran)
    report(f"{name}: {passed} of {len(ran)} tests passed in {outcome.seconds:.1f} s")
    write_atomic(place, json.dumps(found) + "\n")
    return ran


def merged(lines: object) -> tuple[Ran, ...]:
    """Return the tests of a survey, sorted by id.

    Raises:
        InputFault: if it is no survey.
    """
    order = ("passed", UNSELECTABLE, "skipped", "failed")
    found: dict[str, Ran] = {}
    try:
        for name, state, milliseconds, hits in _rows(lines):
            one = Ran(str(name), str(state), milliseconds / 1000, frozenset(map(int, hits)))
            before = found.get(one.id)
            if before is not None:
                worst = max(before.state, one.state, key=order.index)
                one = Ran(one.id, worst, before.seconds + one.seconds, before.hits | one.hits)
            found[one.id] = one
    except (TypeError, ValueError) as error:
        raise InputFault(f"its tests reported nothing that can be read: {error!r}", cure="try it again") from None
    return tuple(found[name] for name in sorted(found))


def _rows(lines: object) -> list[Any]:
    if not isinstance(lines, list):
        raise TypeError(type(lines).__name__)
    return lines


def breadth(ran: Sequence[Ran]) -> Mapping[str, int]:
    """Return how many blocks each test runs: the fewer, the more it is about its subject."""
    return {each.id: len(each.hits) for each in ran}
