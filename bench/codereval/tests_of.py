"""Which test of the official image judges a task: a file of Python, a compiled class of Java. Pure.

Names are those of the official harness (a file ``<path without .py>_<name>_passk_validte.py``; the misspelling is
its own), and where it makes exceptions that are known by their number only, what is left over and fits alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from posixpath import basename

from ctxbench.bench.codereval.records import Record

PYTHON = "/home/travis/builds/repos"
JAVA = "/home/travis/builds/java"
STANDALONE = "standalone"
"""Folder of `PYTHON` with the tests of tasks that need no repository."""
HARNESS = "_passk_validte"
WORK = "/work"
"""A folder that the image has no need of: jobs that change nothing of its own get their file system there."""


def python_tests(
    records: Sequence[Record], folders: Sequence[str], tests: Collection[str]
) -> dict[str, tuple[str | None, str]]:
    """Return for each task that has a test its project's folder, None if it has none, and the test's path.

    Args:
        records: of all tasks that the image may judge: a test that one claims is no other's.
        folders: of the image's projects.
        tests: paths of test files below `PYTHON`.
    """
    exact = {record.id: _exact(record, folders, tests) for record in records}
    claimed = {one: found for one, found in exact.items() if found is not None}
    taken = {path for _, path in claimed.values()}
    wanted = {record.id: _beside(record, folders, tests, taken) for record in records if record.id not in claimed}
    for one, left in wanted.items():
        others = {path for other, theirs in wanted.items() if other != one for path in theirs}
        if len(left) == 1 and left[0] not in others:
            claimed[one] = (left[0].partition("/")[0], left[0])
    return claimed


def folder_of(project: str, folders: Collection[str]) -> str | None:
    """Return the folder of a Python project, ``owner---repo``; None if there is none of that name."""
    owner, _, repo = project.partition("/")
    return next((each for each in (f"{owner}---{repo}", project, repo) if each in folders), None)


def _exact(record: Record, folders: Sequence[str], tests: Collection[str]) -> tuple[str | None, str] | None:
    own = folder_of(record.project, folders)
    for path in _standalone(record):
        if path in tests:
            return own, path
    # A project may lie in the folder of a name that it had before.
    places = [own] if own else list(folders)
    found = [
        (folder, path)
        for folder in places
        for stem in _stems(record)
        if (path := f"{folder}/{stem}_{record.name}{HARNESS}.py") in tests
    ]
    return found[0] if len(found) == 1 or (found and own) else None


def _beside(record: Record, folders: Sequence[str], tests: Collection[str], taken: Collection[str]) -> list[str]:
    """Return the tests beside a task's file that no task claims: a few tasks' are named otherwise."""
    own = folder_of(record.project, folders)
    stems = tuple(f"{own}/{stem}_" for stem in _stems(record)) if own else ()
    return sorted(path for path in tests if path not in taken and stems and path.startswith(stems))


def _stems(record: Record) -> tuple[str, ...]:
    bare = record.path.removesuffix(".py")
    return tuple(dict.fromkeys((bare, f"src/{bare}", bare.removeprefix("src/"))))


def _standalone(record: Record) -> tuple[str, ...]:
    """Return how a standalone test may be called: the sources tell the separator in one way and show it in another."""
    bare = record.path.removesuffix(".py")
    names = [path.replace("/", mark) for path in (record.path, bare) for mark in ("-", "->")]
    return tuple(f"{STANDALONE}/{name}-{record.name}.py" for name in dict.fromkeys(names))


def java_test(record: Record, project: str, classes: Collection[str], roots: Sequence[str]) -> str | None:
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
    found = {
        f"{root}::{inner.removesuffix('.class').replace('/', '.')}"
        for each in classes
        for root in roots
        if each.startswith(f"{root}/")
        and root.startswith(f"{project}/")
        and (inner := each[len(root) + 1 :]).startswith(package)
        and (basename(inner) == ending if stem else inner.endswith(ending))
    }
    # A class may lie in several folders of its project, which then hold the same.
    names = {each.partition("::")[2] for each in found}
    return min(found) if len(names) == 1 else None
