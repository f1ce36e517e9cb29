"""The reader of Java completions: which code is flagged, and which is plain."""

import pytest

from ctxbench.bench.judging.java.plain import remarks, words
from tests.helpers import java_shop
from tests.helpers.java_forgeries import JAVA_FORGERIES

KNOWN = words({java_shop.PATH: java_shop.PRICES.encode(), "src/test/java/shop/A.java": b"class Hidden {}"})


def found(body: str, *, reference: str = "") -> list[str]:
    head = "static double total(final List<Double> prices) {\n"
    text = f"{head}{body}\n}}\n"
    return [one.partition(": ")[2] for one in remarks(KNOWN, text, f"{head}{reference}\n}}\n" if reference else "")]


HOSTILE = [
    "System.exit(0); return 0;",
    "Runtime.getRuntime().halt(0); return 0;",
    "java.lang.reflect.Field f = null; return 0;",
    "return prices.getClass().getName().length();",
    'Class.forName("A"); return 0;',
    "Object o = Prices.class; return 0;",
    "new Thread(() -> {}).start(); return 0;",
    "java.util.ServiceLoader.load(null); return 0;",
    "new ProcessBuilder().start(); return 0;",
    "new Exception().getStackTrace(); return 0;",
    "Object o = new Object() { public boolean equals(Object other) { return true; } }; return 0;",
    "class A { public int hashCode() { return 1; } } return 0;",
    "return 0; } static { int a = 0;",
    "// \\u000a System.exit(0);\nreturn 0;",
    "prices.clear(); return 0;",
    "Other.RATE = 5; return 0;",
    "Prices.RATE++; return 0;",
    "return Hidden.count();",
    "java.nio.file.Files.readString(null); return 0;",
    "ClassLoader.getSystemClassLoader(); return 0;",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_code_that_can_reach_beyond_the_method_is_flagged(body: str) -> None:
    assert found(body)


@pytest.mark.parametrize(
    "body",
    [
        "double sum = 0; for (double price : prices) { sum += price; } return sum;",
        "List<Double> kept = new ArrayList<>(prices); kept.add(1.0); return kept.size();",
        "double[] all = new double[2]; all[0] = 1; return all[0];",
        'return prices.stream().mapToDouble(Double::doubleValue).sum() + "é".length();',
        'if (prices == null) { throw new IllegalArgumentException("\\u00e9"); } return RATE;',
    ],
)
def test_ordinary_method_code_is_not_flagged(body: str) -> None:
    assert found(body) == []


def test_names_that_the_reference_uses_are_allowed() -> None:
    assert found("prices.clear(); return 0;", reference="prices.clear(); return 1;") == []
    assert found("System.gc(); prices.clear(); return 0;", reference="prices.clear(); return 1;") == [
        "uses System",
        "uses gc",
    ]


def test_a_remark_has_its_line() -> None:
    assert remarks(KNOWN, "double total() {\n    return 0;\n    // none\n    System.exit(0);\n}") == (
        "line 4: uses System",
        "line 4: uses exit",
    )


@pytest.mark.parametrize("name", JAVA_FORGERIES)
def test_every_forgery_that_ends_is_flagged(name: str) -> None:
    assert bool(found(JAVA_FORGERIES[name][0])) is (not name.endswith("without end")), "these fail by themselves"
