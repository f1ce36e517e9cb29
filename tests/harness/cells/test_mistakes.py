"""`strategy check` and `run` report the same mistakes of strategies, as root and as a plain user."""

import functools
import json
import os
from typing import Any

import pytest

from tests.harness.cells.confined import granted
from tests.harness.cells.hostile import ring
from tests.harness.cells.mistakes import MISTAKES
from tests.helpers.extras import missing

pytestmark = [pytest.mark.slow, pytest.mark.long]


@functools.cache
def tried(user: str) -> dict[str, Any]:
    """Return the results of all mistakes, as root or as a plain user."""
    report: dict[str, Any] = {}
    for _ in range(3):
        report = json.loads(ring.started("tests.harness.cells.mistakes", user).stdout)
        # Other tests exhaust the memory of their boxes at the same time. The kernel counts these kills for the whole
        # machine.
        if "this machine ran out of memory" not in str(report["run"]):
            break
    return report


@pytest.fixture(params=["root", "plain"])
def report(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the results of all mistakes; skip on kernels without namespaces."""
    if not granted():
        missing("no namespaces on this kernel")
    if request.param == "root" and os.geteuid() != 0:
        missing("not root")
    return tried(request.param)


def test_there_are_enough_mistakes_of_each_kind() -> None:
    assert sum(bool(mistake.fault) for mistake in MISTAKES.values()) >= 25
    assert sum(bool(mistake.finding) for mistake in MISTAKES.values()) >= 6


@pytest.mark.parametrize("name", MISTAKES)
def test_a_check_reports_the_same_mistake_as_a_run(report: dict[str, Any], name: str) -> None:
    mistake = MISTAKES[name]
    failed = {finding: detail for finding, passed, detail in report["check"][name] if not passed}
    messages = report["run"][name]
    if mistake.fault:
        # The check's repository has a different name.
        [message] = [message.replace("repository shop0", "repository tiny") for message in messages]
        assert mistake.fault in message
        assert list(failed) == ["line: runs"] and failed["line: runs"] in message
    else:
        assert messages == []
        assert "line: runs" not in failed
        assert {f"line: {mistake.finding}"} <= set(failed) if mistake.finding else not failed
