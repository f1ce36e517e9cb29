"""Rebuilds CoderEval's tasks from published releases of their projects, with tests that judge the tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ctxbench.bench import samples as sets
from ctxbench.bench.codereval import records
from ctxbench.bench.codereval.locate import Located, locate
from ctxbench.bench.codereval.records import TaskReport, rebuild_task, record_of
from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.formats import Task, codereval
from ctxbench.bench.formats.hygiene import cleaned
from ctxbench.bench.functions.candidates import hidden_for
from ctxbench.bench.functions.certificates import Certificate, Certificates
from ctxbench.bench.functions.certify import CERTIFIED, certificate
from ctxbench.bench.functions.choose import SLOW_TOGETHER, choose, steady, usable
from ctxbench.bench.functions.mining import (
    Lock,
    PreparedRepository,
    Report,
    Spot,
    SuiteCoverage,
    TestRun,
    certificates_of,
    prepare,
    provisional,
)
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import PUBLISHED_REUSE, Judge, sandbox_explained
from ctxbench.bench.judging.suites import tree_digest
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Reference

if TYPE_CHECKING:
    from ctxbench.sandbox.types import Sandbox


@dataclass(frozen=True, slots=True)
class _Failed:
    outcome: str
    fault: CtxbenchError


def rebuild(  # noqa: PLR0913 - each is a choice of the build's
    tasks: Sequence[Task],
    home: Home,
    name: str,
    *,
    sandbox: Sandbox,
    lock: Lock,
    workers: int = 1,
    report: Report = lambda _: None,
    force: bool = False,
    manifests: Iterable[RepoManifest] = (),
    about: Mapping[str, Any] | None = None,
) -> SampleSet:
    """Write the sample set ``samples/<name>/`` with all tasks that can be rebuilt and judged.

    Ids, levels, signatures and docstrings come from CoderEval; positions, texts and answers from project releases.
    The set's manifest lists all tasks, with the reasons for dropped tasks. A new call reuses certified tests.

    Args:
        workers: number of tasks to judge at the same time.
        report: receives progress messages, from many threads.
        manifests: the user's repositories; they override shipped ones.
        about: more data for the set's manifest. The build adds counts to ``unusable`` and replaces ``remarks``.

    Raises:
        InputFault: if no task can be rebuilt, `name` is invalid or taken, or two of `manifests` replace one project.
        MachineFault: if the sandbox failed. Either error may mean that no repository could be tested.
    """
    sets.folder(home, name)
    outcomes: dict[str, TaskOutcome] = {}
    entries: dict[str, Any] = {}
    faults: list[CtxbenchError] = []
    groups = _grouped(tasks, manifests, outcomes)
    for repo, (repo_manifest, repo_tasks) in groups.items():
        measured = _measured(_prepared(repo_manifest, home, sandbox, lock, report), sandbox, report)
        if isinstance(measured, _Failed):
            report(f"{repo}: {measured.outcome}: {measured.fault}")
            faults.append(measured.fault)
            outcomes |= {task.sample.id: drop(task, repo, measured.outcome, str(measured.fault)) for task in repo_tasks}
            continue
        repo_outcomes, entry = rebuilt(*measured, repo_tasks, sandbox, workers)
        outcomes |= repo_outcomes
        report(f"{repo}: {entry['kept']} of {len(repo_tasks)} tasks are kept")
        entries |= {repo: entry} if entry["kept"] else {}
    ordered = [outcomes[task.sample.id] for task in tasks]
    for line in [outcome.fate.line() for outcome in ordered if outcome.task is None]:
        report(line)
    if faults and not entries:
        raise faults[0]
    return _saved(home, name, ordered, entries, about or {}, force=force)


def _grouped(
    tasks: Sequence[Task], manifests: Iterable[RepoManifest], outcomes: dict[str, TaskOutcome]
) -> dict[str, tuple[RepoManifest, list[Task]]]:
    repositories = by_project(manifests)
    groups: dict[str, tuple[RepoManifest, list[Task]]] = {}
    for task in tasks:
        manifest = repositories.get((task.sample.language, key(record_of(task).project)))
        if manifest is None:
            outcomes[task.sample.id] = drop(task, "", records.NO_MANIFEST)
        elif manifest.tests is None:
            outcomes[task.sample.id] = drop(task, manifest.name, records.NO_TESTS)
        else:
            groups.setdefault(manifest.name, (manifest, []))[1].append(task)
    return {name: groups[name] for name in sorted(groups)}


def _prepared(
    manifest: RepoManifest, home: Home, sandbox: Sandbox, lock: Lock, report: Report
) -> PreparedRepository | _Failed:
    from ctxbench.bench.repositories import checkout  # noqa: PLC0415 - fetching is needed by no reader of sets

    try:
        fetched = checkout.fetch(manifest, home, report=report)
    except MachineFault as fault:
        return _Failed(records.UNREACHABLE, fault)
    try:
        return prepare(manifest, fetched, home, sandbox, lock, report)
    except (InputFault, MachineFault) as fault:
        return _Failed(records.SUITE_FAILED, fault)


def _measured(
    preparation: PreparedRepository | _Failed, sandbox: Sandbox, report: Report
) -> tuple[PreparedRepository, SuiteCoverage] | _Failed:
    if isinstance(preparation, _Failed):
        return preparation
    try:
        with sandbox_explained():
            return preparation, preparation.project.manifest.language.miner().measure_coverage(
                preparation.project, preparation.suite, sandbox, report
            )
    except (InputFault, MachineFault) as fault:
        # A suite that always crashes its box is faulty itself.
        return _Failed(records.SUITE_FAILED, fault)


def _saved(
    home: Home,
    name: str,
    outcomes: Sequence[TaskOutcome],
    entries: Mapping[str, Any],
    about: Mapping[str, Any],
    *,
    force: bool,
) -> SampleSet:
    fates = [outcome.fate for outcome in outcomes]
    tasks = [outcome.task for outcome in outcomes if outcome.task is not None]
    accounted = records.account(fates)
    if not tasks:
        reasons = ", ".join(f"{reason} {count}" for reason, count in accounted["unusable"].items())
        raise InputFault(
            f"no task can be rebuilt ({reasons or 'the set has no tasks'})",
            cure="judge with the official harness: `ctxbench results export --format codereval`",
        )
    manifest = {
        "ctxbench": version("ctxbench"),
        "kind": Kind.FUNCTION.value,
        **about,
        "rebuilt": True,
        **accounted,
        "unusable": dict(sorted((Counter(about.get("unusable", {})) + Counter(accounted["unusable"])).items())),
        "remarks": [*codereval.remarks(tasks), *records.remarks(fates)],
        "repositories": dict(entries),
        "totals": {"tasks": len(fates), "kept": len(tasks)},
    }
    return sets.save(
        home, name, [task.sample for task in tasks], [task.reference for task in tasks], manifest, force=force
    )


def key(project: str) -> str:
    """Normalize a project's name. Records write ``owner/repo`` or ``owner---repo``, in upper or lower case."""
    return project.strip().replace("---", "/").lower()


