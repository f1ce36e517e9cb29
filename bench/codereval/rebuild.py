"""Rebuild CoderEval's tasks on published releases of their projects, judged by tests that can be run anywhere.

task -> manifest of its project -> checkout -> located function -> tests that cover it -> certificate -> sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ctxbench.bench import samples as sets
from ctxbench.bench.codereval import accounts
from ctxbench.bench.codereval.rebuilding import TaskOutcome, lost, rebuilt
from ctxbench.bench.codereval.records import record_of
from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.formats import Task, codereval
from ctxbench.bench.functions.mining import Lock, PreparedRepository, Report, Survey, one_ahead, prepare, silent
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import sandbox_explained
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind

if TYPE_CHECKING:
    from ctxbench.bench.repositories.manifest import RepoManifest
    from ctxbench.sandbox.types import Sandbox
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import RepoManifest


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
    report: Report = silent,
    force: bool = False,
    manifests: Iterable[RepoManifest] = (),
    about: Mapping[str, Any] | None = None,
) -> SampleSet:
    """Write the sample set ``samples/<name>/`` of those tasks that can be rebuilt and judged.

    Ids, levels, signatures and docstrings are CoderEval's; position, text and answer are those of the release that
    stands for the task's project. Every task is accounted for in the set's manifest: kept, or the reason why not.
    Coverage and certificates are kept in the home folder: an interrupted build goes on where it stopped.

    Args:
        tasks: of CoderEval's files, see `bench.formats.codereval`.
        home: where repositories and samples are kept.
        name: the set's name.
        sandbox: where tests run.
        lock: resolves requirements (`sandbox.wheels.lock`).
        workers: how many tasks to judge at once.
        report: called with what happens, a line at a time; called from many threads.
        force: replace another set of that name.
        manifests: the user's repositories, which go before the shipped ones.
        about: what else the set's manifest says; its ``unusable`` is added to ours, its ``remarks`` are made anew.

    Raises:
        InputFault: if no task can be rebuilt, or another set has the name.
        MachineFault: if the sandbox failed under a task, or no repository could be tested; build again.
    """
    sets.folder(home, name)
    outcomes: dict[str, TaskOutcome] = {}
    entries: dict[str, Any] = {}
    faults: list[CtxbenchError] = []
    groups = _grouped(tasks, manifests, outcomes)
    preparations = one_ahead(
        lambda manifest: _prepared(manifest, home, sandbox, lock, report), [manifest for manifest, _ in groups.values()]
    )
    for (repo, (_, repo_tasks)), preparation in zip(groups.items(), preparations, strict=True):
        surveyed = _surveyed(preparation, sandbox, report)
        if isinstance(surveyed, _Failed):
            report(f"{repo}: {surveyed.outcome}: {surveyed.fault}")
            faults.append(surveyed.fault)
            outcomes |= {task.sample.id: lost(task, repo, surveyed.outcome, str(surveyed.fault)) for task in repo_tasks}
            continue
        repo_outcomes, entry = rebuilt(*surveyed, repo_tasks, sandbox, workers)
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
    """Return repository -> its manifest and tasks, sorted; tasks without one are entered in `outcomes`."""
    repositories = by_project(manifests)
    groups: dict[str, tuple[RepoManifest, list[Task]]] = {}
    for task in tasks:
        manifest = repositories.get((task.sample.language, key(record_of(task).project)))
        if manifest is None:
            outcomes[task.sample.id] = lost(task, "", accounts.NO_MANIFEST)
        elif manifest.tests is None:
            outcomes[task.sample.id] = lost(task, manifest.name, accounts.NO_TESTS)
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
        return _Failed(accounts.UNREACHABLE, fault)
    try:
        return prepare(manifest, fetched, home, sandbox, lock, report)
    except (InputFault, MachineFault) as fault:
        return _Failed(accounts.SUITE_FAILED, fault)


def _surveyed(
    preparation: PreparedRepository | _Failed, sandbox: Sandbox, report: Report
) -> tuple[PreparedRepository, Survey] | _Failed:
    if isinstance(preparation, _Failed):
        return preparation
    try:
        with sandbox_explained():
            return preparation, preparation.project.manifest.language.miner().survey(
                preparation.project, preparation.suite, sandbox, report
            )
    except (InputFault, MachineFault) as fault:
        # A box that dies under a suite, every time, is that suite's doing.
        return _Failed(accounts.SUITE_FAILED, fault)


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
    accounted = accounts.account(fates)
    if not tasks:
        reasons = ", ".join(f"{reason} {count}" for reason, count in accounted["unusable"].items())
        raise InputFault(
            f"no task can be rebuilt ({reasons or 'there is none'})",
            cure="judge its completions with the official harness: `ctxbench results export --format codereval`",
        )
    manifest = {
        "ctxbench": version("ctxbench"),
        "kind": Kind.FUNCTION.value,
        **about,
        "rebuilt": True,
        **accounted,
        "unusable": dict(sorted((Counter(about.get("unusable", {})) + Counter(accounted["unusable"])).items())),
        "remarks": [*codereval.remarks(tasks), *accounts.remarks(fates)],
        "repositories": dict(entries),
        "totals": {"tasks": len(fates), "kept": len(tasks)},
    }
    return sets.save(
        home, name, [task.sample for task in tasks], [task.reference for task in tasks], manifest, force=force
    )


def key(project: str) -> str:
    """Return a project's name as it is looked up: records write ``owner/repo`` and ``owner---repo``, in any case."""
    return project.strip().replace("---", "/").lower()


def by_project(own: Iterable[RepoManifest] = ()) -> dict[tuple[Language, str], RepoManifest]:
    """Return language and `key` of a project -> the repository that its tasks are rebuilt on.

    Args:
        own: the user's manifests; they go before the shipped ones.

    Raises:
        InputFault: if two of the user's, or two of the shipped ones, stand for one project.
    """
    return {**_claims(map(manifest.load, manifest.builtin_names())), **_claims(own)}


def _claims(manifests: Iterable[RepoManifest]) -> dict[tuple[Language, str], RepoManifest]:
    claims: dict[tuple[Language, str], RepoManifest] = {}
    for repository in manifests:
        for project in repository.codereval:
            other = claims.setdefault((repository.language, key(project)), repository)
            if other is not repository:
                what = f"{other.name} and {repository.name} both stand for CoderEval's project {project}"
                raise InputFault(what, cure="leave it out of one manifest's `codereval`")
    return claims
