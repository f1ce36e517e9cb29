"""The tests that judge a mined function. A function is dropped only if no test of its suite detects a fault."""

from pathlib import Path

import pytest

from ctxbench.bench.functions.build import build
from ctxbench.bench.functions.choose import MOST_TESTS
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import TEST_FILE, in_process, local_manifest

SHOP = '''"""A shop."""


def price(amount, rate=2):
    """Return what an amount costs, all of its parts together."""
    if isinstance(amount, list):
        return sum(price(part, rate) for part in amount)
    return amount * rate


PRICE = price(3)
'''
IDLE = {f"test_price__{number:02}": "price(1)" for number in range(32)}
"""Tests that run the function and check nothing."""


def make(
    tmp_path: Path, tests: dict[str, str], *, shop: str = SHOP, sandbox: FakeSandbox | None = None, **imports: str
) -> SampleSet:
    sandbox = sandbox or in_process(tests=tests, shop=shop, imports=imports)
    manifest = local_manifest(tmp_path, {"shop.py": shop, TEST_FILE: "from shop import *\n"})
    return build([manifest], Home(tmp_path / "home"), "set", sandbox=sandbox, lock=lambda *_: (), force=True)


def judges(made: SampleSet) -> set[str]:
    return {test.partition("::")[2] for test in made.references["demo/shop.py::price"].tests}


def test_the_only_test_that_detects_an_empty_body_is_chosen(tmp_path: Path) -> None:
    tests = {**IDLE, "test_price__z": "assert price(1) == 2"}
    chosen = judges(make(tmp_path, tests))
    assert len(chosen) == MOST_TESTS and "test_price__z" in chosen


def test_tests_that_detect_faults_missed_by_the_narrowest_are_chosen(tmp_path: Path) -> None:
    narrow = dict.fromkeys(IDLE, "assert price(1) == 2")
    deep = {"test_price__zz": "assert price([1, [2, 3]]) == 12 and price([1], 3) == 3"}
    made = make(tmp_path, {**narrow, **deep})
    assert "test_price__zz" in judges(made)
    told = made.manifest["repositories"]["demo"]["mutants"]
    assert told["tried"] == 2 and told["killed"] == told["killed_by_all"] > 0


@pytest.mark.parametrize("module", [TEST_FILE, ""])
def test_a_function_that_only_an_import_runs_is_judged_by_the_modules_tests(tmp_path: Path, module: str) -> None:
    tests = {"test_value": "assert PRICE == 6"}
    made = make(tmp_path, tests, price=module)
    assert judges(made) == {"test_value"}
    entry = made.manifest["repositories"]["demo"]
    assert (entry["documented"], entry["covered"], entry["kept"], entry["drops"]) == (1, 1, 1, {})


def test_if_covering_tests_pass_an_empty_body_importing_modules_tests_judge(tmp_path: Path) -> None:
    tests = {"test_price": "price(1)", "test_value": "assert PRICE == 6"}
    made = make(tmp_path, tests, price=TEST_FILE)
    assert judges(made) == {"test_price", "test_value"}


def test_a_test_that_the_reference_fails_alone_does_not_judge(tmp_path: Path) -> None:
    tests = {"test_price": "assert price(1) == 2", "test_price__leans": "assert price(1) == 2 and MISSING"}
    made = make(tmp_path, tests)
    assert judges(made) == {"test_price"}


def test_many_tests_that_the_reference_fails_do_not_displace_others(tmp_path: Path) -> None:
    """Such tests seem to detect every fault, so they would be chosen before all others."""
    leaning = {f"test_price__{number:03}": "assert price(1) == 2 and MISSING" for number in range(100)}
    made = make(tmp_path, {**leaning, "test_price__z": "assert price(1) == 2"})
    assert judges(made) == {"test_price__z"}


def test_a_function_without_a_detecting_test_is_dropped_as_blank_passed(tmp_path: Path) -> None:
    shop = SHOP + '\n\ndef other():\n    """Return one."""\n    return 1\n'
    tests = {**IDLE, "test_other": "assert other() == 1"}
    made = make(tmp_path, tests, shop=shop)
    assert made.manifest["repositories"]["demo"]["drops"] == {"blank_passed": 1}


def test_a_second_build_reuses_choice_and_counts_from_certificates(tmp_path: Path) -> None:
    tests = {**IDLE, "test_price__z": "assert price(1) == 2"}
    first = make(tmp_path, tests)
    again = in_process(tests=tests, shop=SHOP)
    second = make(tmp_path, tests, sandbox=again)
    assert again.jobs == [] and second.digest == first.digest
    assert second.manifest["repositories"] == first.manifest["repositories"]
