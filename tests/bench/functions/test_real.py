"""Function samples of a tiny repository, mined and verified in the real back ends."""

import json
from pathlib import Path

import pytest

from ctxbench.bench.functions.build import build, verify
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import Judge
from ctxbench.bench.judging.python import reports as coverage
from ctxbench.bench.judging.python.reports import Covered
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.samples import SampleSet
from ctxbench.sandbox.types import Sandbox
from tests.helpers.mining import FILES, TEST_FILE, local_manifest
from tests.helpers.sandboxes import BACK_ENDS, lock_wheels, real

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
KIT = """
import random


def heads():
    return 1


def tails():
    return 2


def flip():
    return heads() if random.random() < 0.5 else tails()


def last_words():
    return "done"
"""
CHANCE = """
import threading
import time
import weakref

import pytest

import kit


class Held:
    def __init__(self):
        self.cycle, self.gone = self, threading.Event()


@pytest.mark.parametrize("turn", range(30))
def test_flip(turn):
    assert kit.flip()


def test_leaves_a_thread():
    held = Held()
    weakref.finalize(held, held.gone.set)
    threading.Thread(target=lambda gone=held.gone: gone.wait() and kit.last_words(), daemon=True).start()


def test_clock_leaps():
    now = time.perf_counter()
    time.perf_counter = lambda: now + 1000
"""
CERTIFIED = {"demo/shop.py::Cart.put", "demo/shop.py::double", "demo/shop.py::root", "demo/parser_of_ours.py::build"}


def make(home: Home, tmp_path: Path, sandbox: Sandbox) -> SampleSet:
    texts = {"parser_of_ours.py": PARSER, "tests/test_parser.py": PARSED, "kit.py": KIT, "tests/test_kit.py": CHANCE}
    files = {path: text.lstrip("\n") for path, text in texts.items()}
    manifest = local_manifest(tmp_path, {**FILES, **files, TEST_FILE: CASES.lstrip("\n")})
    return build([manifest], home, "set", sandbox=sandbox, lock=lock_wheels, workers=2)


@pytest.mark.long
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
        assert (entry["tests_passed"], entry["tests_failed"], entry["tests_skipped"]) == (39, 1, 1)
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
    check_coverage(*(coverage_of(tmp_path / name) for name in BACK_ENDS))


def coverage_of(home: Path) -> Covered:
    (path,) = (home / "cache" / "coverage").iterdir()
    first, *_ = json.loads(path.read_text())  # of the whole suite; a second one is of tests that ran again
    return coverage.read_coverage(first)


def check_coverage(one: Covered, other: Covered) -> None:
    """Check that random draws, leftover threads and clocks do not change a suite's coverage."""
    assert one.lines == other.lines
    names = [test.id.partition("::")[2] for test in one.tests]
    lines = KIT.lstrip("\n").splitlines()
    (thread,) = one.lines["kit.py"][lines.index('    return "done"')]
    assert names[thread] == "test_leaves_a_thread"
    flips = {side: one.lines["kit.py"].get(lines.index(f"    return {side}"), ()) for side in (1, 2)}
    assert sum(map(len, flips.values())) == 30
    assert all(test.seconds < 100 for test in one.tests), "processor time, which no clock of the suite's changes"
