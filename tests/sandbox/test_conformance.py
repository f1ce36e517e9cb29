from collections.abc import Sequence

import pytest

from ctxbench.sandbox.registry import runtime_fault
from ctxbench.sandbox.types import Sandbox
from tests.helpers.sandboxes import real
from tests.sandbox.conformance import NAMES, check

pytestmark = pytest.mark.slow


def test_a_back_end_passes_all_conformance_checks(real_sandbox: Sandbox) -> None:
    findings = list(check(real_sandbox))
    assert [finding.name for finding in findings] == list(NAMES)
    assert [f"{finding.name}: {finding.detail}" for finding in findings if not finding.passed] == []


# The test above runs all checks with the engine's default runtime.
@pytest.mark.parametrize(("runtime", "names"), [("runc", NAMES[:5]), ("runsc", NAMES)], ids=["runc", "runsc"])
def test_docker_passes_the_checks_with_other_runtimes(runtime: str, names: Sequence[str]) -> None:
    if (fault := runtime_fault(runtime)) is not None:
        pytest.skip(str(fault))
    findings = check(real(f"docker(runtime={runtime})"), names)
    assert [f"{finding.name}: {finding.detail}" for finding in findings if not finding.passed] == []
