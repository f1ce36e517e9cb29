"""What a test needs and is not there: a skip on a developer's machine, a failure in CI."""

from __future__ import annotations

import json

import pytest

from tests.helpers.extras import needed


def test_what_is_there_is_returned() -> None:
    assert needed("json", "hf") is json


def test_what_is_missing_is_skipped_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="`hf` is not installed"):
        needed("no_such_module", "hf")


def test_what_is_missing_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="`hf` is not installed"):
        needed("no_such_module", "hf")
