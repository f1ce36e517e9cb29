# mypy: ignore-errors
"""Tests of our own for eppy 0.5.59. Expectations: the docstring, and the package."""

import pytest
from eppy.geometry.surface import vertex3tuple


@pytest.mark.parametrize(
    ("vertices", "expected"),
    [
        ("ABCD", ["DAB", "ABC", "BCD", "CDA"]),
        ("ABC", ["CAB", "ABC", "BCA"]),
        ("AB", ["BAB", "ABA"]),
        ("A", ["AAA"]),
        ("", []),
    ],
)
def test_vertex3tuple(vertices, expected):
    assert vertex3tuple(list(vertices)) == [tuple(each) for each in expected]


def test_vertex3tuple_of_points():
    points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0.5, 0)]
    made = vertex3tuple(points)
    assert len(made) == 5
    assert made[0] == (points[4], points[0], points[1])
    assert made[2] == (points[1], points[2], points[3])
    assert made[4] == (points[3], points[4], points[0])
