"""Strings and comments of Java, blanked with their positions kept."""

from __future__ import annotations

import pytest

from ctxbench.bench.languages.java import hide


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (r"""a('{', '\'', '\u007b', "\"{") + b;""", "a(   ,     ,         ,      ) + b;"),
        ('x = """\n  "{" \\"""\n""" + y;', "x =    \n          \n    + y;"),
        ("a /* { \n ' */ b // {\nc", "a      \n      b     \nc"),
        ("It doesn't hide { this } of prose", "It doesn't hide { this } of prose"),
        ('cut("{', "cut(  "),
        ("cut('{", "cut(  "),
        ("cut(/* {", "cut(    "),
    ],
)
def test_only_code_stays(text: str, hidden: str) -> None:
    assert hide(text) == hidden
