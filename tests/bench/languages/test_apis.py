"""Usage examples: the specification's worked examples, and the results of the released code for them."""

from textwrap import dedent

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.java.apis import class_type
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE

RULES = dedent(
    """
    def round_up(amount, digits=2):
        return amount

    def apply_tax(amount: float, rate: float = DEFAULT_RATE, *extras, region=None, **labels) -> float:
        return amount

    class HTTPCartStore(Base):
        def __init__(self, host, port: int, timeout=30):
            self.host = host

        def add_item(self, item_id, quantity=1):
            pass

        @classmethod
        async def from_env(cls, prefix):
            pass

        @property
        def total(self):
            return 0

        @staticmethod
        def parse(text, /, *, strict):
            def inner(part): ...

    class InvoiceLine:
        def render(self: "InvoiceLine", *parts: str, **opts: str) -> str:
            return ""

    def outer():
        def nested(first):
            class Local:
                def run(self): ...
    """
)
TAX = "apply_tax({0}) · apply_tax() · price_rules.apply_tax({0}) · price_rules.apply_tax()"
PYTHON = {
    "round_up": "round_up(amount, digits) · round_up() · price_rules.round_up(amount, digits) · price_rules.round_up()",
    "apply_tax": TAX.format("amount, rate, extras, region, labels"),
    "HTTPCartStore.__init__": "HTTPCartStore(host, port, timeout) · HTTPCartStore()"
    " · http_cart_store = HTTPCartStore(host, port, timeout) · http_cart_store = HTTPCartStore()",
    "HTTPCartStore.add_item": "http_cart_store.add_item(item_id, quantity) · http_cart_store.add_item()",
    "HTTPCartStore.from_env": "http_cart_store.from_env(prefix) · http_cart_store.from_env()"
    " · HTTPCartStore.from_env(prefix) · HTTPCartStore.from_env()",
    "HTTPCartStore.total": "http_cart_store.total()",
    "HTTPCartStore.parse": "http_cart_store.parse(text, strict) · http_cart_store.parse()"
    " · HTTPCartStore.parse(text, strict) · HTTPCartStore.parse()",
    # A function in a method belongs to the class. A function in a function is like a top-level one.
    "HTTPCartStore.inner": "http_cart_store.inner(part) · http_cart_store.inner()",
    "InvoiceLine.render": "invoice_line.render(parts, opts) · invoice_line.render()",
    "outer": "outer() · price_rules.outer()",
    "nested": "nested(first) · nested() · price_rules.nested(first) · price_rules.nested()",
    "Local.run": "local.run()",
}
PYTHON_QUIRKS = {
    **PYTHON,
    "apply_tax": TAX.format("amount, rate, DEFAULT_RATE, extras, region, labels"),
    "InvoiceLine.render": "invoice_line.render(self) · invoice_line.render()",
}

CART = dedent(
    """
    package com.acme.shop;
    public class Cart extends Base implements Store {
        public Cart(String owner, int limit) { }
        public void addItem(String itemId, int quantity) { }
        public Invoice checkout(PaymentCard card, boolean express) { return null; }
        public static Cart fromJson(String text) { return null; }
        public Map<String, List<Item>> groupBy(Function<Item, String> key, String... tags) { return null; }
        public byte[] toBytes() { return null; }
        public static class Builder {
            public Builder(int size) { }
            public Builder withOwner(String owner) { return this; }
            public static int count() { return 0; }
        }
        interface Shelf { java.util.Date stockedAt(); }
    }
    class HTTPClient {
        public Response get(URL url) { return null; }
    }
    enum State { FULL; @Nullable Map.Entry<A, B> next(final int... by) { return null; } }
    """
)
OWNER = "builder.withOwner(owner) · Builder builder = builder.withOwner(owner) · cart.builder.withOwner(owner)"
JAVA = {
    "Cart.Cart": "Cart cart = new Cart(owner, limit) · new Cart(owner, limit)",
    "Cart.addItem": "cart.addItem(itemId, quantity)",
    "Cart.checkout": "cart.checkout(card, express) · Invoice invoice = cart.checkout(card, express)",
    "Cart.fromJson": "cart.fromJson(text) · Cart.fromJson(text) · Cart cart = cart.fromJson(text)"
    " · Cart cart = Cart.fromJson(text)",
    "Cart.groupBy": "cart.groupBy(key, tags) · Map map = cart.groupBy(key, tags)",
    "Cart.toBytes": "cart.toBytes()",
    "Cart.Builder.Builder": "Builder builder = new Builder(size) · new Builder(size)",
    "Cart.Builder.withOwner": OWNER,
    "Cart.Builder.count": "builder.count() · Builder.count() · cart.builder.count() · cart.Builder.count()",
    "Cart.Shelf.stockedAt": "shelf.stockedAt() · Date date = shelf.stockedAt() · cart.shelf.stockedAt()",
    "HTTPClient.get": "hTTPClient.get(url) · Response response = hTTPClient.get(url)",
    "State.next": "state.next(by) · Entry entry = state.next(by)",
}
JAVA_QUIRKS = {
    **JAVA,
    "Cart.groupBy": "cart.groupBy(key) · Map map = cart.groupBy(key)",
    "Cart.Builder.Builder": "Builder builder = new Builder(size) · new Builder(size)"
    " · cart.Builder builder = new Builder(size) · cart.new Builder(size)",
    "Cart.Builder.withOwner": f"{OWNER} · cart.Builder builder = builder.withOwner(owner)",
    "Cart.Shelf.stockedAt": "shelf.stockedAt() · java.util.Date java.util.Date = shelf.stockedAt()"
    " · cart.shelf.stockedAt() · cart.java.util.Date java.util.Date = shelf.stockedAt()",
    # The release does not read the name of a qualified generic type.
    "State.next": "state.next()",
}


def made(text: str, path: str, language: Language, *, quirks: bool) -> dict[str, str]:
    functions = language.outline(text).functions
    return {
        each.qualified: " · ".join(dict.fromkeys(language.apis.usages(each, path, quirks=quirks))) for each in functions
    }


@pytest.mark.parametrize(("quirks", "expected"), [(False, PYTHON), (True, PYTHON_QUIRKS)], ids=["paper", "release"])
def test_python_usages_follow_the_paper_or_the_release(quirks: bool, expected: dict[str, str]) -> None:
    assert made(RULES, "shop/price_rules.py", PYTHON_LANGUAGE, quirks=quirks) == expected


@pytest.mark.parametrize(("quirks", "expected"), [(False, JAVA), (True, JAVA_QUIRKS)], ids=["paper", "release"])
def test_java_usages_follow_the_paper_or_the_release(quirks: bool, expected: dict[str, str]) -> None:
    assert made(CART, "com/acme/shop/Cart.java", JAVA_LANGUAGE, quirks=quirks) == expected


def test_a_java_method_without_a_type_has_no_usages() -> None:
    [function] = JAVA_LANGUAGE.outline("void lost() { }\n").functions
    assert tuple(JAVA_LANGUAGE.apis.usages(function, "Lost.java", quirks=False)) == ()


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ("", ""),
        ("void", ""),
        ("long", ""),
        ("String", "String"),
        ("String[]", ""),
        ("List<String[]>", "List"),
        ("Map<String, List<int[]>>", "Map"),
        ("java.util.List<String>", "List"),
        ("Outer<A>.Inner<B>", "Inner"),
        ("List<String> []", ""),
        ("T", "T"),
    ],
)
def test_the_class_name_is_read_from_a_return_type(returns: str, expected: str) -> None:
    assert class_type(returns) == expected
