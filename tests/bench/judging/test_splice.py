import ast
import inspect
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault
from ctxbench.bench.judging.python.text import lift, shift, splice, without_decorators

FILE = """import os


class Cart:
    @property
    def total(self):
        return 1

    def other(self):
        return 2
"""
SPAN = (5, 7)


def put(text: str, *, file: str | bytes = FILE, span: tuple[int, int] = SPAN, name: str = "Cart.total") -> str:
    raw = file if isinstance(file, bytes) else file.encode()
    return splice(raw, span, name, text).decode()


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("def total(self):\n    return 3\n", "return 3"),
        ("@cached(\n    key=1,\n)\n@property\ndef total(self):\n    return 3\n", "return 3"),
        ("def total(self):\n    return (((\n", "return ((("),
        ("def total(self):\r\n    return 3\r\n\r\n", "return 3"),
    ],
    ids=["plain", "the text's decorators go", "no Python", "its line ends do not matter"],
)
def test_only_the_body_changes(text: str, body: str) -> None:
    assert put(text) == FILE.replace("return 1", body)


@pytest.mark.parametrize("margin", ["", "  ", "    ", "\t", "            "])
def test_a_text_at_any_indentation_gets_the_files_indentation(margin: str) -> None:
    text = textwrap.indent("def total(self):\n    if self:\n        return 3\n    return 4\n", margin)
    wanted = "    def total(self):\n        if self:\n            return 3\n        return 4\n"
    assert put(text) == FILE.replace("    def total(self):\n        return 1\n", wanted)


def test_decorators_are_removed_even_if_the_text_is_not_python() -> None:
    assert put("@property\ndef total(self) return 3") == FILE.replace(
        "    def total(self):\n        return 1\n", "    def total(self) return 3\n"
    )


def test_decorators_of_helper_functions_are_kept() -> None:
    text = "def total(self):\n    return 3\n\n@staticmethod\ndef helper():\n    return 4\n"
    assert "    @staticmethod\n    def helper():\n        return 4\n" in put(text)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_the_files_line_ends_are_kept(end: str) -> None:
    made = put("def total(self):\n    x = 3\n    return x\n", file=FILE.replace("\n", end))
    assert made == FILE.replace("return 1", "x = 3\n        return x").replace("\n", end)


def test_tabs_are_kept() -> None:
    file = FILE.replace("    ", "\t")
    assert put("def total(self):\n\treturn 3", file=file) == file.replace("return 1", "return 3")


def test_a_file_without_a_last_newline_stays_without_one() -> None:
    file = "def f():\n    return 1"
    assert put("def f():\n    return 2\n", file=file, span=(0, 2), name="f") == "def f():\n    return 2"


def test_form_feeds_and_unicode_separators_do_not_end_lines() -> None:
    file = 'X = "a\x0cb\u2028c"\ndef f():\n    return 1\n'
    assert put("def f():\n    return 2\n", file=file, span=(1, 3), name="f") == file.replace("return 1", "return 2")


def test_a_byte_order_mark_and_the_encoding_are_kept() -> None:
    file = b"\xef\xbb\xbf" + "# ü\ndef f():\n    return 1\n".encode()
    assert splice(file, (1, 3), "f", "def f():\n    return 'ö'\n") == file.replace(b"return 1", "return 'ö'".encode())
    latin = "# -*- coding: latin-1 -*-\n# ü\ndef f():\n    return 1\n".encode("latin-1")
    made = splice(latin, (2, 4), "f", "def f():\n    return 'ö'\n")
    assert made == latin.replace(b"return 1", "return 'ö'".encode("latin-1"))
    with pytest.raises(InputFault, match="'→' cannot be written in the file's encoding iso-8859-1"):
        splice(latin, (2, 4), "f", "def f():\n    return '→'\n")


def test_bytes_that_are_not_text_are_preserved() -> None:
    file = b"# \xff\ndef f():\n    return 1\n"
    assert splice(file, (1, 3), "f", "def f():\n    return 2\n") == file.replace(b"return 1", b"return 2")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "return 1", "pass", "def totals(self): pass", "x = 'def'", "class total: pass"]
)
def test_a_text_without_the_function_is_refused(text: str) -> None:
    with pytest.raises(InputFault, match="defines no function 'total'.*return the whole function"):
        put(text)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InputFault, match="cannot be written"):
        put("def total(self):\n    return '\ud800'\n")


def test_a_span_outside_the_file_is_refused() -> None:
    with pytest.raises(InputFault, match="no lines 90 to 91; build"):
        put("def total(self): pass", span=(90, 91))


def test_decorators_of_asynchronous_functions_are_removed() -> None:
    assert without_decorators("@x\nasync  def total(self):\n    pass", "total") == [
        "async  def total(self):",
        "    pass",
    ]


def test_shifting_moves_docstrings_but_not_other_strings() -> None:
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    x = (\n        """\nhere\n"""\n    )\n    return x\n'
    moved = shift(text.splitlines(), "    ")
    assert moved[3] == "        Two." and moved[7:9] == ["here", '"""']
    assert shift(moved, "") == text.splitlines()


def functions(path: Path) -> list[tuple[tuple[int, int], str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [((node.lineno - 1, node.end_lineno or 0), node.name) for node in found]


MODULES = [inspect, textwrap, ast]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_functions_of_real_files_are_lifted_and_spliced_unchanged(module: object) -> None:
    path = Path(inspect.getfile(module))  # type: ignore[arg-type]
    raw = path.read_bytes()
    lines = raw.decode().split("\n")
    found = functions(path)
    assert len(found) > 9
    for (start, end), name in found:
        if ";" in lines[start] or not lines[start].lstrip().startswith(("def", "async")):
            continue
        lifted = lift(lines[start:end])
        assert not lifted.startswith(" ")
        assert splice(raw, (start, end), name, lifted) == raw, name


@given(
    before=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), max_size=4),
    after=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), max_size=4),
    text=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_the_text_around_the_function_is_unchanged(before: list[str], after: list[str], text: str) -> None:
    head = "".join(f"# {line}\n" for line in ["-*- coding: utf-8 -*-", *before])
    tail = "".join(f"# {line}\n" for line in after)
    file = head + "def f():\n    return 1\n" + tail
    start = head.count("\n")
    made = splice(file.encode(), (start, start + 2), "f", "def f():\n    return 2\n" + text)
    assert made.startswith(f"{head}def f():\n    return 2".encode()) and made.endswith(tail.encode())
