"""The main job, end to end, on the real repositories: what a new user sees must hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import quickstart, samples
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import manifest
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.sandbox.registry import open_sandbox
from tests.helpers.cli import Result, run_cli

pytestmark = [pytest.mark.network, pytest.mark.slow]

CONTROL = f"{Path(__file__).parent / 'helpers' / 'random_windows.py'}@control.random"

REBUILT = ("cachetools", "toolz")
"""The repositories whose functions are built twice, which takes minutes for all of them."""


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


def of(found: list[dict[str, Any]], language: str, strategy: str, name: str = quickstart.SET) -> dict[str, Any]:
    wanted = (name, language, strategy)
    return next(row for row in found if (row["samples"], row["language"], row["strategy"]) == wanted)


def test_real_samples_of_both_languages(home: Path, first: Result) -> None:
    about = json.loads((home / "samples" / "quickstart" / "manifest.json").read_text())
    languages = [entry["language"] for entry in about["repositories"].values()]
    assert languages.count("python") >= 3
    assert languages.count("java") >= 1
    assert about["totals"]["kept"] >= 200
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
    assert of(found, "python", "lc.repocoder")["difference"]["context_gain"]["p_adjusted"] <= 0.05


def test_functions_of_several_repositories_are_judged_by_their_tests(home: Path, first: Result) -> None:
    about = json.loads((home / "samples" / quickstart.FUNCTION_SET / "manifest.json").read_text())
    kept = {name: entry["kept"] for name, entry in about["repositories"].items()}
    assert len(kept) == 5 and min(kept.values()) >= 5
    for strategy in quickstart.STRATEGIES:
        row = of(rows(home), "python", strategy, quickstart.FUNCTION_SET)
        assert row["n"] == sum(kept.values()) and row["unscored"] == 0
        assert 0 <= row["pass@1"]["low"] <= row["pass@1"]["mean"] <= row["pass@1"]["high"] <= 100
    assert "pass@1" in first.out


def test_the_samples_of_functions_stand_on_this_machine(home: Path, first: Result) -> None:
    result = run_cli("samples", "verify", quickstart.FUNCTION_SET, "--home", str(home))
    assert result.code == 0, result
    assert "reference 100.0%" in result.out and "blank 0.0%" in result.out


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
    other = Home(tmp_path / "home")
    shutil.copytree(home / "repos", other.root / "repos")
    # What was resolved and installed, so that the tests below have the index's answers of the same minute.
    shutil.copytree(home / "cache" / "sandbox", other.cache / "sandbox")
    quickstart.sample_set(other, manifest.in_set(quickstart.SET), workers=2, report=print)
    for file in ("samples.jsonl", "references.jsonl", "manifest.json"):
        assert (home / "samples" / quickstart.SET / file).read_bytes() == (
            other.samples / quickstart.SET / file
        ).read_bytes()

    repos = [repo for repo in manifest.in_set(quickstart.FUNCTION_SET) if repo.name in REBUILT]
    sandbox = open_sandbox(None, other.cache / "sandbox")
    rebuilt = quickstart.function_set(other, tuple(repos), sandbox, workers=2, report=print)
    whole = samples.load(Home(home), quickstart.FUNCTION_SET)
    assert rebuilt.samples == tuple(sample for sample in whole.samples if sample.repo in REBUILT)
    assert rebuilt.references == {sample.id: whole.references[sample.id] for sample in rebuilt.samples}
    assert rebuilt.manifest["repositories"] == {name: whole.manifest["repositories"][name] for name in REBUILT}

    for name, limit in ((quickstart.SET, 60), (quickstart.FUNCTION_SET, 6)):
        command = ("run", "--home", str(other.root), "--samples", name, "--generator", quickstart.GENERATOR)
        chosen = [word for strategy in quickstart.STRATEGIES for word in ("--strategy", strategy)]
        assert run_cli(*command, *chosen, "--limit", str(limit)).code == 0
        limited, full = scores(other, name), scores(Home(home), name)
        assert len(limited) == limit * len(quickstart.STRATEGIES)
        assert limited == {sample: full[sample] for sample in limited}


def scores(home: Home, name: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return strategy and sample -> what every metric gave that is defined for the sample."""
    with open_store(home.database) as store:
        return {
            (table.run.strategy, sample): {
                metric: value for metric, values in table.metrics.items() if (value := values[at]) is not None
            }
            for table in run_tables(store, samples=name)
            for at, sample in enumerate(table.sample)
        }
