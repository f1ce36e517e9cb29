"""Writes the pinned versions of shipped Python test suites: ``python -m scripts.lock_suites [NAME...]``.

Without a name, it pins every suite with an unpinned version. Existing sets must then be built and certified again.
"""

from __future__ import annotations

import functools
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from ctxbench.bench.functions.python import resolved
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import toml_value
from ctxbench.sandbox import wheels

_LOCK = re.compile(r"^lock = \[[^\]]*\]\n", re.MULTILINE)
_TESTS = re.compile(r"^\[tests\]\n(?:(?!\[\[).*\n?)*", re.MULTILINE)
_LAST_KEY = re.compile(r".*^(?:\w+ = .*|\])\n", re.MULTILINE | re.DOTALL)


def with_lock(text: str, lock: tuple[str, ...]) -> str:
    """Return a manifest's text with the versions `lock` as the last key of its ``[tests]``."""
    bare = _LOCK.sub("", text)
    table = _TESTS.search(bare)
    keys = table and _LAST_KEY.match(table[0])
    assert table and keys, "the manifest has no [tests] with keys"
    end = table.start() + keys.end()
    return f"{bare[:end]}lock = {toml_value(lock)}\n{bare[end:]}"


def main(names: list[str]) -> None:
    """Resolve the versions of each named suite, or of every unpinned one, and write them into its manifest."""
    loaded = [manifest.load(name) for name in names or manifest.builtin_names()]
    with tempfile.TemporaryDirectory() as scratch:
        home = Home(Path(scratch))
        lock = functools.partial(wheels.lock, cache=home.cache, report=print)
        for repository in loaded:
            suite = repository.tests
            if suite is None or repository.language != PYTHON or (suite.lock and not names):
                continue
            versions, _ = resolved(repository, replace(suite, lock=()), home, lock)
            if not set(versions) <= set(suite.requirements):  # otherwise all are pinned there
                path = manifest.BUILTIN / f"{repository.name}.toml"
                path.write_text(with_lock(path.read_text(), versions))


if __name__ == "__main__":
    main(sys.argv[1:])
