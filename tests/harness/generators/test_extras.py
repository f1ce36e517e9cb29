"""A missing dependency skips a test, or fails it where tests must be complete."""

import re
from pathlib import Path

import pytest

import tests
from tests.helpers.extras import COMPLETE, needed


@pytest.mark.parametrize(
    ("complete", "outcome"), [("0", pytest.skip.Exception), ("1", pytest.fail.Exception)], ids=["here", "complete"]
)
def test_a_missing_dependency_skips_or_fails_a_test(
    complete: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPLETE, complete)
    with pytest.raises(outcome, match="`hf` is not installed"):
        needed("no_such_module", "hf")


def test_no_other_test_skips() -> None:
    skips = re.compile(r"importorskip|pytest\.skip\(|mark\.skip|pytest\.fail if ")
    root = Path(tests.__file__).parent
    found = {str(one.relative_to(root)) for one in root.rglob("*.py") if skips.search(one.read_text(encoding="utf-8"))}
    assert found - {Path(__file__).relative_to(root).as_posix(), "helpers/extras.py"} == {
        # The words belong to the test data. The file itself skips nothing.
        "bench/functions/test_real.py",
        # These tests need another processor, or a machine without a GPU.
        "sandbox/docker/test_seccomp.py",
        "harness/generators/test_hf.py",
        # This test needs an engine with gVisor.
        "sandbox/test_conformance.py",
    }
