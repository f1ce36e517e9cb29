"""A tiny repository whose function `total` the forgeries claim to be; tests of every kind that pytest runs."""

from __future__ import annotations

import textwrap

from bench.types import Cursor, Kind, Language, Reference, Sample

PATH = "shop/prices.py"
BEFORE = '''"""Prices."""

RATE = 0.25


'''
TARGET = '''def total(prices, rate=0.0):
    """Return what the prices come to, with the rate added, to two places."""
    if rate < 0:
        raise ValueError("a rate is not negative")
    return round(sum(prices) * (1 + rate), 2)
'''
AFTER = '''

class Cart:
    """Holds prices."""

    def __init__(self, prices):
        self.prices = prices
'''
FILES = {
    "shop/__init__.py": "",
    PATH: BEFORE + TARGET + AFTER,
    "tests/__init__.py": "",
    "tests/conftest.py": """
import pytest

@pytest.fixture
def cart():
    from shop.prices import Cart
    return Cart([1, 2])
""",
    "tests/test_prices.py": """
import unittest

import pytest
from shop.prices import total


def test_total():
    assert total([1, 2, 3.5]) == 6.5


@pytest.mark.parametrize("rate, wanted", [(0.0, 10), (0.5, 15)])
def test_total_with_rate(rate, wanted):
    assert total([4, 6], rate) == wanted


def test_negative_rate():
    with pytest.raises(ValueError, match="not negative"):
        total([1], -1)


class TestTotals(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(total([]), 0)
""",
    "tests/test_carts.py": """
from shop.prices import total


class TestCart:
    def test_cart(self, cart):
        assert total(cart.prices) == 3
""",
}
TREE = {path: text.encode() for path, text in FILES.items()}
TESTS = (
    "tests/test_prices.py::test_total",
    "tests/test_prices.py::test_total_with_rate[0.0-10]",
    "tests/test_prices.py::test_total_with_rate[0.5-15]",
    "tests/test_prices.py::test_negative_rate",
    "tests/test_prices.py::TestTotals::test_nothing",
    "tests/test_carts.py::TestCart::test_cart",
)
_HEAD = 2
"""Lines of the declaration and the docstring."""


def sample() -> Sample:
    """Return the sample that asks for `total`."""
    start = BEFORE.count("\n")
    return Sample(
        id="shop/total",
        benchmark="test",
        language=Language.PYTHON,
        kind=Kind.FUNCTION,
        subkind="self_contained",
        repo="shop",
        path=PATH,
        cursor=Cursor(line=start + _HEAD, column=4),
        prefix=BEFORE + "".join(TARGET.splitlines(keepends=True)[:_HEAD]) + "    ",
        suffix=AFTER,
        name="total",
        signature="def total(prices, rate=0.0)",
        docstring="Return what the prices come to, with the rate added, to two places.",
        span=(start, start + TARGET.count("\n")),
        hidden=("tests/",),
    )


def reference() -> Reference:
    """Return its answer and tests."""
    return Reference(id="shop/total", target=TARGET, tests=TESTS)


def wrong(attack: str = "", *, when_imported: str = "") -> str:
    """Return a wrong `total` that runs `attack` when it is called, and other code when its file is imported."""
    body = textwrap.indent(textwrap.dedent(attack).strip("\n") or "pass", "    ")
    return f"def total(prices, rate=0.0):\n{body}\n    return -1\n\n\n{textwrap.dedent(when_imported)}"
