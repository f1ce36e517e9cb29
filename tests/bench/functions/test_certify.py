"""Certificates: the verdicts that certify a function."""

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.functions.certify import CERTIFIED, certificate
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.types import Sample
from tests.helpers.samples import make_sample


class Script:
    """Returns the reference's verdicts in turn. ``blank`` has its own verdict."""

    def __init__(self, reference: list[str], blank: str = "FAILED") -> None:
        self.reference, self.blank, self.asked = list(reference), blank, list[str]()

    def judge(self, sample: Sample, text: str) -> Judgement:
        self.asked.append(text)
        said = self.blank if text == "blank" else self.reference.pop(0)
        return Judgement(verdict=Verdict(said), reason=f"was {said}")


P, F, T = "PASSED", "FAILED", "TIMED_OUT"


@pytest.mark.parametrize(
    ("reference", "blank", "result"),
    [
        ([P, P, P], F, CERTIFIED),
        ([P, P, P], T, CERTIFIED),
        ([P, P, P], "NO_TESTS", CERTIFIED),
        ([P, T, P, P], F, CERTIFIED),
        ([T, P, T, P, P], F, CERTIFIED),
        ([P, P, P], P, "blank_passed"),
        ([F, F, F], F, "reference_failed"),
        ([F, F, P], F, "flaky"),
        ([P, P, F], F, "flaky"),
        ([T, P, T, P, T], F, "flaky"),
        ([T, T, T, T, T], F, "reference_timed_out"),
        (["NO_TESTS"], F, "reference_has_no_tests"),
    ],
)
def test_the_verdicts_determine_the_certificate(reference: list[str], blank: str, result: str) -> None:
    judging = Script(reference, blank)
    got, detail = certificate(make_sample(), "right", "blank", judging)
    assert got == result and not judging.reference, "no verdict was left over"
    assert bool(detail) == (result not in (CERTIFIED, "blank_passed"))
    assert ("blank" in judging.asked) == (result in (CERTIFIED, "blank_passed")), "a blank costs only where it counts"


@pytest.mark.parametrize(("reference", "blank"), [([P, "BROKEN"], F), ([P, P, P], "BROKEN")])
def test_a_broken_machine_is_a_fault_and_not_a_verdict(reference: list[str], blank: str) -> None:
    with pytest.raises(MachineFault, match="run the same command again"):
        certificate(make_sample(), "right", "blank", Script(reference, blank))
