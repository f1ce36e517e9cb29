"""What a test needs and is not there: a skip, or a failure where tests must be complete."""

import re
from pathlib import Path

import pytest

import tests
from tests.helpers.extras import COMPLETE, needed


@pytest.mark.parametrize(
    ("complete", "outcome"), [("0", pytest.skip.Exception), ("1", pytest.fail.Exception)], ids=["here", "complete"]
)
def test_what_is_missing_is_skipped_but_fails_where_tests_must_be_complete(
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
        # What is a test's text, not its own skip.
        "bench/functions/test_real.py",
        # What only another processor, or no GPU, can show.
        "sandbox/docker/test_seccomp.py",
        "harness/generators/test_hf.py",
        # What only an engine with gVisor can show.
        "sandbox/test_conformance.py",
    }
