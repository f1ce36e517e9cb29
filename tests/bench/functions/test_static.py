"""The functions of a Python file that can become samples, their positions, and the names that they need."""

from pathlib import Path
from textwrap import dedent, indent

import pytest

from ctxbench.bench.functions.candidates import Definitions
from ctxbench.bench.functions.mining import Level, Project, Spot
from ctxbench.bench.functions.python.static import definition_at, definitions, read_functions, uses_at
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import parse
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.sources import LocalSource
from ctxbench.bench.types import Cursor, Use
from tests.helpers.trees import make_snapshot

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


def test_functions_and_methods_are_found_with_their_positions() -> None:
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


def test_a_static_method_has_no_self_parameter() -> None:
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
def test_an_unusable_function_is_counted_with_its_reason(body: str, reason: str) -> None:
    found = read(body)
    assert found.usable == () and dict(found.drops) == {reason: 1}


@pytest.mark.parametrize("body", ["raise ValueError", "return None", "yield", "pass; return 1", "x: int = 1"])
def test_a_function_with_a_short_body_is_usable(body: str) -> None:
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


def test_a_function_is_found_by_its_line_with_or_without_a_docstring() -> None:
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


HEAD = """
import os
import json as j
import numpy as np
from itertools import *
from .store import Store, load_all
from . import rules
from .compat import yaml
try:
    import tomllib
except ImportError:
    tomllib = None

LIMIT = 3
limit_of = os.cpu_count


def helper(x):
    return -x


class Base:
    size = 1
"""
FILES = {
    "shop/__init__.py": "",
    "shop/store.py": "class Store: ...\ndef load_all(): ...\n",
    "shop/rules.py": "def round_up(x): ...\n",
    "shop/compat.py": "import yaml\n",
    "tests/test_shop.py": 'def helper():\n    """Documented, but a test."""\n    return 1\n',
}


def project(tmp_path: Path, files: dict[str, str]) -> Project:
    manifest = RepoManifest(
        name="demo",
        language=PYTHON,
        license="MIT",
        version="1",
        sources=(LocalSource(path=str(tmp_path)),),
        exclude=("examples/*",),
        tests=TestSuite(paths=("tests",)),
    )
    read = make_snapshot(tmp_path, files)
    return Project(manifest=manifest, root=tmp_path, snapshot=read, home=Home(tmp_path), lock=lambda *_: ())


def level_of(tmp_path: Path, body: str, *, method: bool = False) -> tuple[Level, tuple[Use, ...]]:
    function = f'def asked({"self, " * method}x, y=1):\n    """Do."""\n' + indent(dedent(body), "    ")
    text = HEAD + "\n\n" + (f"class Cart(Base):\n{indent(function, '    ')}" if method else function) + "\n"
    found = read_functions(project(tmp_path, {**FILES, "shop/pay.py": text}))
    (known,) = [each for each in found.functions if each.definition.name.endswith("asked")]
    return known.level, known.uses


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("return x + y", Level.SELF_CONTAINED),
        ("return sorted(len(each) for each in x)", Level.SELF_CONTAINED),
        ("helper = x\nreturn helper", Level.SELF_CONTAINED),
        ("def helper(z): return z\nreturn helper(x)", Level.SELF_CONTAINED),
        ("return asked(x - 1) if x else 0", Level.SELF_CONTAINED),
        ("return x.load_all(Store=1)", Level.SELF_CONTAINED),
        ("return os.path.join(x, j.dumps(y))", Level.SLIB),
        ("import re\nreturn re.sub(x, y)", Level.SLIB),
        ("return tomllib.loads(x)", Level.SLIB),
        ("return chain(x)", Level.SLIB),
        ("return f'{os.sep}'", Level.SLIB),
        ("return np.zeros(x)", Level.PLIB),
        ("from lxml import etree\nreturn etree.parse(os.fspath(x))", Level.PLIB),
        ("return helper(x)", Level.FILE),
        ("return LIMIT + np.one", Level.FILE),
        ("return limit_of()", Level.FILE),
        ("return Base().size", Level.FILE),
        ("return [Store for _ in helper(x)]", Level.PROJECT),
        ("return rules.round_up(x)", Level.PROJECT),
        ("from shop.store import Store as S\nreturn S()", Level.PROJECT),
        ("return yaml.load(x)", Level.PROJECT),
    ],
)
def test_the_level_of_a_function_follows_from_its_body(tmp_path: Path, body: str, level: Level) -> None:
    assert level_of(tmp_path, body)[0] is level


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("return x", Level.SELF_CONTAINED),
        ("return self.size + np.one", Level.CLASS),
        ("return len(self)", Level.CLASS),
        ("return super().asked(x)", Level.CLASS),
        ("return Cart(x)", Level.CLASS),
        ("return self.size + LIMIT", Level.FILE),
        ("return self.put(Store())", Level.PROJECT),
    ],
)
def test_the_level_of_a_method_follows_from_its_body(tmp_path: Path, body: str, level: Level) -> None:
    assert level_of(tmp_path, body, method=True)[0] is level


