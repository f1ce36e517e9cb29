"""Functions of a benchmark that brings no tests: no sandbox is opened, and the leaderboard compares texts."""

from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.home import Home
from tests.bench.formats.test_repoeval import FILE, FUNCTION
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.trees import write_tree

pytestmark = pytest.mark.usefixtures("inline_cells")


@pytest.fixture
def imported(tmp_path: Path) -> str:
    write_jsonl(tmp_path / "fn.jsonl", [FUNCTION])
    write_tree(tmp_path / "repos" / "demo", {"shop/pay.py": FILE.encode(), "shop/cart.py": "class Cart: ...\n"})
    result = run_cli(
        *("samples", "import", str(tmp_path / "fn.jsonl"), "--format", "repoeval", "--name", "fn"),
        *("--repos", str(tmp_path / "repos")),
    )
    assert result.code == 0, result.err
    return "fn"


@pytest.mark.slow
def test_they_are_scored_as_texts_and_ranked(imported: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("nothing is there to run")

    monkeypatch.setattr("ctxbench.harness.run.resources.open_executor", opened)
    generator = "scripted(text='return Cart(amount)')"
    result = run_cli("run", "--samples", imported, "--strategy", "lc.infile", "--generator", generator)
    assert result.code == 0 and "scored 1  model-failed 0  missing 0" in result.out, result.err
    assert "unjudged" not in result.out
    silent = run_cli("run", "--samples", imported, "--strategy", "icl.direct", "--generator", "scripted(text=' ')")
    assert "model-failed 1" in silent.out, silent.err
    board = run_cli("leaderboard", "--samples", imported, "--metric", "es", "--explain")
    assert board.code == 0 and "Ranked by es" in board.out, board
    assert "pass@1" not in board.out and "missing" not in board.out


def test_verdicts_are_refused(imported: str, tmp_path: Path) -> None:
    [sample] = sets.load(Home(tmp_path / "home"), imported).samples
    write_jsonl(tmp_path / "made.jsonl", [{"sample": sample.id, "text": "x"}])
    result = run_cli("exec", "--completions", str(tmp_path / "made.jsonl"), "--samples", imported)
    assert_fault(result, "made.jsonl:1", "no tests")
    result = run_cli("run", "--samples", imported, "--strategy", "lc.infile", "--generator", "incontext", "--k", "5")
    assert_fault(result, imported)
