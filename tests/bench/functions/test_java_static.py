"""The methods of a Java file that can become samples, their positions, and the names that they need."""

from pathlib import Path

import pytest

from ctxbench.bench.functions.candidates import Definitions
from ctxbench.bench.functions.java.static import FileNames, definitions, read_functions
from ctxbench.bench.functions.mining import Level, Project
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.reader import JavaFile
from ctxbench.bench.languages.java.uses import ProjectTypes
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Cursor, Use

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


def test_usable_methods_are_found_and_others_counted_by_reason() -> None:
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


def test_a_method_is_found_with_its_spans_signature_and_docstring() -> None:
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


def test_blocks_are_the_body_and_its_inner_blocks() -> None:
    first = read().usable[0]
    assert [block.line - first.start for block in first.blocks] == [1, 3]
    assert all(FILE.split("\n")[block.line][block.column - 1] == "{" for block in first.blocks)


def test_equal_code_is_recognised_whatever_its_layout() -> None:
    text = "class A {\n/** X. */\nint a() { return 1; }\n/** Y. */\nint b() {\n  // x\n  return 1;\n}\n}\n"
    assert list(read(text).bodies.values()) == [2]


def test_methods_that_would_share_an_id_are_dropped_and_counted() -> None:
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


OTHER = "package a;\npublic class Other { public static int N; public static int of() { return 1; } }\n"
FAR = "package b;\npublic class Far { public static int far() { return 1; } protected int depth() { return 2; } }\n"
HEAD = """package a;
import java.util.List;
import java.util.regex.*;
import org.apache.Thing;
import b.Far;
class Side { static int side; }
class Base extends Far {
    static int count;
    int own() { return 1; }
    class Nested { int n; }
    /** Doc. */
    int method(int a, List<String> given) {
        BODY
    }
}
"""


def needs(body: str) -> tuple[Level, tuple[Use, ...]]:
    texts = {"a/Base.java": HEAD.replace("BODY", body), "a/Other.java": OTHER, "b/Far.java": FAR}
    facts = {path: JAVA.analyse(path, text) for path, text in texts.items()}
    types = ProjectTypes({path: each for path, each in facts.items() if isinstance(each, JavaFile)})
    source = Source(texts["a/Base.java"], JAVA)
    names = FileNames(source, JAVA.resolve(dict(facts))["a/Base.java"], types)
    return names.needs(definitions(source).usable[0])


@pytest.mark.parametrize(
    ("level", "body"),
    [
        (Level.SELF_CONTAINED, "int b = a; return Math.max(a, b) + given.size() + new StringBuilder().length();"),
        (Level.SELF_CONTAINED, "Runnable r = () -> { int c = a; }; return 1;"),
        (Level.SELF_CONTAINED, "return new Object() { int x() { return this.hashCode(); } }.x();"),
        (Level.SLIB, "List<String> b = given; return b.size();"),
        (Level.SLIB, 'Pattern p = Pattern.compile("x"); return 1;'),
        (Level.SLIB, "return java.util.Collections.emptyList().size();"),
        (Level.PLIB, "return Thing.of();"),
        (Level.CLASS, "return count;"),
        (Level.CLASS, "return own();"),
        (Level.CLASS, "return this.hashCode();"),
        (Level.CLASS, "return new Nested().n;"),
        (Level.CLASS, "return Base.count;"),
        (Level.FILE, "return Side.side;"),
    ],
)
def test_the_level_of_a_method_follows_from_its_body(level: Level, body: str) -> None:
    assert needs(body)[0] is level


def test_names_from_other_files_are_listed_as_uses() -> None:
    assert needs("return Far.far();") == (
        Level.PROJECT,
        (Use(name="Far", module="b.Far", kind="class"), Use(name="Far.far", module="b.Far", kind="function")),
    )
    assert needs("return Other.N;") == (
        Level.PROJECT,
        (Use(name="Other", module="a.Other", kind="class"), Use(name="Other.N", module="a.Other", kind="variable")),
    )
    assert needs("return depth();") == (Level.PROJECT, (Use(name="depth", module="b.Far", kind="function"),))


COUNT = """    /** Says how many parts there are. */
    int count(String text) {
        return text.split(",").length;
    }
"""
PLACES = {
    "another class": ("src/main/java/a/Copy.java", f"class Copy {{\n{COUNT}}}\n"),
    "a file that gives no samples": ("src/main/java/a/gen/Copy.java", f"class Copy {{\n{COUNT}}}\n"),
    "a file that does not parse": ("src/main/java/a/Copy.java", f"class Copy {{\n{COUNT}    int =;\n}}\n"),
    "another version's sources": ("src/main/java9/a/Parts.java", f"class Parts {{\n{COUNT}}}\n"),
    "an example": ("examples/Demo.java", f"class Demo {{\n{COUNT}}}\n"),
    "an anonymous class": ("src/main/java/a/Copy.java", f"class Copy {{ Object o = new Object() {{\n{COUNT}}}; }}\n"),
    "a local class": ("src/main/java/a/Copy.java", f"class Copy {{ void run() {{ class In {{\n{COUNT}}} }} }}\n"),
    "a constructor": (
        "src/main/java/a/Copy.java",
        'class Copy { Copy(String text) { return text.split(",").length; } }\n',
    ),
    "a test": ("src/spec/java/a/PartsSpec.java", f"class PartsSpec {{\n{COUNT}}}\n"),
    "a string": ("src/main/java/a/Copy.java", "class Copy { String s = \"return text.split(',').length;\"; }\n"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_method_whose_body_is_visible_elsewhere_is_not_a_sample(place: str, tmp_path: Path) -> None:
    path, text = PLACES[place]
    texts = {"src/main/java/a/Parts.java": f"package a;\nclass Parts {{\n{COUNT}}}\n", path: text}
    manifest = RepoManifest(
        name="shop",
        language=JAVA,
        license="MIT",
        version="1",
        sources=(),
        exclude=("*/gen/*",),
        tests=TestSuite(),
    )
    snapshot = Snapshot(name="shop", language=JAVA, digest="", texts=texts, dropped={})
    project = Project(manifest=manifest, root=tmp_path, snapshot=snapshot, home=Home(tmp_path), lock=lambda *_: ())
    usable = read_functions(project, ("src/main/java",), ("src/spec/java",))
    is_sample = place in ("a test", "a string")
    assert [function.definition.name for function in usable.functions] == ["Parts.count"] * is_sample
    assert usable.hidden == (("src/spec/java/",) if place == "a test" else ())
