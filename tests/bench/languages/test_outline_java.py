"""The outline of Java files."""

from textwrap import dedent

import pytest

from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.outline import Function, FunctionParameter, Outline


def read(text: str) -> Outline:
    return JAVA.outline(dedent(text).lstrip("\n"))


SHOP = """
    package com.acme;
    // Not attached.

    /** A cart. */
    @Entity({"a", "b"})
    public final class Cart<T extends Item> extends Base
        implements Store {
        private int size; // not attached either
        public Cart(String owner) { }

        /**
         * Group them.
         *
         * @param key how
         */

        // A note.
        @Override @Named("{")
        public static <K> Map<K, List<T>> group(final Function<T, K> key, int[] by, String... tags)
            throws PayFault, StockFault {
            return new Grouper() {
                Object hidden() { return null; }
            }.run();
        }

        abstract void open(Cart this, int depth);
        record Point(int x, int y) {
            Point { check(x); }
        }
        enum State {
            FULL { void hidden() { } }, EMPTY;
            State next() {
                class Local {
                    void run() { }
                }
                return EMPTY;
            }
        }
        interface Shelf { default int size() { return 0; } }
        @interface Mark { String value(); }
    }
"""
MAP = "Map<K, List<T>>"


def test_methods_are_listed_with_their_types_and_enclosing_methods() -> None:
    found = read(SHOP)
    assert [(each.qualified, each.inside, each.constructor, each.has_body) for each in found.functions] == [
        ("Cart.Cart", "", True, True),
        ("Cart.group", "", False, True),
        ("Cart.open", "", False, False),
        ("Cart.Point.Point", "", True, True),
        ("Cart.State.next", "", False, True),
        ("Cart.State.Local.run", "next", False, True),
        ("Cart.Shelf.size", "", False, True),
    ]
    assert not found.broken
    assert [(each.name, each.kind) for each in found.types] == [
        ("Cart", "class"),
        ("Point", "record"),
        ("State", "enum"),
        ("Local", "class"),
        ("Shelf", "interface"),
        ("Mark", "annotation"),
    ]


def test_a_method_is_read_with_all_its_parts() -> None:
    group = read(SHOP).functions[1]
    assert (group.lines, group.head, group.body) == ((10, 24), 17, (20, 24))
    assert group.decorators == ("@Override", '@Named("{")')
    assert group.modifiers == ("public", "static")
    assert group.parameters == (
        FunctionParameter(name="key", text="final Function<T, K> key"),
        FunctionParameter(name="by", text="int[] by"),
        FunctionParameter(name="tags", text="String... tags", starred=True),
    )
    assert group.parameters_text == "final Function<T, K> key, int[] by, String... tags"
    assert (group.returns, group.throws) == (MAP, "throws PayFault, StockFault")
    assert group.docstring == "Group them.\n\n@param key how"
    assert group.header == (
        f'@Override @Named("{{")\n    public static <K> {MAP} group({group.parameters_text})\n'
        "        throws PayFault, StockFault"
    )


def test_a_type_is_read_with_its_lines_and_header() -> None:
    cart = read(SHOP).types[0]
    assert (cart.lines, cart.head) == ((3, 41), 4)
    assert cart.header == (
        '@Entity({"a", "b"})\npublic final class Cart<T extends Item> extends Base\n    implements Store'
    )


def test_a_method_without_a_body_has_a_header_and_no_lines() -> None:
    method = read(SHOP).functions[2]
    assert (method.header, method.body) == ("abstract void open(Cart this, int depth)", (26, 26))
    assert [each.name for each in method.parameters] == ["depth"]


def test_a_records_compact_constructor_has_its_parameters() -> None:
    constructor = read(SHOP).functions[3]
    assert [each.name for each in constructor.parameters] == ["x", "y"]
    assert constructor.returns == ""


@pytest.mark.parametrize(
    ("above", "start", "docstring"),
    [
        ("/** One. */\n", 1, "One."),
        ("/** One. */\n\n", 1, "One."),
        ("/* no Javadoc */\n", 1, ""),
        ("/* no Javadoc */\n\n", 3, ""),
        ("// note\n", 1, ""),
        ("// note\n\n", 3, ""),
        ("/** One. */\n// note\n", 1, "One."),
        ("/** Old. */\n/** One. */\n", 1, "One."),
        ("int x; // of x\n", 2, ""),
        ("int x; /** of x */\n", 2, ""),
        ("/**\n * One.\n *   two\n **/\n", 1, "One.\n  two"),
        ("/***/\n", 1, ""),
    ],
)
def test_attached_comments_belong_to_the_method(above: str, start: int, docstring: str) -> None:
    [method] = JAVA.outline(f"class A {{\n{above}void f() {{ }}\n}}\n").functions
    assert (method.lines[0], method.docstring) == (start, docstring)


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("void f() { }", (1, 2)),
        ("void f() {\n  g();\n}", (2, 4)),
        ("void f() { g();\n}", (1, 3)),
        ("void f() { // note\n  g();\n}", (2, 4)),
        ("void f()\n{\n  g();\n}", (3, 5)),
        ("void f() {\n}", (2, 3)),
    ],
)
def test_the_lines_of_a_body_are_found(text: str, body: tuple[int, int]) -> None:
    [method] = JAVA.outline(f"class A {{\n{text}\n}}\n").functions
    assert method.body == body


def test_code_cut_at_the_cursor_does_not_hide_other_methods() -> None:
    found = read(
        """
        class Cart {
            void add(Item item) { }

            static class Inner {
                int total(int rate) {
                    for (Line line : lines) {
                        sum(line, new Rule() { int apply() { return x;
        """
    )
    assert found.broken
    assert [(each.qualified, each.lines) for each in found.functions] == [
        ("Cart.add", (1, 2)),
        ("Cart.Inner.total", (4, 7)),
    ]


@pytest.mark.parametrize(
    "last",
    [
        "static final int[][] TABLE = {\n{1, 2},\n{3, // three",
        'Object[] all() {\nreturn new Object[] { new Object() { int one() { return 1; } }, "open',
        "static final Rule RULE = new Rule() {\n@Override\npublic int apply() {\nreturn 1;\n}\npublic int undo() {",
        "int f() {\nrun(() -> {\nif (x) { y(); }\nelse {",
    ],
)
def test_open_braces_of_values_do_not_hide_earlier_methods(last: str) -> None:
    found = read(f"class Cart {{\nvoid add(Item item) {{ }}\n{last}")
    assert found.broken
    assert [each.qualified for each in found.functions][:1] == ["Cart.add"]
    assert found.types[0].lines[0] == 0
    assert {each.qualified for each in found.functions} <= {"Cart.add", "Cart.all", "Cart.f"}


def test_every_cut_keeps_the_methods_before_it() -> None:
    text = dedent(SHOP).lstrip("\n")
    whole = JAVA.outline(text).functions
    for cut in range(0, len(text), 4):
        line = text.count("\n", 0, cut)
        kept: dict[str, Function] = {each.qualified: each for each in JAVA.outline(text[:cut]).functions}
        for method in whole:
            if method.lines[1] <= line:
                assert kept[method.qualified].lines == method.lines, text[:cut]
            elif method.body[0] < line < method.lines[1]:
                assert kept[method.qualified].lines[0] == method.lines[0], text[:cut]


@pytest.mark.parametrize(
    "text", ["", "\n", "class", "class {", "void f(", "} }", "/*", '"""', "\x00", "void größe() { }"]
)
def test_any_text_has_an_outline(text: str) -> None:
    names = [each.name for each in JAVA.outline(text).functions]
    assert names == ["größe"] * ("größe" in text)
