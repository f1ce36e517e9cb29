"""Parses the results of `ctxbench_pytest` strictly. The code under test may have written any part of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_KEYS = {"nonce", "exit", "signal", "events", "changed"}
_PHASES = ("setup", "call", "teardown")
_OUTCOMES = ("passed", "failed", "skipped", "xfail")
_MAX_TEXT = 1000
_MAX_CAUSE = 200
_HEADING = re.compile(r"_{3,} (.+) _{3,}")
_PHASE = re.compile(r"ERROR at (setup|teardown) of ")
_LAST_LINE_CUT = "the last line is incomplete"


class Malformed(ValueError):
    """A result does not have the expected format."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of a test, as reported from the box."""

    test: int
    """Index of the test; -1, -2, ... for canaries."""
    phase: str
    outcome: str
    raised: bool
    ran: bool | None
    """Whether the runner saw the test's function return; None if unknown, as in setup and teardown."""
    message: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """The parsed result of ``ctxbench_pytest:run_tests``."""

    nonce: str
    exit: int | None
    signal: int | None
    changed: tuple[str, ...] = ()
    """Up to five of the repository's files that changed during the run."""
    collected: tuple[int, ...] = ()
    collections: int = 0
    broken: tuple[tuple[str, str], ...] = ()
    phases: tuple[Phase, ...] = ()
    loaded: bool | None = None
    altered: tuple[str, ...] = ()
    end: int | None = None
    """pytest's exit status, reported after the tests; None if the tests did not finish."""


def read_run(result: object) -> RunReport:
    """Parse the result of ``ctxbench_pytest:run_tests``.

    Raises:
        Malformed: if the result does not have the expected format.
    """
    if not isinstance(result, dict) or result.keys() != _KEYS:
        raise Malformed("the result has unexpected keys")
    nonce, events = result["nonce"], result["events"]
    if not isinstance(nonce, str) or not isinstance(events, str):
        raise Malformed("nonce or events are not text")
    changed = tuple(_text(path) for path in _checked(list, result["changed"]))
    report = RunReport(nonce, _status(result["exit"]), _status(result["signal"]), changed)
    lines = events.split("\n")
    if lines.pop() and report.signal is None:
        # Only a killed child may leave an incomplete line.
        raise Malformed(_LAST_LINE_CUT)
    by_kind: dict[str, list[list[Any]]] = {}
    for line in lines:
        kind, values = _event(line)
        if "end" in by_kind:
            raise Malformed("an event follows the end")
        by_kind.setdefault(kind, []).append(values)
    return _with_events(report, by_kind)


def _with_events(events: RunReport, by_kind: Mapping[str, list[list[Any]]]) -> RunReport:
    ends = [_checked(int, value) for (value,) in _sized(by_kind.get("end", []), 1)]
    loads = [_checked(bool, value) for (value,) in _sized(by_kind.get("loaded", []), 1)]
    collections = _sized(by_kind.get("collected", []), 1)
    return RunReport(
        nonce=events.nonce,
        exit=events.exit,
        signal=events.signal,
        changed=events.changed,
        collected=tuple(_checked(int, item) for (items,) in collections for item in _checked(list, items)),
        collections=len(collections),
        broken=tuple((_text(where), _text(what)) for where, what in _sized(by_kind.get("broken", []), 2)),
        phases=tuple(_phase(values) for values in _sized(by_kind.get("phase", []), 6)),
        loaded=loads[0] if len(loads) == 1 else None,
        altered=tuple(
            _text(item) for (items,) in _sized(by_kind.get("altered", []), 1) for item in _checked(list, items)
        ),
        end=ends[0] if ends else None,
    )


def _event(line: str) -> tuple[str, list[Any]]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        raise Malformed("an event is not JSON") from None
    kinds = ("collected", "broken", "phase", "loaded", "altered", "end")
    if not isinstance(event, list) or not event or event[0] not in kinds:
        raise Malformed("an event has an unknown kind")
    return event[0], event[1:]


def _sized(events: list[list[Any]], size: int) -> list[list[Any]]:
    if any(len(event) != size for event in events):
        raise Malformed("an event has the wrong number of values")
    return events


def _phase(values: list[Any]) -> Phase:
    test, phase, outcome, raised, ran, message = values
    if phase not in _PHASES or outcome not in _OUTCOMES:
        raise Malformed("a phase or outcome has an unknown name")
    if ran is not None:
        _checked(bool, ran)
    return Phase(_checked(int, test), phase, outcome, _checked(bool, raised), ran, _text(message))


