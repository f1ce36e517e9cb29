"""Resolution of the names that a Python file uses from its own repository."""

from __future__ import annotations

from textwrap import dedent

import pytest

from ctxbench.bench.languages.base import InternalLoad
from ctxbench.bench.languages.python import PYTHON

SHOP = {
    "shop/__init__.py": "from .cart import Cart as Basket, total\nfrom . import rules\n__all__ = ['Basket', 'total']\n",
    "shop/cart.py": "class Cart:\n    pass\n\ndef total(cart):\n    return 0\n\nRATE = 1\n_hidden = 2\n",
    "shop/rules.py": "from shop.cart import *\nfrom os.path import join\ndef apply(x):\n    return x\n",
    "shop/deep/__init__.py": "",
    "shop/deep/inner.py": "LIMIT = 3\n",
    "shop/facade.py": "from shop import Basket\nfrom .rules import *\n",
    "shop/types.py": "type Money = int | float\n",
    "shop/lazy.py": "def __getattr__(name):\n    return name\n",
}


def uses(files: dict[str, str], path: str) -> tuple[InternalLoad, ...]:
    language = PYTHON
    facts = {name: language.analyse(name, dedent(text).lstrip("\n")) for name, text in sorted(files.items())}
    return language.resolve(facts)[path]


def first_uses(files: dict[str, str], path: str) -> list[str]:
    """Return the line, name, module and kind of each load's first use."""
    first = [(load.line, load.uses[0]) for load in uses(files, path)]
    return [f"{line} {use.name} {use.module} {use.kind}" for line, use in first]


