"""Conformance checks of back ends, tried in real boxes: for our tests, and for authors of other back ends.

for finding in check(MySandbox()):
    print(finding.name, finding.passed, finding.detail)
"""

from ctxbench.sandbox.conformance.running import LIMITS, NAMES, CheckResult, check

__all__ = ["LIMITS", "NAMES", "CheckResult", "check"]