def by_project(own: Iterable[RepoManifest] = ()) -> dict[tuple[Language, str], RepoManifest]:
    """Return the repository that replaces each CoderEval project, by language and `key` of the project.

    Args:
        own: the user's manifests; they override shipped ones.

    Raises:
        InputFault: if two of the user's manifests replace the same project.
    """
    return {**_claims(map(manifest.load, manifest.builtin_names())), **_claims(own)}


def _claims(manifests: Iterable[RepoManifest]) -> dict[tuple[Language, str], RepoManifest]:
    claims: dict[tuple[Language, str], RepoManifest] = {}
    for repository in manifests:
        for project in repository.codereval:
            other = claims.setdefault((repository.language, key(project)), repository)
            if other is not repository:
                what = f"{other.name} and {repository.name} both represent CoderEval's project {project}"
                raise InputFault(what, cure="remove the project from `codereval` in one manifest")
    return claims


ROUNDS = 8
_REFERENCE = ("reference_failed", "flaky")


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """A task's report, and the rebuilt task if it is kept."""

    fate: TaskReport
    task: Task | None = None


def drop(task: Task, repo: str, outcome: str, detail: str = "") -> TaskOutcome:
    """Return the outcome of a task that is dropped."""
    record = record_of(task)
    return TaskOutcome(
        TaskReport(id=record.id, project=record.project, name=record.name, outcome=outcome, detail=detail, repo=repo)
    )


