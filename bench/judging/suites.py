"""Build a `Suite` from a sample set's manifest and the fetched repository, and the manifest's data for it."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Suite
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.samples import SampleSet
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.types import Environment, Job, Limits, Outcome, Sandbox

_TUPLES = ("requirements", "paths", "arguments", "deselect", "jars")
_TEXTS = ("pythonpath", "notes", "release", "encoding")
_BUILD = "build a set with `ctxbench samples build NAME --kind function`"
_CURES = {
    "codereval": "import it again with --rebuild, or judge the completions elsewhere: "
    "`ctxbench results export --format codereval`"
}
"""Format that a set was imported from -> cure."""
MAX_BYTES = 48 << 20
"""Limit for all files together: a box's working folder has at most 64 MiB, and tests write too."""
PULSE = 20.0
"""Seconds between reports on a running job."""
ADDED = "ctxbench_tests/"
"""The folder for ctxbench's added tests, beside the repository's own."""
_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", ".tox", ".venv", "node_modules"})


class Testing(Protocol):
    """The functions of a language for judging: the module ``bench.judging.LANGUAGE``, imported on demand."""

    def suite(
        self,
        tests: TestSuite,
        tree: Mapping[str, bytes],
        entry: Mapping[str, Any],
        home: Home,
        sandbox: Sandbox | None,
    ) -> Suite:
        """Return the suite of a repository.

        Args:
            tests: how it is tested.
            tree: path -> content of its files.
            entry: its entry in a set's manifest.
            home: the home folder with the cache.
            sandbox: may compile it.

        Raises:
            MachineFault: if compiling it needs a box and there is none.
            InputFault: if it cannot be tested.
        """
        ...


def run_job(
    environment: Environment, job: Job, sandbox: Sandbox, limits: Limits, report: Callable[[str], None]
) -> Outcome:
    """Run one job in its own box: the whole suite, or compiling all of it.

    Raises:
        MachineFault: if there is no box, or it was lost.
    """
    try:
        sandbox.prepare(environment, report)
        with sandbox.open(environment, limits=limits) as pool, _telling(report, job.seconds):
            return pool.run(job)
    except SandboxError as error:
        raise MachineFault(error.what, where=error.where, cure=error.cure) from error


