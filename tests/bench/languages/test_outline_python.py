"""The outline of Python files."""

from textwrap import dedent

import pytest

from ctxbench.bench.languages.outline import Function, FunctionParameter, Outline
from ctxbench.bench.languages.python import PYTHON


def read(text: str) -> Outline:
    return PYTHON.outline(dedent(text).lstrip("\n"))


def only(text: str) -> Function:
    [function] = read(text).functions
    return function


SHOP = '''
    """Module."""
    import os

    # Not attached.

    # Attached,
    # both lines.
    @cached(
        size=3,
    )
    async def load(a, /, b: int = LIMIT, *rest: str, c=None, d=os.sep, **more) -> dict[str, int]:
        # first

        """Load it.

            Indented.
        """
        return {}
        # last

    if os.name:
        def later(): return 1
    else:
        def later(*, flag: bool):
            pass

    class Cart(
        Base,
    ):
        """A cart."""
        size = 1

        def __init__(self, owner=Owner):
            def helper(x):
                class Local:
                    def run(self): ...
            self.f = lambda y: y

        # of Inner
        class Inner:
            @staticmethod
            @other
            def make(): ...
'''


def test_functions_are_listed_with_their_classes_and_enclosing_functions() -> None:
    found = read(SHOP)
    assert [(each.qualified, each.inside) for each in found.functions] == [
        ("load", ""),
        ("later", ""),
        ("later", ""),
        ("Cart.__init__", ""),
        ("Cart.helper", "__init__"),
        ("Cart.Local.run", "helper"),
        ("Cart.Inner.make", ""),
    ]
    assert not found.broken


def test_a_function_is_read_with_all_its_parts() -> None:
    load = read(SHOP).functions[0]
    assert (load.lines, load.head, load.body) == ((5, 19), 10, (11, 19))
    assert load.decorators == ("@cached(\n    size=3,\n)",)
    assert load.modifiers == ("async",)
    assert load.parameters == (
        FunctionParameter(name="a", text="a"),
        FunctionParameter(name="b", text="b: int = LIMIT", default_name="LIMIT", annotated=True),
        FunctionParameter(name="rest", text="*rest: str", starred=True, annotated=True),
        FunctionParameter(name="c", text="c=None"),
        FunctionParameter(name="d", text="d=os.sep"),
        FunctionParameter(name="more", text="**more", starred=True),
    )
    assert load.parameters_text == "a, /, b: int = LIMIT, *rest: str, c=None, d=os.sep, **more"
    assert load.returns == "dict[str, int]"
    assert load.header == f"async def load({load.parameters_text}) -> dict[str, int]"
    assert load.docstring == "Load it.\n\nIndented."
    assert (load.constructor, load.has_body, load.throws) == (False, True, "")


def test_a_bare_star_and_a_tuple_parameter_are_tolerated() -> None:
    function = only("def f(*, a, (b, c)=0, *args, **kw): ...\n")
    assert [each.name for each in function.parameters if each.name.isidentifier()] == ["a", "args", "kw"]
    assert [each.starred for each in function.parameters][-2:] == [True, True]


def test_a_class_is_read_with_its_lines_and_header() -> None:
    cart, local, inner = read(SHOP).types
    assert (cart.name, cart.header, cart.kind) == ("Cart", "class Cart(\n    Base,\n)", "class")
    assert (cart.lines, cart.head) == ((26, 43), 26)
    assert (local.header, local.lines) == ("class Local", (34, 36))
    assert (inner.lines, inner.head) == ((38, 43), 39)


def test_only_a_method_can_be_a_constructor() -> None:
    assert [each.name for each in read(SHOP).functions if each.constructor] == ["__init__"]
    assert not only("def __init__(self): ...\n").constructor


def test_a_body_may_be_on_the_line_of_its_head() -> None:
    later = read(SHOP).functions[1]
    assert (later.lines, later.body) == ((21, 22), (21, 22))


