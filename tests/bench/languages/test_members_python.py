"""The names of a Python project that code reads, and which of them are made up."""

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench.languages.base import ProjectNames
from ctxbench.bench.languages.python import PYTHON

FILES = {
    "shop/__init__.py": "from shop.tax import apply_tax as taxed\n",
    "shop/tax.py": """
        RATE = 1
        def apply_tax(amount):
            return amount
        class Cart:
            items = []
            def __init__(self):
                self.total, self.count = 1, 2
            def add(self):
                return self.total
        """,
    "shop/color.py": "import enum\nclass Color(enum.IntEnum):\n    RED = 1\n",
    "shop/open.py": """
        from framework import Base, star
        class Page(Base):
            pass
        class Late:
            def __getattr__(self, name):
                return name
        @star
        class Starred:
            pass
        class Meta(metaclass=star):
            pass
        """,
    "shop/made.py": "def __getattr__(name):\n    return name\n",
    "shop/stars.py": "from framework import *\n",
    "shop/mix.py": """
        class LogMixin:
            def log(self):
                return self.name
        class Shape:
            def area(self):
                return self.width * self.height
        class Square(Shape):
            def __init__(self):
                self.width = self.height = 1
        """,
    "shop/patch.py": "from shop.tax import Cart\ncart = Cart()\ncart.patched = 1\nsetattr(Cart, 'also', 1)\n",
    "shop/pay.py": """
        from shop.tax import Cart
        def helper():
            pass
        class Pay(Cart):
            def go(self):
                self.sum = 0
        """,
}
IMPORTS = """
from shop import tax, made, stars
from shop.tax import Cart, apply_tax
from shop.color import Color
from shop.open import Page, Late, Starred, Meta
from shop.mix import Square, LogMixin
import shop.tax
import os, framework
"""


@pytest.fixture(scope="module")
def shop() -> ProjectNames:
    return PYTHON.project({path: textwrap.dedent(text) for path, text in FILES.items()})


def read(shop: ProjectNames, line: str, *, head: str = "def run(x):", path: str = "shop/pay.py") -> dict[str, bool]:
    """Return name -> known for one line in a function (or method) of a file with the usual imports."""
    indent = " " * (len(head) - len(head.lstrip()) + 4) if "\n" not in head else " " * 8
    code = f"{IMPORTS}\n{head}\n{indent}{line}\n"
    start = (code.count("\n") - 1, 0)
    return {one.name: one.known for one in shop.readings(path, code, start=start)}


METHOD = "class Pay(Cart):\n    def go(self):"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tax.apply_tax(x)", {"tax.apply_tax": True}),
        ("tax.gone(x)", {"tax.gone": False}),
        ("apply_tax(x.gone)", {"apply_tax": True}),
        ("Cart.add, Cart.items, Cart.total", {"Cart.add": True, "Cart.items": True, "Cart.total": True}),
        ("Cart.fly", {"Cart.fly": False}),
        ("tax.Cart.fly", {"tax.Cart.fly": False}),
        ("shop.tax.RATE + shop.tax.NONE", {"shop.tax.RATE": True, "shop.tax.NONE": False}),
        ("shop.taxed(shop.moon)", {"shop.taxed": True, "shop.moon": False}),
        ("Color.RED.value + Color.BLUE", {"Color.RED": True, "Color.BLUE": False}),
        ("Color.name", {"Color.name": True}),
        ("tax.__name__, Cart.__mro__", {"tax": True, "Cart": True}),
        ("helper() + unknown()", {"helper": True}),
        ("Square.area, Square.volume", {"Square.area": True, "Square.volume": False}),
        ("from shop.tax import Cart, nothing", {"Cart": True, "nothing": False}),
        ("import shop.nowhere", {"shop.nowhere": False}),
        ("import shop._speedups, shop.wire_pb2", {}),
    ],
)
def test_names_of_the_project_are_known_or_made_up(shop: ProjectNames, line: str, found: dict[str, bool]) -> None:
    assert read(shop, line) == found


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("os.nothing + framework.nothing", ""),
        ("Page.nothing, Late.nothing, Starred.nothing, Meta.nothing", "Page Late Starred Meta"),
        ("made.nothing + stars.nothing", "made stars"),
        ("Cart.patched + Cart.also", "Cart"),
        ("x.tax.gone", ""),
        ("Cart().gone", "Cart"),
        ("'tax.gone'", ""),
        ("undefined.gone", ""),
    ],
)
def test_an_uncertain_name_is_never_called_made_up(shop: ProjectNames, line: str, known: str) -> None:
    assert read(shop, line) == dict.fromkeys(known.split(), True)


@pytest.mark.parametrize("head", ["def run(tax):", "def run(x, tax=1):"])
def test_a_local_name_hides_an_import(shop: ProjectNames, head: str) -> None:
    assert read(shop, "tax.gone", head=head) == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("self.go() + self.add() + self.sum", {"self.go": True, "self.add": True, "self.sum": True}),
        ("self.total", {"self.total": True}),
        ("self.nothing", {"self.nothing": False}),
        ("self.__dict__", {}),
        ("self.new = self.old", {"self.old": False}),
        ("(lambda: self.nothing)()", {"self.nothing": False}),
    ],
)
def test_members_of_self_are_known_or_made_up(shop: ProjectNames, line: str, found: dict[str, bool]) -> None:
    assert read(shop, line, head=METHOD) == found


def test_a_base_class_may_use_members_of_its_subclasses(shop: ProjectNames) -> None:
    head = "class Shape:\n    def area(self):"
    assert read(shop, "self.width + self.depth", head=head, path="shop/mix.py") == {
        "self.width": True, "self.depth": False,
    }  # fmt: skip
    assert read(shop, "self.name", head="class LogMixin:\n    def log(self):", path="shop/mix.py") == {}


def test_a_member_that_the_code_assigns_is_known(shop: ProjectNames) -> None:
    code = "class Pay:\n    def go(self):\n        self.late = 1\n        return self.late\n"
    assert [(one.name, one.known) for one in shop.readings("shop/pay.py", code)][-1] == ("self.late", True)


def test_the_position_of_a_name_is_that_in_the_code(shop: ProjectNames) -> None:
    [one] = shop.readings("shop/pay.py", f"{IMPORTS}\ny = 'ü', tax.gone\n", start=(9, 0))
    assert (one.line, one.column, one.known) == (9, 9, False)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="abself.tx()[]{}:,='\"\n\\ #@ü", max_size=60))
def test_any_text_is_read_without_an_error(shop: ProjectNames, text: str) -> None:
    shop.readings("shop/pay.py", f"{IMPORTS}class Pay:\n    def go(self):\n        {text}")
