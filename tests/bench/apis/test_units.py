"""API records as units: what is shown of them, how they are found, and which there are."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from ctxbench.bench import languages
from ctxbench.bench.apis import units
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


def test_python_texts() -> None:
    texts = {name: unit.text for name, unit in found(STORE).items()}
    assert texts == {
        "apply_tax": "def apply_tax(amount: float, rate: float = 0.2) -> float",
        "load_all": "def load_all(\n    first,\n    *rest: str,\n)",
        "CartStore.load": "class CartStore(Base, metaclass=Meta):\n    \n    def load(self, user_id)",
        "CartStore.from_env": "class CartStore(Base, metaclass=Meta):\n    @classmethod\n    @retry(\n"
        '        times=3)\n    def from_env(cls) -> "CartStore"',
        "CartStore.Inner.run": "class Inner:\n    \n    def run(self) -> None",
    }


def test_python_without_the_blank_decorator_line() -> None:
    texts = found(STORE, blank_decorator_line=False)
    assert texts["CartStore.load"].text == "class CartStore(Base, metaclass=Meta):\n    def load(self, user_id)"
    assert texts["CartStore.from_env"].text == found(STORE)["CartStore.from_env"].text


def test_java_texts() -> None:
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


def test_places_span_what_belongs_to_a_function() -> None:
    lines = STORE.split("\n")
    place = found(STORE)["CartStore.from_env"].place
    assert place == Place(path="shop/store.py", start=18, end=24)
    assert (lines[place.start], lines[place.end - 1]) == (
        "    # Reads",
        '    def from_env(cls) -> "CartStore": ...',
    )


def test_by_usage_the_keys_are_usage_examples() -> None:
    unit = found(STORE)["CartStore.load"]
    assert unit.keys == ("cart_store.load(user_id)", "cart_store.load()")
    assert unit.code == ""


def test_by_summary_there_is_the_source_too() -> None:
    unit = found(STORE, by="summary")["CartStore.Inner.run"]
    assert unit.keys == ("inner.run()",)
    assert unit.code == 'def run(self) -> None:\n    """Run it."""'
    assert unit.text == found(STORE)["CartStore.Inner.run"].text
    unit = found(CART, JAVA, by="summary")["Cart.checkout"]
    assert unit.code.startswith("/** Pays. */\npublic Invoice checkout(")


def test_constructors_of_classes_without_one() -> None:
    made = found(STORE, constructors=True)
    assert made.keys() - found(STORE).keys() == {"Plain.__init__", "CartStore.__init__", "CartStore.Inner.__init__"}
    unit = made["CartStore.__init__"]
    assert unit.text == "class CartStore(Base, metaclass=Meta):"
    assert unit.keys == ("CartStore()", "cart_store = CartStore()")
    assert unit.place == Place(path="shop/store.py", start=13, end=16)


def test_java_constructors_of_classes_without_one() -> None:
    made = found(CART, JAVA, constructors=True)
    # Neither an abstract class nor an interface can be made.
    assert made.keys() - found(CART, JAVA).keys() == {"Cart.Cart", "Cart.Builder.Builder"}
    unit = made["Cart.Builder.Builder"]
    assert unit.keys == ("Builder builder = new Builder()", "new Builder()")
    assert unit.text == (
        "public class Cart extends Base implements Store {\n    @JsonRoot\n    public static class Builder {\n    };\n}"
    )


def test_no_second_constructor_where_there_is_one() -> None:
    text = "class A:\n    def __init__(self, x): ...\n"
    assert found(text, constructors=True) == found(text)


def test_quirks_know_java_classes_only() -> None:
    assert "Cart.Shelf.size" in found(CART, JAVA)
    assert "Cart.Shelf.size" not in found(CART, JAVA, quirks=True)
    assert "Cart.Hidden.run" in found(CART, JAVA, quirks=True)


@pytest.mark.parametrize("text", ["", "\n", "import os\n", "x = (\n", "\x00"])
@pytest.mark.parametrize("language", languages.every())
def test_files_without_functions(text: str, language: Language) -> None:
    assert found(text, language) == {}


def test_a_file_that_is_cut_has_what_stands_in_it() -> None:
    text = STORE[: STORE.index(", user_id")]
    assert list(found(text)) == ["apply_tax", "load_all"]
    text = STORE[: STORE.index("Run it")]
    assert found(text)["CartStore.Inner.run"].text == found(STORE)["CartStore.Inner.run"].text
