"""Measures with probes, in a box, which blocks each Java test runs, and whether the test reads a clock."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tree_sitter import Node

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text, sha256, write_atomic
from ctxbench.bench.functions.candidates import ListedFunction
from ctxbench.bench.functions.java.static import Definition
from ctxbench.bench.functions.mining import Project, Report
from ctxbench.bench.judging import whole_lines
from ctxbench.bench.judging.java import JavaSuite
from ctxbench.bench.judging.java.build import BIG, COVERAGE, checked_result, sources
from ctxbench.bench.judging.judge import Turns
from ctxbench.bench.judging.suites import run_job
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.outline import TYPES
from ctxbench.bench.languages.syntax import Source, named_descendants
from ctxbench.bench.types import Cursor
from ctxbench.sandbox.types import Call, Ended, Job, Outcome, Sandbox

SECONDS = 1800.0
"""Time limit in seconds of a job that compiles, then runs the whole suite, then its passing tests one by one."""
UNSELECTABLE = "unselectable"
"""State of a test that passes only as part of the whole suite. Such a test cannot judge functions."""
_WHOLE = "[*]"
"""Suffix of a test's id if the test runs only with its whole class."""
_METHOD = re.compile(r"'([^']+)', methodName = '([^']+)'")
_REASON = re.compile(r"^ *(?:=>|Caused by:) ([^\n]+)", re.MULTILINE)
_GAP = "\n[...]\n"
_MOST_CAUSE = 200
_WORTH_PARSING = re.compile(
    r"nanoTime|currentTimeMillis|\bnow\b|Clock|Date\b|Calendar|[Tt]ime[Oo]ut|Timer\b|Stop[Ww]atch|sleep|(await|park)(Nanos|Until)"
    r"|[Uu]nit\b|SECONDS|Duration|\b(join|wait|schedule\w*)\("
)
_OF_ANY_TYPE = """
    assertTimeout assertTimeoutPreemptively awaitNanos awaitUntil currentTimeMillis nanoTime parkNanos parkUntil sleep
"""
_OF_TYPES = {
    "": _OF_ANY_TYPE,
    "Calendar": "getInstance",
    "Clock": "system systemDefaultZone systemUTC",
    "Timeout": "builder millis seconds",
}
"""Methods that read a clock, wait or limit the time, by type. The key "" stands for any type."""
_READS = frozenset((owner, name) for owner, names in _OF_TYPES.items() for name in names.split())
_WITH_UNITS = """
    acquire atMost await awaitTermination completeOnTimeout get invokeAll invokeAny offer orTimeout poll tryAcquire
    tryLock waitFor
"""
_WAITS = frozenset(_WITH_UNITS.split())
"""Methods that wait if an argument is a time with a unit."""
_WAITS_MILLISECONDS = frozenset(("join", "timeout"))
_SCHEDULES = frozenset(("schedule", "scheduleAtFixedRate", "scheduleWithFixedDelay"))
_UNIT = re.compile(r"(NANOSECONDS|MICROSECONDS|MILLISECONDS|SECONDS|MINUTES|HOURS|DAYS|([a-z]\w*U|u)nit)")
_STARTED = frozenset(("Date", "GregorianCalendar", "StopWatch", "Stopwatch", "Timer"))
_NUMBER = re.compile(r"[1-9][0-9_]*[lL]?")
_NO_LIMIT = re.compile(r"0[lL]?")
_BODIES = frozenset(("block", "constructor_body"))


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one test, combined over all invocations of the test."""

    id: str
    state: str
    """Worst state of all invocations: ``passed``, `UNSELECTABLE`, ``skipped`` or ``failed``."""
    seconds: float
    hits: frozenset[int]
    clock: bool = False
    cause: str = ""
    """One line on why the test failed; may be empty."""


def cover(
    project: Project,
    suite: JavaSuite,
    functions: Sequence[ListedFunction[Definition]],
    sandbox: Sandbox,
    report: Report,
) -> tuple[Ran, ...]:
    """Run the suite with probes, and cache the results. Probes are numbered in the order of the blocks of `functions`.

    Failed or unselectable tests that read a clock run again while no other job runs. They count as passed if they pass
    then.

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
    digests = [[path, sha256(files[path])] for path in files]
    key = [sandbox.name, suite.environment.digest, suite.layout.flags, deselected, digests]
    place = project.home.cache / "coverage" / f"{sha256(json.dumps(key))[:32]}.json"

    run = functools.partial(_run, suite, files, len(blocks) + len(timed), sandbox, report)
    first, alone, causes = _stored(place)
    if first is None:
        report(f"{name}: running its tests with probes")
        outcome = run(deselected)
        first, causes = _checked(name, outcome)
        tests = merged(first, len(blocks))
        passed = sum(test.state == "passed" for test in tests)
        report(f"{name}: {passed} of {len(tests)} tests passed in {outcome.seconds:.1f} s")
        write_atomic(place, json.dumps({"first": first, "alone": None, "causes": causes}) + "\n")
    tests = tuple(
        replace(test, cause=causes.get(test.id.removesuffix(_WHOLE).partition("(")[0], ""))
        if test.state == "failed"
        else test
        for test in merged(first, len(blocks))
    )
    doubtful = {test.id for test in tests if test.clock and test.state in ("failed", UNSELECTABLE)}
    if not doubtful:
        return tests
    if alone is None:
        report(f"{name}: {len(doubtful)} failed tests read a clock: running them again, alone")
        others = _classes(test.id for test in tests) - _classes(doubtful)
        with Turns(project.home.cache).alone():
            result = run([*deselected, *sorted(others)]).result
        alone = result.get("tests") if isinstance(result, dict) else None
        write_atomic(place, json.dumps({"first": first, "alone": alone or [], "causes": causes}) + "\n")
    return _replaced(tests, doubtful, merged(alone or [], len(blocks)), lambda line: report(f"{name}: {line}"))