def test_a_function_without_a_body_is_listed() -> None:
    found = read("class A:\n    def f(self):\n\n    def g(self):\n        return 1\n")
    assert [(each.qualified, each.has_body, each.body) for each in found.functions] == [
        ("A.f", False, (2, 2)),
        ("A.g", True, (4, 5)),
    ]
    assert only("def f(x):").has_body is False


@pytest.mark.parametrize(
    ("above", "start"),
    [
        ("# one\n", 0),
        ("# one\n# two\n", 0),
        ("# one\n\n# two\n", 2),
        ("x = 1\n# two\n", 1),
        ("# one\n\n", 2),
        ("  # indented\n", 1),
        ("x = '''\n# a text'''\n", 2),
        ("if x:\n    pass\n    # inside\n", 3),
    ],
)
def test_attached_comments_belong_to_the_function(above: str, start: int) -> None:
    assert only(f"{above}def f(): ...\n").lines[0] == start


@pytest.mark.parametrize(
    ("below", "end"),
    [
        ("", 2),
        ("    # its own\n", 3),
        ("\n    # its own\n", 4),
        ("# not its own\n", 2),
        ("\n\nx = 1\n", 2),
        ("# not its own\n    # nor this\n", 2),
    ],
)
def test_only_indented_comments_at_the_end_belong_to_the_function(below: str, end: int) -> None:
    assert only(f"def f():\n    pass\n{below}").lines[1] == end


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("'''One.'''", "One."),
        ('"One\\n\\ttwo."', "One\ntwo."),
        ('r"C:\\new"', "C:\\new"),
        ('u"One."', "One."),
        ('"""\\d is no escape, \\x41 and \\u0042 are."""', "\\d is no escape, A and B are."),
        ('"""One \\\n    line."""', "One     line."),
        ('"One " "two."', "One two."),
        ('"\\N{BULLET}"', "•"),
        ('"""größe"""', "größe"),
        ('f"One {x}."', ""),
        ('b"One."', ""),
        ('"One" + x', ""),
        ("1", ""),
    ],
)
def test_docstrings_are_read_by_pythons_rules(literal: str, expected: str) -> None:
    assert only(f"def f():\n    {literal}\n    return 1\n").docstring == expected


def test_code_cut_at_the_cursor_does_not_hide_other_functions() -> None:
    found = read(
        """
        class Cart:
            def add(self, item):
                pass

            def total(self, rate):
                lines = [
                    self.price(line,
                        "open
        """
    )
    assert found.broken
    assert [(each.qualified, each.lines) for each in found.functions] == [("Cart.add", (1, 3)), ("Cart.total", (4, 8))]


def test_an_incomplete_header_is_left_out_with_its_decorators() -> None:
    found = read(
        """
        class Cart:
            def add(self): ...

            # The total.
            @property

            # Of all.
            @cached(
                size=1,
            )
            def total(sel
        """
    )
    assert [(each.qualified, each.lines) for each in found.functions] == [("Cart.add", (1, 2))]


def test_every_cut_keeps_the_functions_before_it() -> None:
    text = dedent(SHOP).lstrip("\n")
    whole = PYTHON.outline(text).functions
    for cut in range(0, len(text), 4):
        line = text.count("\n", 0, cut)
        kept = {each.qualified: each for each in PYTHON.outline(text[:cut]).functions}
        for function in whole:
            if function.lines[1] <= line and function.name != "later":
                assert kept[function.qualified].lines == function.lines, text[:cut]
            elif function.body[0] < line < function.lines[1]:
                assert kept[function.qualified].lines[0] == function.lines[0], text[:cut]


@pytest.mark.parametrize(
    "text", ["", "\n", "def", "def (", "class", "class :\n  def f(", "@x", ")(", "'''", "\x00", "é = 'ü'"]
)
def test_any_text_has_an_outline(text: str) -> None:
    assert PYTHON.outline(text).functions == ()
