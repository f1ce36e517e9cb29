"""Syntax trees, also when many threads parse at once."""

import gc
import inspect
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ctxbench.bench.languages.python import asts
from ctxbench.bench.languages.python.modules import STANDARD, ModuleIndex

FLAT = "".join(f"def f{n}(x):\n    {'(' * 40}x{')' * 40}\n" for n in range(20))
DEEP = "class A:\n" + "".join(
    f"    def f{n}(x):\n        return [x for y in (1, {{'a': [b(c(x))]}})]\n" for n in range(60)
)


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Switch threads at every garbage collection, which also happens while a tree is being built."""

    def turn(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(turn)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(turn)


@pytest.mark.slow
def test_threads_parse_complete_trees(interrupted: None) -> None:
    texts = [FLAT, DEEP] * 60
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(asts.parse, texts))
    assert all(tree is not None for tree in trees)
    assert [len(tree.body) for tree in trees[:2] if tree is not None] == [20, 1]


@pytest.mark.parametrize("text", ["def f(:", "x = '\ud800'", "\0", "(" * 5000])
def test_invalid_python_has_no_tree(text: str) -> None:
    assert asts.parse(text) is None


def test_parsing_suppresses_the_warnings_of_a_text() -> None:
    assert asts.parse("x = '\\d'\nx is 1\n") is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\n\n    Add.\n\n      More.\n    ", "Add.\n\n  More."),
        ("\tAdd.\n\tMore.\n", "Add.\nMore."),
        # Python 3.13 keeps these blank characters, and then also the spaces of the lines around them.
        ("\fAdd.\n    More.\n\u00a0   Most.", "Add.\nMore.\nMost."),
        ("Add.\n    More.\n\f\n    Most.", "Add.\nMore.\n\nMost."),
    ],
)
def test_docstrings_are_equal_on_every_version_of_python(text: str, expected: str) -> None:
    assert asts.cleaned(text) == expected
    if sys.version_info < (3, 13):
        assert inspect.cleandoc(text) == expected
    function = asts.only_function(f"def f():\n    {text!r}\n")
    assert function is not None and asts.docstring(function) == expected


def test_standard_modules_are_equal_on_every_version_of_python() -> None:
    assert {"distutils", "telnetlib", "os", "_thread"} <= STANDARD
    if sys.version_info < (3, 12):
        assert sys.stdlib_module_names == STANDARD
    for gone in ("imp", "cgi"):
        assert ModuleIndex([f"{gone}.py", "use.py"], []).absolute("use.py", gone) is None


@pytest.mark.parametrize(
    "block",
    ["if x:\n", "try:\n    pass\nexcept E:\n", "try:\n    pass\nfinally:\n", "match x:\n  case 1:\n", "with x:\n"],
)
def test_functions_are_found_in_every_block(block: str) -> None:
    tree = asts.parse(f"{block}    class A:\n        def f(self):\n            def g(): pass\n")
    assert tree is not None
    assert [(node.name, owners) for node, owners in asts.functions(tree)] == [("f", ("A",))]
