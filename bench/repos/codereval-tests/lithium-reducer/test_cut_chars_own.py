# mypy: ignore-errors
"""Tests of our own for lithium 0.6.1. Expectations: the docstring, and the package."""

import pytest
from lithium.testcases import TestcaseSymbol


def cut(before, after, text):
    case = TestcaseSymbol()
    assert case.set_cut_chars(before, after) is None
    case.split_parts(text)
    return case.parts


@pytest.mark.parametrize(
    ("before", "after", "text", "parts"),
    [
        (b"}", b";", b"a;b}c", [b"a;", b"b", b"}c"]),
        (b"}", b";", b"plain", [b"plain"]),
        (b"}", b";", b";;", [b";", b";"]),
        (b"}", b";", b"}}", [b"}", b"}"]),
        (b"}", b";", b"a}b;c", [b"a", b"}b;", b"c"]),
        (b"xy", b"12", b"a1bxcyd2", [b"a1", b"b", b"xc", b"yd2"]),
        (b"}", b"\n", b"a\nb\n", [b"a\n", b"b\n"]),
        (b")", b"(", b"f(a)", [b"f(", b"a", b")"]),
    ],
)
def test_cut_chars(before, after, text, parts):
    assert cut(before, after, text) == parts


def test_cut_chars_replace_those_of_before():
    case = TestcaseSymbol()
    case.split_parts(b"a;b}c")
    assert case.parts == [b"a;", b"b", b"}c"]
    again = TestcaseSymbol()
    again.set_cut_chars(b"b", b"a")
    again.split_parts(b"a;b}c")
    assert again.parts == [b"a", b";", b"b}c"]
