# mypy: ignore-errors
"""Tests of our own for rdiffweb 2.11.0. Expectations: the docstring, rdiff-backup's quoting, and the package."""

import pytest
from rdiffweb.core.librdiff import unquote


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"", b""),
        (b"plain", b"plain"),
        (b";090", b"Z"),
        (b"a;059b", b"a;b"),
        (b";000;255", b"\x00\xff"),
        (b"Char ;090 to quote", b"Char Z to quote"),
        (b";0901", b"Z1"),
        (b"a;09b", b"a;09b"),
        (b";", b";"),
        (b";;048", b";0"),
        (b";195;169", "é".encode()),
        (b"line\n;065", b"line\nA"),
    ],
)
def test_unquote(name, expected):
    assert unquote(name) == expected
