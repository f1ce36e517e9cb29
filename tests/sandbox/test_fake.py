import pytest

from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Command, Ended, Environment, Job, Limits, Outcome
from tests.helpers.fake_sandbox import FakeSandbox
from tests.sandbox.conformance import LIMITS, NAMES, check

ENVIRONMENT = Environment(name="any")


def test_the_fake_sandbox_refuses_the_same_input_as_back_ends() -> None:
    fake = FakeSandbox(lambda job: Outcome(ended=Ended.EXITED))
    with pytest.raises(SandboxUnavailable, match="prepare"):
        fake.open(ENVIRONMENT, limits=Limits())
    fake.prepare(ENVIRONMENT, lambda _: None)
    with fake.open(ENVIRONMENT, limits=Limits()) as pool, pytest.raises(ValueError, match="program"):
        pool.run(Job(action=Command(argv=())))
    with pytest.raises(ValueError, match="cannot be called"):
        fake.prepare(Environment(name="x", tree={"../x": b""}), lambda _: None)


@pytest.mark.parametrize(
    "outcome",
    [Outcome(ended=Ended.EXITED, exit_code=0), Outcome(ended=Ended.KILLED, signal=9, out_of_memory=True)],
)
def test_a_back_end_that_runs_nothing_fails_every_conformance_check(outcome: Outcome) -> None:
    findings = list(check(FakeSandbox(lambda job: outcome)))
    assert [finding.name for finding in findings] == list(NAMES) and len(set(NAMES)) == len(NAMES)
    assert [finding.name for finding in findings if finding.passed] == []
    assert all(finding.detail for finding in findings) and LIMITS.output < 1 << 20
