"""The suites of sets from CoderEval's official image: their files, checked, and the protocol of their language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxbench.bench.codereval.official_python import OfficialPythonSuite
from ctxbench.bench.codereval.protocol import JAVA_RUNNER, STANDALONE
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.testing.suites import read_tree, tree_digest
from ctxbench.bench.testing.types import Suite

_CURE = "import the set again with --image"


def suite(home: Home, repo: str, entry: Mapping[str, Any]) -> Suite:
    """Return the suite of one repository of a set from the official image.

    Args:
        home: where the checkouts are.
        repo: the repository's name.
        entry: what the set's manifest says of it, with `tests`.

    Raises:
        InputFault: if a checkout is not there as the set was built from it.
    """
    tests = entry["tests"]
    if tests["runner"] == JAVA_RUNNER:
        from ctxbench.bench.codereval.official_java import OfficialJavaSuite  # noqa: PLC0415 - its grammar, for Java only

        root = _checkout(home, repo, str(entry.get("checkout") or ""))
        read = snapshot.load(repo, root, JAVA, declared="encodings" in entry)
        _same(read.digest, entry.get("snapshot"), repo)
        return OfficialJavaSuite(tests, read.texts)
    tree = laid_out(home, repo, entry)
    _same(tree_digest(tree), tests.get("tree"), repo)
    return OfficialPythonSuite(str(tests["image"]), str(tests["python"]), tree)


def laid_out(home: Home, repo: str, entry: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a Python repository as the image has them, standalone tests with them.

    Raises:
        InputFault: if a checkout is missing, or the files are too large for a box.
    """
    tests = entry["tests"]
    tree: dict[str, bytes] = {}
    if entry.get("checkout"):
        root = _checkout(home, repo, str(entry["checkout"]))
        tree |= {f"{tests['folder']}/{path}": data for path, data in read_tree(root).items()}
    if tests.get("standalone"):
        root = _checkout(home, STANDALONE, str(tests["standalone"]))
        tree |= {f"{STANDALONE}/{path}": data for path, data in read_tree(root).items()}
    return tree


def _checkout(home: Home, repo: str, key: str) -> Path:
    root = home.repos / key
    if not key or not root.is_dir():
        raise InputFault(f"the files of {repo!r} are not there", where=str(root), cure=_CURE)
    return root


def _same(digest: str, recorded: object, repo: str) -> None:
    if digest != recorded:
        raise InputFault(f"the files of {repo!r} are not those that the set was built from", cure=_CURE)
