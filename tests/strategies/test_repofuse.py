import dataclasses

import pytest

from ctxbench.bench.code_tokens import count
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Place
from ctxbench.strategies import BlockKind, Prompt, resolve
from ctxbench.strategies.repofuse import definitions, stub
from tests.strategies.projects import JAVA, PAY, Scripted, case

STORE = '''\
"""Stores."""
import abc

from shop.rules import round_up


class Base(abc.ABC):
    """What every store can do."""

    limit = 3  # at most

    def open(self):
        # Nothing to do.
        return self


class CartStore(Base):
    def load(self, user):
        return self.carts[user]

    def close(self): return None
'''
ROUND_UP = "@cache\ndef round_up(amount):\n    return amount + 1"
FILES = {
    "shop/__init__.py": "from shop.store import CartStore as CartStore\n",
    "shop/store.py": STORE,
    "shop/rules.py": f"# Prices.\nRATE = 2\n\n\n{ROUND_UP}\n\n\ndef other():\n    pass\n",
    "shop/extra.py": "def one():\n    pass\n\n\ndef _two():\n    pass\n",
}


def _found(before: str, path: str = "shop/pay.py", files: dict[str, str] = FILES) -> list[tuple[str, str, bool]]:
    query, repo = case(files, path, before)
    found = definitions(query, repo)
    return [(piece.path, piece.text.split("\n")[0], piece.kind is BlockKind.API) for piece in found]


def test_a_stub_has_no_bodies_and_no_comments() -> None:
    assert stub(STORE, PYTHON).split("\n") == [
        '"""Stores."""',
        "import abc",
        "from shop.rules import round_up",
        "class Base(abc.ABC):",
        '    """What every store can do."""',
        "    limit = 3",
        "    def open(self):",
        "        ...",
        "class CartStore(Base):",
        "    def load(self, user):",
        "        ...",
        "    def close(self): ...",
    ]
    assert stub(JAVA["com/acme/shop/Cart.java"], JAVA_LANGUAGE).split("\n") == [
        "package com.acme.shop;",
        "public class Cart extends Base {",
        "    private int total;",
        "    public Cart(String owner) { ... }",
        "    public void addItem(String itemId, int quantity) { ... }",
        "    public Invoice checkout(Card card, boolean express) throws PayException { ... }",
        "}",
    ]


def test_a_broken_file_still_has_a_stub() -> None:
    assert "def f(a):" in stub("def f(a):\n    return 1\n\nclass (:\n", PYTHON)
    assert stub("", JAVA_LANGUAGE) == ""


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("from shop.rules import round_up\n", [("shop/rules.py", "@cache", False)]),
        ("from shop.rules import round_up as up, RATE\nx = up(", [("shop/rules.py", "@cache", False)]),
        ("from .rules import round_up\n", [("shop/rules.py", "@cache", False)]),
        ("from shop import CartStore\n", [("shop/store.py", "class CartStore(Base):", True)]),
        ("import shop.extra\n", [("shop/extra.py", "def one():", True)]),
        (
            "import shop.rules\nx = shop.rules.round_up(1)\n",
            [("shop/rules.py", "RATE = 2", True), ("shop/rules.py", "@cache", False)],
        ),
        ("from shop import extra\n", [("shop/extra.py", "def one():", True)]),
        ("from shop.extra import *\nx = one(", [("shop/extra.py", "def one():", False)]),
        ("from shop.extra import *\nx = _two(", []),
        (
            "from shop.store import CartStore\nx = CartStore.load(",
            [("shop/store.py", "class CartStore(Base):", True), ("shop/store.py", "    def load(self, user):", False)],
        ),
        (
            "from shop.store import Base\nclass Mine(Base):\n    def open(self):\n        x = ",
            [("shop/store.py", "class Base(abc.ABC):", True), ("shop/store.py", "    def open(self):", False)],
        ),
        ("import os\nfrom numpy import array\nx = array(", []),
        ("def here():\n    pass\n\n\nx = here(", []),
        ("", []),
        ("def broken(:\nfrom shop.rules import round_up\nx = (", [("shop/rules.py", "@cache", False)]),
    ],
)
def test_definitions_are_found_for_the_names_in_a_python_file(before: str, found: list[tuple[str, str, bool]]) -> None:
    assert _found(before) == found


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ("import com.acme.shop.Cart;", ["public class Cart extends Base {"]),
        ("import com.acme.shop.*;", ["public class Invoice {"]),
        ("import static com.acme.shop.Cart.LIMIT;", ["public class Cart extends Base {"]),
        ("import static com.acme.shop.Cart.*;", ["public class Cart extends Base {"]),
        ("import java.util.List;\nimport com.acme.none.Cart;", []),
        ("import com.acme.shop.Box.Lid;", ["public static class Lid {"]),
    ],
)
def test_definitions_are_found_for_the_imports_of_a_java_file(imports: str, found: list[str]) -> None:
    box = "package com.acme.shop;\npublic class Box {\n    public static class Lid {\n        int a;\n    }\n}\n"
    before = f"package com.acme.pay;\n{imports}\nclass Pay {{\n    Invoice pay() {{ return "
    files = {f"src/{path}": text for path, text in {**JAVA, "com/acme/shop/Box.java": box}.items()}
    assert [text for _, text, _ in _found(before, "src/com/acme/pay/Pay.java", files)] == found


def _prompt(spec: str, before: str, path: str = "shop/pay.py", files: dict[str, str] = FILES) -> Prompt:
    return resolve(spec)(*case(files, path, before), Scripted())


