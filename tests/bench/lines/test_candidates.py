"""Which lines become candidates, and which imports are masked for them."""

from pathlib import Path

import pytest

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.lines.candidates import LineCandidate, analyse, candidates
from tests.helpers.trees import make_snapshot

CART = {"shop/__init__.py": "", "shop/cart.py": "class Cart:\n    pass\n\ndef total(x):\n    return x\n\nRATE = 1\n"}


def of(tmp_path: Path, text: str) -> tuple[list[LineCandidate], dict[str, int]]:
    made = make_snapshot(tmp_path, {**CART, "app.py": text})
    facts = analyse(made)
    loads = PYTHON.resolve(facts)
    found, drops = candidates(made.texts["app.py"].split("\n"), facts["app.py"], loads["app.py"])
    return found, dict(drops)


MASKS = {
    "first use": ("from shop.cart import Cart\nx = Cart(1)\ny = Cart(2)\n", [(1, ((0, 1),), False), (2, (), False)]),
    "an import of several lines": (
        "from shop.cart import (\n    Cart,\n    total,\n)\nx = total(1)\n",
        [(4, ((0, 4),), False)],
    ),
    "a statement shared with a used name": (
        "from shop.cart import Cart, total\nx = Cart(1)\ny = total(2)\n",
        [(1, ((0, 1),), False), (2, ((0, 1),), True)],
    ),
    "two first uses, two imports": (
        "from shop.cart import Cart\nfrom shop.cart import total\nx = total(Cart())\n",
        [(2, ((0, 1), (1, 2)), False)],
    ),
    "one first use of two": (
        "from shop.cart import Cart\nfrom shop.cart import total\nx = Cart(1)\ny = total(Cart())\n",
        [(2, ((0, 1),), False), (3, ((1, 2),), False)],
    ),
    "used in a header before": ("from shop.cart import Cart\ndef f(x: Cart):\n    y = Cart(1)\n", [(2, (), False)]),
    "used in an f-string before": ("from shop.cart import RATE\nf'{RATE}'\nx = f(RATE)\n", [(2, (), False)]),
    "used on a short line before": ("from shop.cart import RATE\nRATE\nx = f(RATE)\n", [(2, (), False)]),
    "import inside the function": (
        "def f():\n    from shop.cart import Cart\n    return Cart(1)\n",
        [(2, ((1, 2),), False)],
    ),
    "the name imported twice": (
        "from shop.cart import RATE\ndef f():\n    from shop.cart import RATE\n    return g(RATE)\n",
        [(3, ((0, 1), (2, 3)), False)],
    ),
    "import after the line": ("def f():\n    return Cart(1)\nfrom shop.cart import Cart\n", [(1, (), False)]),
    "star": ("from shop.cart import *\nx = Cart(1)\n", [(1, ((0, 1),), False)]),
    "star that other names need": (
        "from shop.cart import *\nx = Cart(1)\ny = total(2)\n",
        [(1, ((0, 1),), False), (2, ((0, 1),), True)],
    ),
}


@pytest.mark.parametrize(("text", "expected"), MASKS.values(), ids=MASKS)
def test_the_import_of_a_first_use_is_masked(
    tmp_path: Path, text: str, expected: list[tuple[int, tuple[tuple[int, int], ...], bool]]
) -> None:
    found, _ = of(tmp_path, text)
    assert [(each.line, each.masked, each.shared) for each in found] == expected


DROPS = {
    "header": ("from shop.cart import Cart\ndef f(x=Cart(1)): pass\n", {"header": 1}),
    "decorator": ("from shop.cart import total\n@total(1, 2)\ndef f(): pass\n", {"decorator": 1}),
    "few tokens": ("from shop.cart import total\ntotal()\n", {"few_tokens": 1}),
    "string": ("from shop.cart import RATE\nprint(f'{RATE}', 1, 2)\n", {"in_string": 1}),
    "multi-line string": ("from shop.cart import RATE\nprint(RATE, 1, '''\n''')\n", {"multiline_string": 1}),
    "long": (f"from shop.cart import RATE\nx = [RATE, {'1, ' * 200}]\n", {"long_line": 1}),
    "import": ("from shop.cart import RATE; x = f(RATE)\n", {"import": 1}),
}


@pytest.mark.parametrize(("text", "expected"), DROPS.values(), ids=DROPS)
def test_lines_that_cannot_be_candidates_are_counted(tmp_path: Path, text: str, expected: dict[str, int]) -> None:
    found, drops = of(tmp_path, text)
    assert (found, drops) == ([], expected)


def test_a_candidate_lists_only_the_uses_on_its_line(tmp_path: Path) -> None:
    [made, _], _ = of(tmp_path, "from shop import cart\nvalue = [1, 2, cart\n    .total(1), cart.RATE, cart.Cart()]\n")
    assert [use.name for use in made.uses] == ["cart"]


def test_a_cursor_can_precede_a_name_in_an_f_string(tmp_path: Path) -> None:
    [line], _ = of(tmp_path, "from shop.cart import total\nvalue = f'{total(1)}' + str(total(2))\n")
    assert line.masked == ((0, 1),) and line.text[line.column :].startswith("total(1)")
