"""Mutants: faulty versions of a Java method."""

import pytest

from ctxbench.bench.functions.java.mutants import mutants
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.syntax import Source

PUT = """public <T> String put(final String[] parts, int depth) throws IOException {
    String text = "a";
    int sum;
    sum = 0;
    while (depth < 10) {
        depth += 2;
    }
    if (parts == null && sum > 7) {
        throw new IllegalArgumentException("none");
    }
    for (int i = 0; i < parts.length; i += 3) {
        sink.add(parts[i]);
    }
    try {
        sink.write(sum);
        return this.text;
    } catch (IOException error) {
        log(error);
    }
    final Runnable later = () -> { return; };
    if (parts[0] instanceof Part part) {
        return put(part, Math.max(depth, sum)) + sb.append(true).append('c') + (sum - 1);
    }
    return later.toString();
}"""


def changes(text: str = PUT) -> set[tuple[str, str]]:
    """Return the removed line and the replacing line of each mutant."""
    own = text.split("\n")
    pairs = set()
    for faulty in mutants(text, 1000):
        lines = faulty.split("\n")
        first = next(row for row, (old, new) in enumerate(zip(own, lines, strict=False)) if old != new)
        gone = len(own) - len(lines) + 1
        assert own[first + gone :] == lines[first + 1 :], "it differs in one place"
        pairs.add((own[first].strip(), lines[first].strip()))
    return pairs


@pytest.mark.parametrize(
    "change",
    [
        ('String text = "a";', "String text = null;"),
        ('String text = "a";', 'String text = "";'),
        ("while (depth < 10) {", "{ }"),
        ("for (int i = 0; i < parts.length; i += 3) {", "{ }"),
        ("sink.add(parts[i]);", "{ }"),
        ("log(error);", "{ }"),
        ('throw new IllegalArgumentException("none");', "{ }"),
        ("if (parts == null && sum > 7) {", "if (!((parts == null && sum > 7))) {"),
        ("if (parts == null && sum > 7) {", "if ((parts == null || sum > 7)) {"),
        ("if (parts == null && sum > 7) {", "if ((parts != null) && sum > 7) {"),
        ("if (parts == null && sum > 7) {", "if (parts == null && (sum <= 7)) {"),
        ("if (parts == null && sum > 7) {", "if (parts == null && sum > (7 + 1)) {"),
        ("return later.toString();", "return null;"),
        ("final Runnable later = () -> { return; };", "final Runnable later = null;"),
    ],
)
def test_mutants_include_gross_faults(change: tuple[str, str]) -> None:
    assert change in changes()


@pytest.mark.parametrize(
    "put",
    [
        "((String) null) + sb",
        "put(part, (depth)) + sb",
        "sb.append(true) +",
        "append('~')",
        "append(false)",
        "(sum + 1)",
    ],
)
def test_mutants_include_faults_inside_an_expression(put: str) -> None:
    assert any(put in text for text in mutants(PUT, 1000))


def test_mutants_that_would_not_compile_are_not_generated() -> None:
    for text in mutants(PUT, 1000):
        assert "sum = " in text, "nothing else gives it a value"
        assert "sink.write(sum);\n        return this.text;" in text, "the exception would come of nothing"
        assert "() -> { return; }" in text or "later = null" in text
        assert "!(parts[0]" not in text, "the name would not be there"
        assert not Source(f"class X {{\n{text}\n}}", JAVA).root.has_error


def test_mutants_do_not_make_a_loop_endless() -> None:
    for text in mutants(PUT, 1000):
        assert "depth += 2" in text or "depth += (2 + 1)" in text or "while" not in text
        assert "i += 3" in text or "for (" not in text
        assert ">=" not in text


@pytest.mark.parametrize(
    ("kind", "nothing"), [("boolean", "false"), ("long", "0"), ("int[]", "null"), ("T", "null"), ("List<T>", "null")]
)
def test_a_mutant_returns_a_value_of_the_methods_type(kind: str, nothing: str) -> None:
    head = f"{kind} get(int a) {{\n    "
    assert f"{head}return {nothing};\n}}" in mutants(f"{head}return a.get();\n}}", 9)


def test_a_returned_recursive_call_has_one_mutant() -> None:
    assert set(mutants("T get() {\n    return get(a);\n}", 9)) == {"T get() {\n    return null;\n}"}


def test_fewer_mutants_are_a_prefix_of_more_and_all_differ() -> None:
    every = mutants(PUT, 1000)
    assert [mutants(PUT, most) for most in range(5)] == [every[:most] for most in range(5)]
    assert len(every) == len({PUT, *every}) - 1 > 25


def test_letters_of_any_alphabet_are_preserved() -> None:
    assert set(mutants('void say() {\n    put("ж", "日");\n}', 9)) == {
        'void say() {\n    put("ж", "");\n}',
        'void say() {\n    put("", "日");\n}',
        "void say() {\n    { }\n}",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int x = 1;",
        "int f( {",
        "int f();",
        "void f() {\n}",
        "int f() {\n    return 0\n}",
        "}",
        "int a() {}int b() {}",
    ],
)
def test_an_invalid_or_empty_method_has_no_mutants(text: str) -> None:
    assert mutants(text, 5) == ()
