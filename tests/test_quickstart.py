"""The quick start and the tutorial, from end to end on the real repositories, as a new user runs them."""

import functools
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from ctxbench.bench import quickstart, samples, standard
from ctxbench.bench.concurrency import cores
from ctxbench.bench.home import Home
from ctxbench.harness.generators import incontext
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.sandbox.registry import open_sandbox
from tests.helpers.cli import Result, run_cli
from tests.test_docs import ROOT, blocks

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.long]

CONTROL = f"{Path(__file__).parent / 'helpers' / 'random_windows.py'}@control.random"

STRATEGIES, GENERATOR = ("lc.infile", "lc.repocoder"), "incontext"
LIMIT = 216
"""The number of line samples, as in the tutorial."""

REBUILT = {quickstart.SET: ("jheaps", "fasta2a"), quickstart.FUNCTION_SET: ("cachetools",)}
"""The repositories of each set that are built twice: the smallest of each language, and one with random tests.
Building all of them again would take minutes."""
FEWER_FUNCTIONS = 2
"""The number of functions in the second build: the first of the chosen ones, so that no others are certified again."""
FIRST_FUNCTIONS = "first-functions"
"""The name of a set with the same functions of the first build."""
OF_THE_CHOSEN = {
    *("tried", "kept", "kept_one_line", "kept_clocks_only", "kept_clocks_too", "levels", "mutants", "drops"),
    "tests_dropped",
}
"""Manifest entries about the chosen functions. They differ if fewer functions are chosen."""