def _run(
    suite: JavaSuite,
    files: Mapping[str, bytes],
    probes: int,
    sandbox: Sandbox,
    report: Report,
    deselected: Sequence[str],
) -> Outcome:
    arguments = {
        "main": list(suite.layout.main),
        "test": sorted(path for path in files if _inside(path, suite.layout.test)),
        "probes": probes,
        "deselected": list(deselected),
        **suite.layout.running(),
    }
    job = Job(action=Call(function=COVERAGE, arguments=arguments), files=files, seconds=SECONDS)
    return run_job(sources(suite.tests, suite.tree, suite.build), job, sandbox, BIG, report)


def _stored(place: Path) -> tuple[list[Any] | None, list[Any] | None, Mapping[str, str]]:
    with contextlib.suppress(InputFault, ValueError, LookupError, TypeError):
        record = json.loads(read_text(place))
        first, alone = record["first"], record["alone"]
        merged(first), merged(alone or [])
        return first, alone, dict(record["causes"])
    return None, None, {}


def failure_causes(messages: str) -> dict[str, str]:
    """Return why tests failed, by ``Class#method``, from JUnit's output."""
    causes = {}
    for block in messages.split("MethodSource [className = ")[1:]:
        test, reasons = _METHOD.match(block), _REASON.findall(block.partition(_GAP)[0])
        if test and reasons:
            causes[f"{test.group(1)}#{test.group(2)}"] = " ".join(reasons[-1].split())[:_MOST_CAUSE]
    return causes


def _checked(name: str, outcome: Outcome) -> tuple[Any, Mapping[str, str]]:
    if outcome.ended is Ended.TIMED_OUT:
        cure = "add the test files that are slow or endless to `deselect` in [tests]"
        raise InputFault(f"the tests take longer than {SECONDS:.0f} s", where=name, cure=cure)
    result = checked_result(outcome, "running the repository's tests")
    return result["tests"], failure_causes(str(result.get("messages", "")))


def _classes(tests: Iterable[str]) -> set[str]:
    return {test.partition("#")[0].partition("$")[0] for test in tests}


def _replaced(tests: Sequence[Ran], doubtful: Collection[str], alone: Sequence[Ran], report: Report) -> tuple[Ran, ...]:
    if not alone:
        report("the failed tests that read a clock could not run alone")
        return tuple(tests)
    passed = {test.id.removesuffix(_WHOLE): test for test in alone if test.state == "passed"}
    again = {test: passed[bare] for test in doubtful if (bare := test.removesuffix(_WHOLE)) in passed}
    report(f"{len(again)} of the failed tests that read a clock passed alone")
    return tuple(sorted((again.get(test.id, test) for test in tests), key=lambda test: test.id))


def _clocks(suite: JavaSuite) -> list[tuple[str, Cursor]]:
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
    """Return the ids of excluded tests and the names of excluded classes. An excluded file stands for its class."""
    names = []
    for entry in suite.tests.deselect:
        folder = next((folder for folder in suite.layout.test if entry.startswith(f"{folder}/")), None)
        path = entry.removeprefix(f"{folder}/").removesuffix(".java")
        names.append(entry if folder is None else path.replace("/", "."))
    return names


