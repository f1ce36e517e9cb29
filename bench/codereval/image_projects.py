"""One project of the official image: its tests, its files, and its tasks located in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ctxbench.bench.codereval import accounts, container, official, official_java, official_python, protocol
from ctxbench.bench.codereval.accounts import Fate
from ctxbench.bench.codereval.container import Contents
from ctxbench.bench.codereval.locate import Located, locate
from ctxbench.bench.codereval.protocol import JAVA, PYTHON, STANDALONE, java_test, python_tests
from ctxbench.bench.codereval.rebuilding import TaskOutcome, lost
from ctxbench.bench.codereval.records import placed, record_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.hygiene import cleaned
from ctxbench.bench.formats.types import Task
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repositories.sources import Report
from ctxbench.bench.testing.suites import tree_digest

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
class OfficialTest:
    """The test of the image that judges a task."""

    folder: str | None
    """Of its project in the image; None for a standalone test of a project that is not there."""
    id: str
    """Python: the test file's path below `PYTHON`. Java: ``<folder of classes>::<class>``."""


def judged_by(tasks: Sequence[Task], contents: Contents) -> dict[str, OfficialTest | str]:
    """Return for each task the test that judges it in an image, or the reason why there is none. Pure."""
    python = [record_of(task) for task in tasks if task.sample.language == PYTHON_LANGUAGE]
    files = python_tests(python, contents.folders, contents.tests)
    judged: dict[str, OfficialTest | str] = {}
    for task in tasks:
        record, task_id = record_of(task), task.sample.id
        java = task.sample.language == JAVA_LANGUAGE
        if not (contents.javac if java else contents.python):
            judged[task_id] = NO_INTERPRETER
        elif not java:
            judged[task_id] = OfficialTest(*files[task_id]) if task_id in files else NO_TEST
        elif record.project not in contents.projects:
            judged[task_id] = NO_FOLDER
        else:
            test = java_test(record, record.project, contents.classes, contents.roots)
            judged[task_id] = OfficialTest(record.project, test) if test else NO_TEST
    return judged


def repository(
    home: Home, contents: Contents, repo: str, judged: Sequence[tuple[Task, OfficialTest]], report: Report
) -> tuple[dict[str, TaskOutcome], dict[str, Any]]:
    """Return the outcomes of one project's tasks, and its entry in a set's manifest.

    Args:
        home: where its files are copied.
        contents: what the image holds.
        repo: the project's name in the set.
        judged: its tasks with their tests.
        report: called with what is copied.
    """
    language = judged[0][0].sample.language
    folder = next((test.folder for _, test in judged if test.folder), None)
    entry: dict[str, Any] = {"language": language, "checkout": None, "cure": CURE}
    try:
        read = _files(home, contents, repo, folder, language, entry, report)
        entry["tests"], tree = _tests(home, contents, repo, folder, judged, entry, report)
    except InputFault as fault:
        failed = {task.sample.id: lost(task, repo, UNUSABLE_FILES, str(fault)) for task, _ in judged}
        return failed, {"kept": 0}
    outcomes = [_outcome(task, test, repo, read, tree) for task, test in judged]
    clean = cleaned(
        [outcome.task for outcome in outcomes if outcome.task is not None], read.texts if read else {}, hide=True
    )
    clean_tasks = {task.sample.id: task for task in clean.tasks}
    counts = Counter(outcome.fate.outcome for outcome in outcomes)
    entry |= {
        "tasks": len(outcomes),
        "kept": counts.pop(accounts.KEPT, 0),
        "drops": dict(sorted(counts.items())),
        **clean.counts,
    }
    return {outcome.fate.id: replace(outcome, task=clean_tasks.get(outcome.fate.id)) for outcome in outcomes}, entry


def _files(
    home: Home,
    contents: Contents,
    repo: str,
    folder: str | None,
    language: Language,
    entry: dict[str, Any],
    report: Report,
) -> Snapshot | None:
    """Copy a project's files into the home and note them in `entry`; None if the image has none."""
    if folder is None:
        return None
    root = JAVA if language == JAVA_LANGUAGE else PYTHON
    copy = container.copied(home, contents.id, f"{root}/{folder}", repo.lower(), language, report)
    read = snapshot.load(repo, copy.root, language)
    entry |= {
        "checkout": f"{copy.name}/{copy.key}",
        "source": f"image:{contents.id}",
        "snapshot": read.digest,
        "encodings": dict(read.encodings),
        "files": len(read.texts),
        "left_out": dict(read.dropped),
    }
    return read


def _tests(
    home: Home,
    contents: Contents,
    repo: str,
    folder: str | None,
    judged: Sequence[tuple[Task, OfficialTest]],
    entry: Mapping[str, Any],
    report: Report,
) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    """Return what the manifest says of the tests, and, of Python, the files that they find below `PYTHON`."""
    if judged[0][0].sample.language == JAVA_LANGUAGE:
        return official_java.entry(contents.id, str(folder), contents.java, contents.roots, contents.jars), {}
    fields = {"runner": protocol.PYTHON_RUNNER, "image": contents.id, "python": contents.python, "folder": folder}
    if any(test.id.startswith(f"{STANDALONE}/") for _, test in judged):
        place = f"{PYTHON}/{STANDALONE}"
        copy = container.copied(home, contents.id, place, f"codereval-{STANDALONE}", PYTHON_LANGUAGE, report)
        fields["standalone"] = f"{copy.name}/{copy.key}"
    tree = official.laid_out(home, repo, {**entry, "tests": fields})
    return {**fields, "tree": tree_digest(tree)}, tree


def _outcome(
    task: Task, test: OfficialTest, repo: str, read: Snapshot | None, tree: Mapping[str, bytes]
) -> TaskOutcome:
    """Return the outcome of one task: located if its project's files are in the image, else as its record has it."""
    record = record_of(task)
    fate = Fate(id=task.sample.id, project=record.project, outcome=accounts.KEPT, repo=repo)
    if read is None:
        if task.sample.span is None:
            return lost(task, repo, NO_FOLDER, "and its record has no file")
        located_task = replace(task, reference=replace(task.reference, tests=(test.id,)))
    else:
        located = locate(record, read.texts, task.sample.language)
        if not isinstance(located, Located):
            return lost(task, repo, located.reason, located.detail)
        located_task = placed(task, located, read.texts[located.path], repo=repo, tests=(test.id,))
        fate = replace(fate, path=located.path, name=located.name, how=located.how, remark=located.remark)
    if task.sample.language == PYTHON_LANGUAGE:
        try:
            official_python.replaced(
                tree[test.id].decode("utf-8", "surrogateescape"), record.name, located_task.reference.target
            )
        except InputFault as fault:
            return lost(task, repo, BROKEN_TEST, fault.what)
    return TaskOutcome(fate, located_task)
