"""Which test of a suite runs which block of which method: the suite once with probes, in a box; kept for good."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text, sha256, write_atomic
from ctxbench.bench.functions.java.clocks import clock_blocks
from ctxbench.bench.functions.java.definitions import Definition
from ctxbench.bench.functions.java.probes import numbered, probed
from ctxbench.bench.functions.mining import Project, Report
from ctxbench.bench.functions.static import ListedFunction
from ctxbench.bench.testing.java import JavaSuite
from ctxbench.bench.testing.java.build import SURVEY, checked_result, run_big, sources
from ctxbench.bench.types import Cursor
from ctxbench.sandbox.types import Call, Ended, Job, Sandbox

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
    """Numbers of the blocks that it ran."""
    clock: bool = False
    """Whether it ran code that reads a clock or waits by one."""


def cover(
    project: Project,
    suite: JavaSuite,
    functions: Sequence[ListedFunction[Definition]],
    sandbox: Sandbox,
    report: Report,
) -> tuple[Ran, ...]:
    """Run every test once; what came out is kept in the home folder.

    Args:
        project: the repository.
        suite: its suite.
        functions: methods; numbers count their blocks in this order.
        sandbox: where it runs.
        report: checked_result what happens.

    Raises:
        InputFault: if the tests cannot be run.
        MachineFault: if the sandbox failed.
    """
    name = project.manifest.name
    blocks = [(function.path, block) for function in functions for block in function.definition.blocks]
    timed = _clocks(suite)
    places = numbered([*blocks, *timed])
    files = {path: probed(suite.tree[path], suite.layout.encoding, spots) for path, spots in sorted(places.items())}
    deselected = _deselected(suite)
    key = [suite.environment.digest, suite.layout.flags, deselected, [[path, sha256(files[path])] for path in files]]
    place = project.home.cache / "coverage" / f"{sha256(json.dumps(key))[:32]}.json"
    with contextlib.suppress(InputFault, ValueError):
        return _without_clocks(merged(json.loads(read_text(place))), len(blocks))
    report(f"{name}: running its tests with probes")
    arguments = {
        "main": list(suite.layout.main),
        "test": sorted(path for path in places if _inside(path, suite.layout.test)),
        "probes": len(blocks) + len(timed),
        "deselected": deselected,
        **suite.layout.running(),
    }
    job = Job(action=Call(function=SURVEY, arguments=arguments), files=files, seconds=SECONDS)
    outcome = run_big(sources(suite.tests, suite.tree, suite.build), job, sandbox, report)
    if outcome.ended is Ended.TIMED_OUT:
        cure = "name the test files that take long, or never end, under deselect in its [tests]"
        raise InputFault(f"its tests take longer than {SECONDS:.0f} s", where=name, cure=cure)
    test_records = checked_result(outcome, "running its tests")["tests"]
    ran = _without_clocks(merged(test_records), len(blocks))
    passed = sum(function.state == "passed" for function in ran)
    report(f"{name}: {passed} of {len(ran)} tests passed in {outcome.seconds:.1f} s")
    write_atomic(place, json.dumps(test_records) + "\n")
    return ran


def _clocks(suite: JavaSuite) -> list[tuple[str, Cursor]]:
    """Return path and place of every block that reads a clock, of the sources and of the tests that compile."""
    encoding = suite.layout.encoding
    timed = []
    for path, content in sorted(suite.tree.items()):
        if not path.endswith(".java") or path in suite.build.dropped:
            continue
        if _inside(path, (*suite.layout.main, *suite.layout.test)):
            text = content.decode(encoding, "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
            timed += [(path, block) for block in clock_blocks(text)]
    return timed


def _deselected(suite: JavaSuite) -> list[str]:
    """Return the ids of tests, and the names of classes, that are left out; a test file stands for its class."""
    names = []
    for entry in suite.tests.deselect:
        folder = next((folder for folder in suite.layout.test if entry.startswith(f"{folder}/")), None)
        path = entry.removeprefix(f"{folder}/").removesuffix(".java")
        names.append(entry if folder is None else path.replace("/", "."))
    return names


def _inside(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _without_clocks(ran: Sequence[Ran], blocks: int) -> tuple[Ran, ...]:
    """Return tests with the blocks of methods that they ran; the probes behind these stand where a clock is read."""
    return tuple(
        replace(
            test,
            hits=frozenset(hit for hit in test.hits if hit < blocks),
            clock=any(hit >= blocks for hit in test.hits),
        )
        for test in ran
    )


def merged(lines: object) -> tuple[Ran, ...]:
    """Return the tests of a survey, sorted by id.

    Raises:
        InputFault: if it is no survey.
    """
    order = ("passed", UNSELECTABLE, "skipped", "failed")
    by_id: dict[str, Ran] = {}
    try:
        for name, state, milliseconds, hits in _rows(lines):
            run = Ran(str(name), str(state), milliseconds / 1000, frozenset(map(int, hits)))
            before = by_id.get(run.id)
            if before is not None:
                worst = max(before.state, run.state, key=order.index)
                run = Ran(run.id, worst, before.seconds + run.seconds, before.hits | run.hits)
            by_id[run.id] = run
    except (TypeError, ValueError) as error:
        raise InputFault(f"its tests reported nothing that can be read: {error!r}", cure="try it again") from None
    return tuple(by_id[name] for name in sorted(by_id))


def _rows(lines: object) -> list[Any]:
    if not isinstance(lines, list):
        raise TypeError(type(lines).__name__)
    return lines


def breadth(ran: Sequence[Ran]) -> Mapping[str, int]:
    """Return how many blocks each test runs: the fewer, the more it is about its subject."""
    return {run.id: len(run.hits) for run in ran}
