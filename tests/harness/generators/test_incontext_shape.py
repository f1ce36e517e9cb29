from __future__ import annotations

import pytest

from ctxbench.harness.generators.incontext.decode import BodyShape, circles


def line(shape: BodyShape, *tokens: str, width: int) -> BodyShape:
    """Return the shape before the end of a line of these tokens; brackets are theirs alone."""
    shape = shape.indented(width)
    depth = 0
    for token in tokens:
        shape = shape.grown(token, bracketed=depth > 0)
        depth += (token in "([{") - (token in ")]}")
    return shape


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [
        ("x = 1", True),
        ("if x :", True),
        ("if x : return", True),
        ("if x", False),
        ("if x [ : 1 ]", False),
        ("f ( x ) :", False),
        ("else :", True),
        ("try", False),
        ("match = 1", True),
        ("match x :", True),
        ("case : int", True),
        ("lambda x :", False),
    ],
)
def test_lines_that_may_end(tokens: str, ends: bool) -> None:
    assert line(BodyShape(), *tokens.split(), width=4).ends_line() is ends


def test_a_block_follows_a_colon_and_only_a_colon() -> None:
    first = BodyShape()
    assert first.indents(4, 0) and first.indents(12, 0)
    plain = line(first, "x", width=4).ended()
    assert [width for width in (0, 2, 4, 8) if plain.indents(width, 0)] == [0, 4]
    opened = line(plain, "if", "x", ":", width=4).ended()
    assert [width for width in (0, 4, 6, 8) if opened.indents(width, 0)] == [6, 8]
    inner = line(opened, "y", width=8).ended()
    assert [width for width in (0, 4, 6, 8, 12) if inner.indents(width, 0)] == [0, 4, 8]
    back = line(inner, "z", width=4).ended()
    assert [width for width in (0, 4, 8) if back.indents(width, 0)] == [0, 4]


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("    a()\n    a()\n", True),
        ("    a()\n    b()\n    a()\n    b()\n", True),
        ("    a()\n    b()\n    a()\n", False),
        ("    return x[0][0][0][0][0]", True),
        ("    return x[0][0]", False),
        ("    a.b.b.b.b.b.b.b.b.b", True),
        ('    x = "', False),
        ("    x = 1, 1, 1", False),
        ("\n", False),
        ("", False),
    ],
)
def test_what_goes_in_circles(text: str, does: bool) -> None:
    assert circles(text) is does
