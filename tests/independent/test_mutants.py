"""The independent fault generator: the tests that mining selects for a small project fail its faults."""

from pathlib import Path

import pytest

from ctxbench.bench.functions.build import build
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import Judge
from tests.helpers.mining import TEST_FILE, in_process, local_manifest
from tests.independent.mutants import failed, mutants, rate

SHOP = '''"""A shop."""


def price(amount, rate=2):
    """Return what an amount costs,
    all of its parts together."""
    if isinstance(amount, list) and amount:
        return sum(price(part, rate) for part in amount)
    cost = amount * rate
    return cost + 1 if amount < 5 else cost
'''
PRICE = SHOP.partition("\n\n\n")[2]
NARROW = {f"test_price__{number:02}": f"assert price({number + 5}) == {2 * number + 10}" for number in range(30)}
WIDE = {
    "test_price__parts": "assert price([1, [5, 6], 4]) == 34 and price([5], 3) == 15",
    "test_price__small": "assert (price(4), price(5)) == (9, 10)",
}


def test_faults_are_in_the_body_and_compile() -> None:
    found = mutants(PRICE, "price", 100)
    assert len(found) == len(set(found)) > 8
    assert all(text.startswith(PRICE.partition("    if")[0]) for text in found)
    for holds in ("sum((part, rate)", "if not (", "return None", " or amount", "amount + rate", "    pass"):
        assert any(holds in text for text in found), holds
    assert mutants(PRICE, "price", 3) == mutants(PRICE, "price", 3) != mutants(PRICE, "price", 3, seed=1)


def test_the_rate_counts_mutants_that_the_whole_suite_notices() -> None:
    assert rate([("FAILED", False), ("PASSED", True), ("PASSED", False), ("TIMED_OUT", False)]) == (2, 3, 4)
    report = (
        '<testsuites><testsuite><testcase classname="a" name="b"><failure/></testcase>'
        '<testcase classname="a" name="c"/><testcase classname="d" name=""><error/></testcase></testsuite></testsuites>'
    )
    assert failed(report) == {"a::b", "d::"}


@pytest.mark.parametrize("seed", range(3))
def test_selected_tests_fail_faults_of_an_independent_generator(tmp_path: Path, seed: int) -> None:
    home = Home(tmp_path / "home")
    manifest = local_manifest(tmp_path, {"shop.py": SHOP, TEST_FILE: "from shop import *\n"})
    every = {**NARROW, **WIDE}
    sandbox = in_process(tests=every, shop=SHOP)
    made = build([manifest], home, "set", sandbox=sandbox, lock=lambda *_: (), seed=seed)
    [sample] = made.samples
    with Judge(home, made, sandbox, width=1) as judge:
        found = []
        for text in mutants(made.references[sample.id].target, "price", 100, seed):
            space: dict[str, object] = {}
            noticed = False
            try:
                exec(text, space)
                for body in every.values():
                    exec(body, space)
            except Exception:  # noqa: BLE001 - whatever the fault leads to
                noticed = True
            found.append((str(judge.judge(sample, text).verdict), noticed))
    killed, noticeable, tried = rate(found)
    assert killed == noticeable > tried // 2
