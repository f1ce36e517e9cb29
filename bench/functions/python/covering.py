"""Measures with coverage, in a box, which lines each Python test runs, and whether the test reads a clock."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text, sha256, write_atomic
from ctxbench.bench.functions.mining import Project, Report
from ctxbench.bench.judging.judge import Turns
from ctxbench.bench.judging.python import PythonSuite
from ctxbench.bench.judging.python.reports import Covered, Malformed, failure_causes, read_coverage, replaced
from ctxbench.bench.judging.suites import run_job
from ctxbench.bench.languages.python import asts
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.sandbox.types import MIB, Ended, Job, Outcome, Sandbox

SECONDS = 900.0
"""Time limit of the suite in seconds. A run under coverage takes two to six times as long as a plain run."""
_NEEDED = {"memory": 4096 * MIB, "disk": 512 * MIB, "result": 64 * MIB}
_TAIL = 400
_CURE_OF_SLOW = "add tests that are slow or wait for a server to `deselect`; `pytest --durations=10` lists slow tests"
_RAN = (0, 1)
"""pytest's exit statuses after tests ran: 0 if all passed, 1 if some failed."""
_OF_MODULES = {
    "asyncio": "sleep timeout timeout_at wait_for",
    "datetime": "date.today datetime.now datetime.today datetime.utcnow",
    "signal": "alarm setitimer",
    "threading": "Timer",
    "time": """
        monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns sleep thread_time
        thread_time_ns time time_ns
    """,
    "timeit": "Timer default_timer repeat timeit",
}
_CLOCKS = frozenset(f"{module}.{name}" for module, names in _OF_MODULES.items() for name in names.split())
_MARKS = frozenset(("pytest.mark.timeout", "pytest.mark.benchmark"))
_FIXTURES = frozenset(("benchmark", "benchmark_weave"))
_WAITS = frozenset(("wait", "join", "acquire"))
"""Methods of threads, processes and locks that wait for the number of seconds in their only argument."""
_TIMERS = frozenset(("call_at", "call_later"))
_LOOP = re.compile(r"loop(\(\))?$", re.IGNORECASE)
_WORTH_PARSING = re.compile(rb"time|benchmark|asyncio|signal|wait|join|acquire|loop")


def cover(project: Project, suite: PythonSuite, tests: TestSuite, sandbox: Sandbox, report: Report) -> Covered:
    """Return a suite's coverage by test. The result is cached until the inputs change.

    Failed tests that read a clock run again while no other job runs, and count as passed if they pass then.

    Raises:
        InputFault: if the suite cannot be run.
        MachineFault: if the sandbox failed.
    """
    name = project.manifest.name
    job = suite.cover(tests, SECONDS)
    # The environment's digest does not include the action (excluded tests, arguments).
    key = sha256(f"{sandbox.name} {suite.environment.digest} {job.action}")
    place = project.home.cache / "coverage" / f"{key[:32]}.json"
    results = _stored(place)
    if results:
        covered = read_coverage(results[0])
        report(f"{name}: using the cached coverage of {len(covered.tests)} tests")
    else:
        report(f"{name}: running its tests under coverage")
        outcome = _run(suite, job, sandbox, report)
        results = [_checked(name, outcome, report)]
        covered = read_coverage(results[0])
        passed = sum(test.outcome == "passed" for test in covered.tests)
        report(f"{name}: {passed} of {len(covered.tests)} tests passed in {outcome.seconds:.1f} s")
        write_atomic(place, json.dumps(results) + "\n")
    failed = {test.id for test in covered.tests if test.outcome == "failed"}
    doubtful = failed and failed & clock_tests(covered, suite.environment.tree)
    if not doubtful:
        return covered
    if len(results) == 1:
        report(f"{name}: {len(doubtful)} failed tests read a clock: running them again, alone")
        with Turns(project.home.cache).alone():
            results.append(_run(suite, suite.cover(tests, SECONDS, only=doubtful), sandbox, report).result)
        write_atomic(place, json.dumps(results) + "\n")
    try:
        alone = read_coverage(results[1])
    except Malformed as error:
        report(f"{name}: the failed tests that read a clock could not run alone: {error}")
        return covered
    passed_alone = doubtful & {test.id for test in alone.tests if test.outcome == "passed"}
    report(f"{name}: {len(passed_alone)} of the failed tests that read a clock passed alone")
    return replaced(covered, alone, passed_alone)


def _stored(place: Path) -> list[Any]:
    with contextlib.suppress(InputFault, ValueError, LookupError):
        results: list[Any] = json.loads(read_text(place))
        read_coverage(results[0])
        return results
    return []


def _run(suite: PythonSuite, job: Job, sandbox: Sandbox, report: Report) -> Outcome:
    return run_job(suite.environment, job, sandbox, replace(suite.limits, **_NEEDED), report)


class Uncollected(InputFault):
    """No test ran because test files cannot be imported."""

    broken: tuple[tuple[str, str], ...] = ()
    """Test files or packages that cannot be imported, each with pytest's message. This field is not pickled."""

    @classmethod
    def of(cls, name: str, broken: tuple[tuple[str, str], ...]) -> Uncollected:
        """Create the error for the `broken` test files of the repository `name`."""
        cure = "add the missing packages to `requirements`, or list the files under `deselect`"
        fault = cls(f"{', '.join(place for place, _ in broken)} cannot be collected", where=name, cure=cure)
        fault.broken = broken
        return fault


