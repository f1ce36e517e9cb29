"""Mines Python functions for samples: lists functions from syntax trees, and finds their tests by coverage."""

from __future__ import annotations

import contextlib
import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text, sha256, write_atomic
from ctxbench.bench.functions.candidates import candidates, combine_search, outcomes
from ctxbench.bench.functions.mining import Lock, Project, Report, Search, SuiteCoverage, TestRun
from ctxbench.bench.functions.python.covering import clock_tests, cover
from ctxbench.bench.functions.python.mutants import mutants
from ctxbench.bench.functions.python.static import Definition, hidden_of, read_functions, uses_at
from ctxbench.bench.home import Home
from ctxbench.bench.judging import python as pytest_suite
from ctxbench.bench.judging import suites
from ctxbench.bench.judging.python import PythonSuite
from ctxbench.bench.judging.python.reports import Covered
from ctxbench.bench.judging.python.text import lift
from ctxbench.bench.judging.types import Suite
from ctxbench.bench.masking import is_hidden
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.sources import PypiSource
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Sandbox

__all__ = ["find", "lift", "measure_coverage", "mutants", "tests"]


class NoWheel(InputFault):
    """The package index has no wheel of the project for this machine and Python version."""


def tests(project: Project, report: Report) -> dict[str, Any]:
    """Return the suite's data for `judging.suites.suite_of`: settings, exact requirements, digest of all files."""
    report(f"{project.manifest.name}: resolving the requirements of its tests")
    lock, distribution = resolved(project.manifest, project.tests, project.home, project.lock)
    return suites.entry(project.tests, lock, distribution, project.root)


def resolved(manifest: RepoManifest, suite: TestSuite, home: Home, lock: Lock) -> tuple[tuple[str, ...], str]:
    """Return a suite's requirements and all dependencies, as ``name==version``, and the distribution under test or "".

    Raises:
        InputFault: if the project, or a version that the suite locks, has no wheel.
        SandboxUnavailable: if another requirement is unavailable.
    """
    name = next((source.name for source in manifest.sources if isinstance(source, PypiSource)), "")
    distribution = f"{name}=={manifest.version}" if name and suite.wheel else ""
    try:
        return locked((*pytest_suite.requirements(suite), *suite.lock), distribution, home, lock), distribution
    except SandboxUnavailable as error:
        if any(f"No matching distribution found for {pinned}" in error.what for pinned in suite.lock):
            raise InputFault(
                f"{error.what}: [tests] locks that version, but it has no wheel for this Python and machine",
                where=manifest.name,
                cure="use another Python, or a copy of the manifest without `lock`",
            ) from error
        if not distribution or f"No matching distribution found for {distribution}" not in error.what:
            raise
        raise NoWheel(
            f"the package index has no wheel of {distribution} for this Python and machine",
            where=manifest.name,
            cure="write `wheel = false` in [tests], and list all dependencies in `requirements`",
        ) from error


def find(project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Search:
    """Run the suite under coverage, and return the candidates: documented functions that usable tests run."""
    suite = _pytest(project, suite)
    covered = cover(project, suite, project.tests, sandbox, report)
    read = read_functions(project, _test_files(covered, project.tests))
    name, documented = project.manifest.name, read.counts["documented"]
    report(f"{name}: {documented} documented functions, {len(read.functions)} of them usable")
    runs = _runs(covered, read.hidden, suite)
    chosen, drops = candidates(
        read.functions,
        runs,
        lambda function: _covering(covered, function.path, _body(function.definition)),
        lambda function: _importing(covered, function.path, _body(function.definition)),
    )
    failures = {test.id: covered.causes.get(test.id, "") for test in covered.tests if test.outcome == "failed"}
    return combine_search(read, chosen, drops, outcomes(test.outcome for test in covered.tests), failures)


def measure_coverage(project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> SuiteCoverage:
    """Run the suite, and return its coverage: the tests that run a given function, and each test's result."""
    suite = _pytest(project, suite)
    covered = cover(project, suite, project.tests, sandbox, report)
    hidden = hidden_of(project, _test_files(covered, project.tests))
    return SuiteCoverage(
        hidden=hidden,
        runs=_runs(covered, hidden, suite),
        covering=lambda spot: _covering(covered, spot.path, range(spot.cursor.line, spot.end)),
        uses=uses_at(project),
        counts=outcomes(test.outcome for test in covered.tests),
    )


def _pytest(project: Project, suite: Suite) -> PythonSuite:
    if not isinstance(suite, PythonSuite):
        raise InputFault(
            "the suite is not a pytest suite", where=project.manifest.name, cure="correct [tests] in the manifest"
        )
    return suite


def _test_files(covered: Covered, tests: TestSuite) -> set[str]:
    ids = (*(test.id for test in covered.tests), *(where for where, _ in covered.broken), *tests.deselect)
    return {test.partition("::")[0] for test in ids if not _is_doctest(test)}


def _is_doctest(test: str) -> bool:
    return "." in test.partition("::")[2].partition("[")[0]


def _runs(covered: Covered, hidden: tuple[str, ...], suite: PythonSuite) -> Mapping[str, TestRun]:
    breadth: Counter[int] = Counter()
    for path, lines in covered.lines.items():
        if not is_hidden(path, hidden):
            for positions in lines.values():
                breadth.update(positions)
    clocks = clock_tests(covered, suite.environment.tree)
    return {
        test.id: TestRun(test.outcome == "passed", test.seconds, breadth[position], test.id in clocks)
        for position, test in enumerate(covered.tests)
    }


def _body(definition: Definition) -> range:
    return range(definition.first[0], definition.end)


def _importing(covered: Covered, path: str, body: range) -> list[str]:
    modules = {module for line, names in covered.imports.get(path, {}).items() if line in body for module in names}
    return [
        test.id
        for test in covered.tests
        if (module := test.id.partition("::")[0]) != path and (module in modules or "" in modules)
    ]


def _covering(covered: Covered, path: str, body: range) -> Mapping[str, frozenset[int]]:
    lines: dict[str, set[int]] = {}
    for line, positions in covered.lines.get(path, {}).items():
        if line in body:
            for position in positions:
                lines.setdefault(covered.tests[position].id, set()).add(line)
    # A test in the same file would change with the completion.
    return {test: frozenset(ran) for test, ran in lines.items() if test.partition("::")[0] != path}


def locked(requirements: Sequence[str], distribution: str, home: Home, lock: Lock) -> tuple[str, ...]:
    """Return exact versions of `requirements`, and of their and `distribution`'s dependencies. The result is cached."""
    python = ".".join(platform.python_version_tuple()[:2])
    key = sha256(json.dumps([sorted(requirements), distribution, python]))
    place = home.cache / "locks" / f"{key[:32]}.json"
    with contextlib.suppress(InputFault, ValueError):
        stored = json.loads(read_text(place))
        if isinstance(stored, list) and all(isinstance(requirement, str) for requirement in stored):
            return tuple(stored)
    pinned = tuple(sorted(lock(requirements, distribution)))
    write_atomic(place, json.dumps(pinned, indent=1) + "\n")
    return pinned
