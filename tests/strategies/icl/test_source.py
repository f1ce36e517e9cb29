"""The target file without the target function."""

import dataclasses

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Query
from ctxbench.strategies.icl.source import FileLines, SourceFile, scope, without_target
from tests.strategies.icl.shop import RULES, Shelf, java_query, query

BODY = "BODY"


def left(text: str, name: str, language: Language = PYTHON, *, indent: str = "") -> SourceFile:
    """Return a file without its target function. `BODY` marks the target's body, and the cursor is before it."""
    before, after = text.split(BODY)
    about = query(
        language=language,
        name=name,
        prefix=before + indent,
        suffix=after,
        cursor=Cursor(line=before.count("\n"), column=len(before.rpartition("\n")[2] + indent)),
    )
    shown = Shelf(about, {about.path: before + indent + "x" + after}).read(about.path)
    found = without_target(shown, about)
    lines = shown.split("\n")
    assert [lines[number] for number in found.lines.numbers] == list(found.lines.lines)
    return found


@pytest.mark.parametrize("indent", ["", "        "])
@pytest.mark.parametrize("doc", ["", '        """Doc."""\n', "        'Doc.'\n"])
@pytest.mark.parametrize("after", ["\n    def last(self):\n        return 1\n", "\n", "", "\n\nx = 1\n"])
def test_a_python_method_is_removed_with_its_comments_and_decorators(indent: str, doc: str, after: str) -> None:
    head = "class A:\n    y = 1\n\n    def first(self):\n        return f(self)\n\n"
    own = f"    # About it.\n    @b\n    @c(\n        1\n    )\n    async def f(\n        self,\n    ):\n{doc}"
    found = left(f"{head}{own}{BODY}{after}", "A.f", indent=indent)
    assert found.lines.text == (head + after).removesuffix("\n")
    assert found.exact and [one.name for one in found.functions] == ["first", *(["last"] if "last" in after else [])]


def test_a_function_directly_after_the_target_is_kept() -> None:
    found = left(f"def f():\n    '''Doc.'''\n{BODY}def g():\n    pass\n", "f")
    assert found.lines.text == "def g():\n    pass"


def test_the_last_declaration_before_the_cursor_is_the_target() -> None:
    text = "class A:\n    @property\n    def x(self):\n        return 1\n\n    @x.setter\n    def x(self, v):\n"
    found = left(f'{text}        """Set."""\n{BODY}\nclass B:\n    def x(self):\n        return 2\n', "A.x")
    assert "setter" not in found.lines.text and found.lines.text.count("def x(self)") == 2


def test_a_function_on_one_line_is_removed() -> None:
    found = left(f"a = 1\ndef f(): {BODY}\nb = 2\n", "f")
    assert found.lines.text == "a = 1\nb = 2"


def test_the_target_is_found_by_name_in_a_broken_file() -> None:
    found = left(f"x = (\n@b\ndef f(:\n{BODY}\n\ny = 1\n", "f")
    assert "def f" not in found.lines.text and "y = 1" in found.lines.text and "@b" not in found.lines.text


@pytest.mark.parametrize("brace", ["    }\n", ""])
def test_a_java_method_is_removed_with_its_javadoc(brace: str) -> None:
    head = "class A {\n    int a() {\n        return f(1);\n    }\n\n"
    own = "    /**\n     * Doc.\n     */\n    @Override\n    public <T> int f(\n        int b) {\n"
    tail = "\n    int z() {\n        return 1;\n    }\n}\n"
    found = left(f"{head}{own}{BODY}{brace}{tail}", "A.f(int)", JAVA)
    assert found.lines.text == (head + tail).removesuffix("\n")
    assert [one.name for one in found.functions] == ["a", "z"]


def test_overloads_of_the_target_are_kept() -> None:
    others = "    int f() {\n        return 1;\n    }\n", "    int f(long a) {\n        return 2;\n    }\n"
    text = f"class A {{\n{others[0]}    int f(int a) {{\n{BODY}    }}\n{others[1]}}}\n"
    found = left(text, "A.f(int)", JAVA)
    assert "f()" in found.lines.text and "f(long a)" in found.lines.text and "f(int a)" not in found.lines.text


