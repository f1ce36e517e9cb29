"""API units: the text that they show, the keys that find them, and their summaries."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ctxbench.bench import languages
from ctxbench.bench.apis import (
    ask_with,
    post_process,
    released_templates,
    summary,
    summary_prompt,
    units,
)
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.units import Unit
from ctxbench.bench.types import Place

STORE = dedent(
    '''
    def apply_tax(amount: float, rate: float = 0.2) -> float:
        return amount

    @cached
    async def load_all(
        first,
        *rest: str,
    ):
        pass

    class Plain:
        """Nothing."""

    # Keeps carts.
    @dataclass
    class CartStore(Base, metaclass=Meta):
        def load(self, user_id): ...

        # Reads
        # the environment.
        @classmethod
        @retry(
            times=3)
        def from_env(cls) -> "CartStore": ...

        class Inner:
            def run(self) -> None:
                """Run it."""
    '''
).lstrip("\n")

CART = dedent(
    """
    package com.acme.shop;

    public class Cart extends Base implements Store {
        /** Pays. */
        public Invoice checkout(PaymentCard card, boolean express) throws PayException { return null; }

        @Override @Nullable
        protected <T> List<T> all(Class<T> kind,
                                  int... limits) { return null; }

        @JsonRoot
        public static class Builder {
            public Builder withOwner(String owner) { return this; }
        }

        private abstract static class Hidden { abstract void run(); }
        interface Shelf { int size(); }
    }
    """
).lstrip("\n")


def found(text: str, language: Language = PYTHON, **options: Any) -> dict[str, Unit]:
    path = "shop/store.py" if language == PYTHON else "com/acme/shop/Cart.java"
    made = units(path, text, language, **{"by": "usage", **options})
    assert list(made) == sorted(made, key=lambda unit: unit.place)
    assert len({unit.name for unit in made}) == len(made)
    return {unit.name: unit for unit in made}


def test_python_units_show_their_signatures() -> None:
    texts = {name: unit.text for name, unit in found(STORE).items()}
    assert found(STORE)["CartStore.load"].keys == ("cart_store.load(user_id)", "cart_store.load()")
    assert texts == {
        "apply_tax": "def apply_tax(amount: float, rate: float = 0.2) -> float",
        "load_all": "def load_all(\n    first,\n    *rest: str,\n)",
        "CartStore.load": "class CartStore(Base, metaclass=Meta):\n    \n    def load(self, user_id)",
        "CartStore.from_env": "class CartStore(Base, metaclass=Meta):\n    @classmethod\n    @retry(\n"
        '        times=3)\n    def from_env(cls) -> "CartStore"',
        "CartStore.Inner.run": "class Inner:\n    \n    def run(self) -> None",
    }


def test_java_units_show_their_signatures() -> None:
    texts = {name: unit.text for name, unit in found(CART, JAVA).items()}
    assert texts["Cart.checkout"] == (
        "public class Cart extends Base implements Store {\n"
        "    public Invoice checkout(PaymentCard card, boolean express) throws PayException;\n}"
    )
    assert texts["Cart.all"] == (
        "public class Cart extends Base implements Store {\n    @Override @Nullable\n"
        "    protected <T> List<T> all(Class<T> kind,\n    int... limits);\n}"
    )
    assert texts["Cart.Builder.withOwner"] == (
        "public class Cart extends Base implements Store {\n    @JsonRoot\n    public static class Builder {\n"
        "        public Builder withOwner(String owner);\n    };\n}"
    )


def test_places_include_comments_and_decorators() -> None:
    lines = STORE.split("\n")
    place = found(STORE)["CartStore.from_env"].place
    assert place == Place(path="shop/store.py", start=18, end=24)
    assert (lines[place.start], lines[place.end - 1]) == (
        "    # Reads",
        '    def from_env(cls) -> "CartStore": ...',
    )


def test_summary_units_contain_the_source() -> None:
    unit = found(STORE, by="summary")["CartStore.Inner.run"]
    assert unit.keys == ("inner.run()",)
    assert unit.code == 'def run(self) -> None:\n            """Run it."""'
    assert unit.text == found(STORE)["CartStore.Inner.run"].text
    unit = found(CART, JAVA, by="summary")["Cart.checkout"]
    assert unit.code.startswith("public Invoice checkout(") and unit.summary == "pays"
    decorated = found("class A:\n  @b\n  def f(): return (\n    1)  # c\n", by="summary")["A.f"]
    generic = found("class A[T: (int, str), U](B[T]):\n  def f[V](self, x: V): ...\n")["A.f"]
    assert generic.text == "class A(B[T]):\n    \n    def f(self, x: V)"
    assert decorated.code == "def f(): return (\n    1)  # c"
    assert found("class A { @B void f() { } int g() { return 1; } // c\n}", JAVA, by="summary")["A.g"].code.endswith(
        "}"
    )


def test_python_classes_without_a_constructor_get_a_unit() -> None:
    made = found(STORE, constructors=True)
    assert made.keys() - found(STORE).keys() == {"Plain.__init__", "CartStore.__init__", "CartStore.Inner.__init__"}
    assert found("class A:\n    def __init__(self, x): ...\n", constructors=True).keys() == {"A.__init__"}
    unit = made["CartStore.__init__"]
    assert unit.text == "class CartStore(Base, metaclass=Meta):"
    assert unit.keys == ("CartStore()", "cart_store = CartStore()")
    assert unit.place == Place(path="shop/store.py", start=13, end=16)


def test_java_classes_without_a_constructor_get_a_unit() -> None:
    made = found(CART, JAVA, constructors=True)
    # Abstract classes and interfaces cannot be instantiated.
    assert made.keys() - found(CART, JAVA).keys() == {"Cart.Cart", "Cart.Builder.Builder"}
    unit = made["Cart.Builder.Builder"]
    assert unit.keys == ("Builder builder = new Builder()", "new Builder()")
    assert unit.text == (
        "public class Cart extends Base implements Store {\n    @JsonRoot\n    public static class Builder {\n    };\n}"
    )


def test_quirks_exclude_java_interfaces() -> None:
    assert "Cart.Shelf.size" in found(CART, JAVA)
    assert "Cart.Shelf.size" not in found(CART, JAVA, quirks=True)
    assert "Cart.Hidden.run" in found(CART, JAVA, quirks=True)


@pytest.mark.parametrize("text", ["", "\n", "import os\n", "x = (\n", "\x00"])
@pytest.mark.parametrize("language", languages.every())
def test_files_without_functions_have_no_units(text: str, language: Language) -> None:
    assert found(text, language) == {}


def test_a_truncated_file_keeps_its_complete_functions() -> None:
    text = STORE[: STORE.index(", user_id")]
    assert list(found(text)) == ["apply_tax", "load_all"]
    text = STORE[: STORE.index("Run it")]
    assert found(text)["CartStore.Inner.run"].text == found(STORE)["CartStore.Inner.run"].text


RELEASE = '''\
Act as an expert Python programmer. Given a function code or a fragment, summarize it with a short sentence.

Here are two examples:

code:
def seats_left(plan, taken, row=None):
    free = [seat for seat in plan.seats if seat not in taken]
    if row is not None:
        free = [seat for seat in free if seat.row == row]
    return len(free)

summary:
Count the free seats of the plan, or of one row if it is given

code:
def merge_stops(first, second):
    stops = list(first)
    for stop in second:
        if stop not in stops:
            stops.append(stop)
    return stops

summary:
Return the stops of both routes in order and without repeats

Please answer strictly in the examples format and do not add extra sentences!
code:
def f():
    """Go."""
summary:
'''


def test_the_summary_prompt_equals_the_released_template() -> None:
    assert summary_prompt('def f():\n    """Go."""', PYTHON) == RELEASE


@pytest.mark.parametrize("language", languages.every())
def test_the_examples_of_the_prompt_are_valid_code(language: Language) -> None:
    examples = summary_prompt("", language).split("\ncode:\n")[1:3]
    for example in examples:
        code = example.partition("\n\nsummary:")[0]
        found = language.outline(code if language == PYTHON else f"class X {{\n{code}\n}}")
        assert len(found.functions) == 1
        assert not found.broken


def test_templates_are_read_from_a_checkout_of_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputFault, match=r"utils/java\.prompt"):
        released_templates(tmp_path)
    (tmp_path / "utils").mkdir()
    digests = {}
    for language in ("java", "python"):
        text = f"Say in {language}.\ncode:\n@{{}}@\nsummary:\n"
        (tmp_path / "utils" / f"{language}.prompt").write_text(text, newline="\r\n")
        digests[language] = sha256(text)
    with pytest.raises(InputFault, match="differs from InferCom's release"):
        released_templates(tmp_path)
    monkeypatch.setattr("ctxbench.bench.apis._DIGESTS", digests)
    ask_with(released_templates(tmp_path))
    try:
        assert summary_prompt("x = 1", PYTHON) == "Say in python.\ncode:\nx = 1\nsummary:\n"
    finally:
        ask_with({})
    assert summary_prompt("x", PYTHON).startswith("Act as")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Summary:\nLoads the Cart. ", "loads the cart."),
        ("Here is the summary:\n\nLoads it", "loads it"),
        ("summarize the code: loads it summary:", "loads it"),
        ("", ""),
    ],
)
def test_summaries_are_cleaned_by_post_processing(answer: str, expected: str) -> None:
    assert post_process(answer) == expected


PYTHON_FRAGMENTS = {
    "    x = cart.add_item(user, 1)\n    return self.total(x)": "cart add item total",
    "if (x):\n    # noqa\n    # Adds the item. Then\n    foo()": "adds the item",
    'query = """not a remark"""\nrows = db.run(query)': "db run",
    "text = 'call (this)'\nshow(text)": "show",
    "def load_cart(user": "load cart",
    "def load_cart(user):\n    return 1": "load cart",
    '    def load_cart(user):\n        """Load the cart.\n\n        More."""\n        return 1': "load the cart",
    "total = price": "total price",
    "@cached\ndef f(): ...": "f",
    "   \n": "",
    "": "",
    ")": "",
}
JAVA_FRAGMENTS = {
    'Cart c = new Cart(x);\nif (c != null) c.addItem("if (x)", 1);': "cart c add item",
    "/**\n * Adds {@link Item} to it. Then.\n */\npublic void add(int x) { y(); }": "adds item to it",
    "public HTTPClient makeClient(int x) { return new HTTPClient(); }": "make client",
    "// add the thing\nfoo();": "add the thing",
    "return carts\n    .stream()\n    .map(f)": "carts stream map",
    "return x;": "return x",
}


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [*((PYTHON, *pair) for pair in PYTHON_FRAGMENTS.items()), *((JAVA, *pair) for pair in JAVA_FRAGMENTS.items())],
)
def test_a_fragment_has_a_plain_summary(language: Language, code: str, expected: str) -> None:
    assert summary(code, language) == expected


def test_python_units_have_plain_summaries() -> None:
    text = (
        "class HTTPCart(Base):\n    def __init__(self): ...\n    def add_item(self): ...\n    def load(self):\n"
        '        """Load It. Or not."""\n        def inner(): ...\n\n\nclass Bare: ...\n'
    )
    records = units("a.py", text, PYTHON, by="summary", constructors=True)
    assert {record.name: record.summary for record in records} == {
        "HTTPCart.__init__": "http cart",
        "HTTPCart.add_item": "http cart add item",
        "HTTPCart.load": "load it",
        "HTTPCart.inner": "http cart inner",
        "Bare.__init__": "bare",
    }


def test_java_units_have_plain_summaries() -> None:
    text = (
        "class Cart {\n  Cart(int n) { }\n  /** @return how many */\n  int getCount() { return 0; }\n"
        "  /** Pays all. */\n  void pay() { }\n  interface Shelf { int size(); }\n}\n"
    )
    records = units("Cart.java", text, JAVA, by="summary")
    assert {record.name: record.summary for record in records} == {
        "Cart.Cart": "cart",
        "Cart.getCount": "cart get count",
        "Cart.pay": "pays all",
        "Cart.Shelf.size": "shelf size",
    }
