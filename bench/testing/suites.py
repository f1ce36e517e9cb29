"""From a sample set's manifest and the fetched repository to a `Suite`, and what the manifest holds for that."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.manifest_types import TestSuite
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.testing import tree as trees
from ctxbench.bench.testing.python import PythonSuite
from ctxbench.bench.testing.types import Suite
from ctxbench.sandbox.types import Sandbox

_TUPLES = ("requirements", "paths", "arguments", "deselect", "jars")
_TEXTS = ("pythonpath", "notes", "release", "encoding")
_BUILD = "build a set with `ctxbench samples build NAME --kind function`"
_CURES = {
    "codereval": "import it again with --rebuild or --image IMAGE, or judge the completions elsewhere: "
    "`ctxbench results export --format codereval`"
}
"""By the format that a set was imported from."""
_LOG = logging.getLogger(__name__)


def entry(tests: TestSuite, lock: tuple[str, ...], project: str, root: Path) -> dict[str, Any]:
    """Return what a manifest keeps under ``repositories[repo]["tests"]``; `suite_of` reads it.

    Args:
        tests: the suite.
        lock: what is installed, each as ``name==version``.
        project: the distribution that `tree` is; empty for none.
        root: the repository's files.

    Raises:
        InputFault: if the repository is too large, or its tests of ours cannot be used.
    """
    added = trees.texts(tests.added) if tests.added is not None else {}
    return {
        **{key: list(getattr(tests, key)) for key in _TUPLES},
        **{key: getattr(tests, key) for key in _TEXTS},
        "lock": list(lock),
        "project": project,
        "tree": trees.digest(trees.laid(trees.read(root), added)),
        # Whole, so that a set can be judged where the manifest's folder is not.
        **({"added": added} if added else {}),
    }


def suite_of(home: Home, sample_set: SampleSet, repo: str, sandbox: Sandbox | None = None) -> Suite:
    """Return the suite that judges a set's samples of one repository.

    Args:
        home: where the repositories are.
        sample_set: the set.
        repo: the repository's name.
        sandbox: where a Java repository is compiled, once; what is in the home's cache needs none.

    Raises:
        MachineFault: if there is no box for that.
        InputFault: if the set has no tests for it, or it is not fetched as the set was built from it.
    """
    entry = sample_set.manifest["repositories"].get(repo)
    suite_record = entry.get("tests") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(suite_record, dict):
        raise InputFault(
            f"the sample set {sample_set.name!r} says nothing of how {repo!r} is tested",
            cure=_CURES.get(str(sample_set.manifest.get("imported_from")), _BUILD),
        )
    if str(suite_record.get("runner", "")).startswith("codereval-"):
        from ctxbench.bench.codereval import official  # noqa: PLC0415 - of sets from the official image only

        return official.suite(home, repo, entry)
    root = home.repos / str(entry.get("checkout", ""))
    cure = entry.get("cure") or f"fetch it with `ctxbench repo fetch {repo}`"
    if not entry.get("checkout") or not root.is_dir():
        raise InputFault(f"the repository {repo!r} is not fetched", where=str(root), cure=cure)
    tree = trees.laid(trees.read(root), _added(suite_record, repo))
    if suite_record.get("tree") != trees.digest(tree):
        raise InputFault(
            f"the files of {repo!r} are not those that the sample set {sample_set.name!r} was built from",
            where=str(root),
            cure=f"remove that folder, then {cure}",
        )
    tests = _tests(suite_record, repo)
    if entry.get("language") == JAVA:
        # Not imported above: its grammar is needed by Java sets only.
        from ctxbench.bench.testing.java import JavaSuite, layout  # noqa: PLC0415
        from ctxbench.bench.testing.java_build import built  # noqa: PLC0415

        where = layout(tests, tree, str(entry.get("source_dir", "")))
        return JavaSuite(tests, where, tree, built(tests, where, tree, home, sandbox, _LOG.info))
    return PythonSuite(tests, _strings(suite_record, "lock", repo), str(suite_record.get("project", "")), tree)


def _tests(record: Mapping[str, Any], repo: str) -> TestSuite:
    texts = {key: str(record.get(key, "." if key == "pythonpath" else "")) for key in _TEXTS}
    lists = {key: _strings(record, key, repo) for key in _TUPLES}
    return TestSuite(**lists, **texts)  # type: ignore[arg-type]  # each key has its own type


def _added(record: Mapping[str, Any], repo: str) -> dict[str, str]:
    files = record.get("added", {})
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise _wrong("added is no table of texts", repo)
    return files


def _strings(record: Mapping[str, Any], key: str, repo: str) -> tuple[str, ...]:
    values = record.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _wrong(f"{key} is no list of texts", repo)
    return tuple(values)


def _wrong(what: str, repo: str) -> InputFault:
    return InputFault(f"field {what}", where=f"manifest.json: {repo}", cure="build the set again with --force")