def test_a_query_without_a_name_removes_nothing() -> None:
    about = dataclasses.replace(query(), name=None, prefix="a = 1\n", suffix=None)
    assert without_target("a = 1\n", about).lines.text == "a = 1"


@pytest.mark.parametrize("about", [query(), java_query()])
def test_the_target_is_found_with_a_shortened_prefix(about: Query) -> None:
    """A sample may store only the last part of the text before the cursor."""
    part = dataclasses.replace(about, prefix=about.prefix[-60:])
    whole = about.prefix + (about.suffix or "")
    assert without_target(whole, part).lines == without_target(whole, about).lines


def shown(text: str, *names: str, language: Language = PYTHON) -> str:
    file = SourceFile("a", language, FileLines.whole(text), language.outline(text))
    found = scope(file, names)
    lines = text.split("\n")
    assert [lines[number] for number in found.numbers] == list(found.lines)
    return found.text


def test_other_functions_are_removed_with_their_decorators_and_comments() -> None:
    text = shown(RULES, "power", "nothing")
    assert "def " not in text and "@property" not in text and "Rounds up" not in text
    assert text.endswith('if math is not None:\n\nclass Rules:\n    """All of them."""\n\n    places = 2')


def test_inner_functions_are_kept_with_their_outer_function() -> None:
    text = shown(RULES, "step")
    assert "    # Rounds up.\n    @property\n    def step(self):" in text and "        def power(number):" in text


def test_functions_with_equal_names_are_all_kept() -> None:
    text = (
        "class A:\n    def get(self):\n        return 1\n\n    def put(self): ...\n\n"
        "class B:\n    def get(self):\n        return 2\n"
    )
    assert shown(text, "get") == (
        "class A:\n    def get(self):\n        return 1\n\nclass B:\n    def get(self):\n        return 2"
    )


def test_statements_of_the_module_are_kept() -> None:
    text = 'import a\n\n\ndef f():\n    pass\n\n\nX = {\n    1: 2,\n}\nif __name__ == "__main__":\n    f()\n'
    assert shown(text, "g") == 'import a\n\nX = {\n    1: 2,\n}\nif __name__ == "__main__":\n    f()'


LICENCE = "#!/usr/bin/env python\n# Copyright.\n\n# More of it.\n\n"


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("# Copyright.\nimport a\n", "import a"),
        (f"{LICENCE}import a\n", "import a"),
        (f"{LICENCE}# About a.\nA = 1\n", "# About a.\nA = 1"),
        ("import a\n# Later.\nb = 1", "import a\n# Later.\nb = 1"),
        ('"""Docs."""\n# No licence.\n', '"""Docs."""\n# No licence.'),
        ("# Only this.\n", ""),
        ("", ""),
    ],
)
def test_the_licence_comment_of_a_python_file_is_removed(text: str, without: str) -> None:
    assert shown(text) == without


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("/*\n * Copyright.\n */\npackage a;\n", "package a;"),
        ("/** Copyright. */\n\npackage a;\n", "package a;"),
        ("/** Copyright. */\npackage a;\n", "package a;"),
        ("/** About A. */\nclass A {\n}\n", "/** About A. */\nclass A {\n}"),
        ("/* Copyright. */\n\n/** About A. */\nclass A {\n}\n", "/** About A. */\nclass A {\n}"),
        ("// Copyright.\n// Mine.\npackage a;\n", "package a;"),
        ("/* never closed\n", ""),
    ],
)
def test_the_licence_comment_of_a_java_file_is_removed(text: str, without: str) -> None:
    assert shown(text, language=JAVA) == without


def test_java_keeps_constructors_only_for_a_constructor() -> None:
    text = (
        "class A {\n    int a;\n\n    A() {\n    }\n\n    A(int a) {\n    }\n\n"
        "    int a() {\n        return 1;\n    }\n}\n"
    )
    assert shown(text, "a", language=JAVA) == ("class A {\n    int a;\n\n    int a() {\n        return 1;\n    }\n}")
    assert shown(text, "A", language=JAVA).count("A(") == 2


def test_a_class_on_one_line_is_kept() -> None:
    text = "class A { int a() { return 1; } }\n"
    assert shown(text, "b", language=JAVA) == text.strip()