def test_uses_are_the_projects_names_that_the_body_reads(tmp_path: Path) -> None:
    _, uses = level_of(tmp_path, "s = Store()\nreturn s, rules.round_up(Store), os.sep")
    assert uses == (
        Use(name="Store", module="shop.store", kind="class"),
        Use(name="rules", module="shop.rules", kind="module"),
        Use(name="rules.round_up", module="shop.rules", kind="function"),
    )


def test_signature_and_decorators_do_not_raise_the_level(tmp_path: Path) -> None:
    text = HEAD + '\n@load_all\ndef asked(x: Store = LIMIT) -> Store:\n    """Do."""\n    return x\n'
    found = read_functions(project(tmp_path, {**FILES, "shop/pay.py": text}))
    assert [(each.level, each.uses) for each in found.functions] == [(Level.SELF_CONTAINED, ())]


@pytest.mark.parametrize(("place", "names"), [("tests/old.py", ["join", "first"]), ("old.py", ["first"])])
def test_a_copy_of_a_body_in_a_python_2_file_is_detected(tmp_path: Path, place: str, names: list[str]) -> None:
    text = 'def join(items, by):\n    """Join."""\n    items = list(items)\n    return by.join(items)\n'
    apart = 'def first(items):\n    """Find."""\n    return items[0]\n'
    old = text.replace("    ", "\t") + 'print "two"\n'
    found = read_functions(project(tmp_path, {"shop/text.py": text + apart, place: old}))
    assert [function.definition.name for function in found.functions] == names
    assert found.drops["body_elsewhere"] == 2 - len(names)


def test_left_out_functions_and_files_are_counted(tmp_path: Path) -> None:
    same = 'def {}(x):\n    """Do."""\n    return [x, x]\n'
    found = read_functions(
        project(
            tmp_path,
            {
                **FILES,
                "shop/one.py": same.format("one"),
                "shop/two.py": same.format("two") + 'def three(x):\n    """Do."""\n    return x\n',
                "shop/broken.py": "def f(:\n",
                "examples/use.py": 'def four(x):\n    """Do."""\n    return (x, 5)\n',
                "shop/five.py": 'def five(x):\n    """Do."""\n    return x, 5\n',
            },
        )
    )
    assert [each.definition.name for each in found.functions] == ["three"]
    assert dict(found.drops) == {"body_elsewhere": 3}, "copies in files that give no samples are seen too"
    assert found.hidden == ("tests/",)
    assert {key: found.counts[f"left_out_{key}"] for key in ("test", "excluded", "syntax_error")} == {
        "test": 1,
        "excluded": 1,
        "syntax_error": 1,
    }


def test_uses_are_found_for_a_function_at_a_given_place(tmp_path: Path) -> None:
    text = HEAD + "\n\ndef bare(x):\n    return rules.round_up(load_all(x))\n"
    made = project(tmp_path, {**FILES, "shop/pay.py": text})
    start = made.snapshot.texts["shop/pay.py"].partition("def bare")[0].count("\n")
    uses = uses_at(made)
    spot = Spot(path="shop/pay.py", name="bare", start=start, cursor=Cursor(line=start + 1, column=0), end=start + 2)
    assert {use.name for use in uses(spot)} == {"rules", "rules.round_up", "load_all"}, "it has no docstring"
    nowhere = Spot(path="shop/pay.py", name="x", start=0, cursor=Cursor(line=1, column=0), end=2)
    assert uses(nowhere) == ()
