"""``ctxbench repo add``: from a folder to a manifest, what it prints, and its example in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxbench.bench.repositories import manifest
from ctxbench.sandbox import registry, wheels
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import FILES, in_process
from tests.helpers.sandboxes import real
from tests.helpers.trees import write_tree

DOCS = Path(__file__).parents[3] / "docs" / "repositories.md"
PROJECT = '[project]\nname = "till"\nversion = "1.4"\nlicense = "MIT"\n'
PACKAGE = {
    "pyproject.toml": PROJECT + '[project.optional-dependencies]\ntest = ["pytest>=6", "six"]\n',
    "src/till/__init__.py": "",
    "src/till/sums.py": 'def total(amounts):\n    """Return the sum."""\n    return sum(amounts)\n',
    "src/till/bill.py": "from till.sums import total\n\n\ndef bill(items):\n    return f'{total(items)} EUR'\n",
    "tests/test_till.py": "import six\n\nfrom till.bill import bill\nfrom till.sums import total\n\n\n"
    "def test_total():\n    assert total([1, 2]) == 3\n\n\ndef test_bill():\n    assert bill([1, 2]) == '3 EUR'\n\n\n"
    "def test_reached():\n    raise ConnectionError('nobody answers')\n",
    "tests/test_more.py": "from tests_of_another import helper\n\n\ndef test_more():\n    assert helper\n",
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeSandbox:
    """Put a back end behind the command line that runs trusted tests in this process."""
    sandbox = in_process()
    monkeypatch.setattr(wheels, "lock", lambda *_, **__: ("pytest==9.2.0",))
    monkeypatch.setattr(registry, "open_sandbox", lambda name, cache: sandbox)
    return sandbox


def test_the_example_of_the_docs(fake: FakeSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(
        tmp_path / "shop", {**FILES, "till.py": "from shop import double\n\n\ndef ring():\n    return double(1)\n"}
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CTXBENCH_HOME")
    section = DOCS.read_text().partition("## Adopt one")[2].partition("\n## ")[0]
    block = re.search(r"```sh\n(.*?)```", section, re.S)
    assert block is not None
    commands = [line.split("#")[0].split() for line in block.group(1).splitlines() if line.strip()]
    assert [command[:2] for command in commands] == [
        ["ctxbench", "repo"],
        ["ctxbench", "samples"],
        ["ctxbench", "samples"],
    ]
    for command in commands:
        local = [word.replace("pypi:webcolors==24.11.1", "shop").replace("webcolors", "shop") for word in command[1:]]
        result = run_cli(*local)
        assert result.code == 0, result
    assert run_cli("samples", "list").out.count(" samples  ") == 2


def test_what_is_printed(fake: FakeSandbox, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "shop", {**FILES, "till.py": "from shop import double\nx = double(1)\n"})
    result = run_cli("repo", "add", str(tree), "--folder", str(tmp_path / "mine"))
    path = tmp_path / "mine" / "shop.toml"
    assert result.code == 0 and result.out.startswith(f"{path}: "), result
    assert "6 of 6 tests passed." in result.out and len(result.out.splitlines()) == 1
    assert "shop: to be looked at: its files name no licence" in result.err
    assert_fault(run_cli("repo", "add", str(tree), "--folder", str(tmp_path / "mine")), "is there already", "--force")
    assert run_cli("repo", "check", str(path)).code == 0


def test_without_tests_no_sandbox_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "open_sandbox", lambda *_: pytest.fail("opened"))
    tree = write_tree(tmp_path / "shop", {**FILES, "till.py": "from shop import double\nx = [double(1)]\n"})
    result = run_cli("repo", "add", str(tree), "--no-tests", "--name", "mine", "--folder", str(tmp_path))
    assert result.code == 0 and manifest.load(str(tmp_path / "mine.toml")).tests is None


def test_where_no_test_runs_the_fault_says_what_to_write(fake: FakeSandbox, tmp_path: Path) -> None:
    inner = fake.answer

    def answer(job: Job) -> Outcome:
        assert isinstance(job.action, Call)
        if job.action.function.endswith(":cover"):
            return Outcome(ended=Ended.EXITED, exit_code=4, output="ImportError while loading conftest", seconds=0.1)
        return inner(job)

    fake.answer = answer
    tree = write_tree(tmp_path / "shop", {**FILES, "till.py": "from shop import double\nx = [double(1)]\n"})
    result = run_cli("repo", "add", str(tree), "--folder", str(tmp_path))
    assert_fault(result, "shop.toml: none of its tests ran", "loading conftest", "# [tests]", "samples build")
    assert manifest.load(str(tmp_path / "shop.toml")).tests is None


@pytest.mark.parametrize("ref", ["pypi:demo", "git+https://example.org/x@main", "/no/such/folder"])
def test_a_wrong_source_is_one_line(ref: str) -> None:
    assert_fault(run_cli("repo", "add", ref), "give ")


def test_a_sandbox_for_no_tests_is_a_wrong_use() -> None:
    result = run_cli("repo", "add", "x", "--no-tests", "--sandbox", "bubblewrap")
    assert result.code == 2 and "--no-tests leaves out" in result.err


@pytest.mark.slow
@pytest.mark.network  # for the wheels of pytest, coverage and six
def test_a_package_in_a_folder_is_adopted_in_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "open_sandbox", lambda *_: real("bubblewrap"))
    tree = write_tree(tmp_path / "till", PACKAGE)
    result = run_cli("repo", "add", str(tree), "--folder", str(tmp_path))
    assert result.code == 0 and "2 of 3 tests passed (1 failed)" in result.out, result
    adopted = manifest.load(str(tmp_path / "till.toml"))
    assert adopted.tests is not None and adopted.tests.deselect == ("tests/test_more.py",)
    assert (adopted.tests.pythonpath, adopted.tests.paths) == ("src", ("tests",))
    assert "test_more.py cannot be imported here and is left out" in result.err
    assert "test_reached (ConnectionError: nobody answers)" in result.err