def _checked(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise Malformed(f"a value is {type(value).__name__} instead of {kind.__name__}")
    return value


def _text(value: Any) -> str:
    return str(_checked(str, value))[:_MAX_TEXT]


def _status(value: Any) -> int | None:
    return None if value is None else int(_checked(int, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredTest:
    """The result of one test that ran under coverage."""

    id: str
    outcome: str
    """``passed``, ``failed``, ``skipped`` or ``xfail``."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """The outcomes of a suite's tests, and the lines that each test ran."""

    exit: int
    tests: tuple[CoveredTest, ...]
    broken: tuple[tuple[str, str], ...]
    lines: Mapping[str, Mapping[int, tuple[int, ...]]] = field(repr=False)
    """Tests that ran each line, as sorted indexes into `tests`, by path and 0-based line."""
    imports: Mapping[str, Mapping[int, tuple[str, ...]]] = field(repr=False, default_factory=dict)
    """Test modules whose import ran each line, by path and 0-based line; "" for lines run outside tests and imports."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """Last line of the error of each failed test, by test id, if known."""


def read_coverage(result: object) -> Covered:
    """Parse the result of ``ctxbench_pytest:cover``.

    Raises:
        Malformed: if the result does not have the expected format.
    """
    keys = {"exit", "tests", "broken", "sets", "lines", "modules", "imports"}
    # The host adds the causes; old results lack these.
    if not isinstance(result, dict) or result.keys() - {"causes"} != keys:
        raise Malformed("the result has unexpected keys")
    try:
        tests = tuple(
            CoveredTest(id=str(name), outcome=str(outcome), seconds=float(took))
            for name, outcome, took in result["tests"]
        )
        sets = [_numbers(ranges, len(tests)) for ranges in result["sets"]]
        lines = {str(path): _covered_lines(by_line, sets) for path, by_line in result["lines"].items()}
        broken = tuple((str(where), str(what)) for where, what in result["broken"])
        modules = [str(module) for module in result["modules"]]
        imports = {
            str(path): {int(line) - 1: tuple(modules[place] for place in places) for line, places in by_line.items()}
            for path, by_line in result["imports"].items()
        }
        causes = {str(name): str(cause) for name, cause in result.get("causes", {}).items()}
        return Covered(
            exit=int(result["exit"]), tests=tests, broken=broken, lines=lines, imports=imports, causes=causes
        )
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise Malformed(f"the result is invalid: {error}") from None


def failure_causes(output: str, failed: Collection[str]) -> dict[str, str]:
    """Return the last line of failed tests' errors, by test id, from pytest's output with short tracebacks."""
    by_title: dict[str, str] = {}
    title = ""
    for line in output.splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            title = _PHASE.sub("", heading.group(1))
        elif line.startswith("E   ") and line[4:].strip():
            by_title[title] = line[4:].strip()[:_MAX_CAUSE]
    titles = {name: ".".join(name.split("::")[1:]) for name in failed}
    return {name: by_title[titles[name]] for name in sorted(failed) if by_title.get(titles[name])}


def replaced(covered: Covered, again: Covered, tests: Collection[str]) -> Covered:
    """Replace the outcomes, seconds and lines of `tests` with those of the run `again`."""
    repeated = {test.id: test for test in again.tests if test.id in tests}
    places = {test.id: place for place, test in enumerate(covered.tests)}
    moved = {number: places[test.id] for number, test in enumerate(again.tests) if test.id in repeated}
    gone = frozenset(moved.values())
    lines: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path, ran in covered.lines.items():
        for line, numbers in ran.items():
            lines[path][line].update(number for number in numbers if number not in gone)
    for path, ran in again.lines.items():
        for line, numbers in ran.items():
            lines[path][line].update(moved[number] for number in numbers if number in moved)
    return replace(
        covered,
        tests=tuple(repeated.get(test.id, test) for test in covered.tests),
        lines={
            path: {line: tuple(sorted(numbers)) for line, numbers in sorted(ran.items()) if numbers}
            for path, ran in lines.items()
        },
    )


def _covered_lines(by_line: Mapping[str, Any], sets: list[tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {int(line) - 1: sets[int(place)] for line, place in by_line.items()}


def _numbers(ranges: str, count: int) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if not 0 <= first <= last < count:
            raise Malformed("an index has no test")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)
