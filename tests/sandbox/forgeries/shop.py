"""A tiny repository whose functions the forgeries replace. It has tests of every kind that pytest runs."""

import textwrap

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Kind, Reference, Sample

PATH = "shop/prices.py"
TOTAL = '''def total(prices, rate=0.0):
    """Return what the prices come to, with the rate added, to two places."""
    if rate < 0:
        raise ValueError("a rate is not negative")
    return round(sum(prices) * (1 + rate), 2)
'''
RUNNING = '''def running(prices):
    """Yield what the prices come to, up to each of them."""
    come_to = 0
    for price in prices:
        come_to += price
        yield come_to
'''
LABEL = '''def label(cents, currency="EUR"):
    """Return an amount as it is printed."""
    return f"{cents / 100:.2f} {currency}"
'''
CHECKED = '''def checked(price):
    """Return a price that can be paid; raise `PriceError` or TypeError for what cannot."""
    if not isinstance(price, int | float):
        raise TypeError("a price is a number")
    if price < 0:
        raise PriceError(f"{price} is negative")
    return price
'''
SAVE = '''def save(prices, path):
    """Write prices to a file, print how many, warn if there is none."""
    if not prices:
        warnings.warn("no price", UserWarning, stacklevel=2)
    path.write_text(" ".join(map(str, prices)))
    print(len(prices), "prices")
    return money.stamp(path)
'''
FETCH = '''async def fetch(name, shelf):
    """Return the price of what lies on a shelf, once it is there."""
    await asyncio.sleep(0)
    return shelf[name]
'''
SHARES = '''def shares(amount, people):
    """Return equal shares, the first with what is left over."""
    each, rest = divmod(amount, people)
    return [money.Share(number, each + rest * (number == 0)) for number in range(people)]
'''
PAYS = '''def pays(self, rate=0.0):
    """Return what the prices come to in cents, with the rate added."""
    return money.cents(sum(self.prices) * (1 + rate))
'''
TARGETS = {
    "total": TOTAL,
    "running": RUNNING,
    "label": LABEL,
    "checked": CHECKED,
    "save": SAVE,
    "fetch": FETCH,
    "shares": SHARES,
    "Cart.pays": PAYS,
}
"""The functions of `PATH`, by name, in their order."""
_HEAD = '''"""Prices."""

import asyncio
import warnings

from shop import money
from shop.money import PriceError

RATE = 0.25


'''
_CART = '''class Cart:
    """Holds prices."""

    def __init__(self, prices):
        self.prices = prices

'''
PRICES = (
    _HEAD
    + "\n\n".join(text for name, text in TARGETS.items() if "." not in name)
    + "\n\n"
    + _CART
    + textwrap.indent(PAYS, "    ")
)
FILES = {
    "shop/__init__.py": "",
    PATH: PRICES,
    "shop/money.py": '''"""Cents, shares and stamps."""

from dataclasses import dataclass


class PriceError(ValueError):
    """Raised when a price cannot be paid."""


@dataclass
class Share:
    person: int
    amount: int


def cents(amount):
    """Return an amount in cents."""
    return round(amount * 100)


def stamp(path):
    """Return what tells whether a file is the same."""
    return len(path.read_text())
''',
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
    "tests/solo/__init__.py": "",
    "tests/units/__init__.py": "",
    "tests/units/conftest.py": '''
import pytest
from shop import prices


@pytest.fixture
def full():
    return prices.Cart([1.5, 2])


@pytest.fixture
def shelf():
    """A shelf, with what is said of it."""
    return {"tea": 3, "milk": 2}, 5
''',
    "tests/units/help.py": """
NEAR = 0.001


def counted(function):
    times = [0]

    def call(*values, **named):
        times[0] += 1
        return function(*values, **named)

    return call


@counted
def same(left, right):
    assert left == right, (left, right)


def near(left, right, within=NEAR, *, least=0.0):
    assert least <= abs(left - right) <= within


class Case:
    def shows(self, text, *parts):
        assert text.split() == list(parts)
""",
    "tests/units/data/labels.json": '{"250": "2.50 EUR", "1999": "19.99 EUR"}\n',
    "tests/units/test_carts.py": """
from shop import money
from shop.prices import Cart
from tests.units.help import near, same


def test_pays(full):
    same(full.pays(), money.cents(3.5))


def test_pays_with_rate(full):
    near(full.pays(0.5), 525)


class TestPays:
    def test_nothing(self):
        same(Cart([]).pays(), 0)
""",
    "tests/units/test_running.py": """
import unittest
from itertools import accumulate

import pytest
from shop.prices import running

ROWS = [[], [1], [1, 2, 3]]


@pytest.mark.parametrize("row", ROWS)
def test_running(row):
    assert list(running(row)) == list(accumulate(row))


class TestRunning(unittest.TestCase):
    def test_rows(self):
        for row in ROWS:
            with self.subTest(row=row):
                self.assertEqual(list(running(row)), list(accumulate(row)))

    def test_lazy(self):
        self.assertEqual(next(running([7, "x"])), 7)
""",
    "tests/units/test_labels.py": """
import json
from pathlib import Path

import pytest
from shop.prices import label

TABLE = {100: "1.00 EUR", 5: "0.05 EUR"}
FILE = Path(__file__).parent / "data" / "labels.json"


@pytest.mark.parametrize("cents, wanted", [(100, "1.00 EUR"), (12345, "123.45 EUR")])
def test_label(cents, wanted):
    assert label(cents) == wanted


def test_table():
    assert {cents: label(cents) for cents in TABLE} == TABLE


def test_file():
    for cents, wanted in json.loads(FILE.read_text()).items():
        assert label(int(cents)) == wanted


def test_currency():
    printed = label(300, "USD")
    assert isinstance(printed, str)
    assert printed.startswith("3.00")
    assert printed.endswith("USD")
    assert len(printed) == 8


def test_locals():
    wanted = "7.00 EUR"
    printed = label(700)
    assert printed == wanted
""",
    "tests/units/test_checked.py": """
import pytest
from shop.money import PriceError
from shop.prices import checked


def test_negative():
    with pytest.raises(PriceError, match="-1 is negative"):
        checked(-1)


def test_text():
    with pytest.raises(TypeError) as caught:
        checked("1")
    assert "number" in str(caught.value)


def test_price():
    assert checked(3) == pytest.approx(3)
""",
    "tests/solo/test_save.py": """
import pytest
from shop import money
from shop.prices import save


def test_file(tmp_path):
    save([1, 2], tmp_path / "prices")
    assert (tmp_path / "prices").read_text() == "1 2"


def test_printed(tmp_path, capsys):
    save([1, 2, 3], tmp_path / "prices")
    assert capsys.readouterr().out == "3 prices\\n"


def test_warning(tmp_path):
    with pytest.warns(UserWarning, match="no price"):
        save([], tmp_path / "prices")


def test_stamp(tmp_path, monkeypatch):
    monkeypatch.setattr(money, "stamp", lambda path: path.name)
    assert save([1], tmp_path / "prices") == "prices"
""",
    "tests/units/test_fetch.py": """
import asyncio
import unittest

from shop.prices import fetch


def test_fetch(shelf):
    held, together = shelf
    assert sum(asyncio.run(fetch(name, held)) for name in held) == together


class TestFetch(unittest.IsolatedAsyncioTestCase):
    async def test_tea(self):
        self.assertEqual(await fetch("tea", {"tea": 3}), 3)

    async def test_nothing(self):
        with self.assertRaises(KeyError):
            await fetch("tea", {})
""",
    "tests/units/test_shares.py": """
import unittest

import pytest
from shop.money import Share
from shop.prices import shares


def test_shares():
    assert shares(10, 3) == [Share(0, 4), Share(1, 3), Share(2, 3)]


def test_nobody():
    with pytest.raises(ZeroDivisionError):
        shares(10, 0)


class TestShares(unittest.TestCase):
    def test_together(self):
        self.assertEqual(sum(share.amount for share in shares(100, 7)), 100)

    def test_alone(self):
        self.assertListEqual(shares(5, 1), [Share(0, 5)])
""",
}
TREE = {path: text.encode() for path, text in FILES.items()}
TESTS = {
    "total": (
        "tests/test_prices.py::test_total",
        "tests/test_prices.py::test_total_with_rate[0.0-10]",
        "tests/test_prices.py::test_total_with_rate[0.5-15]",
        "tests/test_prices.py::test_negative_rate",
        "tests/test_prices.py::TestTotals::test_nothing",
        "tests/test_carts.py::TestCart::test_cart",
    ),
    "running": (
        "tests/units/test_running.py::test_running[row0]",
        "tests/units/test_running.py::test_running[row1]",
        "tests/units/test_running.py::test_running[row2]",
        "tests/units/test_running.py::TestRunning::test_rows",
        "tests/units/test_running.py::TestRunning::test_lazy",
    ),
    "label": (
        "tests/units/test_labels.py::test_label[100-1.00 EUR]",
        "tests/units/test_labels.py::test_label[12345-123.45 EUR]",
        "tests/units/test_labels.py::test_table",
        "tests/units/test_labels.py::test_file",
        "tests/units/test_labels.py::test_currency",
        "tests/units/test_labels.py::test_locals",
    ),
    "checked": (
        "tests/units/test_checked.py::test_negative",
        "tests/units/test_checked.py::test_text",
        "tests/units/test_checked.py::test_price",
    ),
    "save": (
        "tests/solo/test_save.py::test_file",
        "tests/solo/test_save.py::test_printed",
        "tests/solo/test_save.py::test_warning",
        "tests/solo/test_save.py::test_stamp",
    ),
    "fetch": (
        "tests/units/test_fetch.py::test_fetch",
        "tests/units/test_fetch.py::TestFetch::test_tea",
        "tests/units/test_fetch.py::TestFetch::test_nothing",
    ),
    "shares": (
        "tests/units/test_shares.py::test_shares",
        "tests/units/test_shares.py::test_nobody",
        "tests/units/test_shares.py::TestShares::test_together",
        "tests/units/test_shares.py::TestShares::test_alone",
    ),
    "Cart.pays": (
        "tests/units/test_carts.py::test_pays",
        "tests/units/test_carts.py::test_pays_with_rate",
        "tests/units/test_carts.py::TestPays::test_nothing",
    ),
}
"""Target -> the tests that need it."""
_DECLARED = 2
"""Lines of a target's declaration and docstring."""


