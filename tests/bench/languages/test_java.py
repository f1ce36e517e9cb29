"""Every way in which a Java file can name a part of its own project."""

from textwrap import dedent

import pytest

from ctxbench.bench.languages.base import InternalLoad
from ctxbench.bench.languages.java import JAVA, hide

SHOP = {
    "src/com/acme/shop/Cart.java": """
        package com.acme.shop;
        public class Cart {
            public static final int LIMIT = 3;
            public int open;
            public static Cart of(int x) { return null; }
            public void add() { class Local {} }
            public static class Line { public static int count() { return 1; } }
            public enum State { FULL, EMPTY }
        }
        """,
    "src/com/acme/shop/Store.java": "package com.acme.shop;\npublic interface Store { int SIZE = 1; void put(); }\n",
    "src/com/acme/tax/Rules.java": "package com.acme.tax;\nclass Rules { static int apply(int x) { return x; }}\n",
}
PATH = "src/com/acme/app/App.java"


def uses(imports: str, body: str, package: str = "com.acme.app") -> tuple[InternalLoad, ...]:
    text = f"package {package};\n{imports}\nclass App {{\n void run() {{\n{body}\n }}\n}}\n"
    language = JAVA
    files = {**SHOP, PATH: text}
    facts = {name: language.analyse(name, dedent(content).lstrip("\n")) for name, content in sorted(files.items())}
    assert not facts[PATH].broken
    return language.resolve(facts)[PATH]


def precise_uses(imports: str, body: str, package: str = "com.acme.app") -> list[str]:
    """Return name, module and kind of the last (most precise) use of each load."""
    last = [load.uses[-1] for load in uses(imports, body, package)]
    return [f"{use.name} {use.module} {use.kind}" for use in last]


CART = "Cart com.acme.shop.Cart class"
SHOP_CART = "import com.acme.shop.Cart;"
CASES = {
    "single type": (SHOP_CART, "Cart c;", [CART]),
    "new": (SHOP_CART, "Object o = new Cart();", [CART]),
    "generic": (SHOP_CART, "java.util.List<Cart> c;", [CART]),
    "cast and class literal": (SHOP_CART, "Object o = (Cart) f(Cart.class);", [CART, CART]),
    "instanceof": (SHOP_CART, "if (o instanceof Cart c) { }", [CART]),
    "catch and throws": (SHOP_CART, "try { } catch (Cart e) { }", [CART]),
    "static call": (SHOP_CART, "Cart.of(1);", ["Cart.of com.acme.shop.Cart function"]),
    "static field": (SHOP_CART, "int x = Cart.LIMIT;", ["Cart.LIMIT com.acme.shop.Cart variable"]),
    "method reference": (SHOP_CART, "f(Cart::of);", ["Cart.of com.acme.shop.Cart function"]),
    "constructor reference": (SHOP_CART, "f(Cart::new);", [CART]),
    "nested through outer": (SHOP_CART, "Cart.Line x;", ["Cart.Line com.acme.shop.Cart.Line class"]),
    "nested call": (SHOP_CART, "Cart.Line.count();", ["Cart.Line.count com.acme.shop.Cart.Line function"]),
    "enum constant": (SHOP_CART, "f(Cart.State.FULL);", ["Cart.State.FULL com.acme.shop.Cart.State variable"]),
    "nested type import": ("import com.acme.shop.Cart.Line;", "Line x;", ["Line com.acme.shop.Cart.Line class"]),
    "package wildcard": ("import com.acme.shop.*;", "Cart c; Store s;", [CART, "Store com.acme.shop.Store class"]),
    "class wildcard": ("import com.acme.shop.Cart.*;", "Line x;", ["Line com.acme.shop.Cart.Line class"]),
    "static method": ("import static com.acme.tax.Rules.apply;", "apply(1);", ["apply com.acme.tax.Rules function"]),
    "static field import": (
        "import static com.acme.shop.Cart.LIMIT;",
        "int x = LIMIT;",
        ["LIMIT com.acme.shop.Cart variable"],
    ),
    "static nested import": (
        "import static com.acme.shop.Cart.Line;",
        "Line x;",
        ["Line com.acme.shop.Cart.Line class"],
    ),
    "static inherited": ("import static com.acme.tax.Rules.other;", "other(1);", ["other com.acme.tax.Rules unknown"]),
    "static wildcard": (
        "import static com.acme.shop.Cart.*;",
        "of(LIMIT); Line x; open();",
        ["of com.acme.shop.Cart function", "LIMIT com.acme.shop.Cart variable", "Line com.acme.shop.Cart.Line class"],
    ),
    "interface constant": ("import static com.acme.shop.Store.*;", "f(SIZE);", ["SIZE com.acme.shop.Store variable"]),
    "in a lambda": (SHOP_CART, "f(x -> Cart.of(x));", ["Cart.of com.acme.shop.Cart function"]),
    # Not a use of an import from the project.
    "outside": ("import java.util.List;", "List<String> x;", []),
    "unknown type of a known package": ("import com.acme.shop.Gone;", "Gone g;", []),
    "same name from outside": ("import org.other.Cart;\nimport com.acme.shop.*;", "Cart c;", []),
    "not static": ("import static com.acme.shop.Cart.*;", "int x = open;", []),
    "local type in a method": ("import com.acme.shop.Local;", "Local x;", []),
    "method of another object": ("import static com.acme.tax.Rules.apply;", "x.apply(1); this.apply(2);", []),
    "own method hides": ("import static com.acme.tax.Rules.apply;", "apply(1); } void apply(int x) {", []),
    "local variable hides": ("import static com.acme.shop.Cart.LIMIT;", "int LIMIT = 2; f(LIMIT);", []),
    "lambda parameter hides": (
        "import static com.acme.shop.Cart.LIMIT;",
        "f(LIMIT -> LIMIT); g((LIMIT, b) -> LIMIT);",
        [],
    ),
    "parameter hides": ("import static com.acme.shop.Cart.LIMIT;", "} int g(int LIMIT) { return LIMIT;", []),
    "field hides": ("import static com.acme.shop.Cart.LIMIT;", "f(LIMIT); } int LIMIT = 1; {", []),
    "own nested type hides": ("import com.acme.shop.*;", "Cart c; } static class Cart { } {", []),
    "type parameter hides": ("import com.acme.shop.*;", "} <Cart> Cart g(Cart x) { return x;", []),
    "case label": (
        "import static com.acme.shop.Cart.LIMIT;",
        "switch (x) { case LIMIT: f(); }",
        ["LIMIT com.acme.shop.Cart variable"],
    ),
    "enum's constant as case label": (SHOP_CART, "switch (x) { case Cart: f(); }", []),
    "enum's constant as case label, all static": (
        "import static com.acme.shop.Cart.*;",
        "switch (x) { case LIMIT: f(); }",
        [],
    ),
    "own nested type by import": ("import com.acme.app.App.Kind;", "Kind k = Kind.A; } enum Kind { A } {", []),
    "own inner member by static import": (
        "import static com.acme.app.App.Names.FIRST;",
        "f(FIRST); } static class Names { static final int FIRST = 1; } {",
        [],
    ),
    "own inner members by static wildcard": (
        "import static com.acme.app.App.Names.*;",
        "f(FIRST); } static class Names { static final int FIRST = 1; } {",
        [],
    ),
    "string and comment": (SHOP_CART, 'f("Cart"); // Cart', []),
}


