# mypy: ignore-errors
"""Tests of our own for shortuuid 1.0.9, whose sdist has none. Expectations: the docstrings, and the package."""

import pytest
from shortuuid.main import int_to_string, string_to_int

DIGITS = "0123456789"


@pytest.mark.parametrize(
    ("number", "alphabet", "expected"),
    [
        (0, DIGITS, ""),
        (7, DIGITS, "7"),
        (120, DIGITS, "120"),
        (5, "01", "101"),
        (5, "ab", "bab"),
        (255, "0123456789abcdef", "ff"),
        (2**128 - 1, "0123456789abcdef", "f" * 32),
    ],
)
def test_int_to_string(number, alphabet, expected):
    assert int_to_string(number, alphabet) == expected


@pytest.mark.parametrize(
    ("number", "padding", "expected"),
    [(5, 6, "000101"), (5, 3, "101"), (5, 1, "101"), (0, 4, "0000"), (5, 0, "101"), (5, None, "101")],
)
def test_int_to_string_is_padded_at_its_head(number, padding, expected):
    assert int_to_string(number, "01", padding) == expected
    assert int_to_string(number, "01", padding=padding) == expected


@pytest.mark.parametrize(
    ("string", "alphabet", "expected"),
    [
        ("", DIGITS, 0),
        ("120", DIGITS, 120),
        ("000120", DIGITS, 120),
        ("bab", "ab", 5),
        ("ff", "0123456789abcdef", 255),
        ("zy", "zyx", 1),
    ],
)
def test_string_to_int(string, alphabet, expected):
    assert string_to_int(string, alphabet) == expected


def test_string_to_int_knows_its_alphabet_only():
    with pytest.raises(ValueError):
        string_to_int("12a", DIGITS)


@pytest.mark.parametrize("number", [1, 61, 62, 63, 12345678901234567890])
def test_there_and_back(number):
    alphabet = "".join(chr(code) for code in range(48, 110))
    assert string_to_int(int_to_string(number, alphabet), alphabet) == number