CASES = {
    "absolute from": ("from shop.cart import Cart\nx = Cart()\n", ["1 Cart shop.cart class"]),
    "alias": ("from shop.cart import Cart as C\nx = C()\n", ["1 C shop.cart class"]),
    "constant": ("from shop.cart import RATE\nx = RATE\n", ["1 RATE shop.cart variable"]),
    "function": ("from shop.cart import total\ntotal(1)\n", ["1 total shop.cart function"]),
    "submodule": ("from shop import cart\ncart.total(1)\n", ["1 cart shop.cart module"]),
    "re-export with as": ("from shop import Basket\nBasket()\n", ["1 Basket shop.cart class"]),
    "re-export chain": ("from shop.facade import Basket\nBasket()\n", ["1 Basket shop.cart class"]),
    "re-export through stars": ("from shop.facade import RATE\nRATE\n", ["1 RATE shop.cart variable"]),
    "star by __all__": (
        "from shop import *\ntotal(Basket())\nrules\n",
        ["1 total shop.cart function", "1 Basket shop.cart class"],
    ),
    "star without __all__": ("from shop.cart import *\nCart()\n_hidden\nprint(1)\n", ["1 Cart shop.cart class"]),
    "dotted": ("import shop.deep.inner\nshop.deep.inner.LIMIT\n", ["1 shop.deep.inner shop.deep.inner module"]),
    "dotted as": ("import shop.deep.inner as i\ni.LIMIT\n", ["1 i shop.deep.inner module"]),
    "longest dotted import wins": (
        "import shop.deep\nimport shop.deep.inner\nshop.deep.inner.LIMIT\n",
        ["2 shop.deep.inner shop.deep.inner module"],
    ),
    "package of a dotted import": ("import shop.cart\nshop.total(1)\n", ["1 shop shop module"]),
    "made at run time": ("from shop.lazy import thing\nthing\n", ["1 thing shop.lazy unknown"]),
    "in a function": ("def f():\n    from shop.cart import Cart\n    return Cart()\n", ["2 Cart shop.cart class"]),
    "if TYPE_CHECKING": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop.cart import Cart\nx: Cart = None\n",
        ["3 Cart shop.cart class"],
    ),
    "try with a fallback": (
        "try:\n    from shop.cart import RATE\nexcept ImportError:\n    RATE = 2\nprint(RATE)\n",
        ["4 RATE shop.cart variable"],
    ),
    "several lines": ("from shop.cart import (\n    Cart,\n    total,\n)\ntotal(1)\n", ["4 total shop.cart function"]),
    "in an f-string": ("from shop.cart import RATE\nx = f'{RATE}'\n", ["1 RATE shop.cart variable"]),
    "in a comprehension": ("from shop.cart import total\n[total(x) for x in y]\n", ["1 total shop.cart function"]),
    "what a comprehension goes through first": (
        "from shop.cart import total\n[total for total in total(1) for total in total]\n",
        ["1 total shop.cart function"],
    ),
    "comprehension in a class": (
        "from shop.cart import RATE\nclass A:\n    RATE = [1]\n    y = [RATE\n        for x in RATE for y in x]\n",
        ["3 RATE shop.cart variable"],
    ),
    "decorator and base": (
        "from shop.cart import Cart, total\n@total\nclass A(Cart):\n    pass\n",
        ["1 total shop.cart function", "2 Cart shop.cart class"],
    ),
    "keyword value": ("from shop.cart import RATE\nf(RATE=RATE)\n", ["1 RATE shop.cart variable"]),
    "match class pattern": (
        "from shop.cart import Cart\nmatch x:\n    case Cart(items=[]):\n        pass\n",
        ["2 Cart shop.cart class"],
    ),
    "bound of a type parameter": (
        "from shop.cart import Cart\ndef f[T: (int, Cart)](x): ...\n",
        ["1 Cart shop.cart class"],
    ),
    "value of a type alias": ("from shop.cart import Cart\ntype A[T] = Cart\n", ["1 Cart shop.cart class"]),
    "type alias of a module": ("from shop.types import *\nx: Money = 1\n", ["1 Money shop.types variable"]),
    # These texts do not use the repository's own API.
    "standard library": ("import os\nos.path\n", []),
    "unknown package": ("from numpy import array\narray([1])\n", []),
    "passed on from outside": ("from shop.rules import join\njoin('a')\n", []),
    "parameter hides": ("from shop.cart import Cart\ndef f(Cart):\n    return Cart()\n", []),
    "local assignment hides": ("from shop.cart import total\ndef f():\n    total = 1\n    return total\n", []),
    "lambda parameter hides": ("from shop.cart import total\nlambda total: total\n", []),
    "comprehension target hides": ("from shop.cart import total\n[total for total in y]\n", []),
    "walrus hides": ("from shop.cart import total\ndef f():\n    return (total := 1) + total\n", []),
    "with target hides": ("from shop.cart import total\ndef f():\n    with x as total:\n        total()\n", []),
    "for target hides": ("from shop.cart import total\ndef f():\n    for total in x:\n        total()\n", []),
    "except name hides": (
        "from shop.cart import total\ndef f():\n    try:\n        g()\n    except E as total:\n        total()\n",
        [],
    ),
    "capture hides": (
        "from shop.cart import total\ndef f(x):\n    match x:\n        case [total, *_]:\n            total()\n",
        [],
    ),
    "later rebinding hides": ("from shop.cart import total\ntotal = wrap()\ntotal(1)\n", []),
    "class of the same name hides": ("from shop.cart import Cart\nclass Cart:\n    pass\nCart()\n", []),
    "type alias hides": ("from shop.cart import Cart\ntype Cart = dict\nx: Cart = 1\n", []),
    "type alias hides in its own value": ("from shop.cart import Cart\ntype Cart = list[Cart]\n", []),
    "type parameter of an alias hides": ("from shop.cart import Cart\ntype Pair[Cart] = tuple[Cart, Cart]\n", []),
    "type parameter of a function hides": (
        "from shop.cart import Cart\ndef f[Cart](x: Cart) -> Cart:\n    y: Cart = x\n",
        [],
    ),
    "type parameter of a class hides": (
        "from shop.cart import Cart\nclass A[Cart](B[Cart]):\n    def f(self, x: Cart):\n        y: Cart = x\n",
        [],
    ),
    "class name hides beside a method's type parameter": (
        "from shop.cart import Cart\nclass A:\n    Cart = int\n    def f[T](self, x: Cart): ...\n",
        [],
    ),
    "attribute is no load": ("from shop.cart import total\nx.total\n", []),
    "keyword name is no load": ("from shop.cart import total\nf(total=1)\n", []),
    "string and comment": ("from shop.cart import total\n'total'  # total\n", []),
    "store is no load": ("from shop.cart import total\ndef f():\n    global total\n    total = 1\n", []),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_names_are_resolved(text: str, expected: list[str]) -> None:
    assert first_uses({**SHOP, "app.py": text}, "app.py") == expected