def _checked(name: str, outcome: Outcome, report: Report) -> Any:
    output = " ".join(outcome.output[-_TAIL:].split()) or "no output"
    cure = "correct [tests] in the manifest: requirements, pythonpath, paths, arguments, deselect"
    if outcome.ended is Ended.TIMED_OUT:
        raise InputFault(f"the tests take longer than {SECONDS:.0f} s", where=name, cure=_CURE_OF_SLOW)
    try:
        covered = read_coverage(outcome.result)
    except Malformed:
        raise InputFault(f"the tests cannot be run ({outcome.ended}): {output}", where=name, cure=cure) from None
    for where, what in covered.broken:
        report(f"{name}: {where} cannot be collected: {' '.join(what.split())[-_TAIL:]}")
    if covered.broken and not covered.tests:
        raise Uncollected.of(name, covered.broken)
    if covered.exit not in _RAN or not covered.tests:
        raise InputFault(f"pytest ended with status {covered.exit}: {output}", where=name, cure=cure)
    failed = [test.id for test in covered.tests if test.outcome == "failed"]
    return {**outcome.result, "causes": failure_causes(outcome.output, failed)}


def clock_tests(covered: Covered, files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the ids of tests that ran a line from `clock_lines`. `files` maps paths to contents."""
    positions: set[int] = set()
    for path, ran in covered.lines.items():
        lines = clock_lines(files[path]) if path in files and _WORTH_PARSING.search(files[path]) else ()
        positions.update(position for line in lines for position in ran.get(line, ()))
    return frozenset(covered.tests[position].id for position in positions)


def clock_lines(source: bytes) -> frozenset[int]:
    """Return the 0-based lines that read a clock, wait, or belong to a timed test; none if parsing fails."""
    tree = asts.parse(source)
    if tree is None:
        return frozenset()
    names = _Names(tree)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if names.is_clock(node):
            lines.update(_lines(node))
        if isinstance(node, asts.FunctionNode | ast.ClassDef) and _is_timed(node, names):
            lines.update(_lines(node))
        if isinstance(node, ast.Assign) and node in tree.body and _is_mark(node, names):
            return frozenset(range(len(source.splitlines())))
    return frozenset(lines)


class _Names:
    def __init__(self, tree: ast.Module) -> None:
        self._dotted: dict[str, str] = {}
        self._aliases: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._dotted[alias.asname or name] = name
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if alias.name == "*":
                        star = f"{node.module}."
                        clocks = (clock for clock in _CLOCKS if clock.startswith(star))
                        self._dotted.update({clock.removeprefix(star): clock for clock in clocks})
                    self._dotted[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(tree):
            self._aliases.update(_bound(node, self))

    def dotted(self, node: ast.AST) -> str:
        if isinstance(node, ast.Call):
            return self.dotted(node.func)
        if isinstance(node, ast.Attribute):
            inner = self.dotted(node.value)
            return f"{inner}.{node.attr}" if inner else ""
        return self._dotted.get(node.id, "") if isinstance(node, ast.Name) else ""

    def is_clock(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return _waits(node) or _is_of_loop(node)
        if isinstance(node, ast.Name):
            return node.id in self._aliases or self.dotted(node) in _CLOCKS
        return isinstance(node, ast.Attribute) and (node.attr in self._aliases or self.dotted(node) in _CLOCKS)


def _bound(node: ast.AST, names: _Names) -> Iterator[str]:
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_reference(node.value, names):
        yield from _targets(node)
    if isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        paired = [
            *zip(positional[::-1], node.defaults[::-1], strict=False),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
        yield from (argument.arg for argument, default in paired if default and _is_reference(default, names))


def _is_reference(node: ast.AST, names: _Names) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and names.dotted(node) in _CLOCKS


def _targets(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {
        target.id if isinstance(target, ast.Name) else target.attr
        for target in targets
        if isinstance(target, ast.Name | ast.Attribute)
    }


def _is_mark(node: ast.Assign, names: _Names) -> bool:
    marks = {names.dotted(inner) for inner in ast.walk(node.value)}
    return _targets(node) == {"pytestmark"} and bool(marks & _MARKS)


def _is_timed(node: asts.FunctionNode | ast.ClassDef, names: _Names) -> bool:
    decorators = {names.dotted(decorator) for decorator in node.decorator_list}
    if decorators & _MARKS:
        return True
    if isinstance(node, ast.ClassDef):
        return False
    return node.name.startswith("test") and any(argument.arg in _FIXTURES for argument in node.args.args)


def _waits(call: ast.Call) -> bool:
    if any(keyword.arg == "timeout" and _seconds(keyword.value) for keyword in call.keywords):
        return True
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return method in _WAITS and len(call.args) == 1 and _seconds(call.args[0])


def _is_of_loop(call: ast.Call) -> bool:
    method = call.func
    if not isinstance(method, ast.Attribute):
        return False
    if method.attr not in _TIMERS and (method.attr != "time" or call.args):
        return False
    return bool(_LOOP.search(ast.unparse(method.value)))


def _seconds(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0


def _lines(node: ast.AST) -> range:
    start: int = getattr(node, "lineno", 1)
    return range(start - 1, getattr(node, "end_lineno", None) or start)
