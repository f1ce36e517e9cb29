from __future__ import annotations

from ctxbench.bench.functions.candidates import Definitions
from ctxbench.bench.functions.java.static import definitions
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

FILE = """\
package a;

import java.util.List;

/** Things. */
public class Things {
    /**
     * Return the first.
     *
     * @return it
     */
    @Deprecated
    @SuppressWarnings("x")
    public static <T> T first(final List<T> all)
            throws Exception {
        // a comment
        if (all.isEmpty()) {
            return null;
        }
        return all.get(0);
    }

    /** Add. */
    int add(int a, int... more)
    {
        return a + more.length;
    }

    /** Add, too. */
    int add(String[] a, int b[]) { return a.length + b.length; }

    /** Constructor. */
    Things() { }

    /** Hidden. */
    private int hidden() { return 9; }

    /** Nothing in it. */
    void nothing() {
        // later
    }

    /** {@inheritDoc} */
    @Override
    public String toString() { return "x"; }

    /** On the annotation's line. */
    @Override public int hashCode() { return 1; }

    /** Before another. */
    int one() { return 1; } int two;

    // no Javadoc
    int undocumented() { return 2; }

    interface Inner {
        /** Abstract. */
        int size();

        /** Default. */
        default int twice() { return 2 * size(); }
    }

    enum Color {
        RED { /** Anonymous. */ int of() { return 3; } };

        /** Of an enum. */
        int of() { return 4; }
    }
}
"""


def read(text: str = FILE) -> Definitions:
    return definitions(Source(text, JAVA))


def test_what_is_found_and_what_is_not() -> None:
    found = read()
    assert [each.name for each in found.usable] == [
        "Things.first",
        "Things.add(int,int...)",
        "Things.add(String[],int[])",
        "Things.Inner.twice",
        "Things.Color.of",
    ]
    assert found.drops == {"private": 1, "empty_body": 1, "inherited_doc": 1, "shares_line": 2, "no_body": 1}
    assert (found.functions, found.documented) == (12, 11)


def test_where_a_method_stands() -> None:
    lines = FILE.split("\n")
    first, add, same = read().usable[:3]
    assert lines[first.start].startswith("    public static <T> T first") and lines[first.end - 1] == "    }"
    assert first.cursor == Cursor(line=first.start + 2, column=0)
    assert first.tail == Cursor(line=first.end - 1, column=0)
    assert first.signature == "public static <T> T first(final List<T> all) throws Exception"
    assert first.docstring == "Return the first.\n\n@return it"
    assert first.owners == ("Things",)
    assert add.cursor == Cursor(line=add.start + 2, column=0)
    line = lines[same.start]
    assert (same.cursor.line, same.tail.line) == (same.start, same.start)
    assert line[same.cursor.column : same.tail.column] == " return a.length + b.length; "


def test_blocks_are_the_body_and_those_inside() -> None:
    first = read().usable[0]
    assert [block.line - first.start for block in first.blocks] == [1, 3]
    assert all(FILE.split("\n")[block.line][block.column - 1] == "{" for block in first.blocks)


def test_equal_code_is_equal_whatever_its_layout() -> None:
    text = "class A {\n/** X. */\nint a() { return 1; }\n/** Y. */\nint b() {\n  // x\n  return 1;\n}\n}\n"
    assert list(read(text).bodies.values()) == [2]


def test_methods_that_no_id_would_tell_apart_are_counted() -> None:
    text = """\
class Validate {
    /** Of a list. */
    <T extends List<?>> T full(final T all) { return all; }
    /** Of a map. */
    <T extends Map<?, ?>> T full(final T all) { return all; }
    /** Of an array. */
    <T> T[] full(T[] all) { return all; }
}
"""
    found = read(text)
    assert [each.name for each in found.usable] == ["Validate.full(T[])"]
    assert (found.drops, found.documented) == ({"shares_name": 2}, 3)
