"""``ctxbench samples`` on functions: build, show, verify."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.judging.python.judging import Canary
from ctxbench.harness.store import open_store
from ctxbench.harness.store.notes import marks_of
from ctxbench.sandbox import registry, wheels
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.bench.judging import told
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import in_process, local_manifest

UseSandbox = Callable[[FakeSandbox], None]


@pytest.fixture
def use_sandbox(monkeypatch: pytest.MonkeyPatch) -> UseSandbox:
    """Return a function that makes the command line use a sandbox."""
    monkeypatch.setattr(wheels, "lock", lambda *_, **__: ("pytest==9.2.0",))

    def put(sandbox: FakeSandbox) -> None:
        monkeypatch.setattr(registry, "open_sandbox", lambda name, cache: sandbox)

    return put


def passed(job: Job) -> Outcome:
    """Return what a box says in which the job's tests pass."""
    assert isinstance(job.action, Call)
    asked = job.action.arguments
    drawn = [Canary(**each) for each in asked["canaries"]]
    return told.outcome(told.result(told.events(asked["tests"], drawn), nonce=asked["nonce"]))


def lost(job: Job) -> Outcome:
    raise SandboxLost("gone")


@pytest.fixture
def built(use_sandbox: UseSandbox, tmp_path: Path) -> str:
    local_manifest(tmp_path)
    use_sandbox(in_process())
    result = run_cli("samples", "build", "shop", "--kind", "function", "--repo", str(tmp_path / "demo.toml"))
    assert result.code == 0 and result.out.startswith("shop: 3 samples, digest "), result
    assert "tests run in fake" in result.err and "demo: 3 samples of 6 candidates" in result.err
    return "shop"


def test_show_a_set_of_functions(built: str) -> None:
    shown = run_cli("samples", "show", built)
    assert shown.code == 0
    for part in (
        "3 function samples",
        "documented   7",
        "covered      6",
        "1 slib_runnable",
        "tried        6",
        "certified    3 of 4 that a test can judge (75.0 %)",
        "flaky 1",
        "not_covered 1",
    ):
        assert part in shown.out, part
    assert "masked" not in shown.out


def test_show_a_function_without_its_answer_until_asked(built: str) -> None:
    shown = run_cli("samples", "show", built, "demo/shop.py::root")
    assert shown.code == 0 and "slib_runnable" in shown.out and "hidden  tests/" in shown.out
    assert "math.sqrt" not in shown.out and "def root(x):" in shown.out
    asked = run_cli("samples", "show", built, "demo/shop.py::root", "--reference")
    assert "return math.sqrt(x)" in asked.out and "tests/test_shop.py::test_root" in asked.out


def test_show_says_which_tests_read_a_clock(built: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    made = sets.load(home, built)
    root = made.references["demo/shop.py::root"]
    references = {**made.references, root.id: replace(root, clocks=root.tests)}
    counts = {"kept_clocks_only": 1, "tests_dropped": {"fails_under_load": 2}}
    entry = {**made.manifest["repositories"]["demo"], **counts}
    sets.save(home, "timed", made.samples, references.values(), {**made.manifest, "repositories": {"demo": entry}})
    shown = run_cli("samples", "show", "timed").out
    assert "clocks       judged only by tests that read a clock 1, judged by such tests too 0" in shown
    assert "tests dropped fails_under_load 2" in shown
    assert "clocks " not in run_cli("samples", "show", built).out
    assert "test_root  (reads a clock)" in run_cli("samples", "show", "timed", root.id, "--reference").out
    assert "reads a clock" not in run_cli("samples", "show", built, root.id, "--reference").out


def test_verify(built: str, use_sandbox: UseSandbox) -> None:
    result = run_cli("samples", "verify", built, "--workers", "2")
    assert result.code == 0 and result.out == "shop: reference 100.0% (3 of 3), blank 0.0% (0 of 3)\n"

    use_sandbox(in_process(more=lambda job: Outcome(ended=Ended.TIMED_OUT)))
    failed = run_cli("samples", "verify", built)
    assert failed.code == 1 and "reference 0.0% (0 of 3)" in failed.out
    assert "demo/shop.py::root: reference TIMED_OUT" in failed.err


def test_verify_marks_what_no_score_is_to_rest_on(built: str, use_sandbox: UseSandbox, tmp_path: Path) -> None:
    assert run_cli("samples", "verify", built, "--mark").out.endswith("\ninvalid: none\n")

    def blind(job: Job) -> Outcome | None:
        """Answer as a box whose tests do not look at what ``double`` returns."""
        changed = job.files.get("shop.py")
        return None if changed is None or b"return x * RATE" in changed else passed(job)

    use_sandbox(in_process(more=blind))
    plain = run_cli("samples", "verify", built)
    assert plain.code == 1
    found = run_cli("samples", "verify", built, "--mark")
    assert found.code == 0 and found.out.endswith("invalid: 1 vacuous (1 new)\n"), found
    assert run_cli("samples", "verify", built, "--mark").out.endswith("invalid: 1 vacuous (0 new)\n")
    use_sandbox(in_process(more=lambda job: Outcome(ended=Ended.TIMED_OUT)))
    assert "invalid: 3 broken (3 new)" in run_cli("samples", "verify", built, "--mark").out
    use_sandbox(in_process(more=lost))
    machine = run_cli("samples", "verify", built, "--mark")
    assert machine.code == 1 and "invalid: none" in machine.out
    digest = sets.load(Home(tmp_path / "home"), built).digest
    with open_store(Home(tmp_path / "home").database) as store:
        held = [(one.sample_id, one.mark, one.reason) for one in marks_of(store, digest)]
    assert ("demo/shop.py::double", "vacuous", "an empty body passes") in held
    assert ("demo/shop.py::root", "broken", "the reference TIMED_OUT ran out of time") in held and len(held) == 4


def test_faults(built: str, tmp_path: Path) -> None:
    assert_fault(run_cli("samples", "verify", "shap"), "no sample set", "did you mean shop")
    lines = ("samples", "build", "new", "--repo", str(tmp_path / "demo.toml"))
    wrong = run_cli(*lines, "--sandbox", "docker")
    assert wrong.code == 2 and "--kind function" in wrong.err
    assert run_cli(*lines, "--kind", "function", "--sandbox", "none").code == 2, "never a plain subprocess"