def rebuilt(
    prepared: PreparedRepository, coverage: SuiteCoverage, tasks: Sequence[Task], sandbox: Sandbox, workers: int
) -> tuple[dict[str, TaskOutcome], dict[str, Any]]:
    """Locate and rebuild the tasks of one repository, and certify tests that judge them.

    Returns:
        The tasks' outcomes by task id, and the repository's entry in the set's manifest.

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
            outcomes = list(pool.map(_Rebuilding(prepared, coverage, references, judge, certificates), tasks))
        finally:
            pool.shutdown(cancel_futures=True)
    clean = cleaned(
        [outcome.task for outcome in outcomes if outcome.task is not None], project.snapshot.texts, hide=True
    )
    clean_tasks = {task.sample.id: task for task in clean.tasks}
    by_id = {outcome.fate.id: replace(outcome, task=clean_tasks.get(outcome.fate.id)) for outcome in outcomes}
    return by_id, {**_entry(prepared, coverage, outcomes), **clean.counts}


@dataclass(frozen=True, slots=True)
class _Rebuilding:
    prepared: PreparedRepository
    coverage: SuiteCoverage
    references: dict[str, Reference]
    """References by task id, shared with the judge. Each thread writes only the reference of its own task."""
    judge: Judge
    certificates: Certificates

    def __call__(self, task: Task) -> TaskOutcome:
        snapshot, repo = self.prepared.project.snapshot, self.prepared.project.manifest.name
        located = locate(record_of(task), snapshot.texts, task.sample.language)
        if not isinstance(located, Located):
            return drop(task, repo, located.reason, located.detail)
        function = located.declaration
        spot = Spot(
            path=located.path, name=function.name, start=function.start, cursor=function.cursor, end=function.end
        )
        whole = rebuild_task(task, located, snapshot.texts[located.path], repo=repo, hidden=self.coverage.hidden)
        whole = replace(whole, sample=replace(whole.sample, uses=self.coverage.uses(spot)))
        judged = certify(
            self.coverage.covering(spot), self.coverage.runs, lambda tests: self.certificate(_with_tests(whole, tests))
        )
        fate = TaskReport(
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
        return TaskOutcome(fate, self.judged(whole, judged.tests) if judged.outcome == records.KEPT else None)

    def judged(self, task: Task, tests: tuple[str, ...]) -> Task:
        tree, files = self.prepared.suite.environment.tree, {test.partition("::")[0] for test in tests}
        judges = {path: tree[path] for path in files if path in tree}
        judged = _with_tests(task, tests)
        fields = {**judged.reference.fields, **({"judges": tree_digest(judges)} if judges else {})}
        clocks = tuple(test for test in tests if self.coverage.runs[test].clock)
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


def _entry(prepared: PreparedRepository, coverage: SuiteCoverage, outcomes: Sequence[TaskOutcome]) -> dict[str, Any]:
    counts = Counter(outcome.fate.outcome for outcome in outcomes)
    levels = Counter(outcome.task.sample.subkind for outcome in outcomes if outcome.task is not None)
    return {
        **prepared.entry,
        **coverage.counts,
        "tasks": len(outcomes),
        "kept": counts.pop(records.KEPT, 0),
        "levels": dict(sorted(levels.items())),
        "drops": dict(sorted(counts.items())),
    }


@dataclass(frozen=True, slots=True)
class Certification:
    """The tests that judge a task, or the reason why no tests can."""

    outcome: str
    detail: str = ""
    tests: tuple[str, ...] = ()
    covering: int = 0


def certify(
    covering: Mapping[str, frozenset[int]],
    runs: Mapping[str, TestRun],
    certificate: Callable[[tuple[str, ...]], tuple[str, str]],
) -> Certification:
    """Select tests, at most `ROUNDS` times, until a selection is certified. Return it, or why the last one failed.

    Tests that fail with the reference depend on other tests or on chance, so they are dropped. If an empty body passes
    the selected tests, other tests are selected.
    """
    untried = {test: lines for test, lines in covering.items() if usable(runs[test])}
    count = len(untried)
    if not untried:
        unusable = f"{len(covering)} tests run the function, but none passes quickly" if covering else ""
        return Certification(records.NO_COVERING_TEST, unusable)
    result, detail = records.NO_COVERING_TEST, ""
    for _ in range(ROUNDS):
        if not untried:
            break
        tests = choose(steady(untried, runs), runs)
        rejected = tests
        if sum(runs[test].seconds for test in tests) > SLOW_TOGETHER:
            result, detail = records.TOO_SLOW, f"{len(tests)} tests take more than {SLOW_TOGETHER:.0f} s"
        else:
            result, detail = certificate(tests)
            if result == CERTIFIED:
                return Certification(records.KEPT, "", tests, count)
            if result in _REFERENCE:
                rejected = tuple(test for test in tests if f"did not pass: {test}: " in detail) or tests
        for test in rejected:
            del untried[test]
    return Certification(result, detail, (), count)
