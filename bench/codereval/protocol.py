"""The official protocol's common part: its names in a manifest, its tests in the image, its judgements. Pure.

Tests are found by the official harness's names (``<path without .py>_<name>_passk_validte.py``; the misspelling is
its own). It makes exceptions of which only the number is known: there, the only unclaimed test that fits is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from posixpath import basename

from ctxbench.bench.codereval.records import TaskRecord
from ctxbench.bench.testing.types import Judgement, Verdict
from ctxbench.sandbox.types import Ended, Outcome

PYTHON_RUNNER, JAVA_RUNNER = "codereval-python", "codereval-java"
REMARK = (
    "judged by CoderEval's official protocol: its tests are weak, and the verdict is an exit code or a word of the "
    "output, which a completion can forge; not comparable with verdicts of ctxbench's own suites"
)
PYTHON = "/home/travis/builds/repos"
JAVA = "/home/travis/builds/java"
STANDALONE = "standalone"
"""Folder of `PYTHON` with the tests of tasks that need no repository."""
HARNESS = "_passk_validte"
WORK = "/work"
"""A folder that the image has no need of: jobs that change nothing of its own get their file system there."""


def judgement(outcome: Outcome, *, passed: bool, reason: str = "") -> Judgement:
    """Return the judgement of an official run.

    Args:
        outcome: of its box.
        passed: whether it counts as passed, if its time was not over.
        reason: why it failed; empty for the last line of its output.
    """
    late = outcome.ended is Ended.TIMED_OUT
    verdict = Verdict.TIMED_OUT if late else Verdict.PASSED if passed else Verdict.FAILED
    why = "" if verdict is Verdict.PASSED else "its time was over" if late else reason or _last(outcome)
    return Judgement(
        verdict=verdict,
        reason=why,
        tests_run=1,
        output=outcome.output,
        seconds=outcome.seconds,
        peak_bytes=outcome.peak_bytes,
    )


def _last(outcome: Outcome) -> str:
    if outcome.out_of_memory:
        return "out of memory"
    lines = [line.strip() for line in outcome.output.splitlines() if line.strip()]
    last_line = lines[-1][:200] if lines else "no output"
    return (
        f"exit code {outcome.exit_code}: {last_line}"
        if outcome.exit_code is not None
        else f"{outcome.ended}: {last_line}"
    )


def python_tests(
    records: Sequence[TaskRecord], folders: Sequence[str], tests: Collection[str]
) -> dict[str, tuple[str | None, str]]:
    """Return for each task that has a test its project's folder, None if it has none, and the test's path.

    Args:
        records: of all tasks that the image may judge: a test that one claims is no other's.
        folders: of the image's projects.
        tests: paths of test files below `PYTHON`.
    """
    exact = {record.id: _exact(record, folders, tests) for record in records}
    claimed = {task_id: test for task_id, test in exact.items() if test is not None}
    claimed_paths = {path for _, path in claimed.values()}
    possible = {
        record.id: _beside(record, folders, tests, claimed_paths) for record in records if record.id not in claimed
    }
    for task_id, paths in possible.items():
        others = {path for other, theirs in possible.items() if other != task_id for path in theirs}
        if len(paths) == 1 and paths[0] not in others:
            claimed[task_id] = (paths[0].partition("/")[0], paths[0])
    return claimed


def folder_of(project: str, folders: Collection[str]) -> str | None:
    """Return the folder of a Python project, ``owner---repo``; None if there is none of that name."""
    owner, _, repo = project.partition("/")
    return next((name for name in (f"{owner}---{repo}", project, repo) if name in folders), None)


def _exact(record: TaskRecord, folders: Sequence[str], tests: Collection[str]) -> tuple[str | None, str] | None:
    own = folder_of(record.project, folders)
    for path in _standalone(record):
        if path in tests:
            return own, path
    # A project may lie in the folder of a name that it had before.
    places = [own] if own else list(folders)
    matches = [
        (folder, path)
        for folder in places
        for stem in _stems(record)
        if (path := f"{folder}/{stem}_{record.name}{HARNESS}.py") in tests
    ]
    return matches[0] if len(matches) == 1 or (matches and own) else None


def _beside(record: TaskRecord, folders: Sequence[str], tests: Collection[str], claimed: Collection[str]) -> list[str]:
    """Return the tests beside a task's file that no task claims: a few tasks' are named otherwise."""
    own = folder_of(record.project, folders)
    stems = tuple(f"{own}/{stem}_" for stem in _stems(record)) if own else ()
    return sorted(path for path in tests if path not in claimed and stems and path.startswith(stems))


def _stems(record: TaskRecord) -> tuple[str, ...]:
    bare = record.path.removesuffix(".py")
    return tuple(dict.fromkeys((bare, f"src/{bare}", bare.removeprefix("src/"))))


def _standalone(record: TaskRecord) -> tuple[str, ...]:
    """Return how a standalone test may be called: the sources tell the separator in one way and show it in another."""
    bare = record.path.removesuffix(".py")
    names = [path.replace("/", mark) for path in (record.path, bare) for mark in ("-", "->")]
    return tuple(f"{STANDALONE}/{name}-{record.name}.py" for name in dict.fromkeys(names))


def java_test(record: TaskRecord, project: str, classes: Collection[str], roots: Sequence[str]) -> str | None:
    """Return the test program of a Java task as ``<folder of classes>::<class>``; None if there is none.

    Lists of results tell neither file nor class: then the only test of that method's name is it.

    Args:
        record: the task's.
        project: the project's folder.
        classes: paths of compiled classes below `JAVA`.
        roots: folders of compiled classes below `JAVA`.
    """
    stem = basename(record.path).removesuffix(".java") or record.class_name
    ending = f"{stem}_{record.name}.class"
    package = record.package.replace(".", "/")
    programs = {
        f"{root}::{inner.removesuffix('.class').replace('/', '.')}"
        for path in classes
        for root in roots
        if path.startswith(f"{root}/")
        and root.startswith(f"{project}/")
        and (inner := path[len(root) + 1 :]).startswith(package)
        and (basename(inner) == ending if stem else inner.endswith(ending))
    }
    # A class may lie in several folders of its project, which then hold the same.
    names = {path.partition("::")[2] for path in programs}
    return min(programs) if len(names) == 1 else None
