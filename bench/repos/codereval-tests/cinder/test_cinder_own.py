# mypy: ignore-errors
"""Tests of our own for cinder 20.0.0, whose own need a cloud. Expectations: the docstrings, and cinder."""

import pytest
from cinder.api.api_utils import is_none_string
from cinder.image.glance import _parse_image_ref


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("none", True),
        ("None", True),
        ("NONE", True),
        ("nOnE", True),
        ("", False),
        ("none ", False),
        ("nonee", False),
        ("null", False),
        (None, False),
        (0, False),
        (["none"], False),
        (b"none", False),
    ],
)
def test_is_none_string(value, expected):
    assert is_none_string(value) is expected


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("http://host:9292/v2/images/abc", ("abc", "host:9292", False)),
        ("https://host/v2/images/abc", ("abc", "host", True)),
        ("https://host/abc?x=1#y", ("abc", "host", True)),
        ("http://host", ("", "host", False)),
        ("http://host/images/", ("", "host", False)),
        ("abc", ("abc", "", False)),
        ("images/abc", ("abc", "", False)),
        ("//host/abc", ("abc", "host", False)),
    ],
)
def test_parse_image_ref(href, expected):
    assert _parse_image_ref(href) == expected


@pytest.mark.parametrize("href", ["http://[host/abc", "https://host]/abc"])
def test_parse_image_ref_of_what_is_no_address(href):
    with pytest.raises(ValueError):
        _parse_image_ref(href)
