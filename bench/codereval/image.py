"""Sample sets whose completions CoderEval's official image judges, and what that image lacks.

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
from ctxbench.bench.codereval.image_projects import Test, judged_by, repository
from ctxbench.bench.codereval.rebuilding import Made, lost
from ctxbench.bench.codereval.records import record_of
from ctxbench.bench.codereval.tests_of import JAVA, PYTHON
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.types import Task
from ctxbench.bench.functions.prepare import silent
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.sources.base import Report
from ctxbench.bench.types import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What `check` found, in lines for a person."""

    there: tuple[str, ...]
    missing: tuple[str, ...]


def check(image: str, tasks: Sequence[Task] = (), *, report: Report = silent) -> Checked:
    """Say what of the official protocol an image has, and what it lacks.

    Args:
        image: name or id; it must be here.
        tasks: of CoderEval's files; each is asked for its test.
        report: told what is done.

    Raises:
        MachineFault: if there is no such image, or no engine that runs it.
        InputFault: if it is not laid out as CoderEval's is.
    """
    found = container.look(image, report)
    there = [f"image {found.id}"]
    missing: list[str] = []
    if found.folders or found.tests:
        there.append(f"{PYTHON}: {len(found.folders)} projects, {len(found.tests)} test files")
        said = f"python {found.python_version} ({found.python})"
        (there if found.python else missing).append(
            said if found.python else "no Python of 3.8 or later that a plain user can run"
        )
    if found.projects:
        there.append(
            f"{JAVA}: {len(found.projects)} projects, {len(found.roots)} folders of classes, {len(found.jars)} jars"
        )
        said = f"javac {found.java_version} ({found.javac})"
        (there if found.javac else missing).append(said if found.javac else "no JDK that a plain user can run")
        if found.javac and not found.java_version.startswith("1.8"):
            there.append("the official version is Java 8")
    tests = judged_by(tasks, found)
    without = [(task, tests[task.sample.id]) for task in tasks]
    missing += [
        f"{task.sample.id} {record_of(task).project}: {each}" for task, each in without if isinstance(each, str)
    ]
    if tasks:
        there.append(f"{sum(isinstance(each, Test) for _, each in without)} of {len(tasks)} tasks have a test")
    return Checked(there=tuple(there), missing=tuple(missing))


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
    is bound to the image's id. Whether references pass there is not asked: `ctxbench samples verify` does that.

    Args:
        tasks: of CoderEval's files, see `bench.formats.codereval`.
        home: where repositories and samples are kept.
        name: the set's name.
        image: name or id of the image; it must be here.
        report: told what happens, a line at a time.
        force: replace another set of that name.
        about: what else the set's manifest says; its ``unusable`` and ``remarks`` are added to ours.

    Raises:
        InputFault: if the image can judge no task, or is not laid out as CoderEval's is.
        MachineFault: if there is no such image, or no engine that runs it.
    """
    sets.folder(home, name)
    found = container.look(image, report)
    tests = judged_by(tasks, found)
    made: dict[str, Made] = {}
    groups: dict[str, list[tuple[Task, Test]]] = {}
    for task in tasks:
        test = tests[task.sample.id]
        if isinstance(test, Test):
            groups.setdefault(task.sample.repo, []).append((task, test))
        else:
            made[task.sample.id] = lost(task, "", test)
    entries: dict[str, Any] = {}
    for repo in sorted(groups):
        some, entry = repository(home, found, repo, groups[repo], report)
        made |= some
        entries |= {repo: entry} if entry["kept"] else {}
    for each in made.values():
        if each.task is None:
            report(each.fate.line())
    return _saved(home, name, [made[task.sample.id] for task in tasks], entries, found, image, about or {}, force)


def _saved(
    home: Home,
    name: str,
    made: Sequence[Made],
    entries: Mapping[str, Any],
    found: Contents,
    image: str,
    about: Mapping[str, Any],
    force: bool,
) -> SampleSet:
    fates = [each.fate for each in made]
    kept = [each.task for each in made if each.task is not None]
    told = accounts.account(fates)
    del told["judged_by"]
    if not kept:
        reasons = ", ".join(f"{reason} {count}" for reason, count in told["unusable"].items())
        raise InputFault(
            f"the image can judge no task ({reasons or 'there is none'})",
            where=image,
            cure="see `ctxbench codereval image check`",
        )
    manifest = {
        "ctxbench": version("ctxbench"),
        "kind": Kind.FUNCTION.value,
        **about,
        "image": {"name": image, "id": found.id, "python": found.python_version, "java": found.java_version},
        **told,
        "unusable": dict(sorted((Counter(about.get("unusable", {})) + Counter(told["unusable"])).items())),
        "remarks": [*about.get("remarks", []), protocol.REMARK],
        "repositories": dict(entries),
        "totals": {"tasks": len(fates), "kept": len(kept)},
    }
    return sets.save(
        home, name, [task.sample for task in kept], [task.reference for task in kept], manifest, force=force
    )
