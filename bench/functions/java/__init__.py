"""Mining Java: documented methods by syntax, what they need by names, their tests by probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.errors import InputFault
from bench.functions.choose import SLOW_TOGETHER, TestRun, usable
from bench.functions.java import static
from bench.functions.java.covering import Ran, breadth, cover
from bench.functions.java.definitions import Definition
from bench.functions.mining import Found, Project, Report
from bench.functions.static import Known, candidate
from bench.functions.types import Candidate
from bench.testing import suites
from bench.testing import tree as trees
from bench.testing.java import JavaSuite, layout
from bench.testing.java_text import shifted
from bench.testing.types import Suite
from sandbox.types import Sandbox

__all__ = ["find", "lift", "tests"]


def tests(project: Project, report: Report) -> dict[str, Any]:
    """Return what `bench.testing.suites.suite_of` needs: the suite and the tree's digest."""
    suite = project.manifest.tests
    if suite is None:
        raise InputFault("its manifest has no [tests]", where=project.manifest.name, cure="add a [tests] table")
    tree = trees.read(project.root)
    layout(suite, tree)
    report(f"{project.manifest.name}: {len(tree)} files")
    return suites.entry(suite, (), "", project.root)


def lift(lines: list[str]) -> str:
    """Return a method's lines moved to the left margin."""
    return "\n".join(shifted("\n".join(lines), ""))


def find(project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Found:
    """Return the documented methods that passing tests run; its suite runs once, with probes."""
    name = project.manifest.name
    if not isinstance(suite, JavaSuite):
        raise InputFault("its suite is not one of JUnit", where=name, cure="mend its [tests]")
    for path in suite.build.dropped:
        report(f"{name}: {path} does not compile here and is left out")
    read = static.read(project, suite.layout.main)
    report(f"{name}: {read.counts['documented']} documented methods, {len(read.known)} of them usable")
    ran = cover(project, suite, read.known, sandbox, report)
    candidates, drops = _candidates(read.known, ran)
    outcomes = Counter(each.state for each in ran)
    counts = {
        **read.counts,
        "test_files_dropped": len(suite.build.dropped),
        **{f"tests_{outcome}": count for outcome, count in sorted(outcomes.items())},
        "covered": len(candidates) + drops["too_slow"],
    }
    return Found(
        candidates=tuple(candidates),
        hidden=read.hidden,
        counts=counts,
        drops=dict(sorted((read.drops + drops).items())),
    )


def _candidates(known: Sequence[Known[Definition]], ran: Sequence[Ran]) -> tuple[list[Candidate], Counter[str]]:
    wide = breadth(ran)
    runs = {each.id: TestRun(each.state == "passed", each.seconds, wide[each.id]) for each in ran}
    by_probe: dict[int, list[str]] = {}
    for test in ran:
        if usable(runs[test.id]):
            for hit in test.hits:
                by_probe.setdefault(hit, []).append(test.id)
    found: list[Candidate] = []
    drops: Counter[str] = Counter()
    first = 0
    for each in known:
        numbers = range(first, first + len(each.definition.blocks))
        first = numbers.stop
        made = _candidate(each, numbers, by_probe, runs)
        if made is None:
            drops["not_covered"] += 1
        elif made.seconds > SLOW_TOGETHER:
            drops["too_slow"] += 1
        else:
            found.append(made)
    return found, drops


def _candidate(
    known: Known[Definition], numbers: range, by_probe: Mapping[int, Sequence[str]], runs: Mapping[str, TestRun]
) -> Candidate | None:
    """Return the candidate, None if no usable test runs it."""
    covering: dict[str, frozenset[int]] = {}
    for number in numbers:
        for test in by_probe.get(number, ()):
            covering[test] = covering.get(test, frozenset()) | {number}
    return candidate(known, covering, runs, tail=known.definition.tail)