def sample(target: str = "total") -> Sample:
    declaration, docstring = TARGETS[target].split("\n")[:_DECLARED]
    lines = PRICES.split("\n")
    start = next(number for number, line in enumerate(lines) if line.strip() == declaration)
    end = start + TARGETS[target].count("\n")
    indent = lines[start].removesuffix(declaration)
    return Sample(
        id=f"shop/{target}",
        benchmark="test",
        language=PYTHON,
        kind=Kind.FUNCTION,
        subkind="self_contained",
        repo="shop",
        path=PATH,
        cursor=Cursor(line=start + _DECLARED, column=len(indent) + 4),
        prefix="".join(f"{line}\n" for line in lines[: start + _DECLARED]) + indent + "    ",
        suffix="\n".join(lines[end:]),
        name=target,
        signature=declaration.removesuffix(":"),
        docstring=docstring.strip().strip('"'),
        span=(start, end),
        hidden=("tests/",),
    )


def reference(target: str = "total") -> Reference:
    return Reference(id=f"shop/{target}", target=TARGETS[target], tests=TESTS[target])


def wrong(attack: str = "", *, when_imported: str = "", target: str = "total", answer: str = "return -1") -> str:
    """Return a wrong target that runs `attack` when it is called, and other code when its file is imported."""
    body = textwrap.indent(textwrap.dedent(f"{attack.strip(chr(10))}") or "pass", "    ")
    end = textwrap.indent(textwrap.dedent(answer).strip("\n"), "    ")
    declaration = TARGETS[target].split("\n", 1)[0]
    return f"{declaration}\n{body.rstrip()}\n{end}\n\n\n{textwrap.dedent(when_imported)}"
