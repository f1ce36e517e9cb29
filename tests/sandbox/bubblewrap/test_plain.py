"""The list that every back end keeps, for a plain user; who runs `tests/sandbox/test_conformance.py` is often root."""

from __future__ import annotations

import pytest

from tests.sandbox.bubblewrap.conftest import Driver


@pytest.mark.slow
@pytest.mark.parametrize("run_as", ["plain user"], indirect=True)
def test_a_plain_user_gets_what_root_gets(run_as: Driver) -> None:
    findings = run_as(conform=True)["findings"]
    assert len(findings) >= 20
    assert [f"{each['name']}: {each['detail']}" for each in findings if not each["passed"]] == []