RELATIVE = {
    "one dot": ("shop/app.py", "from .cart import Cart\nCart()\n", "Cart shop.cart class"),
    "one dot, module": ("shop/app.py", "from . import cart\ncart\n", "cart shop.cart module"),
    "two dots": ("shop/deep/app.py", "from ..cart import Cart\nCart()\n", "Cart shop.cart class"),
    "two dots, module": ("shop/deep/app.py", "from .. import cart\ncart\n", "cart shop.cart module"),
    "two dots, re-export": ("shop/deep/app.py", "from .. import Basket\nBasket\n", "Basket shop.cart class"),
    "package itself": ("shop/deep/__init__.py", "from .inner import LIMIT\nLIMIT\n", "LIMIT shop.deep.inner variable"),
    "own submodule": ("shop/deep/__init__.py", "from shop.deep import inner\ninner\n", "inner shop.deep.inner module"),
}


@pytest.mark.parametrize(("path", "text", "expected"), RELATIVE.values(), ids=RELATIVE)
def test_relative_imports_are_resolved(path: str, text: str, expected: str) -> None:
    assert first_uses({**SHOP, path: text}, path) == [f"1 {expected}"]


def test_relative_imports_beyond_the_repository_are_ignored() -> None:
    assert first_uses({**SHOP, "shop/app.py": "from ....cart import Cart\nCart()\n"}, "shop/app.py") == []


ROOTS = {
    "src layout": ({"src/shop/__init__.py": "", "src/shop/cart.py": "A = 1\n"}, "src/shop/app.py", "shop.cart"),
    "src layout, from tests": (
        {"src/shop/__init__.py": "", "src/shop/cart.py": "A = 1\n"},
        "tests/test_a.py",
        "shop.cart",
    ),
    "other root": ({"backend/shop/__init__.py": "", "backend/shop/cart.py": "A = 1\n"}, "tests/test_a.py", "shop.cart"),
    "namespace package": (
        {"src/acme/shop/__init__.py": "", "src/acme/shop/cart.py": "A = 1\n"},
        "app.py",
        "acme.shop.cart",
    ),
    "no __init__ at all": ({"src/acme/cart.py": "A = 1\n"}, "src/acme/app.py", "acme.cart"),
    "script beside": ({"tools/cart.py": "A = 1\n"}, "tools/app.py", "cart"),
    "tests as a package": ({"tests/__init__.py": "", "tests/cart.py": "A = 1\n"}, "tests/app.py", "tests.cart"),
    "folder called test": ({"test/cart.py": "A = 1\n"}, "test/sub/app.py", "test.cart"),
}


@pytest.mark.parametrize(("files", "path", "module"), ROOTS.values(), ids=ROOTS)
def test_modules_are_found_under_every_source_root(files: dict[str, str], path: str, module: str) -> None:
    [only] = first_uses({**files, path: f"from {module} import A\nA\n"}, path)
    assert only.split()[1::2] == ["A", "variable"]


SHADOWS = {
    "standard module": ({"tests/json.py": "loads = 1\n"}, "tests/app.py", "from json import loads\nloads\n"),
    "neighbour inside a package": (
        {"shop/__init__.py": "", "shop/rich.py": "a = 1\n"},
        "shop/app.py",
        "from rich import a\na\n",
    ),
    "fixture folder": ({"tests/data/rich/__init__.py": "a = 1\n"}, "shop.py", "from rich import a\na\n"),
    "namespace part": (
        {"otel/inst/requests/__init__.py": "a = 1\n", "x.py": "import otel.inst.requests\n"},
        "y.py",
        "from requests import a\na\n",
    ),
    "folder of scripts": ({"docker/run.py": "a = 1\n"}, "y.py", "import docker\ndocker.a\n"),
}


@pytest.mark.parametrize(("files", "path", "text"), SHADOWS.values(), ids=SHADOWS)
def test_foreign_modules_are_not_resolved_to_repository_files(files: dict[str, str], path: str, text: str) -> None:
    assert first_uses({**files, path: text}, path) == []


@pytest.mark.parametrize(
    ("text", "near", "uses_"),
    [
        ("from shop import rules\nx = (rules\n.apply(1))\n", ["rules"], ["rules", "rules.apply"]),
        ("from shop import rules\nx = rules.apply(\n1)\n", ["rules", "rules.apply"], ["rules", "rules.apply"]),
        ("import shop.cart\nx = (shop\n.cart.total(1))\n", ["shop"], ["shop.cart", "shop.cart.total"]),
        ("import shop.cart\nx = (shop.cart\n.total(1))\n", ["shop.cart"], ["shop.cart", "shop.cart.total"]),
    ],
)
def test_uses_on_the_next_line_are_not_near(text: str, near: list[str], uses_: list[str]) -> None:
    [load] = uses({**SHOP, "app.py": text}, "app.py")
    assert [use.name for use in load.near] == near
    assert [use.name for use in load.uses] == uses_