PYTHON_PROMPT = """\
# Here are some relevant code fragments from other files of the repo:

# the below code fragment is found in shop/rules.py
# @cache
# def round_up(amount):
#     return amount + 1

# the below code fragment is found in shop/store.py
# class CartStore(Base):
#     def load(self, user):
#         ...
#     def close(self): ...

from shop.store import CartStore
from shop.rules import round_up

amount = 3
amount = round_up(amount"""


def test_the_python_prompt_equals_the_expected_text() -> None:
    before = PYTHON_PROMPT[PYTHON_PROMPT.index("from shop.store") :]
    prompt = _prompt("lc.repofuse(encoder=jaccard, analogies=0)", before)
    assert prompt.text == PYTHON_PROMPT
    assert [(b.kind, b.places) for b in prompt.blocks[1:]] == [
        (BlockKind.SIMILAR, (Place(path="shop/rules.py", start=4, end=7),)),
        (BlockKind.API, (Place(path="shop/store.py", start=16, end=21),)),
        (BlockKind.INFILE, (Place(path="shop/pay.py", start=0, end=5),)),
    ]
    scores = [b.score for b in prompt.blocks[1:-1]]
    assert scores == sorted(scores, key=lambda score: -(score or 0))


JAVA_PROMPT = """\
// Here are some relevant code fragments from other files of the repo:

// the below code fragment is found in com/acme/shop/Invoice.java
// public class Invoice {
//     private final int sum;
//     public Invoice(int sum) { ... }
//     public int sum() { ... }
// }

// the below code fragment is found in com/acme/shop/Cart.java
// public class Cart extends Base {
//     private int total;
//     public Cart(String owner) { ... }
//     public void addItem(String itemId, int quantity) { ... }
//     public Invoice checkout(Card card, boolean express) throws PayException { ... }
// }

"""


def test_the_java_prompt_equals_the_expected_text() -> None:
    spec = "lc.repofuse(encoder=jaccard, analogies=0)"
    assert _prompt(spec, PAY, "com/acme/pay/Pay.java", JAVA).text == JAVA_PROMPT + PAY


def test_an_analogy_is_the_chunk_after_the_similar_one() -> None:
    lines = [f"alpha_{i} = {i}" if i % 3 else "" for i in range(60)]
    files = {"a.py": "\n".join(lines) + "\n", "b.py": "beta = 1\n"}
    filled = [line for line in lines if line]
    query, repo = case(files, "main.py", "\n".join(filled[10:20]) + "\nx = ")
    prompt = resolve("lc.repofuse(encoder=bm25, analogies=1)")(query, repo, Scripted())
    (block,) = [b for b in prompt.blocks if b.kind is BlockKind.SIMILAR]
    assert (
        block.text
        == "# the below code fragment is found in a.py\n" + "".join(f"# {line}\n" for line in filled[20:30]) + "\n"
    )
    rows = [row for place in block.places for row in range(place.start, place.end)]
    assert [lines[row] for row in rows] == filled[20:30] and len(block.places) == 5
    last = resolve("lc.repofuse(encoder=bm25, analogies=1)")(*case(files, "main.py", "beta = 2\nbeta"), Scripted())
    assert "# beta = 1\n" in last.text  # no chunk follows it


def test_chunks_of_the_target_file_are_not_analogies() -> None:
    before = "\n".join(f"alpha_{i} = {i}" for i in range(40)) + "\nalpha_3"
    query, repo = case({"a.py": "alpha_3 = 1\n"}, "main.py", before)
    prompt = resolve("lc.repofuse(encoder=bm25)")(query, repo, Scripted())
    assert [b.places[0].path for b in prompt.blocks if b.kind is BlockKind.SIMILAR] == ["a.py"]


def test_packing_stops_at_the_first_block_that_does_not_fit() -> None:
    before = "from shop.store import CartStore, Base\nfrom shop.rules import round_up\nx = CartStore.load(user)\n"
    spec = "lc.repofuse(encoder=jaccard, analogies=0, budget={})"
    whole = _prompt(spec.format(4096), before)
    blocks = list(whole.blocks[:-1])
    assert len(blocks) > 3 and whole.dropped == ()
    for taken in range(1, len(blocks)):
        budget = sum(count(block.text) for block in blocks[: taken + 1])
        assert list(_prompt(spec.format(budget), before).blocks[:-1]) == blocks[: taken + 1]
        short = _prompt(spec.format(budget - 1), before)
        assert list(short.blocks[:-1]) == (blocks[:taken] if taken > 1 else [])
        left_out = [(d.places, d.tokens) for d in short.dropped]
        assert left_out == [(b.places, count(b.text)) for b in blocks[taken:]]


def test_equal_pieces_are_shown_once() -> None:
    files = {"a.py": "def one():\n    return 1\n"}
    before = "from a import one\nimport a\none()\na.one()\n"
    prompt = _prompt("lc.repofuse(encoder=jaccard)", before, "main.py", files)
    texts = [b.text for b in prompt.blocks if b.kind in (BlockKind.SIMILAR, BlockKind.API)]
    assert len(texts) == len(set(texts)) == 2  # the function, which is also the only chunk, and the module's stub


def test_without_candidates_only_the_target_file_is_shown() -> None:
    for spec in ("lc.repofuse(encoder=bm25)", "lc.repofuse(encoder=bm25, rationale=off, analogies=0)"):
        prompt = _prompt(spec, "x = ", files={})
        assert prompt.text == "x = " and prompt.flags == ("no_candidates",)


def test_masked_imports_are_flagged() -> None:
    query, repo = case({}, "main.py", "x = ")
    query = dataclasses.replace(query, benchmark="projbench")
    for given, flags in (("rationale=on", ("no_candidates", "masked_imports")), ("rationale=off", ("no_candidates",))):
        assert resolve(f"lc.repofuse(encoder=bm25, {given})")(query, repo, Scripted()).flags == flags
