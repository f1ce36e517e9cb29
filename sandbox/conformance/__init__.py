"""What every back end must do, tried for real: used by our tests, and by authors of other back ends.

for finding in check(MySandbox()):
    print(finding.name, finding.passed, finding.detail)
"""

from ctxbench.sandbox.conformance.running import LIMITS, NAMES, Finding, check

__all__ = ["LIMITS", "NAMES", "Finding", "check"]
