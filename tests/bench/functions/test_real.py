"""Function samples of a tiny repository, mined and verified in the real back ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ctxbench.bench.functions.build import build
from ctxbench.bench.functions.verify import verify
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.testing.judge import Judge
from ctxbench.bench.testing.types import Verdict
from ctxbench.sandbox import wheels
from ctxbench.sandbox.types import Sandbox
from tests.helpers.mining import FILES, TEST_FILE, local_manifest
from tests.helpers.sandboxes import BACK_ENDS, locked, real

CASES = """
import random

import pytest

from shop import *


def test_double():
    assert double(2) == 4


@pytest.mark.parametrize("x", [0, 1, 4])
def test_root(x):
    assert root(x * x) == x


def test_sometimes(tmp_path):
    seen = random.SystemRandom().getrandbits(256)
    assert nothing(seen) is None


def test_put():
    assert Cart().put(1) == 1


def test_broken_as_it_is_published():
    assert broken(3) == 5


@pytest.mark.skip
def test_skipped():
    assert unused(1) == 4
"""
PARSER = """
def build(words):
    '''Return the words as a tuple.'''
    return tuple(words)
"""
PARSED = """
from parser_of_ours import build

WORDS = build("ab")


def test_words():
    assert WORDS == ("a", "b")
"""
CERTIFIED = {"demo/shop.py::Cart.put", "demo/shop.py::double", "demo/shop.py::root", "demo/parser_of_ours.py::build"}


def lock(requirements: Sequence[str], project: str) -> tuple[str, ...]:
    with locked() as folder:
        return wheels.lock(requirements, project, folder, lambda _: None)


def make(home: Home, tmp_path: Path, sandbox: Sandbox) -> SampleSet:
    files = {"parser_of_ours.py": PARSER.lstrip("\n"), "tests/test_parser.py": PARSED.lstrip("\n")}
    manifest = local_manifest(tmp_path, {**FILES, **files, TEST_FILE: CASES.lstrip("\n")})
    return build([manifest], home, "set", sandbox=sandbox, lock=lock, workers=2)


@pytest.mark.slow
@pytest.mark.network
def test_both_back_ends_mine_the_same_samples_and_agree_on_them(tmp_path: Path) -> None:
    made = {}
    for name in BACK_ENDS:
        sandbox, home = real(name), Home(tmp_path / name)
        made[name] = make(home, tmp_path, sandbox)
        entry = made[name].manifest["repositories"]["demo"]
        assert {sample.id for sample in made[name].samples} == CERTIFIED
        assert entry["drops"] == {"blank_passed": 1, "not_covered": 3}
        assert (entry["tests_passed"], entry["tests_failed"], entry["tests_skipped"]) == (7, 1, 1)
        assert entry["mutants"]["tried"] > 0
        found = verify(home, made[name], sandbox, workers=2, report=lambda _: None, tick=lambda _: None)
        assert (found.references_passed, found.blanks_passed, found.faults) == (4, 0, ())
        with Judge(home, made[name], sandbox, width=1) as judge:
            root = next(sample for sample in made[name].samples if sample.name == "root")
            wrong = judge.judge(root, "def root(x):\n    return x / 2\n")
            assert wrong.verdict is Verdict.FAILED and "test_root" in wrong.reason and wrong.tests_run == 3
    one, other = made.values()
    assert one.digest == other.digest
    assert one.manifest == other.manifest