@contextlib.contextmanager
def _telling(report: Callable[[str], None], limit: float) -> Iterator[None]:
    """Report at intervals that a job is still running."""
    ended, start = threading.Event(), time.monotonic()

    def tell() -> None:
        while not ended.wait(PULSE):
            report(f"still running after {time.monotonic() - start:.0f} s, of at most {limit:.0f}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def entry(tests: TestSuite, lock: tuple[str, ...], project: str, root: Path) -> dict[str, Any]:
    """Return the manifest's data under ``repositories[repo]["tests"]``, for `suite_of`.

    Args:
        tests: the suite.
        lock: installed packages, each as ``name==version``.
        project: the distribution that `tree` is; empty for none.
        root: the repository's files.

    Raises:
        InputFault: if the repository is too large, or its added tests cannot be used.
    """
    added = added_texts(tests.added) if tests.added is not None else {}
    return {
        **{key: list(getattr(tests, key)) for key in _TUPLES},
        **{key: getattr(tests, key) for key in _TEXTS},
        "lock": list(lock),
        "project": project,
        "tree": tree_digest(laid(read_tree(root), added)),
        # The whole texts, so that a set can be judged without the manifest's folder.
        **({"added": added} if added else {}),
    }


def suite_of(home: Home, sample_set: SampleSet, repo: str, sandbox: Sandbox | None = None) -> Suite:
    """Return the suite that judges a set's samples of one repository.

    Args:
        home: the home folder of the repositories.
        sample_set: the set.
        repo: the repository's name.
        sandbox: compiles a Java repository once, unless it is in the cache.

    Raises:
        MachineFault: if compiling needs a box and there is none.
        InputFault: if the set has no tests for it, or it is missing or changed since the set was built.
    """
    entry = sample_set.manifest["repositories"].get(repo)
    suite_record = entry.get("tests") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(suite_record, dict):
        raise InputFault(
            f"the sample set {sample_set.name!r} does not say how {repo!r} is tested",
            cure=_CURES.get(str(sample_set.manifest.get("imported_from")), _BUILD),
        )
    root = home.repos / str(entry.get("checkout", ""))
    cure = entry.get("cure") or f"fetch it with `ctxbench repo fetch {repo}`"
    if not entry.get("checkout") or not root.is_dir():
        raise InputFault(f"the repository {repo!r} is not fetched", where=str(root), cure=cure)
    tree = laid(read_tree(root), _added(suite_record, repo))
    if suite_record.get("tree") != tree_digest(tree):
        raise InputFault(
            f"the files of {repo!r} are not those that the sample set {sample_set.name!r} was built from",
            where=str(root),
            cure=f"remove that folder, then {cure}",
        )
    tests = _tests(suite_record, repo)
    _strings(suite_record, "lock", repo)
    return Language(entry.get("language", "python")).testing().suite(tests, tree, entry, home, sandbox)


def _tests(record: Mapping[str, Any], repo: str) -> TestSuite:
    texts = {key: str(record.get(key, "." if key == "pythonpath" else "")) for key in _TEXTS}
    lists = {key: _strings(record, key, repo) for key in _TUPLES}
    return TestSuite(**lists, **texts)  # type: ignore[arg-type]  # each key has its own type


def _added(record: Mapping[str, Any], repo: str) -> dict[str, str]:
    files = record.get("added", {})
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise _wrong("added is not a table of texts", repo)
    return files


def _strings(record: Mapping[str, Any], key: str, repo: str) -> tuple[str, ...]:
    values = record.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _wrong(f"{key} is not a list of texts", repo)
    return tuple(values)


def _wrong(what: str, repo: str) -> InputFault:
    return InputFault(f"field {what}", where=f"manifest.json: {repo}", cure="build the set again with --force")


def read_tree(root: Path) -> dict[str, bytes]:
    """Return path -> content of every plain file below `root`, in sorted order.

    Raises:
        InputFault: if they are too large for a box.
        MachineFault: if a file cannot be read.
    """
    contents: dict[str, bytes] = {}
    size = 0
    with explained(root):
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            for name in sorted(files):
                path = Path(folder, name)
                if path.is_symlink() or name.endswith(".pyc") or not path.is_file():
                    continue
                content = path.read_bytes()
                size += len(content)
                if size > MAX_BYTES:
                    raise InputFault(
                        f"its files are larger than {MAX_BYTES >> 20} MiB",
                        where=str(root),
                        cure="limit it with source_dir, or leave it out of function samples",
                    )
                contents[path.relative_to(root).as_posix()] = content
    return dict(sorted(contents.items()))


def added_texts(folder: Path) -> dict[str, str]:
    """Return path -> text of added tests, to be put beside a repository's files.

    Raises:
        InputFault: if the folder is empty, or a file is not UTF-8.
    """
    texts_by_path: dict[str, str] = {}
    for path, content in read_tree(folder).items():
        try:
            texts_by_path[path] = content.decode("utf-8")
        except UnicodeDecodeError:
            raise InputFault("is not UTF-8", where=str(folder / path), cure="write it as UTF-8") from None
    if not texts_by_path:
        raise InputFault("holds no test", where=str(folder), cure="put tests there, or leave `added` out")
    return texts_by_path


def laid(tree: Mapping[str, bytes], added: Mapping[str, str]) -> dict[str, bytes]:
    """Return a repository's files with added tests under `ADDED`.

    Args:
        tree: the repository's files.
        added: path below `ADDED` -> text; may be empty.

    Raises:
        InputFault: if the repository itself has files there.
    """
    if added and any(path.startswith(ADDED) for path in tree):
        raise InputFault(f"the repository has a folder {ADDED} of its own", cure="leave `added` out of its [tests]")
    ours = {ADDED + path: text.encode() for path, text in added.items()}
    return dict(sorted({**tree, **ours}.items()))


def tree_digest(tree: Mapping[str, bytes]) -> str:
    """Return a SHA-256 over paths and contents."""
    return sha256(json.dumps([[path, sha256(tree[path])] for path in sorted(tree)]))
