"""Mines Java methods: lists them by syntax and finds their tests with probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.functions.candidates import ListedFunction, candidates, combine_search, outcomes, uses_of
from ctxbench.bench.functions.java.covering import UNSELECTABLE, Ran, breadth, cover
from ctxbench.bench.functions.java.mutants import mutants
from ctxbench.bench.functions.java.static import Definition, read_functions
from ctxbench.bench.functions.mining import Project, Report, Search, SuiteCoverage, TestRun
from ctxbench.bench.judging import suites
from ctxbench.bench.judging.java import JavaSuite
from ctxbench.bench.judging.java import build as java_build
from ctxbench.bench.judging.java.layout import layout
from ctxbench.bench.judging.java.text import shift
from ctxbench.bench.judging.suites import read_tree
from ctxbench.bench.judging.types import Suite
from ctxbench.sandbox.types import Sandbox

__all__ = ["find", "lift", "measure_coverage", "mutants", "tests"]


def tests(project: Project, report: Report) -> dict[str, Any]:
    """Return the data that `bench.judging.suites.suite_of` needs: the suite and the digest of the files."""
    suite = project.tests
    tree = read_tree(project.root)
    layout(suite, tree, project.manifest.source_dir)
    report(f"{project.manifest.name}: {len(tree)} files")
    return suites.entry(suite, (), "", project.root)


def lift(lines: list[str]) -> str:
    """Dedent a method's lines."""
    return "\n".join(shift(lines, ""))


def find(project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Search:
    """Run the suite with probes, and return the candidates: documented methods that usable tests run."""
    name = project.manifest.name
    suite = _junit(project, suite)
    lines = [*_left_out(suite)]
    for line in lines:
        report(f"{name}: {line}")
    read = read_functions(project, suite.layout.main, suite.layout.test)
    report(f"{name}: {read.counts['documented']} documented methods, {len(read.functions)} of them usable")
    ran = cover(project, suite, read.functions, sandbox, report)
    lookup = _lookup(read.functions, ran)
    unselectable = {run.id for run in ran if run.state == UNSELECTABLE}
    chosen, drops = candidates(
        read.functions,
        _runs(ran),
        lambda function: lookup(function.path, function.definition.name),
        uncovered=lambda tests: "not_covered" if unselectable.isdisjoint(tests) else "tests_unselectable",
    )
    counts = {"test_files_dropped": len(suite.build.dropped), **outcomes(run.state for run in ran)}
    result = combine_search(read, chosen, drops, counts, {run.id: run.cause for run in ran if run.state == "failed"})
    return replace(
        result, left_out=f"{lines[0]} (the first of {len(suite.build.dropped)}); {lines[-1]}" if lines else ""
    )


def measure_coverage(project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> SuiteCoverage:
    """Run the suite with probes, and return its coverage of the methods that `find` can use."""
    suite = _junit(project, suite)
    read = read_functions(project, suite.layout.main, suite.layout.test)
    ran = cover(project, suite, read.functions, sandbox, report)
    lookup = _lookup(read.functions, ran)
    return SuiteCoverage(
        hidden=read.hidden,
        runs=_runs(ran),
        covering=lambda spot: lookup(spot.path, spot.name),
        uses=uses_of(read.functions),
        counts=outcomes(run.state for run in ran),
    )


def _left_out(suite: JavaSuite) -> Iterator[str]:
    errors = java_build.read_errors(suite.build.messages)
    for path in suite.build.dropped:
        first = next((str(error) for error in errors if error.path == path), path)
        yield f"a test file does not compile and is left out: {first}"
    if errors:
        yield f"{java_build.CURE}; the full output of javac is in {suite.build.log}"


def _junit(project: Project, suite: Suite) -> JavaSuite:
    if not isinstance(suite, JavaSuite):
        raise InputFault(
            "the suite is not a JUnit suite", where=project.manifest.name, cure="correct [tests] in the manifest"
        )
    return suite


def _runs(ran: Sequence[Ran]) -> dict[str, TestRun]:
    wide = breadth(ran)
    return {run.id: TestRun(run.state == "passed", run.seconds, wide[run.id], run.clock) for run in ran}


def _numbers(functions: Sequence[ListedFunction[Definition]]) -> Iterator[tuple[ListedFunction[Definition], range]]:
    first = 0
    for function in functions:
        yield function, range(first, first + len(function.definition.blocks))
        first += len(function.definition.blocks)


def _lookup(
    functions: Sequence[ListedFunction[Definition]], ran: Sequence[Ran]
) -> Callable[[str, str], Mapping[str, frozenset[int]]]:
    """Return a lookup from a function's path and name to the tests that run it, with the blocks that each test runs."""
    by_probe: dict[int, list[str]] = {}
    for test in ran:
        for hit in test.hits:
            by_probe.setdefault(hit, []).append(test.id)
    numbers = {(function.path, function.definition.name): blocks for function, blocks in _numbers(functions)}

    def covering(path: str, name: str) -> Mapping[str, frozenset[int]]:
        blocks: dict[str, frozenset[int]] = {}
        for number in numbers.get((path, name), ()):
            for test in by_probe.get(number, ()):
                blocks[test] = blocks.get(test, frozenset()) | {number}
        return blocks

    return covering
