"""Rebuilds the tasks of one repository: located in its files, placed there, and certified by its tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ctxbench.bench.codereval import accounts
from ctxbench.bench.codereval.accounts import Fate
from ctxbench.bench.codereval.certifying import chosen
from ctxbench.bench.codereval.locate import Located, locate
from ctxbench.bench.codereval.placing import placed
from ctxbench.bench.codereval.records import record_of
from ctxbench.bench.formats.hygiene import cleaned
from ctxbench.bench.formats.types import Task
from ctxbench.bench.functions.certificates import Certificates
from ctxbench.bench.functions.certify import CERTIFIED, certificate
from ctxbench.bench.functions.mining import Spot, Survey
from ctxbench.bench.functions.prepare import Ready, certificates_of, provisional
from ctxbench.bench.functions.samples import hidden_for
from ctxbench.bench.testing.judge import Judge
from ctxbench.bench.testing.tree import digest
from ctxbench.bench.types import Reference

if TYPE_CHECKING:
    from ctxbench.sandbox.types import Sandbox


@dataclass(frozen=True, slots=True)
class Made:
    """What became of one task; `task` is there if it was kept."""

    fate: Fate
    task: Task | None = None


def lost(task: Task, repo: str, outcome: str, detail: str = "") -> Made:
    """Return what became of a task that is not kept.

    Args:
        task: the task.
        repo: the repository that stands for its project; empty for none.
        outcome: why it is not kept.
        detail: more of that.
    """
    record = record_of(task)
    return Made(Fate(id=record.id, project=record.project, name=record.name, outcome=outcome, detail=detail, repo=repo))


def rebuilt(
    ready: Ready, survey: Survey, tasks: Sequence[Task], sandbox: Sandbox, workers: int
) -> tuple[dict[str, Made], dict[str, Any]]:
    """Locate, place and certify the tasks of one repository.

    Returns:
        Id -> what became of it, and what a set's manifest says of the repository.

    Raises:
        MachineFault: if the sandbox failed.
    """
    project = ready.project
    references: dict[str, Reference] = {}
    drafts = provisional(project.manifest.name, ready.entry, (), references)
    known = Certificates(certificates_of(project.home, ready.suite.environment.digest, sandbox.name))
    with Judge(project.home, drafts, sandbox, width=workers) as judge, ThreadPoolExecutor(workers, "rebuild") as pool:
        try:
            made = list(pool.map(_Rebuilding(ready, survey, references, judge, known), tasks))
        finally:
            pool.shutdown(cancel_futures=True)
    clean = cleaned([each.task for each in made if each.task is not None], project.snapshot.texts, hide=True)
    kept = {task.sample.id: task for task in clean.tasks}
    found = {each.fate.id: replace(each, task=kept.get(each.fate.id)) for each in made}
    return found, {**_entry(ready, survey, made), **clean.counts}


@dataclass(frozen=True, slots=True)
class _Rebuilding:
    """Rebuilds one task at a time; called from many threads."""

    ready: Ready
    survey: Survey
    references: dict[str, Reference]
    """What the judge looks up; a task's own thread alone writes under its id."""
    judge: Judge
    known: Certificates

    def __call__(self, task: Task) -> Made:
        snapshot, repo = self.ready.project.snapshot, self.ready.project.manifest.name
        found = locate(record_of(task), snapshot.texts, task.sample.language)
        if not isinstance(found, Located):
            return lost(task, repo, found.reason, found.detail)
        spot = Spot(path=found.path, name=found.name, start=found.start, cursor=found.cursor, end=found.end)
        whole = placed(task, found, snapshot.texts[found.path], repo=repo, hidden=self.survey.hidden)
        whole = replace(whole, sample=replace(whole.sample, uses=self.survey.uses(spot)))
        judged = chosen(
            self.survey.covering(spot), self.survey.runs, lambda tests: self.certificate(_with_tests(whole, tests))
        )
        fate = Fate(
            id=task.sample.id,
            project=record_of(task).project,
            outcome=judged.outcome,
            detail=judged.detail,
            repo=repo,
            path=found.path,
            name=found.name,
            how=found.how,
            remark=found.remark,
            tests=judged.tests,
            covering=judged.covering,
        )
        return Made(fate, self.kept(whole, judged.tests) if judged.outcome == accounts.KEPT else None)

    def kept(self, task: Task, tests: tuple[str, ...]) -> Task:
        """Return a task with its tests; where these are files, their digest makes other tests another set."""
        tree, files = self.ready.suite.environment.tree, {test.partition("::")[0] for test in tests}
        judges = {path: tree[path] for path in files if path in tree}
        made = _with_tests(task, tests)
        fields = {**made.reference.fields, **({"judges": digest(judges)} if judges else {})}
        clocks = tuple(test for test in tests if self.survey.runs[test].clock)
        return replace(made, reference=replace(made.reference, fields=fields, clocks=clocks))

    def certificate(self, task: Task) -> tuple[str, str]:
        sample, reference = task.sample, task.reference
        if self.known.has(sample, reference):
            return CERTIFIED, ""
        self.references[sample.id] = reference
        result, detail = certificate(sample, reference.target, self.ready.suite.blank(sample), self.judge)
        if result == CERTIFIED:
            self.known.add(sample, reference)
        return result, detail


def _with_tests(task: Task, tests: tuple[str, ...]) -> Task:
    sample = replace(task.sample, hidden=hidden_for(task.sample.hidden, tests))
    return replace(task, sample=sample, reference=replace(task.reference, tests=tests))


def _entry(ready: Ready, survey: Survey, made: Sequence[Made]) -> dict[str, Any]:
    outcomes = Counter(each.fate.outcome for each in made)
    levels = Counter(each.task.sample.subkind for each in made if each.task is not None)
    return {
        **ready.entry,
        **survey.counts,
        "tasks": len(made),
        "kept": outcomes.pop(accounts.KEPT, 0),
        "levels": dict(sorted(levels.items())),
        "drops": dict(sorted(outcomes.items())),
    }
