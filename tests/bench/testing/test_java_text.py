from __future__ import annotations

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.testing.java import text as java_text
from tests.helpers.java_shop import PATH, PRICES, ROUND, ROUND_REFERENCE, TOTAL, TOTAL_REFERENCE, TREE


def put(text: str, name: str = "Prices.total", source: bytes = TREE[PATH], encoding: str = "iso-8859-1") -> bytes:
    assert TOTAL.span is not None
    return java_text.splice(source, encoding, TOTAL.span, name, text)


def test_the_reference_gives_the_file_back() -> None:
    assert put(TOTAL_REFERENCE.target) == TREE[PATH]


def test_indentation_javadoc_and_annotations_of_the_text_do_not_matter() -> None:
    lines = PRICES.split("\n")
    assert put("\n".join(lines[8:25])) == TREE[PATH]
    moved = "\n\n".join(["/** Mine. */", '\t@Deprecated @SuppressWarnings("x")', TOTAL_REFERENCE.target, ""])
    assert put(moved) == TREE[PATH]


def test_line_ends_and_bytes_outside_stay() -> None:
    source = TREE[PATH].replace(b"\n", b"\r\n")
    assert put(TOTAL_REFERENCE.target, source=source) == source
    assert put(TOTAL_REFERENCE.target, encoding="utf-8") == TREE[PATH]


def test_helpers_beside_the_method_stay() -> None:
    changed = put(TOTAL_REFERENCE.target + "\n\nprivate static int more() {\n    return 1;\n}\n").decode("iso-8859-1")
    assert "    private static int more() {\n        return 1;\n    }\n" in changed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int other() { return 1; }",
        "double total() ;",
        "double total() { return 1; } } class Evil { int total() { return 1; }",
        "} class OldTest { double total() { return 1; }",
    ],
)
def test_what_is_no_method_is_refused(text: str) -> None:
    with pytest.raises(InputFault, match="whole method"):
        put(text)


def test_a_text_that_the_encoding_cannot_hold_is_refused() -> None:
    with pytest.raises(InputFault, match="encoding"):
        put(TOTAL_REFERENCE.target.replace("double sum = 0", 'String s = "\u20ac"; double sum = 0'))


def test_a_span_outside_the_file_is_refused() -> None:
    with pytest.raises(InputFault, match="build the sample set again"):
        java_text.splice(b"class A {}\n", "utf-8", (3, 5), "A.f", "void f() {}")


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("    public void run() {", "    public void run() { }\n"),
        (
            "    boolean is(int a)\n        throws Exception {",
            "    boolean is(int a)\n        throws Exception { return false; }\n",
        ),
        ("    <T> List<T> all() {", "    <T> List<T> all() { return null; }\n"),
        ("    char[] name() {", "    char[] name() { return null; }\n"),
        ("    int odd()[] {", "    int odd()[] { return null; }\n"),
        ("    long size() {", "    long size() { return 0; }\n"),
    ],
)
def test_blanks_return_what_compiles(head: str, wanted: str) -> None:
    assert java_text.blank(head) == wanted


def test_a_blank_needs_a_head() -> None:
    with pytest.raises(InputFault, match="head of a method"):
        java_text.blank("int x = 3;")


def test_a_blank_goes_in_where_the_method_was() -> None:
    assert ROUND.span is not None
    blank = java_text.blank("\n".join(ROUND.prefix.split("\n")[ROUND.span[0] :]))
    changed = java_text.splice(TREE[PATH], "iso-8859-1", ROUND.span, "Prices.round", blank).decode("iso-8859-1")
    assert changed == PRICES.replace(
        "    static boolean round(final int price) {\n        return price % 10 == 0;\n    }\n",
        "    static boolean round(final int price) { return false; }\n",
    )
    assert ROUND_REFERENCE.target.startswith("static boolean round")
