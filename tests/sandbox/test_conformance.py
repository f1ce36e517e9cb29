from __future__ import annotations

import pytest

from sandbox.conformance import NAMES, check
from sandbox.types import Sandbox

pytestmark = pytest.mark.slow


def test_a_back_end_keeps_the_whole_list(real_sandbox: Sandbox) -> None:
    findings = list(check(real_sandbox))
    assert [finding.name for finding in findings] == list(NAMES)
    assert [f"{finding.name}: {finding.detail}" for finding in findings if not finding.passed] == []
