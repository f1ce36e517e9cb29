"""Tries a guessed suite in the sandbox, and mends it by what the tests and pip say that it lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ctxbench.bench.adoption import python
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
ROUNDS = 8
"""How many suites are tried."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying a suite."""

    tests: TestSuite
    """The one of which most tests passed, else the last that was tried."""
    search: Search | None
    """What became of its tests, and what they cover; None if none ran."""
    fault: CtxbenchError | None
    """Why the last one could not be run; None if it could."""
    doubts: tuple[str, ...] = ()

    @property
    def states(self) -> Mapping[str, int]:
        """What tests came to, such as ``passed`` -> how many did."""
        counts = self.search.counts if self.search else {}
        states = {key.removeprefix("tests_"): count for key, count in counts.items() if key.startswith("tests_")}
        return dict(sorted(states.items(), key=lambda state: (state[0] != "passed", state[0])))

    @property
    def passed(self) -> int:
        """How many tests passed."""
        return self.states.get("passed", 0)


def tried(
    manifest: RepoManifest, guess: Guess, project: FetchedProject, sandbox: Sandbox, lock: Lock, report: Report
) -> Trial:
    """Run the guessed tests, mend the guess by what is missing, and run them again, until nothing more is known.

    Args:
        manifest: of the repository; its tests are the guess's.
        guess: what its files tell.
        project: its files.
        sandbox: where the tests run.
        lock: resolves what they need; may use the network.
        report: told what happens.

    Raises:
        MachineFault: if the machine failed.
    """
    assert guess.tests is not None
    attempts = _Attempts(guess, python.internal_names(project.tree))
    best, fault = Trial(guess.tests, None, None), None
    suite, following, past = guess.tests, guess.tests, set[TestSuite]()
    while following not in past and len(past) < ROUNDS:
        suite = following
        past.add(suite)
        named = replace(manifest, tests=suite)
        try:
            prepared = prepare(named, project.checkout, project.home, sandbox, lock, report)
            search = manifest.language.miner().find(prepared.project, prepared.suite, sandbox, report)
            # What passed today may not with the versions of next year.
            trial = Trial(replace(suite, lock=tuple(prepared.entry["tests"]["lock"])), search, None)
            best = trial if best.search is None or trial.passed > best.passed else best
            following, fault = attempts.mended(suite, search.failures.values()), None
        except (InputFault, MachineFault) as error:
            # Where nothing is left without the files that cannot be imported, these are the cause.
            is_rest_empty = isinstance(fault, Uncollected) and _NOTHING_COLLECTED in error.what
            fault = fault if is_rest_empty else error
            following = attempts.after(suite, error)
            is_lasting = isinstance(error, InputFault) or python.is_unmet(str(error))
            if following in past and not is_lasting and best.search is None:
                raise
        if following not in past:
            report(f"{manifest.name}: trying again {_difference(suite, following)}")
    if best.search is None:
        return Trial(suite, None, fault, attempts.doubts(suite))
    vain = (f"it could not be run {_difference(best.tests, suite)}: {fault}",) if fault else ()
    return replace(best, fault=fault, doubts=(*attempts.doubts(best.tests), *vain))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedProject:
    """A repository's files, and where they are kept."""

    checkout: Checkout
    home: Home
    tree: Mapping[str, bytes]
    """Path -> content of those that tell something."""


class _Attempts:
    def __init__(self, guess: Guess, internal: Collection[str]) -> None:
        self._guess, self._internal = guess, internal
        self._texts: list[str] = []
        self._uncollected: dict[str, str] = {}

    def after(self, tests: TestSuite, fault: CtxbenchError) -> TestSuite:
        """Return the suite to try after a fault, the same if nothing is left to try."""
        if isinstance(fault, NoWheel):
            return replace(tests, wheel=False, requirements=(*self._guess.declared.own, *tests.requirements))
        broken = dict(fault.broken) if isinstance(fault, Uncollected) else {}
        mended = self.mended(tests, [str(fault), *broken.values()])
        if mended == tests and broken:
            self._uncollected |= broken
            return replace(tests, deselect=(*tests.deselect, *(place for place in broken if place.endswith(".py"))))
        return mended

    def mended(self, tests: TestSuite, texts: Iterable[str]) -> TestSuite:
        """Return a suite with what messages say that it lacks, the same if they say nothing of use."""
        if self._guess.language != PYTHON:
            return tests
        self._texts += texts
        return python.mended(tests, self._guess.declared, self._texts, self._internal)

    def doubts(self, tests: TestSuite) -> tuple[str, ...]:
        """Return what a person should look at of the suite that was taken."""
        doubts = []
        if self._guess.tests is not None and self._guess.tests.wheel and not tests.wheel:
            doubts.append("the index has no wheel of it for this Python: what it needs itself is in requirements")
        for place, what in self._uncollected.items():
            if place in tests.deselect:
                doubts.append(f"{place} cannot be imported here and is left out: {_last_line(what)}")
        own = self._guess.declared.own
        guessed = self._guess.tests.requirements if self._guess.tests is not None else ()
        declared = {*guessed, *own, *map(python.bare, (*guessed, *own))}
        more = [item for item in tests.requirements if item not in declared]
        if more:
            doubts.append(f"added since tests failed without: {', '.join(more)}")
        requirements = guessed if tests.wheel else dict.fromkeys((*own, *guessed))
        fewer = [item for item in requirements if item not in tests.requirements]
        unread = [item for item in fewer if python.is_unreadable(item, "\n".join(self._texts))]
        if unread:
            doubts.append(f"pip cannot read it, so any version is required: {', '.join(unread)}")
        apart = [item for item in fewer if item not in unread]
        if apart:
            doubts.append(
                f"cannot be had together for this Python, so not required as the files say: {', '.join(apart)}"
            )
        return tuple(doubts)


def _last_line(text: str) -> str:
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "pytest says nothing of why"


def _difference(before: TestSuite, after: TestSuite) -> str:
    """Return what a suite has and lacks beside the one before: ``with requirements six and without attrs``."""
    changes = []
    for key in ("requirements", "deselect"):
        old, new = getattr(before, key), getattr(after, key)
        more, fewer = [item for item in new if item not in old], [item for item in old if item not in new]
        changes += [f"with {key} {', '.join(more)}"] if more else []
        changes += [f"without {', '.join(fewer)}"] if fewer else []
    return " and ".join(changes) or "without a wheel of it"
