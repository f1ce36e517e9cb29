# mypy: ignore-errors
"""Tests of our own for makeprojects 0.12.3, whose sdist has none. Expectations: the docstrings, and the package."""

import os

import pytest
from makeprojects.util import remove_ending_os_sep, was_processed


def test_was_processed(capsys):
    seen = {"/a"}
    assert was_processed(seen, "/a", False) is True
    assert was_processed(seen, "/b", False) is False
    assert seen == {"/a", "/b"}
    assert was_processed(seen, "/b", False) is True
    assert seen == {"/a", "/b"}
    assert capsys.readouterr().out == ""


def test_was_processed_tells(capsys):
    seen = set()
    assert was_processed(seen, "/some/path", True) is False
    capsys.readouterr()
    assert was_processed(seen, "/some/path", True) is True
    assert "/some/path" in capsys.readouterr().out


def test_remove_ending_os_sep():
    sep = os.sep
    given = [f"a{sep}", "b", sep, "", f"{sep}c{sep}d{sep}", f"e{sep}{sep}", f"{sep}f"]
    assert remove_ending_os_sep(given) == ["a", "b", sep, "", f"{sep}c{sep}d", f"e{sep}", f"{sep}f"]
    assert given[0] == f"a{sep}"


def test_remove_ending_os_sep_of_nothing():
    assert remove_ending_os_sep(None) == []
    assert remove_ending_os_sep([]) == []
    with pytest.raises(TypeError):
        remove_ending_os_sep(5)
