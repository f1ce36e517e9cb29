# mypy: ignore-errors
"""Tests of our own for infoblox-client 0.6.0. Expectations: the docstring, and the package."""

from collections.abc import Iterator

import pytest
from infoblox_client.utils import paging


@pytest.mark.parametrize(
    ("response", "most", "pages"),
    [
        ([], 3, []),
        ([1], 3, [[1]]),
        ([1, 2, 3], 3, [[1, 2, 3]]),
        ([1, 2, 3, 4], 3, [[1, 2, 3], [4]]),
        ([1, 2, 3], 1, [[1], [2], [3]]),
        (list(range(10)), 4, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        ([None, None], 5, [[None, None]]),
    ],
)
def test_paging(response, most, pages):
    given = list(response)
    made = paging(response, most)
    assert isinstance(made, Iterator)
    assert list(made) == pages
    assert response == given


def test_pages_come_one_by_one():
    made = paging([1, 2, 3], max_results=2)
    assert next(made) == [1, 2]
    assert next(made) == [3]
    with pytest.raises(StopIteration):
        next(made)
