import shutil
import subprocess
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.judging.java import text as java_text
from tests.helpers.extras import missing
from tests.helpers.java_shop import PATH, PRICES, ROUND, ROUND_REFERENCE, TOTAL, TOTAL_REFERENCE, TREE


def put(text: str, name: str = "Prices.total", source: bytes = TREE[PATH], encoding: str = "iso-8859-1") -> bytes:
    assert TOTAL.span is not None
    return java_text.splice(source, encoding, TOTAL.span, name, text)


def test_the_reference_restores_the_file() -> None:
    assert put(TOTAL_REFERENCE.target) == TREE[PATH]


def test_indentation_javadoc_and_annotations_of_the_text_are_ignored() -> None:
    lines = PRICES.split("\n")
    assert put("\n".join(lines[8:25])) == TREE[PATH]
    moved = "\n\n".join(["/** Mine. */", '\t@Deprecated @SuppressWarnings("x")', TOTAL_REFERENCE.target, ""])
    assert put(moved) == TREE[PATH]


def test_line_ends_and_bytes_outside_the_method_are_preserved() -> None:
    source = TREE[PATH].replace(b"\n", b"\r\n")
    assert put(TOTAL_REFERENCE.target, source=source) == source
    assert put(TOTAL_REFERENCE.target, encoding="utf-8") == TREE[PATH]


def test_helper_methods_in_the_text_are_kept() -> None:
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
def test_a_text_that_is_not_one_method_is_refused(text: str) -> None:
    with pytest.raises(InputFault, match="whole method"):
        put(text)


def test_a_text_that_the_encoding_cannot_express_is_refused() -> None:
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
def test_blanks_return_a_value_that_compiles(head: str, wanted: str) -> None:
    assert java_text.blank(head) == wanted


def test_a_blank_needs_the_head_of_a_method() -> None:
    with pytest.raises(InputFault, match="head of a method"):
        java_text.blank("int x = 3;")


def test_a_blank_replaces_the_method() -> None:
    assert ROUND.span is not None
    blank = java_text.blank("\n".join(ROUND.prefix.split("\n")[ROUND.span[0] :]))
    changed = java_text.splice(TREE[PATH], "iso-8859-1", ROUND.span, "Prices.round", blank).decode("iso-8859-1")
    assert changed == PRICES.replace(
        "    static boolean round(final int price) {\n        return price % 10 == 0;\n    }\n",
        "    static boolean round(final int price) { return false; }\n",
    )
    assert ROUND_REFERENCE.target.startswith("static boolean round")


def usage(block: str, indent: str = "    ") -> str:
    lines = ["String usage() {", f'    String text = """\n{block}""";', "    return text;", "}"]
    return "\n".join(indent + line for line in lines)


BLOCKS = [
    "usage\n  -h\n",
    "  usage\n    -h\n    ",
    "            usage\n\n              -h\n        ",
    "            usage\n          -h\\s\n            ",
    "        usage\n\n    \u00a0\n        ",
]


def value(text: str) -> str:
    """Return the value of a text block in Java: without the indentation of its least indented line."""
    lines = text.partition('"""\n')[2].partition('"""')[0].split("\n")
    blank = {line for line in lines[:-1] if not line.strip(" \t")}
    least = min(len(line) - len(line.lstrip(" \t")) for line in lines if line not in blank)
    return "\n".join("" if line in blank else line[least:].rstrip(" \t") for line in lines)


@pytest.mark.parametrize("block", BLOCKS)
def test_text_blocks_keep_their_value_at_any_indentation(block: str) -> None:
    method = usage(block)
    file = f"class C {{\n{method}\n}}\n"
    span = (1, 1 + method.count("\n") + 1)
    assert java_text.splice(file.encode(), "utf-8", span, "C.usage", method).decode() == file, "nothing is moved"
    lifted = "\n".join(java_text.shift(method.split("\n"), ""))
    for text in (lifted, "\n".join(java_text.shift(method.split("\n"), "\t\t"))):
        assert value(text) == value(method)
        put_back = java_text.splice(file.encode(), "utf-8", span, "C.usage", text).decode()
        assert value(put_back) == value(method)
    assert not lifted.startswith(" ") and lifted.endswith("\n}")


def test_a_text_block_is_shifted_with_the_code_if_possible() -> None:
    method = usage(BLOCKS[2])
    assert "\n".join(java_text.shift(method.split("\n"), "")) == usage(BLOCKS[2].replace("\n    ", "\n")[4:], "")


def test_lines_with_the_right_indentation_are_not_moved() -> None:
    lines = ["    int one() {", "//  old();", "        return 1;", "    }"]
    assert java_text.shift(lines, "    ") == lines


MAIN = """public static void main(String[] arguments) throws Exception {
    System.out.write(String.join("|", %s).getBytes("UTF-8"));
    System.out.flush();
}"""


@pytest.mark.slow
def test_text_block_values_are_equal_to_javas(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        missing("java is not there: install openjdk-17-jdk-headless")
    numbered = [f"usage{number}()" for number in range(len(BLOCKS))]
    methods = [usage(block, "").replace("usage()", call) for block, call in zip(BLOCKS, numbered, strict=True)]
    members = [*(f"static {method}" for method in methods), MAIN % ", ".join(numbered)]
    (tmp_path / "C.java").write_text("class C {\n" + "\n".join(members) + "\n}\n", encoding="utf-8")
    command = ["java", "-Dfile.encoding=UTF-8", str(tmp_path / "C.java")]
    said = subprocess.run(command, check=True, capture_output=True).stdout.decode()
    assert said == "|".join(value(method).replace("\\s", " ") for method in methods)
