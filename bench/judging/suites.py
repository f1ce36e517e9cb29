"""Builds a `Suite` from a sample set's manifest and the fetched repository, and builds the suite's manifest entry."""

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
    "codereval": "import the set again with --rebuild, or judge with the official harness: "
    "`ctxbench results export --format codereval`"
}
MAX_BYTES = 48 << 20
"""Maximum bytes of a repository's files together. A box also needs space for files that tests write."""
PULSE = 20.0
ADDED = "ctxbench_tests/"
"""Folder for tests that ctxbench adds to the repository's own tests."""
_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", ".tox", ".venv", "node_modules"})


class Testing(Protocol):
    """The module ``bench.judging.LANGUAGE``, which builds a language's suites."""

    def suite(
        self,
        tests: TestSuite,
        tree: Mapping[str, bytes],
        entry: Mapping[str, Any],
        home: Home,
        sandbox: Sandbox | None,
    ) -> Suite:
        """Return a repository's suite. `sandbox` compiles the repository if necessary.

        Raises:
            MachineFault: if the repository must be compiled but there is no sandbox.
            InputFault: if the repository cannot be tested.
        """
        ...


def run_job(
    environment: Environment, job: Job, sandbox: Sandbox, limits: Limits, report: Callable[[str], None]
) -> Outcome:
    """Run one job in its own box, for example to compile a repository or run a whole suite.

    Raises:
        MachineFault: if no box can be started, or the box was lost.
    """
    try:
        sandbox.prepare(environment, report)
        with sandbox.open(environment, limits=limits) as pool, _telling(report, job.seconds):
            return pool.run(job)
    except SandboxError as error:
        raise MachineFault(error.what, where=error.where, cure=error.cure) from error


@contextlib.contextmanager
def _telling(report: Callable[[str], None], limit: float) -> Iterator[None]:
    ended, start = threading.Event(), time.monotonic()

    def tell() -> None:
        while not ended.wait(PULSE):
            report(f"still running after {time.monotonic() - start:.0f} s of at most {limit:.0f} s")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def entry(tests: TestSuite, lock: tuple[str, ...], project: str, root: Path) -> dict[str, Any]:
    """Return the data that `suite_of` reads from a set's manifest, under ``repositories[repo]["tests"]``.

    Args:
        lock: installed packages, as ``name==version``.
        project: distribution under test, or empty.

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
        # Store whole texts: the set must work without the manifest's folder.
        **({"added": added} if added else {}),
    }


def suite_of(home: Home, sample_set: SampleSet, repo: str, sandbox: Sandbox | None = None) -> Suite:
    """Return the suite that judges a set's samples from a repository. `sandbox` compiles Java if necessary.

    Raises:
        MachineFault: if the repository must be compiled but there is no sandbox.
        InputFault: if the set has no valid tests for the repository, or the repository is missing or has changed.
    """
    entry = sample_set.manifest["repositories"].get(repo)
    suite_record = entry.get("tests") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(suite_record, dict):
        raise InputFault(
            f"the sample set {sample_set.name!r} has no tests for {repo!r}",
            cure=_CURES.get(str(sample_set.manifest.get("imported_from")), _BUILD),
        )
    root = home.repos / str(entry.get("checkout", ""))
    cure = entry.get("cure") or f"run `ctxbench repo fetch {repo}`"
    if not entry.get("checkout") or not root.is_dir():
        raise InputFault(f"the repository {repo!r} has not been fetched", where=str(root), cure=cure)
    tree = laid(read_tree(root), _added(suite_record, repo))
    if suite_record.get("tree") != tree_digest(tree):
        raise InputFault(
            f"the files of {repo!r} have changed since the sample set {sample_set.name!r} was built",
            where=str(root),
            cure=f"remove this folder, then {cure}",
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
        raise _wrong("added is not a table of strings", repo)
    return files


def _strings(record: Mapping[str, Any], key: str, repo: str) -> tuple[str, ...]:
    values = record.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _wrong(f"{key} is not a list of strings", repo)
    return tuple(values)


def _wrong(what: str, repo: str) -> InputFault:
    return InputFault(f"field {what}", where=f"manifest.json: {repo}", cure="build the set again with --force")


def read_tree(root: Path) -> dict[str, bytes]:
    """Return the contents of regular files below `root`, by path. Bytecode and folders such as ``.git`` are skipped.

    Raises:
        InputFault: if the files are too large for a box.
        CtxbenchError: if a file cannot be read (see `bench.files.fault_of`).
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
                        f"the files are larger than {MAX_BYTES >> 20} MiB together",
                        where=str(root),
                        cure="use a copy of this folder without its large files, or line samples",
                    )
                contents[path.relative_to(root).as_posix()] = content
    return dict(sorted(contents.items()))


def added_texts(folder: Path) -> dict[str, str]:
    """Return the texts of the added tests in a folder, by path.

    Raises:
        InputFault: if the folder is empty, its files are too large for a box, or a file is not UTF-8.
    """
    texts_by_path: dict[str, str] = {}
    for path, content in read_tree(folder).items():
        try:
            texts_by_path[path] = content.decode("utf-8")
        except UnicodeDecodeError:
            raise InputFault("the file is not UTF-8", where=str(folder / path), cure="save it as UTF-8") from None
    if not texts_by_path:
        raise InputFault(
            "the folder contains no test", where=str(folder), cure="add tests, or remove `added` from [tests]"
        )
    return texts_by_path


def laid(tree: Mapping[str, bytes], added: Mapping[str, str]) -> dict[str, bytes]:
    """Return a repository's files together with the added tests, which are placed under `ADDED`.

    Raises:
        InputFault: if the repository itself has files there.
    """
    if added and any(path.startswith(ADDED) for path in tree):
        raise InputFault(f"the repository already has a folder {ADDED}", cure="remove `added` from its [tests]")
    ours = {ADDED + path: text.encode() for path, text in added.items()}
    return dict(sorted({**tree, **ours}.items()))


def tree_digest(tree: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of all paths and contents."""
    return sha256(json.dumps([[path, sha256(tree[path])] for path in sorted(tree)]))