@pytest.fixture(autouse=True, scope="module")
def _every_core() -> Iterator[None]:
    """Let the built-in model use as many processes as for a user, because these tests mostly wait for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incontext, "cores", cores)
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quickstart") / "home"


@pytest.fixture(scope="module")
def first(home: Path) -> Result:
    result = run_cli("quickstart", "--home", str(home))
    assert result.code == 0, result.err
    return result


@pytest.fixture(scope="module")
def measured(home: Path, first: Result) -> None:
    """Run two strategies with the built-in model."""
    run_strategies(home, quickstart.SET, "--limit", str(LIMIT))


def run_strategies(home: Path, name: str, *words: str) -> None:
    command = ("run", "--home", str(home), "--samples", name, "--generator", GENERATOR, *words)
    result = run_cli(*command, *(word for strategy in STRATEGIES for word in ("--strategy", strategy)))
    assert result.code == 0, result.err


def rows(home: Path) -> list[dict[str, Any]]:
    result = run_cli("leaderboard", "--home", str(home), "--format", "json")
    assert result.code == 0, result.err
    found: list[dict[str, Any]] = json.loads(result.out)
    return found


def of(
    found: list[dict[str, Any]], language: str, strategy: str, name: str = f"{quickstart.SET}[:{LIMIT}]"
) -> dict[str, Any]:
    wanted = (name, language, strategy)
    return next(row for row in found if (row["samples"], row["language"], row["strategy"]) == wanted)


def test_the_quick_start_builds_the_published_set_of_both_languages(home: Path, first: Result) -> None:
    about = json.loads((home / "samples" / quickstart.SET / "manifest.json").read_text())
    languages = [entry["language"] for entry in about["repositories"].values()]
    assert (languages.count("python"), languages.count("java")) == (12, 6)
    assert samples.load(Home(home), quickstart.SET).digest == standard.load(quickstart.SET).digests["line"]
    assert not [line for line in first.err.splitlines() if line.startswith("left out:")]


def test_the_set_keeps_its_digest_through_export_and_import(home: Path, first: Result, tmp_path: Path) -> None:
    exported, shape = str(tmp_path / "lite.jsonl"), ("--format", "ctxbench")
    gone_out = run_cli("samples", "export", quickstart.SET, *shape, "--out", exported, "--home", str(home))
    assert gone_out.code == 0, gone_out.err
    came_in = run_cli("samples", "import", exported, *shape, "--name", "lite", "--home", str(tmp_path / "other"))
    assert f"digest {standard.load(quickstart.SET).digests['line']}" in came_in.out


@pytest.mark.parametrize("language", ["python", "java"])
def test_similar_code_raises_copyable_bits(home: Path, measured: None, language: str) -> None:
    found = rows(home)
    shown, alone = of(found, language, "lc.repocoder"), of(found, language, "lc.infile")
    assert shown["missing"] == alone["missing"] == 0
    assert shown["n"] == alone["n"] > 0
    assert shown["copyable_bits"]["mean"] > alone["copyable_bits"]["mean"]


@pytest.mark.parametrize("language", ["python", "java"])
def test_the_lead_in_copyable_bits_is_significant(home: Path, measured: None, language: str) -> None:
    found = rows(home)
    assert of(found, language, "lc.repocoder")["rank_high"] < of(found, language, "lc.infile")["rank_low"]
    # With six Java repositories, p is at least 2 / 2**6.
    assert of(found, language, "lc.repocoder")["difference"]["copyable_bits"]["p"] <= 0.05


def test_functions_of_several_repositories_are_judged_by_their_tests(home: Path, first: Result) -> None:
    about = json.loads((home / "samples" / quickstart.FUNCTION_SET / "manifest.json").read_text())
    kept = {name: entry["kept"] for name, entry in about["repositories"].items()}
    assert len(kept) == 5 and min(kept.values()) >= 5
    for strategy, passing in (("gold", 100), ("blank", 0)):
        row = of(rows(home), "python", strategy, quickstart.FUNCTION_SET)
        assert row["n"] == sum(kept.values()) and row["missing"] == 0
        assert row["pass@1"]["mean"] == passing
    judged = first.out.partition("JUDGED NOW, here")[2]
    assert "own code  25 of 25 pass" in judged and "0 of 25 pass" in judged


def test_a_published_models_answers_are_shown_and_marked_as_stored(home: Path, first: Result) -> None:
    assert first.out.startswith("STORED ANSWERS: hf(model=qwen2.5-coder-0.5b)") and "ANSWERED NOW" not in first.out
    shown = [row for row in rows(home) if row["generator"] == "hf(model=qwen2.5-coder-0.5b)"]
    for strategy in ("lc.infile", "lc.repocoder(iterations=1)"):
        chosen = [row for row in shown if row["strategy"] == strategy]
        assert {row["origin"] for row in chosen} == {"reference"} and sum(row["n"] for row in chosen) >= 36
        assert all(row[metric]["mean"] > 10 for row in chosen for metric in ("em", "es", "id_f1"))
        assert all("context_gain" in row for row in chosen)
    (shown_by_readme,) = blocks("text", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown_by_readme in first.out


def test_a_second_run_changes_no_number(home: Path, first: Result) -> None:
    again = run_cli("quickstart", "--home", str(home))
    assert (again.code, again.out) == (0, first.out)


def test_random_windows_score_below_retrieved_ones(home: Path, measured: None) -> None:
    command = ("run", "--home", str(home), "--samples", quickstart.SET, "--generator", GENERATOR)
    result = run_cli(*command, "--strategy", CONTROL, "--limit", "54")
    assert result.code == 0, result.err
    metrics = scores(Home(home), quickstart.SET)
    controls = {sample: values for (strategy, sample), values in metrics.items() if "control.random" in strategy}
    assert len(controls) == 54
    for repo_ends in (".py", ".java"):
        chosen = [sample for sample in controls if sample.partition("#")[0].endswith(repo_ends)]
        control = fmean(controls[sample]["copyable_bits"] for sample in chosen)
        assert control < fmean(metrics["lc.repocoder", sample]["copyable_bits"] for sample in chosen), repo_ends


def test_the_same_seed_builds_the_same_samples_and_scores(
    home: Path, measured: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quickstart, "FUNCTIONS_PER_REPO", FEWER_FUNCTIONS)
    other = Home(tmp_path / "home")
    shutil.copytree(home / "repos", other.root / "repos")
    # The wheels fetched from the index are copied, because they are not part of the built sets.
    shutil.copytree(home / "cache" / "sandbox", other.cache / "sandbox")
    sandbox = open_sandbox(None, other.cache / "sandbox")
    builders = {
        quickstart.SET: quickstart.sample_set,
        quickstart.FUNCTION_SET: functools.partial(quickstart.function_set, sandbox=sandbox),
    }
    for name, build in builders.items():
        repos = tuple(repo for repo in standard.repositories(name) if repo.name in REBUILT[name])
        rebuilt, whole = build(other, repos, workers=2, report=print), samples.load(Home(home), name)
        expected = tuple(sample for sample in whole.samples if sample.repo in REBUILT[name])
        fewer = name == quickstart.FUNCTION_SET
        assert rebuilt.samples == (expected[:FEWER_FUNCTIONS] if fewer else expected)
        assert rebuilt.references == {sample.id: whole.references[sample.id] for sample in rebuilt.samples}
        for repo in REBUILT[name]:
            entry, other_entry = (made.manifest["repositories"][repo] for made in (rebuilt, whole))
            same = entry.keys() - OF_THE_CHOSEN if fewer else entry.keys() | other_entry.keys()
            assert {key: entry[key] for key in same} == {key: other_entry[key] for key in same}
        if fewer:
            references = [whole.references[sample.id] for sample in rebuilt.samples]
            samples.save(Home(home), FIRST_FUNCTIONS, expected[:FEWER_FUNCTIONS], references, whole.manifest)

    run_strategies(home, FIRST_FUNCTIONS)
    run_strategies(other.root, quickstart.FUNCTION_SET)
    run_strategies(other.root, quickstart.SET, "--limit", "20")
    again = scores(other, quickstart.FUNCTION_SET)
    assert len(again) == FEWER_FUNCTIONS * len(STRATEGIES)
    assert again == scores(Home(home), FIRST_FUNCTIONS)
    limited, full = scores(other, quickstart.SET), scores(Home(home), quickstart.SET)
    assert len(limited) == 20 * len(STRATEGIES)
    assert limited == {sample: full[sample] for sample in limited}


# The tutorial comes first: the README imports other people's results, which would appear on the tutorial's board.
@pytest.mark.parametrize("page", ["docs/tutorial.md", "README.md"])
def test_the_commands_of_a_page_run(
    page: str, home: Path, first: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The quick start's home already contains the repositories and their test coverage.
    monkeypatch.setenv("CTXBENCH_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, code in re.findall(r"^```python\n# ([\w.]+\.py)\n(.*?)^```", text, re.S | re.M):
        (tmp_path / name).write_text(code, encoding="utf-8")
    typed = [line for block in blocks("sh", text) for line in block.replace("\\\n", " ").splitlines()]
    lines = [line for line in typed if line.startswith("ctxbench ")]
    assert len(lines) >= 5
    for line in lines:
        arguments = shlex.split(line, comments=True)[1:]
        if arguments == ["quickstart"]:
            continue  # the quick start has its own tests
        result = run_cli(*arguments)
        assert result.code == 0, (line, result)
        assert result.out.strip() or "--out" in line, line
        if arguments[:2] == ["samples", "verify"]:
            assert "reference 100.0%" in result.out and "blank 0.0%" in result.out, result.out
        if arguments[0] == "leaderboard" and "tutorial" in page:
            rows = re.findall(r"^ +\d(?:-\d)?  \S+ +[\d.]+ +.*$", text, re.M)
            assert len(rows) == 4 and all(row in result.out for row in rows), result.out


def scores(home: Home, name: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return (strategy, sample) -> the values of all metrics that are defined for the sample."""
    with open_store(home.database) as store:
        return {
            (table.run.strategy, sample): {
                metric: value for metric, values in table.metrics.items() if (value := values[at]) is not None
            }
            for table in run_tables(store, samples=name)
            for at, sample in enumerate(table.sample)
        }
