"""One project of the official image: which tests it has, its files, its tasks located in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxbench.bench import snapshot
from ctxbench.bench.codereval import accounts, container, official, official_java, official_python, protocol
from ctxbench.bench.codereval.accounts import Fate
from ctxbench.bench.codereval.container import Contents
from ctxbench.bench.codereval.locate import Located, locate
from ctxbench.bench.codereval.placing import placed
from ctxbench.bench.codereval.rebuilding import Made, lost
from ctxbench.bench.codereval.records import record_of
from ctxbench.bench.codereval.tests_of import JAVA, PYTHON, STANDALONE, java_test, python_tests
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.hygiene import cleaned
from ctxbench.bench.formats.types import Task
from ctxbench.bench.home import Home
from ctxbench.bench.snapshot import Snapshot
from ctxbench.bench.sources.base import Report
from ctxbench.bench.testing import tree as trees
from ctxbench.bench.types import Language

NO_INTERPRETER = "no_interpreter"
"""The image has no Python, or no JDK, that a plain user can run."""
NO_FOLDER = "no_folder"
"""The image has no folder of its project."""
NO_TEST = "no_test_file"
"""The image has no test of its name."""
BROKEN_TEST = "broken_test"
"""Its test file is no Python, or has no function of its name."""
UNUSABLE_FILES = "unusable_files"
"""Its project's files cannot be copied, or do not fit into a box."""
CURE = "import the set again with --image"


@dataclass(frozen=True, slots=True)
class Test:
    """What judges a task."""

    __test__ = False  # pytest would take the class for a test case by its name

    folder: str | None
    """Of its project in the image; None for a standalone test of a project that is not there."""
    id: str
    """Python: the test file's path below `PYTHON`. Java: ``<folder of classes>::<class>``."""


def judged_by(tasks: Sequence[Task], found: Contents) -> dict[str, Test | str]:
    """Return for each task what judges it in an image, or the reason why nothing does. Pure."""
    python = [record_of(task) for task in tasks if task.sample.language is Language.PYTHON]
    files = python_tests(python, found.folders, found.tests)
    judged: dict[str, Test | str] = {}
    for task in tasks:
        record, one = record_of(task), task.sample.id
        java = task.sample.language is Language.JAVA
        if not (found.javac if java else found.python):
            judged[one] = NO_INTERPRETER
        elif not java:
            judged[one] = Test(*files[one]) if one in files else NO_TEST
        elif record.project not in found.projects:
            judged[one] = NO_FOLDER
        else:
            test = java_test(record, record.project, found.classes, found.roots)
            judged[one] = Test(record.project, test) if test else NO_TEST
    return judged


def repository(
    home: Home, found: Contents, repo: str, judged: Sequence[tuple[Task, Test]], report: Report
) -> tuple[dict[str, Made], dict[str, Any]]:
    """Return what became of the tasks of one project, and what a set's manifest says of it.

    Args:
        home: where its files are copied.
        found: what the image holds.
        repo: the project's name in the set.
        judged: its tasks with their tests.
        report: told what is copied.
    """
    language = judged[0][0].sample.language
    folder = next((test.folder for _, test in judged if test.folder), None)
    entry: dict[str, Any] = {"language": language.value, "checkout": None, "cure": CURE}
    try:
        read = _files(home, found, repo, folder, language, entry, report)
        entry["tests"], tree = _tests(home, found, repo, folder, judged, entry, report)
    except InputFault as fault:
        made = {task.sample.id: lost(task, repo, UNUSABLE_FILES, str(fault)) for task, _ in judged}
        return made, {"kept": 0}
    some = [_made(task, test, repo, read, tree) for task, test in judged]
    clean = cleaned([each.task for each in some if each.task is not None], read.texts if read else {}, hide=True)
    kept = {task.sample.id: task for task in clean.tasks}
    outcomes = Counter(each.fate.outcome for each in some)
    entry |= {
        "tasks": len(some),
        "kept": outcomes.pop(accounts.KEPT, 0),
        "drops": dict(sorted(outcomes.items())),
        **clean.counts,
    }
    return {each.fate.id: replace(each, task=kept.get(each.fate.id)) for each in some}, entry


def _files(
    home: Home,
    found: Contents,
    repo: str,
    folder: str | None,
    language: Language,
    entry: dict[str, Any],
    report: Report,
) -> Snapshot | None:
    """Copy a project's files into the home and note them in `entry`; None if the image has none."""
    if folder is None:
        return None
    root = JAVA if language is Language.JAVA else PYTHON
    there = container.copied(home, found.id, f"{root}/{folder}", repo.lower(), language, report)
    read = snapshot.load(repo, there.root, language)
    entry |= {
        "checkout": f"{there.name}/{there.key}",
        "source": f"image:{found.id}",
        "snapshot": read.digest,
        "encodings": dict(read.encodings),
        "files": len(read.texts),
        "left_out": dict(read.dropped),
    }
    return read


def _tests(
    home: Home,
    found: Contents,
    repo: str,
    folder: str | None,
    judged: Sequence[tuple[Task, Test]],
    entry: Mapping[str, Any],
    report: Report,
) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    """Return what the manifest says of the tests, and, of Python, the files that they find below `PYTHON`."""
    if judged[0][0].sample.language is Language.JAVA:
        return official_java.entry(found.id, str(folder), found.java, found.roots, found.jars), {}
    held = {"runner": protocol.PYTHON_RUNNER, "image": found.id, "python": found.python, "folder": folder}
    if any(test.id.startswith(f"{STANDALONE}/") for _, test in judged):
        place = f"{PYTHON}/{STANDALONE}"
        there = container.copied(home, found.id, place, f"codereval-{STANDALONE}", Language.PYTHON, report)
        held["standalone"] = f"{there.name}/{there.key}"
    tree = official.laid_out(home, repo, {**entry, "tests": held})
    return {**held, "tree": trees.digest(tree)}, tree


def _made(task: Task, test: Test, repo: str, read: Snapshot | None, tree: Mapping[str, bytes]) -> Made:
    """Return what becomes of one task: located where its project's files are there, else as its record has it."""
    record = record_of(task)
    fate = Fate(id=task.sample.id, project=record.project, outcome=accounts.KEPT, repo=repo)
    if read is None:
        if task.sample.span is None:
            return lost(task, repo, NO_FOLDER, "and its record has no file")
        made = replace(task, reference=replace(task.reference, tests=(test.id,)))
    else:
        found = locate(record, read.texts, task.sample.language)
        if not isinstance(found, Located):
            return lost(task, repo, found.reason, found.detail)
        made = placed(task, found, read.texts[found.path], repo=repo, tests=(test.id,))
        fate = replace(fate, path=found.path, name=found.name, how=found.how, remark=found.remark)
    if task.sample.language is Language.PYTHON:
        try:
            official_python.replaced(
                tree[test.id].decode("utf-8", "surrogateescape"), record.name, made.reference.target
            )
        except InputFault as fault:
            return lost(task, repo, BROKEN_TEST, fault.what)
    return Made(fate, made)
