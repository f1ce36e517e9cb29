from __future__ import annotations

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.strategies.icl.source import FileLines, SourceFile, scope
from tests.strategies.icl.shop import RULES


def shown(text: str, *names: str, language: Language = PYTHON, strip_license: bool = True) -> str:
    file = SourceFile("a", language, FileLines.whole(text), language.outline(text))
    found = scope(file, names, strip_license=strip_license)
    lines = text.split("\n")
    assert [lines[number] for number in found.numbers] == list(found.lines)
    return found.text


def test_other_functions_go_with_their_decorators_and_comments() -> None:
    text = shown(RULES, "power", "nothing")
    assert "def " not in text and "@property" not in text and "Rounds up" not in text
    assert text.endswith('if math is not None:\n\nclass Rules:\n    """All of them."""\n\n    places = 2')


def test_inner_functions_follow_their_outer_one() -> None:
    text = shown(RULES, "step")
    assert "    # Rounds up.\n    @property\n    def step(self):" in text and "        def power(number):" in text


def test_functions_of_one_name_are_kept_together() -> None:
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
def test_the_comment_at_the_top_of_python(text: str, without: str) -> None:
    assert shown(text) == without
    kept = shown(text, strip_license=False)
    assert kept.split("\n") == [line for at, line in enumerate(text.rstrip("\n").split("\n"))]


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
def test_the_comment_at_the_top_of_java(text: str, without: str) -> None:
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
