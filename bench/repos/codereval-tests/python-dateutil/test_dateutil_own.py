# mypy: ignore-errors
"""Tests of our own for python-dateutil 2.8.1, for what its own tests do not see. Expectations: the docstring."""

import pytest
from dateutil.tz import _common


def tzname(self, moment):
    """Doc."""
    return None if moment is None else f"zone {moment}"


def test_names_are_text_in_python_3():
    named = _common.tzname_in_python2(tzname)
    assert named(None, 1) == "zone 1"
    assert named(None, moment="é") == "zone é"
    assert named(None, None) is None


@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_its_errors_are_passed_on(error):
    @_common.tzname_in_python2
    def fails():
        raise error("x")

    with pytest.raises(error):
        fails()