@pytest.mark.parametrize(
    "text",
    [
        "from shop.own import mine\ndef mine(): ...\ndef f():\n    from shop.own import mine\n    return mine(1)\n",
        "import shop.own\ndef mine(): ...\ndef f():\n    return shop.own.mine(1)\n",
        "class Mine: ...\ndef demo():\n    from shop.gate import Mine\n    return Mine(1)\n",
    ],
    ids=["name", "module", "passed on by another file"],
)
def test_a_file_that_imports_itself_has_no_internal_uses(text: str) -> None:
    assert first_uses({**SHOP, "shop/own.py": text, "shop/gate.py": "from shop.own import Mine\n"}, "shop/own.py") == []


def test_deleting_a_name_is_not_a_use() -> None:
    text = "from shop import cart, total\ndel total, (cart)\ndel cart[total]\n"
    assert first_uses({**SHOP, "app.py": text}, "app.py") == [
        "2 cart shop.cart module",
        "2 total shop.cart function",
    ]


def test_every_import_of_the_name_is_listed() -> None:
    text = (
        "try:\n    from shop.cart import RATE\nexcept ImportError:\n    from shop.lazy import RATE\n"
        "RATE\ndef f():\n    from shop.cart import RATE\n"
    )
    [load] = uses({**SHOP, "app.py": text}, "app.py")
    assert load.statements == ((1, 2), (3, 4), (6, 7))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from shop._fast import RATE", "from shop.cart import RATE"),
        ("from shop.cart import RATE", "from shop._fast import RATE"),
        ("from orjson import loads as RATE", "from shop.cart import RATE"),
        ("import RATE", "from shop import rules as RATE"),
        ("import rules as RATE", "from shop import rules as RATE"),
    ],
)
def test_both_imports_of_a_fallback_are_listed(first: str, second: str) -> None:
    other = "def f():\n    from json import loads as RATE\n    import RATE\n"
    text = f"try:\n    {first}\nexcept ImportError:\n    {second}\nRATE\n{other}"
    [load] = uses({**SHOP, "app.py": text}, "app.py")
    assert load.statements == ((1, 2), (3, 4))


def test_resolving_cyclic_imports_terminates() -> None:
    files = {"a/__init__.py": "from .b import *\nfrom .b import x\n", "a/b.py": "from . import *\nfrom a import x\n"}
    assert len(first_uses({**files, "app.py": "from a import x\nx\n"}, "app.py")) <= 1


def test_columns_count_characters() -> None:
    [load] = uses({**SHOP, "app.py": "from shop.cart import RATE\ny = 'é€𝄞' + RATE\n"}, "app.py")
    assert load.column == len("y = 'é€𝄞' + ")


def test_an_expression_of_3000_terms_is_analysed() -> None:
    text = "from shop.cart import RATE\nx = " + " + ".join(["RATE"] * 3000) + "\n"
    assert len(uses({**SHOP, "app.py": text}, "app.py")) == 3000


def test_lines_that_cannot_be_targets_are_barred_with_a_reason() -> None:
    text = dedent(
        '''
        from shop.cart import Cart, RATE, total
        @total(RATE)
        def f(
            a: Cart = RATE,
        ) -> Cart:
            """doc
            """
            return f"""
            {RATE} x y"""
        class A(Cart, x=RATE): pass
        async def g(x: Cart): return RATE
        '''
    ).lstrip("\n")
    facts = PYTHON.analyse("app.py", text)
    assert dict(facts.barred) == {
        1: "decorator",
        3: "header",
        4: "header",
        8: "multiline_string",
        9: "header",
        10: "header",
    }


def test_a_repository_with_init_py_in_its_root_is_resolved() -> None:
    files = {**SHOP, "__init__.py": "", "setup.py": "", "app.py": "from shop.cart import RATE\nx = RATE\n"}
    assert first_uses(files, "app.py") == ["1 RATE shop.cart variable"]
    assert first_uses(files, "shop/facade.py") == []
