"""The main job, end to end, on the real repositories: what a new user sees must hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness import quickstart
from tests.helpers.cli import Result, run_cli

pytestmark = [pytest.mark.network, pytest.mark.slow]

CONTROL = f"{Path(__file__).parent / 'helpers' / 'random_windows.py'}@control.random"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quickstart") / "home"


@pytest.fixture(scope="module")
def first(home: Path) -> Result:
    result = run_cli("quickstart", "--home", str(home))
    assert result.code == 0, result.err
    return result


def rows(home: Path) -> list[dict[str, Any]]:
    result = run_cli("leaderboard", "--home", str(home), "--format", "json")
    assert result.code == 0, result.err
    found: list[dict[str, Any]] = json.loads(result.out)
    return found


def of(found: list[dict[str, Any]], language: str, strategy: str) -> dict[str, Any]:
    return next(row for row in found if row["language"] == language and row["strategy"] == strategy)


def test_real_samples_of_both_languages(home: Path, first: Result) -> None:
    manifest = json.loads((home / "samples" / "quickstart" / "manifest.json").read_text())
    languages = [entry["language"] for entry in manifest["repositories"].values()]
    assert languages.count("python") >= 3
    assert languages.count("java") >= 1
    assert manifest["totals"]["kept"] >= 200
    assert "left out" not in first.err


@pytest.mark.parametrize("language", ["python", "java"])
@pytest.mark.parametrize("metric", ["context_gain", "id_f1"])
def test_similar_code_helps(home: Path, first: Result, language: str, metric: str) -> None:
    found = rows(home)
    shown, alone = of(found, language, "lc.repocoder"), of(found, language, "lc.infile")
    assert shown["unscored"] == alone["unscored"] == 0
    assert shown["n"] == alone["n"] > 0
    assert shown[metric]["mean"] > alone[metric]["mean"]


def test_the_lead_by_context_gain_is_significant_for_python(home: Path, first: Result) -> None:
    found = rows(home)
    assert of(found, "python", "lc.repocoder")["rank_high"] < of(found, "python", "lc.infile")["rank_low"]
    assert of(found, "python", "lc.repocoder")["difference"]["context_gain"]["p_holm"] <= 0.05


def test_a_second_run_changes_no_number(home: Path, first: Result) -> None:
    again = run_cli("quickstart", "--home", str(home))
    assert (again.code, again.out) == (0, first.out)


def test_windows_drawn_by_chance_are_below_retrieved_ones(home: Path, first: Result) -> None:
    command = ("run", "--home", str(home), "--samples", "quickstart", "--generator", quickstart.GENERATOR)
    result = run_cli(*command, "--strategy", CONTROL)
    assert result.code == 0, result.err
    found = rows(home)
    for language in ("python", "java"):
        control = next(r for r in found if r["language"] == language and r["strategy"].endswith("control.random"))
        shown = of(found, language, "lc.repocoder")
        assert control["context_gain"]["mean"] < shown["context_gain"]["mean"]
        assert control["id_f1"]["mean"] < shown["id_f1"]["mean"]


def test_the_same_seed_gives_the_same_bytes_and_scores(home: Path, first: Result, tmp_path: Path) -> None:
    other = tmp_path / "home"
    other.mkdir()
    shutil.copytree(home / "repos", other / "repos")
    result = run_cli("quickstart", "--home", str(other), "--limit", "60")
    assert result.code == 0, result.err
    for name in ("samples.jsonl", "references.jsonl", "manifest.json"):
        one, two = (base / "samples" / "quickstart" / name for base in (home, other))
        assert one.read_bytes() == two.read_bytes(), name
    limited = run_cli("quickstart", "--home", str(home), "--limit", "60")
    assert timeless(limited.out) == timeless(result.out)


def timeless(board: str) -> list[str]:
    """Return the board without its last column, the seconds."""
    return [line.rsplit(None, 1)[0] if line.startswith("lc.") else line for line in board.splitlines()]