@pytest.mark.parametrize(("imports", "body", "expected"), CASES.values(), ids=CASES)
def test_names_are_resolved(imports: str, body: str, expected: list[str]) -> None:
    assert precise_uses(imports, body) == expected


@pytest.mark.parametrize(
    ("body", "near"),
    [
        ("x = Cart\n.of(1);", ["Cart"]),
        ("x = Cart.of\n(1);", ["Cart", "Cart.of"]),
        ("x = Cart.Line\n.count();", ["Cart", "Cart.Line"]),
        ("Cart.\nLine y;", ["Cart"]),
        ("f(Cart::\nof);", ["Cart"]),
    ],
)
def test_a_name_on_the_next_line_is_not_near(body: str, near: list[str]) -> None:
    [load] = uses(SHOP_CART, body)
    assert [use.name for use in load.near] == near
    assert len(load.uses) == 2


def test_names_of_the_same_package_are_not_uses_of_an_import() -> None:
    assert precise_uses("", "Cart c;", package="com.acme.shop") == []
    assert precise_uses("import com.acme.tax.*;", "Cart c;", package="com.acme.shop") == []


def test_lines_that_cannot_be_targets_have_a_reason() -> None:
    text = dedent(
        '''
        package a;
        import a.b.C;
        @C
        class A
            extends C {
            @C
            C field = new C();
            C make(
                C first) throws C {
                String s = C.f("""
                    C """ + C.g());
                return C.x();
            }
        }
        '''
    ).lstrip("\n")
    facts = JAVA.analyse("A.java", text)
    reasons = {line: facts.barred.get(line, "") for line in sorted(facts.tokens)}
    assert reasons == {
        2: "header",
        4: "header",
        5: "decorator",
        6: "",
        7: "header",
        8: "header",
        9: "multiline_string",
        10: "multiline_string",
        11: "",
    }


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (r"""a('{', '\'', '\u007b', "\"{") + b;""", "a(   ,     ,         ,      ) + b;"),
        ('x = """\n  "{" \\"""\n""" + y;', "x =    \n          \n    + y;"),
        ("a /* { \n ' */ b // {\nc", "a      \n      b     \nc"),
        ("It doesn't hide { this } of prose", "It doesn't hide { this } of prose"),
        ('cut("{', "cut(  "),
        ("cut('{", "cut(  "),
        ("cut(/* {", "cut(    "),
    ],
)
def test_strings_and_comments_are_hidden(text: str, hidden: str) -> None:
    assert hide(text) == hidden
