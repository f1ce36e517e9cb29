"""Account for every CoderEval task of a set: kept, or the reason why not; none is dropped in silence. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ctxbench.bench.judging.suites import ADDED

KEPT = "kept"
NO_MANIFEST = "no_manifest"
"""No repository stands for its project."""
NO_TESTS = "no_tests"
"""Its repository's manifest says nothing of tests."""
UNREACHABLE = "unreachable"
"""No source of its repository could be reached now: another time it may be there."""
SUITE_FAILED = "suite_failed"
"""Its repository's tests cannot be run here."""
NO_COVERING_TEST = "no_covering_test"
"""No usable test runs a line of its function."""
TOO_SLOW = "too_slow"
"""The tests that run its function take too long together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The outcome of one task, with what it was located and judged by."""

    id: str
    project: str
    """As recorded."""
    outcome: str
    """`KEPT` or a reason: one of the above, of `bench.codereval.records.Missed`, or of
    `bench.functions.certify.certificate`."""
    detail: str = ""
    repo: str = ""
    """The repository that stands for its project."""
    path: str = ""
    name: str = ""
    """The function's: within its file once it is located, before that as recorded."""
    how: str = ""
    """How its function was located, see `bench.codereval.records.Located`."""
    remark: str = ""
    """What of the record the located function contradicts."""
    tests: tuple[str, ...] = ()
    """Those that judge it."""
    covering: int = 0
    """How many usable tests run its function."""

    @property
    def judged_by(self) -> str:
        """Whose tests judge it: ``project``, ``ours``, ``both``; empty if none do."""
        ours = sum(test.startswith(ADDED) for test in self.tests)
        if not self.tests:
            return ""
        return "project" if not ours else "ours" if ours == len(self.tests) else "both"

    def entry(self) -> dict[str, Any]:
        """Return it for the set's manifest, empty fields left out."""
        fields = {
            "project": self.project,
            "outcome": self.outcome,
            "detail": self.detail,
            "repo": self.repo,
            "path": self.path,
            "name": self.name,
            "how": self.how,
            "remark": self.remark,
            "judged_by": self.judged_by,
            "covering": self.covering,
            "tests": list(self.tests),
        }
        return {key: value for key, value in fields.items() if value}

    def line(self) -> str:
        """Return it for a person, on one line."""
        return f"{self.id} {self.project} {self.name}: {self.outcome}{f': {self.detail}' if self.detail else ''}"


def account(fates: Sequence[Fate]) -> dict[str, Any]:
    """Return what a set's manifest says of its tasks: each of them, counts of each project and of all."""
    projects: dict[str, Counter[str]] = {}
    for fate in fates:
        projects.setdefault(fate.project, Counter())[fate.outcome] += 1
    return {
        "tasks": {fate.id: fate.entry() for fate in fates},
        "projects": {
            project: {"tasks": counts.total(), **dict(sorted(counts.items()))}
            for project, counts in sorted(projects.items())
        },
        "unusable": dict(sorted(Counter(fate.outcome for fate in fates if fate.outcome != KEPT).items())),
        "judged_by": dict(sorted(Counter(fate.judged_by for fate in fates if fate.outcome == KEPT).items())),
        "located": dict(sorted(Counter(fate.how for fate in fates if fate.how).items())),
    }


def remarks(fates: Iterable[Fate]) -> list[str]:
    """Return what a reader of the set's numbers must know."""
    fates = list(fates)
    kept_count = sum(fate.outcome == KEPT for fate in fates)
    sentences = [
        f"CoderEval tasks rebuilt on published releases and judged by tests that are not the benchmark's: "
        f"{kept_count} of {len(fates)} tasks"
    ]
    whys = {UNREACHABLE: "their sources could not be reached", SUITE_FAILED: "their tests could not be run here"}
    for outcome, why in whys.items():
        repos = sorted({fate.repo for fate in fates if fate.outcome == outcome})
        if repos:
            sentences.append(f"the tasks of {', '.join(repos)} are missing: {why}")
    return sentences
