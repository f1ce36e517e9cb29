"""A manifest as text: what is written is what is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench.adoption.text import text_of
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.sources import DebianSource, GitSource, LocalSource, PypiSource

SHA = "a" * 64
PLAIN = RepoManifest(name="demo", language=PYTHON, license="MIT", version="1.0", sources=())
MANIFESTS = [
    replace(
        PLAIN,
        sources=(PypiSource(name="Demo", version="1.0", sha256=SHA), LocalSource(path=Path('/x/"a" b'), sha256=SHA)),
        released=date(2024, 5, 6),
        exclude=("**/_vendor/*",),
        tests=TestSuite(
            requirements=tuple(f'distribution-number-{number}; python_version < "3.1{number}"' for number in range(9)),
            pythonpath="src",
            paths=("tests",),
            arguments=("-o", "python_files=*.py"),
            deselect=("tests/test_ü.py",),
            wheel=False,
            lock=("distribution-number-1==1.0", "pytest==9.0.2"),
        ),
    ),
    replace(
        PLAIN,
        language=JAVA,
        source_dir="core",
        sources=(
            DebianSource(package="demo", version="1.0", sha256=SHA),
            GitSource(url="https://example.org/x", commit="b" * 40),
        ),
        tests=TestSuite(requirements=("liba-java",), jars=("a.jar",), encoding="ISO-8859-1", release="11"),
    ),
]


@pytest.mark.parametrize("adopted", MANIFESTS)
def test_what_is_written_is_read_back(adopted: RepoManifest, tmp_path: Path) -> None:
    text = text_of(adopted, ["seen"], ["a doubt\nname = 'evil'", "word " * 60], None)
    assert manifest.parse(text, tmp_path / "demo.toml", "demo.toml") == adopted
    assert "# To be looked at:\n# - a doubt name = 'evil'\n# - word" in text
    address = f"git+https://example.org/{'some-where/' * 12}x"
    assert address in text_of(adopted, [f"Written by {address}, by a person."], [], None)
    assert max(map(len, text.splitlines())) <= 120


def test_tests_that_did_not_run_are_a_comment_that_can_be_taken_off(tmp_path: Path) -> None:
    source = replace(PLAIN, sources=(LocalSource(path=tmp_path),))
    tests = TestSuite(requirements=tuple(f"distribution-number-{number}" for number in range(9)), paths=("tests",))
    text = text_of(source, [], [], tests)
    assert manifest.parse(text, tmp_path / "demo.toml", "").tests is None
    head, _, table = text.partition("# [tests]")
    uncovered = head + "\n".join(line.removeprefix("# ") for line in f"# [tests]{table}".splitlines())
    assert manifest.parse(uncovered, tmp_path / "demo.toml", "").tests == tests
