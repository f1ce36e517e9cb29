"""Which functions of a Python file may be asked for, and where they begin and end."""

from __future__ import annotations

from textwrap import dedent

import pytest

from ctxbench.bench.functions.candidates import Definitions
from ctxbench.bench.functions.python.static import definition_at, definitions
from ctxbench.bench.languages.python.asts import parse

SHOP = dedent(
    '''
    import functools


    @functools.cache
    def price(
        item: str,  # what
        *,
        rate: dict[str, int] = {"a": 1},
    ) -> "dict[str, int]":  # much
        """Return the price.

            Indented.
        """
        # The body begins here.
        return {item: rate[item]}
        # It ends here.

    # This is about the next one.
    class Cart:
        class Line:
            @property
            def total(self):
                """Return the total."""
                return self.count * 2

            @total.setter
            def total(self, value):
                """Set it."""
                self.count = value

        async def pay(self):
            """Pay."""
            async with self.lock:
                yield 1

        def plain(self):
            return 1


    try:
        def quick(x):
            "Be quick."
            def inner():
                """Not asked for."""
                return x
            return inner
    except ValueError:
        pass
    '''
).lstrip("\n")


def read(text: str) -> Definitions:
    tree = parse(dedent(text).lstrip("\n"))
    assert tree is not None
    return definitions(dedent(text).lstrip("\n"), tree)


def test_functions_and_methods_are_found_where_they_stand() -> None:
    found = read(SHOP)
    lines = SHOP.split("\n")
    assert [each.name for each in found.usable] == ["price", "Cart.Line.total", "Cart.pay", "quick"]
    assert (found.functions, found.documented, dict(found.drops)) == (6, 5, {"accessor": 1})
    price, total, pay, quick = found.usable
    assert lines[price.start] == "def price(", "decorators stand outside"
    assert lines[price.cursor.line] == "    # The body begins here." and price.cursor.column == 0
    assert lines[price.end - 1] == "    # It ends here.", "an indented comment belongs to the body"
    assert price.signature == dedent(
        """\
        def price(
            item: str,  # what
            *,
            rate: dict[str, int] = {"a": 1},
        ) -> "dict[str, int]":"""
    )
    assert price.docstring == "Return the price.\n\nIndented."
    assert total.signature == "def total(self):" and total.owners == ("Cart", "Line") and total.parameter == "self"
    assert pay.signature == "async def pay(self):" and lines[pay.end - 1].strip() == "yield 1"
    assert quick.signature == "def quick(x):" and quick.parameter == "", "its first parameter is no object"
    assert lines[quick.end - 1].strip() == "return inner"


def test_a_static_method_has_no_object() -> None:
    (found,) = read(
        '''
        class A:
            @staticmethod
            def f(x):
                """Do."""
                return x
        '''
    ).usable
    assert found.parameter == ""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('@overload\ndef f(x: int) -> int:\n    """Do."""\n    ...', "overload"),
        ('@typing.overload\ndef f(x: int) -> int:\n    """Do."""\n    return 1', "overload"),
        ('class A:\n    @abc.abstractmethod\n    def f(self):\n        """Do."""\n        return 1', "abstract"),
        ('def f():\n    """Do."""', "empty_body"),
        ('def f():\n    """Do."""\n    pass', "empty_body"),
        ('def f():\n    """Do."""\n    ...', "empty_body"),
        ('def f():\n    """Do."""\n    raise NotImplementedError', "empty_body"),
        ('def f():\n    """Do."""\n    raise NotImplementedError("later")', "empty_body"),
        ('def f(): "Do."; return 1', "shares_line"),
        (
            'if x:\n    def f():\n        """Do."""\n        return 1\nelse:\n    def f():\n        return 2',
            "shares_name",
        ),
    ],
)
def test_a_function_that_cannot_be_asked_for_is_counted(body: str, reason: str) -> None:
    found = read(body)
    assert found.usable == () and dict(found.drops) == {reason: 1}


@pytest.mark.parametrize("body", ["raise ValueError", "return None", "yield", "pass; return 1", "x: int = 1"])
def test_a_short_body_is_a_body(body: str) -> None:
    assert len(read(f'def f():\n    """Do."""\n    {body}').usable) == 1


def test_equal_code_is_recognised_whatever_its_layout_and_place() -> None:
    found = read(
        '''
        def f(x):
            """One."""
            return  x+1  # so


        def g(x):
            def inner(x):
                """Inner."""
                return x + 1
            return inner


        def h(x):
            return x + 2
        '''
    )
    (usable,) = found.usable
    assert found.bodies[usable.code] == 2


def test_what_this_python_cannot_read_is_none() -> None:
    assert parse("def f(:") is None
    assert parse("x = '\\d'") is not None, "an invalid escape is no fault"


def test_a_function_is_found_by_its_line_documented_or_not() -> None:
    text = dedent(
        '''
        @staticmethod
        def bare(
            x,
        ):
            # Said before.
            return x

        class Cart:
            def add(self, item):
                """Add it."""
                return item

            def empty(self):
                """Only this."""
        '''
    )
    tree = parse(text)
    assert tree is not None
    bare, add = definition_at(text, tree, 2), definition_at(text, tree, 9)
    assert bare is not None and add is not None
    assert (bare.name, bare.docstring, bare.start, bare.first, bare.end) == ("bare", "", 2, (6, 4), 7)
    assert bare.signature == "def bare(\n    x,\n):"
    assert (add.name, add.docstring, add.cursor.line, add.parameter) == ("Cart.add", "Add it.", 11, "self")
    assert definition_at(text, tree, 13) is None, "it has no body"
    assert definition_at(text, tree, 1) is None, "that is a decorator"
