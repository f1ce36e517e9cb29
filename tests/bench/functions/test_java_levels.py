from __future__ import annotations

from ctxbench.bench.functions.java.definitions import definitions
from ctxbench.bench.functions.java.static import FileNames
from ctxbench.bench.functions.types import Level
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.facts import JavaFile
from ctxbench.bench.languages.java.uses import ProjectTypes
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Use

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


def level(body: str) -> Level:
    return needs(body)[0]


def test_the_language_alone() -> None:
    assert level("int b = a; return Math.max(a, b) + given.size() + new StringBuilder().length();") is (
        Level.SELF_CONTAINED
    )
    assert level("Runnable r = () -> { int c = a; }; return 1;") is Level.SELF_CONTAINED


def test_the_jdk() -> None:
    assert level("List<String> b = given; return b.size();") is Level.SLIB
    assert level('Pattern p = Pattern.compile("x"); return 1;') is Level.SLIB
    assert level("return java.util.Collections.emptyList().size();") is Level.SLIB


def test_packages_of_others() -> None:
    assert level("return Thing.of();") is Level.PLIB


def test_its_class() -> None:
    assert level("return count;") is Level.CLASS
    assert level("return own();") is Level.CLASS
    assert level("return this.hashCode();") is Level.CLASS
    assert level("return new Nested().n;") is Level.CLASS
    assert level("return Base.count;") is Level.CLASS
    assert level("return new Object() { int x() { return this.hashCode(); } }.x();") is Level.SELF_CONTAINED


def test_its_file() -> None:
    assert level("return Side.side;") is Level.FILE


def test_other_files() -> None:
    assert needs("return Far.far();") == (
        Level.PROJECT,
        (Use(name="Far", module="b.Far", kind="class"), Use(name="Far.far", module="b.Far", kind="function")),
    )
    assert needs("return Other.N;") == (
        Level.PROJECT,
        (Use(name="Other", module="a.Other", kind="class"), Use(name="Other.N", module="a.Other", kind="variable")),
    )
    assert needs("return depth();") == (Level.PROJECT, (Use(name="depth", module="b.Far", kind="function"),))
