"""Checks of all back ends, run here as a plain user because the other tests often run as root."""

from pathlib import Path

import pytest

from tests.sandbox.attacks import inside
from tests.sandbox.attacks.case import CASES, matches
from tests.sandbox.bubblewrap.conftest import Driver

_TOOLS = Path(inside.__path__[0], "attack_tools.py").read_text()
_AS_ROOT_ONLY = {"page-tables": "nothing counts the tables of a plain user's box"}


@pytest.mark.slow
@pytest.mark.parametrize("run_as", ["plain user"], indirect=True)
def test_the_conformance_checks_pass_for_a_plain_user(run_as: Driver) -> None:
    findings = run_as(conform=True)["findings"]
    assert len(findings) >= 20
    assert [f"{each['name']}: {each['detail']}" for each in findings if not each["passed"]] == []


@pytest.mark.slow
@pytest.mark.parametrize("run_as", ["plain user"], indirect=True)
def test_a_plain_users_box_cannot_exhaust_shared_resources(run_as: Driver) -> None:
    cases = [case for case in CASES["Taking what all boxes share"] if case.name not in _AS_ROOT_ONLY]
    lines = [line for case in cases for line in case.code.splitlines() if line.startswith("from attack_tools")]
    assert set(lines) == {"from attack_tools import in_child, kernel, tried, word"}
    code = [_TOOLS + case.code.replace(lines[0], "") for case in cases]
    outcomes = run_as(jobs=[["python3", "-c", program] for program in code])["outcomes"]
    for case, outcome in zip(cases, outcomes, strict=True):
        assert outcome["ended"] in case.ended, (case.name, outcome)
        assert matches(case.seen, outcome["output"]), (case.name, outcome["output"])


@pytest.mark.parametrize("run_as", ["plain user"], indirect=True)
def test_a_plain_users_box_gets_at_most_16_inotify_instances(run_as: Driver) -> None:
    """The kernel counts all boxes of a plain user as one user, who has 128 instances."""
    code = "import ctypes, json; libc = ctypes.CDLL(None); print(json.dumps([libc.inotify_init() for _ in range(40)]))"
    assert sum(handle >= 0 for handle in run_as.say(code)) == 16
