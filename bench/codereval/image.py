"""Make sample sets that CoderEval's official image judges, and check what such an image lacks.

image -> look (hardened container) -> files of each project into the home -> located tasks -> samples
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ctxbench.bench import samples as sets
from ctxbench.bench.codereval import accounts, container, protocol
from ctxbench.bench.codereval.container import Contents
from ctxbench.bench.codereval.image_projects import OfficialTest, judged_by, repository
from ctxbench.bench.codereval.protocol import JAVA, PYTHON
from ctxbench.bench.codereval.rebuilding import TaskOutcome, lost
from ctxbench.bench.codereval.records import record_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.types import Task
from ctxbench.bench.functions.mining import silent
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.sources import Report
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReport:
    """The parts of the official protocol that an image has and lacks, as lines for a person."""

    present: tuple[str, ...]
    missing: tuple[str, ...]


def check(image: str, tasks: Sequence[Task] = (), *, report: Report = silent) -> ImageReport:
    """Say what of the official protocol an image has, and what it lacks.

    Args:
        image: name or id; it must be here.
        tasks: of CoderEval's files; those without a test in the image are listed.
        report: called with what is done.

    Raises:
        MachineFault: if there is no such image, or no engine that runs it.
        InputFault: if it is not laid out as CoderEval's is.
    """
    contents = container.look(image, report)
    present = [f"image {contents.id}"]
    missing: list[str] = []
    if contents.folders or contents.tests:
        present.append(f"{PYTHON}: {len(contents.folders)} projects, {len(contents.tests)} test files")
        if contents.python:
            present.append(f"python {contents.python_version} ({contents.python})")
        else:
            missing.append("no Python of 3.8 or later that a plain user can run")
    if contents.projects:
        counts = f"{len(contents.roots)} folders of classes, {len(contents.jars)} jars"
        present.append(f"{JAVA}: {len(contents.projects)} projects, {counts}")
        if contents.javac:
            present.append(f"javac {contents.java_version} ({contents.javac})")
        else:
            missing.append("no JDK that a plain user can run")
        if contents.javac and not contents.java_version.startswith("1.8"):
            present.append("the official version is Java 8")
    tests = judged_by(tasks, contents)
    task_tests = [(task, tests[task.sample.id]) for task in tasks]
    missing += [
        f"{task.sample.id} {record_of(task).project}: {test}" for task, test in task_tests if isinstance(test, str)
    ]
    if tasks:
        present.append(
            f"{sum(isinstance(test, OfficialTest) for _, test in task_tests)} of {len(tasks)} tasks have a test"
        )
    return ImageReport(present=tuple(present), missing=tuple(missing))


def import_image(
    tasks: Sequence[Task],
    home: Home,
    name: str,
    *,
    image: str,
    report: Report = silent,
    force: bool = False,
    about: Mapping[str, Any] | None = None,
) -> SampleSet:
    """Write the sample set ``samples/<name>/`` of those tasks that an image can judge by the official protocol.

    The projects' files are copied out of the image into the home folder. The harness's copies of source files, which
    hold the answers, are needed to judge and are left out of every snapshot, so that no strategy sees them. The set
    is bound to the image's id. It does not check that references pass there: `ctxbench samples verify` does that.

    Args:
        tasks: of CoderEval's files, see `bench.formats.codereval`.
        home: where repositories and samples are kept.
        name: the set's name.
        image: name or id of the image; it must be here.
        report: called with what happens, a line at a time.
        force: replace another set of that name.
        about: what else the set's manifest says; its ``unusable`` and ``remarks`` are added to ours.

    Raises:
        InputFault: if the image can judge no task, or is not laid out as CoderEval's is.
        MachineFault: if there is no such image, or no engine that runs it.
    """
    sets.folder(home, name)
    contents = container.look(image, report)
    tests = judged_by(tasks, contents)
    outcomes: dict[str, TaskOutcome] = {}
    groups: dict[str, list[tuple[Task, OfficialTest]]] = {}
    for task in tasks:
        test = tests[task.sample.id]
        if isinstance(test, OfficialTest):
            groups.setdefault(task.sample.repo, []).append((task, test))
        else:
            outcomes[task.sample.id] = lost(task, "", test)
    entries: dict[str, Any] = {}
    for repo in sorted(groups):
        project_outcomes, entry = repository(home, contents, repo, groups[repo], report)
        outcomes |= project_outcomes
        entries |= {repo: entry} if entry["kept"] else {}
    for outcome in outcomes.values():
        if outcome.task is None:
            report(outcome.fate.line())
    return _saved(
        home, name, [outcomes[task.sample.id] for task in tasks], entries, contents, image, about or {}, force
    )


def _saved(
    home: Home,
    name: str,
    outcomes: Sequence[TaskOutcome],
    entries: Mapping[str, Any],
    contents: Contents,
    image: str,
    about: Mapping[str, Any],
    force: bool,
) -> SampleSet:
    fates = [outcome.fate for outcome in outcomes]
    tasks = [outcome.task for outcome in outcomes if outcome.task is not None]
    accounted = accounts.account(fates)
    del accounted["judged_by"]
    if not tasks:
        reasons = ", ".join(f"{reason} {count}" for reason, count in accounted["unusable"].items())
        raise InputFault(
            f"the image can judge no task ({reasons or 'there is none'})",
            where=image,
            cure="see `ctxbench codereval image check`",
        )
    manifest = {
        "ctxbench": version("ctxbench"),
        "kind": Kind.FUNCTION.value,
        **about,
        "image": {"name": image, "id": contents.id, "python": contents.python_version, "java": contents.java_version},
        **accounted,
        "unusable": dict(sorted((Counter(about.get("unusable", {})) + Counter(accounted["unusable"])).items())),
        "remarks": [*about.get("remarks", []), protocol.REMARK],
        "repositories": dict(entries),
        "totals": {"tasks": len(fates), "kept": len(tasks)},
    }
    return sets.save(
        home, name, [task.sample for task in tasks], [task.reference for task in tasks], manifest, force=force
    )
