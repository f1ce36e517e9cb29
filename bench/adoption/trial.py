"""Runs a guessed test suite in the sandbox, and corrects its requirements and pytest version after failures."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ctxbench.bench.adoption import python
from ctxbench.bench.adoption.declared import bare, distribution
from ctxbench.bench.adoption.guess import Guess
from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.functions.mining import Lock, Report, Search, prepare
from ctxbench.bench.functions.python import NoWheel
from ctxbench.bench.functions.python.covering import Uncollected
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.checkout import Checkout
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.sandbox.types import Sandbox

_NOTHING_COLLECTED = "pytest ended with status 5"
_OF_PYTEST = re.compile(r"\b_?pytest\b|\bPytest\w*Warning")
ROUNDS = 8
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionTools:
    """The tools to run a repository's tests."""

    sandbox: Callable[[], Sandbox]
    """Function that opens a back end of the sandbox. It is called only if there are tests."""
    lock: Lock
    """Function that resolves test requirements to exact versions. It may use the network."""
    beside: Callable[[], Sandbox | None] = lambda: None
    """Function that opens a second back end to compare test outcomes, or returns None to skip the comparison."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of running a guessed test suite and corrected versions of it."""

    tests: TestSuite
    """The suite with the most passed tests; if no test ran, the last suite."""
    search: Search | None
    """Outcomes and coverage of the tests; None if no test ran."""
    fault: CtxbenchError | None = None
    doubts: tuple[str, ...] = ()
    back_ends: tuple[str, ...] = ()

    @property
    def states(self) -> Mapping[str, int]:
        """Number of tests with each outcome, such as ``passed``."""
        counts = self.search.counts if self.search else {}
        states = {key.removeprefix("tests_"): count for key, count in counts.items() if key.startswith("tests_")}
        return dict(sorted(states.items(), key=lambda state: (state[0] != "passed", state[0])))

    @property
    def failures(self) -> Mapping[str, str]:
        """One line on why each failed test failed, by test id; an empty text if the reason is unknown."""
        return self.search.failures if self.search else {}

    @property
    def passed(self) -> int:
        """Number of passed tests."""
        return self.states.get("passed", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedProject:
    """A fetched repository."""

    checkout: Checkout
    home: Home
    tree: Mapping[str, bytes]
    """Files to guess the manifest from: path -> content."""


def run_trials(
    manifest: RepoManifest, guess: Guess, project: FetchedProject, workbench: AdoptionTools, report: Report
) -> Trial:
    """Run the guessed tests, correct the suite after failures, and repeat until nothing changes, up to `ROUNDS` times.

    Raises:
        MachineFault: if a sandbox cannot be opened, or the machine failed and no suite ran.
    """
    assert guess.tests is not None
    sandbox = workbench.sandbox()
    run = functools.partial(_run, manifest, project, workbench.lock, report)
    attempts = _Attempts(guess, python.internal_names(project.tree))
    best, suite = Trial(guess.tests, None), guess.tests
    following = suite
    while following not in attempts.past and len(attempts.past) < ROUNDS:
        suite = following
        try:
            trial = run(suite, sandbox)
            best = trial if best.search is None or trial.passed > best.passed else best
            following = attempts.after_tests(suite, trial)
        except (InputFault, MachineFault) as fault:
            following = attempts.after_fault(suite, fault)
            is_lasting = isinstance(fault, InputFault) or python.is_unmet(str(fault))
            if following in attempts.past and not is_lasting and best.search is None:
                raise
        if following not in attempts.past:
            report(f"{manifest.name}: trying again {_difference(suite, following)}")
    if best.search is None:
        return Trial(suite, None, attempts.cause(), attempts.doubts(suite))
    best = replace(best, doubts=attempts.doubts(best.tests), back_ends=(sandbox.name,))
    beside = workbench.beside() if best.passed else None
    if beside is None:
        only = (
            f"the tests ran only in {sandbox.name}; to check them elsewhere, repeat the command with another --sandbox"
        )
        return replace(best, doubts=(*best.doubts, only))
    return _compared(best, beside.name, lambda: run(replace(best.tests, lock=()), beside))


def _run(
    manifest: RepoManifest, project: FetchedProject, lock: Lock, report: Report, suite: TestSuite, sandbox: Sandbox
) -> Trial:
    named = replace(manifest, tests=suite)
    prepared = prepare(named, project.checkout, project.home, sandbox, lock, report)
    search = manifest.language.miner().find(prepared.project, prepared.suite, sandbox, report)
    # Lock the versions: tests that pass today may fail with next year's versions.
    return Trial(replace(suite, lock=tuple(prepared.entry["tests"]["lock"])), search)


def _compared(trial: Trial, back_end: str, run: Callable[[], Trial]) -> Trial:
    try:
        other = run()
    except (InputFault, MachineFault) as error:
        return replace(trial, doubts=(*trial.doubts, f"the tests could not be run in {back_end}: {error}"))
    trial = replace(trial, back_ends=(*trial.back_ends, back_end))
    changed = sorted(trial.failures.keys() ^ other.failures.keys())
    if not changed and trial.states == other.states:
        return trial
    more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
    counts = f"{trial.passed} tests pass in {trial.back_ends[0]}, {other.passed} in {back_end}"
    named = f"; these tests differ: {', '.join(changed[:MOST_NAMED])}{more}" if changed else ""
    return replace(trial, doubts=(*trial.doubts, counts + named))


class _Attempts:
    def __init__(self, guess: Guess, internal: Collection[str]) -> None:
        self._guess, self._internal = guess, internal
        self._texts: list[str] = []
        self._uncollected: dict[str, str] = {}
        self.past: dict[TestSuite, CtxbenchError | None] = {}
        """The fault that stopped each suite tried so far; None if the suite ran."""

    def after_tests(self, tests: TestSuite, trial: Trial) -> TestSuite:
        self.past[tests] = None
        causes = trial.failures.values()
        mended = self._mended(tests, causes)
        is_odd = len(causes) > trial.passed or any(map(_OF_PYTEST.search, causes))
        return self._older(tests) if mended == tests and is_odd else mended

    def after_fault(self, tests: TestSuite, fault: CtxbenchError) -> TestSuite:
        self.past[tests] = fault
        if isinstance(fault, NoWheel):
            return replace(tests, wheel=False, requirements=(*self._guess.declared.own, *tests.requirements))
        broken = _broken(fault)
        is_newest = python.with_pytest(tests) == tests
        # A conflict with an older pytest must not change the versions of everything else.
        if broken or is_newest:
            mended = self._mended(tests, [str(fault), *broken.values()])
            if mended != tests:
                return mended
            if not broken:
                return tests
        # Another pytest does not provide a missing module.
        is_odd = any("ModuleNotFoundError" not in text for text in broken.values())
        older = self._older(tests) if is_odd else tests
        return self._without_broken(tests) if older == tests else older

    def _without_broken(self, tests: TestSuite) -> TestSuite:
        by_suite = {suite: _broken(fault) for suite, fault in self.past.items()}
        current = python.with_pytest(tests)
        like = [suite for suite in self.past if python.with_pytest(suite) == current and by_suite[suite]]
        suite = min(like, key=lambda suite: len(by_suite[suite]), default=tests)
        self._uncollected |= by_suite[suite]
        return replace(
            suite, deselect=(*suite.deselect, *(place for place in by_suite[suite] if place.endswith(".py")))
        )

    def _older(self, tests: TestSuite) -> TestSuite:
        return python.with_older_pytest(tests) if self._guess.language == PYTHON else tests

    def _mended(self, tests: TestSuite, texts: Iterable[str]) -> TestSuite:
        if self._guess.language != PYTHON:
            return tests
        self._texts += texts
        return python.add_missing(tests, self._guess.declared, self._texts, self._internal)

    def cause(self) -> CtxbenchError | None:
        faults = [fault for fault in self.past.values() if fault is not None]
        uncollected = [fault for fault in faults if isinstance(fault, Uncollected)]
        is_rest_empty = bool(uncollected) and _NOTHING_COLLECTED in faults[-1].what
        return uncollected[-1] if is_rest_empty else faults[-1] if faults else None

    def doubts(self, tests: TestSuite) -> tuple[str, ...]:
        guessed = self._guess.tests or TestSuite()
        own, text = self._guess.declared.own, "\n".join(self._texts)
        declared = (*own, *guessed.requirements)
        all_requirements = dict.fromkeys(item for suite in self.past for item in suite.requirements)
        required = guessed.requirements if tests.wheel else dict.fromkeys(declared)
        none = [item for item in all_requirements if distribution(item) in python.unavailable(text)]
        fewer = [item for item in required if item not in (*tests.requirements, *none)]
        lists = {
            "requirements added because tests failed without them": [
                item for item in tests.requirements if item not in (*declared, *map(bare, declared))
            ],
            "requirements left out, because the index has no wheel for this Python": none,
            "requirements changed, because the declared versions conflict on this Python": fewer,
        }
        doubts = [
            f"{place} cannot be imported here and is left out: {_last_line(what)}"
            for place, what in self._uncollected.items()
            if place in tests.deselect
        ]
        if guessed.wheel and not tests.wheel:
            doubts.append(
                "the index has no wheel of the project for this Python, so `requirements` lists its dependencies"
            )
        doubts += [f"{what}: {', '.join(items)}" for what, items in lists.items() if items]
        explained = {*tests.requirements, *none, *required, *map(bare, required)}
        for suite, fault in self.past.items():
            # Report a suite that had a requirement that the chosen suite lacks.
            is_larger = bool({*suite.requirements} - explained)
            if is_larger and not isinstance(fault, NoWheel | Uncollected | None):
                doubts.append(f"the tests could not be run {_difference(tests, suite)}: {fault}")
        return tuple(doubts)


def _broken(fault: CtxbenchError | None) -> dict[str, str]:
    return dict(fault.broken) if isinstance(fault, Uncollected) else {}


def _last_line(text: str) -> str:
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "pytest printed no reason"


def _difference(before: TestSuite, after: TestSuite) -> str:
    changes = []
    for key in ("requirements", "deselect"):
        old, new = getattr(before, key), getattr(after, key)
        more, fewer = [item for item in new if item not in old], [item for item in old if item not in new]
        changes += [f"with {key} {', '.join(more)}"] if more else []
        changes += [f"without {', '.join(fewer)}"] if fewer else []
    return " and ".join(changes) or "without its wheel"
