"""Rebuild the tasks of one repository: locate them in its files, place them there, and certify them by its tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ctxbench.bench.codereval import accounts
from ctxbench.bench.codereval.accounts import Fate
from ctxbench.bench.codereval.locate import Located, locate
from ctxbench.bench.codereval.records import placed, record_of
from ctxbench.bench.formats import Task
from ctxbench.bench.formats.hygiene import cleaned
from ctxbench.bench.functions.candidates import hidden_for
from ctxbench.bench.functions.certificates import Certificate, Certificates
from ctxbench.bench.functions.certify import CERTIFIED, certificate
from ctxbench.bench.functions.choose import SLOW_TOGETHER, choose, steady, usable
from ctxbench.bench.functions.mining import PreparedRepository, Spot, Survey, TestRun, certificates_of, provisional
from ctxbench.bench.judging.judge import PUBLISHED_REUSE, Judge
from ctxbench.bench.judging.suites import tree_digest
from ctxbench.bench.types import Reference

if TYPE_CHECKING:
    from ctxbench.sandbox.types import Sandbox

ROUNDS = 8
"""How many choices of tests are tried for one task."""
_REFERENCE = ("reference_failed", "flaky")


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The fate of one task, and the task itself if it was kept."""

    fate: Fate
    task: Task | None = None


def lost(task: Task, repo: str, outcome: str, detail: str = "") -> TaskOutcome:
    """Return the outcome of a task that is not kept.

    Args:
        task: the task.
        repo: the repository that stands for its project; empty for none.
        outcome: why it is not kept.
        detail: more of that.
    """
    record = record_of(task)
    return TaskOutcome(
        Fate(id=record.id, project=record.project, name=record.name, outcome=outcome, detail=detail, repo=repo)
    )


def rebuilt(
    prepared: PreparedRepository, survey: Survey, tasks: Sequence[Task], sandbox: Sandbox, workers: int
) -> tuple[dict[str, TaskOutcome], dict[str, Any]]:
    """Locate, place and certify the tasks of one repository.

    Returns:
        Id -> outcome, and the repository's entry in a set's manifest.

    Raises:
        MachineFault: if the sandbox failed.
    """
    project = prepared.project
    references: dict[str, Reference] = {}
    drafts = provisional(project.manifest.name, prepared.entry, (), references)
    certificates = Certificates(certificates_of(project.home, prepared.suite.environment.digest, sandbox.name))
    with (
        Judge(project.home, drafts, sandbox, width=workers, reuse=PUBLISHED_REUSE) as judge,
        ThreadPoolExecutor(workers, "rebuild") as pool,
    ):
        try:
            outcomes = list(pool.map(_Rebuilding(prepared, survey, references, judge, certificates), tasks))
        finally:
            pool.shutdown(cancel_futures=True)
    clean = cleaned(
        [outcome.task for outcome in outcomes if outcome.task is not None], project.snapshot.texts, hide=True
    )
    clean_tasks = {task.sample.id: task for task in clean.tasks}
    by_id = {outcome.fate.id: replace(outcome, task=clean_tasks.get(outcome.fate.id)) for outcome in outcomes}
    return by_id, {**_entry(prepared, survey, outcomes), **clean.counts}