def _inside(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def merged(lines: object, blocks: int | None = None) -> tuple[Ran, ...]:
    """Combine rows of coverage (test id, state, milliseconds, probes) into tests, sorted by id.

    Args:
        blocks: number of probes in methods. Later probes mark code that reads a clock. If None, all probes are kept.

    Raises:
        InputFault: if `lines` is not a valid report.
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
        raise InputFault(f"the report of the tests is invalid: {error!r}", cure="run the same command again") from None
    tests = tuple(by_id[name] for name in sorted(by_id))
    if blocks is None:
        return tests
    in_methods = frozenset(range(blocks))
    return tuple(replace(test, hits=test.hits & in_methods, clock=not test.hits <= in_methods) for test in tests)


def _rows(lines: object) -> list[Any]:
    if not isinstance(lines, list):
        raise TypeError(type(lines).__name__)
    return lines


def breadth(ran: Sequence[Ran]) -> Mapping[str, int]:
    """Return the number of blocks that each test runs, by test id."""
    return {run.id: len(run.hits) for run in ran}


def probed(source: bytes, encoding: str, places: Mapping[int, Cursor]) -> bytes:
    """Insert calls to ``ctxbench.Probe.hit`` into a Java file without changing line numbers."""
    lines = whole_lines(source.decode(encoding, "surrogateescape"))
    for number, cursor in sorted(places.items(), key=lambda item: (item[1].line, item[1].column), reverse=True):
        line = lines[cursor.line]
        lines[cursor.line] = f"{line[: cursor.column]}ctxbench.Probe.hit({number});{line[cursor.column :]}"
    return "".join(lines).encode(encoding, "surrogateescape")


def numbered(blocks: Iterable[tuple[str, Cursor]]) -> dict[str, dict[int, Cursor]]:
    """Number all cursors consecutively from 0, and return each file's cursors by number."""
    numbers: dict[str, dict[int, Cursor]] = {}
    for number, (path, cursor) in enumerate(blocks):
        numbers.setdefault(path, {})[number] = cursor
    return numbers


def clock_blocks(text: str) -> tuple[Cursor, ...]:
    """Return the start of each block that reads a clock, waits for some time, or has a time limit.

    A nonstatic field with such code, or a time limit in a class's annotation, marks every method of the class.
    """
    if not _WORTH_PARSING.search(text):
        return ()
    source = Source(text, JAVA)
    if source.root.has_error:
        return ()
    blocks = {
        (block.start_byte, block.end_byte): block
        for node in named_descendants(source.root)
        if _is_clock(source, node)
        for block in _around(source, node)
    }
    return tuple(_beginning(source, block) for _, block in sorted(blocks.items()))


def _is_clock(source: Source, node: Node) -> bool:
    if node.type == "method_invocation":
        return _is_call(source, node)
    if node.type == "method_reference":
        owner, name = (source.text(node.children[place]).rpartition(".")[2] for place in (0, -1))
        return _is_read(owner, name)
    if node.type == "object_creation_expression":
        created = _part(source, node, "type")
        return created == "Timeout" or (created in _STARTED and not _arguments(source, node))
    if node.type in ("annotation", "marker_annotation"):
        kind = _part(source, node, "name")
        return kind == "Timeout" or (kind == "Test" and any("timeout" in text for text in _arguments(source, node)))
    return False


def _is_call(source: Source, node: Node) -> bool:
    owner, name, arguments = _part(source, node, "object"), _part(source, node, "name"), _arguments(source, node)
    if name in _WAITS:
        return any(_UNIT.fullmatch(text.rpartition(".")[2]) or text.startswith("Duration.of") for text in arguments)
    if name == "wait" or (name == "join" and "thread" in owner.lower()):
        return bool(arguments) and _NO_LIMIT.fullmatch(arguments[0]) is None
    if name in _WAITS_MILLISECONDS:
        return bool(arguments) and _NUMBER.fullmatch(arguments[0]) is not None
    if name in _SCHEDULES:
        return len(arguments) > 1
    return _is_read(owner, name)


def _is_read(owner: str, name: str) -> bool:
    if name == "now":
        return owner[:1].isupper()  # a class of java.time, or a similar one
    return ("", name) in _READS or (owner, name) in _READS or owner in ("StopWatch", "Stopwatch")


def _part(source: Source, node: Node, field: str) -> str:
    return source.field(node, field).rpartition(".")[2]


def _arguments(source: Source, call: Node) -> list[str]:
    arguments = call.child_by_field_name("arguments")
    return [source.text(argument) for argument in arguments.named_children] if arguments is not None else []


def _around(source: Source, node: Node) -> Iterator[Node]:
    outer = node.parent
    while outer is not None and outer.type not in _BODIES:
        if outer.type == "constant_declaration" or (outer.type == "field_declaration" and _is_static(source, outer)):
            return
        if outer.type == "method_declaration" or outer.type in TYPES or outer.type == "class_body":
            methods = [inner for inner in named_descendants(outer) if inner.type == "method_declaration"]
            bodies = [method.child_by_field_name("body") for method in methods]
            yield from (body for body in bodies if body is not None)
            return
        outer = outer.parent
    if outer is not None:
        yield outer


def _is_static(source: Source, field: Node) -> bool:
    modifiers = next((source.text(child).split() for child in field.children if child.type == "modifiers"), [])
    return "static" in modifiers and _part(source, field, "type") != "Timeout"


def _beginning(source: Source, block: Node) -> Cursor:
    row, byte = block.start_point
    byte += 1
    for child in block.named_children:
        if child.type == "explicit_constructor_invocation":
            row, byte = child.end_point
    return Cursor(line=row, column=source.column(row, byte))
