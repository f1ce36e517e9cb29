"""Which names of a Java project code reads, and which of them are made up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench.languages.base import ProjectNames
from ctxbench.bench.languages.java import JAVA

FILES = {
    "src/shop/Rules.java": """package shop;
public class Rules {
    public static final int MOST = 3;
    public static int round(int x) { return x; }
    public enum Kind { SMALL, LARGE }
    static class Inner { static int deep; }
}
""",
    "src/shop/Open.java": "package shop;\npublic class Open extends org.framework.Base { }\n",
    "src/shop/Data.java": "package shop;\nimport lombok.Data;\n@Data public class Data1 { }\n",
    "src/shop/Point.java": "package shop;\npublic record Point(int x, int y) { }\n",
    "src/shop/Base.java": "package shop;\npublic abstract class Base implements Runnable {\n  protected int size;\n"
    "  void start() { }\n}\n",
    "src/shop/pay/Pay.java": """package shop.pay;
import shop.Base;
import shop.Rules;
import shop.Open;
import org.other.Thing;
public class Pay extends Base {
    private int sum;
    void go(int x) {
    }
    class Part { int own; void part() { } }
}
""",
}
HEAD = """package shop.pay;
import shop.Base;
import shop.Rules;
import shop.Open;
import shop.Point;
import org.other.Thing;
public class Pay extends Base {
    void go(int x) {
"""


@pytest.fixture(scope="module")
def shop() -> ProjectNames:
    return JAVA.project(FILES)


def read(shop: ProjectNames, line: str, *, head: str = HEAD) -> dict[str, bool]:
    start = (head.count("\n"), 0)
    return {one.name: one.known for one in shop.readings("src/shop/pay/Pay.java", head + line, start=start)}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("int y = Rules.round(x) + Rules.MOST;", {"Rules.round": True, "Rules.MOST": True}),
        ("int y = Rules.floor(x", {"Rules.floor": False}),
        ("Rules.Kind k = Rules.Kind.SMALL;", {"Rules.Kind": True, "Rules.Kind.SMALL": True}),
        ("f(Rules.Kind.HUGE)", {"f": False, "Rules.Kind.HUGE": False}),
        ("x = Rules.Inner.deep + Rules.Inner.top;", {"Rules.Inner.deep": True, "Rules.Inner.top": False}),
        ("list.map(Rules::round).map(Rules::floor)", {"Rules.round": True, "Rules.floor": False}),
        ("Rules.class.getName(); new Rules();", {"Rules": True}),
        ("this.sum + this.size + this.depth", {"this.sum": True, "this.size": True, "this.depth": False}),
        ("go(1); start(); run(); stop();", {"go": True, "start": True, "run": True, "stop": False}),
        ("return stop();", {"stop": False}),
        ("throw (RuntimeException) x;", {}),
    ],
)
def test_what_is_judged(shop: ProjectNames, line: str, found: dict[str, bool]) -> None:
    assert read(shop, line) == found


@pytest.mark.parametrize(
    "line",
    [
        "Thing.nothing + org.Nothing.nothing",
        "Open.nothing",
        "Data1.nothing",
        "x.nothing() + Rules.round(x).nothing",
        '"Rules.floor" + /* Rules.floor */ 1 // Rules.floor',
        "String nothing(int y)",
        "new Thread() { void f() { nothing(); } }",
        "super.nothing(); nothing.more();",
        "if (x) for (;;) while (x) switch (x) { }",
    ],
)
def test_what_cannot_be_told_is_never_called_made_up(shop: ProjectNames, line: str) -> None:
    assert all(read(shop, line).values())


def test_a_method_may_be_of_an_outer_type(shop: ProjectNames) -> None:
    head = HEAD.replace("    void go(int x) {", "    class Part {\n    void part() {")
    assert read(shop, "go(own); stop();", head=head) == {"go": True, "stop": False}


def test_a_static_import_may_bring_a_method(shop: ProjectNames) -> None:
    assert read(shop, "stop();", head="import static org.other.Thing.*;\n" + HEAD) == {}
    assert read(shop, "stop();", head="import static org.other.Thing.stop;\n" + HEAD) == {}


def test_a_type_without_its_import_is_not_judged(shop: ProjectNames) -> None:
    assert read(shop, "Rules.floor();", head=HEAD.replace("import shop.Rules;\n", "")) == {}


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="Rules.this()[]{};:='\"\n\\ /*@ü", max_size=60))
def test_any_text_is_read(shop: ProjectNames, text: str) -> None:
    shop.readings("src/shop/pay/Pay.java", HEAD + text)