@dataclass(frozen=True, slots=True)
class _Rebuilding:
    """Rebuilds one task at a time; called from many threads."""

    prepared: PreparedRepository
    survey: Survey
    references: dict[str, Reference]
    """What the judge looks up; a task's own thread alone writes under its id."""
    judge: Judge
    certificates: Certificates

    def __call__(self, task: Task) -> TaskOutcome:
        snapshot, repo = self.prepared.project.snapshot, self.prepared.project.manifest.name
        located = locate(record_of(task), snapshot.texts, task.sample.language)
        if not isinstance(located, Located):
            return lost(task, repo, located.reason, located.detail)
        function = located.declaration
        spot = Spot(
            path=located.path, name=function.name, start=function.start, cursor=function.cursor, end=function.end
        )
        whole = placed(task, located, snapshot.texts[located.path], repo=repo, hidden=self.survey.hidden)
        whole = replace(whole, sample=replace(whole.sample, uses=self.survey.uses(spot)))
        judged = certify(
            self.survey.covering(spot), self.survey.runs, lambda tests: self.certificate(_with_tests(whole, tests))
        )
        fate = Fate(
            id=task.sample.id,
            project=record_of(task).project,
            outcome=judged.outcome,
            detail=judged.detail,
            repo=repo,
            path=located.path,
            name=function.name,
            how=located.how,
            remark=located.remark,
            tests=judged.tests,
            covering=judged.covering,
        )
        return TaskOutcome(fate, self.judged(whole, judged.tests) if judged.outcome == accounts.KEPT else None)

    def judged(self, task: Task, tests: tuple[str, ...]) -> Task:
        """Return a task with its tests; where these are files, their digest makes other tests another set."""
        tree, files = self.prepared.suite.environment.tree, {test.partition("::")[0] for test in tests}
        judges = {path: tree[path] for path in files if path in tree}
        judged = _with_tests(task, tests)
        fields = {**judged.reference.fields, **({"judges": tree_digest(judges)} if judges else {})}
        clocks = tuple(test for test in tests if self.survey.runs[test].clock)
        return replace(judged, reference=replace(judged.reference, fields=fields, clocks=clocks))

    def certificate(self, task: Task) -> tuple[str, str]:
        sample, reference = task.sample, task.reference
        if self.certificates.get(sample, reference) is not None:
            return CERTIFIED, ""
        self.references[sample.id] = reference
        result, detail = certificate(sample, reference.target, self.prepared.suite.blank(sample), self.judge)
        if result == CERTIFIED:
            self.certificates.add(sample, reference, Certificate(reference.tests, None))
        return result, detail


def _with_tests(task: Task, tests: tuple[str, ...]) -> Task:
    sample = replace(task.sample, hidden=hidden_for(task.sample.hidden, tests))
    return replace(task, sample=sample, reference=replace(task.reference, tests=tests))


def _entry(prepared: PreparedRepository, survey: Survey, outcomes: Sequence[TaskOutcome]) -> dict[str, Any]:
    counts = Counter(outcome.fate.outcome for outcome in outcomes)
    levels = Counter(outcome.task.sample.subkind for outcome in outcomes if outcome.task is not None)
    return {
        **prepared.entry,
        **survey.counts,
        "tasks": len(outcomes),
        "kept": counts.pop(accounts.KEPT, 0),
        "levels": dict(sorted(levels.items())),
        "drops": dict(sorted(counts.items())),
    }


@dataclass(frozen=True, slots=True)
class Certification:
    """The tests chosen to judge a task, or the reason why no choice can."""

    outcome: str
    """`KEPT`, or why no choice judges the task."""
    detail: str = ""
    tests: tuple[str, ...] = ()
    covering: int = 0
    """How many usable tests there were to choose from."""


def certify(
    covering: Mapping[str, frozenset[int]],
    runs: Mapping[str, TestRun],
    certificate: Callable[[tuple[str, ...]], tuple[str, str]],
) -> Certification:
    """Return the first choice of tests that earns the certificate.

    A test that the reference does not pass by itself (it depends on others, or on chance) is left out, and the choice
    is repeated among the others; tests that an empty body passes make room for those not tried yet.

    Args:
        covering: test -> lines of the function that it runs, passed or not.
        runs: test -> what its runs showed.
        certificate: says ``certified``, or why not with the detail, see `bench.functions.certify.certificate`.
    """
    untried = {test: lines for test, lines in covering.items() if usable(runs[test])}
    count = len(untried)
    if not untried:
        unusable = f"{len(covering)} tests run it, but none of them passes quickly" if covering else ""
        return Certification(accounts.NO_COVERING_TEST, unusable)
    result, detail = accounts.NO_COVERING_TEST, ""
    for _ in range(ROUNDS):
        if not untried:
            break
        tests = choose(steady(untried, runs), runs)
        rejected = tests
        if sum(runs[test].seconds for test in tests) > SLOW_TOGETHER:
            result, detail = accounts.TOO_SLOW, f"{len(tests)} tests take more than {SLOW_TOGETHER:.0f} s"
        else:
            result, detail = certificate(tests)
            if result == CERTIFIED:
                return Certification(accounts.KEPT, "", tests, count)
            if result in _REFERENCE:
                rejected = tuple(test for test in tests if f"did not pass: {test}: " in detail) or tests
        for test in rejected:
            del untried[test]
    return Certification(result, detail, (), count)
