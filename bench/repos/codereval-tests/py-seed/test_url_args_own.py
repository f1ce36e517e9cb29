# mypy: ignore-errors
"""Tests of our own for py-seed 0.3.0. Expectations: the docstring, and the package."""

import pytest
from pyseed.seed_client_base import _replace_url_args


@pytest.mark.parametrize(
    ("url", "arguments", "expected"),
    [
        ("https://x/PK/y", {"PK": 5}, "https://x/5/y"),
        ("https://x/PK/y/NAME/z/", {"PK": "a", "NAME": "b"}, "https://x/a/y/b/z/"),
        ("https://x/PK/y/PK/", {"PK": 1}, "https://x/1/y/1/"),
        ("https://x/PKS/y", {"PK": 5}, "https://x/PKS/y"),
        ("https://x/y/PK", {"PK": 5}, "https://x/y/PK"),
        ("https://x/PK/y", {}, "https://x/PK/y"),
        ("https://x/PK/y", None, "https://x/PK/y"),
        ("https://x/PK/y", {"OTHER": 5}, "https://x/PK/y"),
        ("https://x/A/", {"A": "B", "B": "C"}, "https://x/C/"),
    ],
)
def test_replace_url_args(url, arguments, expected):
    assert _replace_url_args(url, arguments) == expected
