"""`ctxbench rescore` gives stored completions the metrics of a profile that came later."""

import json
import math
from pathlib import Path

import pytest
from sqlalchemy import text

from ctxbench.bench.home import Home
from ctxbench.harness import metrics
from ctxbench.harness.metrics import profile
from ctxbench.harness.run import stored as stored_runs
from ctxbench.harness.store import open_store
from tests.harness.leaderboard import test_contract
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

LATER = "repocoder"
Rows = list[tuple[object, ...]]


def fill(root: Path) -> Home:
    """Make a home with an imported run of eight completions, one of them blank."""
    home = Home(root)
    made = make_set(home)
    file = root / "recorded.jsonl"
    texts = {id_: one.target for id_, one in made.references.items()}
    blank, wrong, *_ = texts
    texts |= {blank: " ", wrong: "nothing like it"}
    file.write_text("".join(json.dumps({"sample": id_, "text": text}) + "\n" for id_, text in texts.items()))
    named = ["--samples", "demo", "--strategy", "theirs", "--generator", "model"]
    assert cli(home, "results", "import", "--format", "ctxbench", str(file), *named)
    return home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home whose run was stored before a profile was installed."""
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "PROFILES", tuple(name for name in metrics.PROFILES if name != LATER))
        return fill(tmp_path / "home")


@pytest.fixture
def expected(tmp_path: Path) -> Rows:
    """Return the scores that the run has where the profile is there from the start."""
    rows = scores(fill(tmp_path / "whole"), LATER)
    assert len(rows) == 16
    return rows


def cli(home: Home, *arguments: str) -> str:
    result = run_cli(*arguments, "--home", str(home.root))
    assert result.code == 0, result
    return result.out


def scores(home: Home, name: str) -> Rows:
    query = text("SELECT sample_id, idx, metric, value FROM score WHERE profile = :name ORDER BY 1, 2, 3")
    with open_store(home.database) as store, store.reading() as connection:
        return [tuple(row) for row in connection.execute(query, {"name": name})]


def test_the_scores_are_those_that_the_run_would_have_stored(home: Home, expected: Rows) -> None:
    others = scores(home, "ctxbench")
    said = cli(home, "leaderboard", "--profile", LATER)
    assert "No run here has es: not ranked." in said and f"`ctxbench rescore --profile {LATER}`" in said
    machine = run_cli("leaderboard", "--profile", LATER, "--format", "json", "--home", str(home.root))
    assert json.loads(machine.out) and f"`ctxbench rescore --profile {LATER}`" in machine.err
    assert cli(home, "rescore", "--profile", LATER).split()[1:] == ["theirs", LATER, "scored", "8"]
    assert scores(home, LATER) == expected
    assert "Ranked by es" in cli(home, "leaderboard", "--profile", LATER, "--explain")
    assert scores(home, "ctxbench") == others, "no stored score changes"


def test_interrupted_it_goes_on_where_it_stopped(home: Home, expected: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_runs, "_CHUNK", 3)
    stored, asked = stored_runs.add_scores, []

    def interrupted(*arguments: object) -> None:
        asked.append(arguments)
        if len(asked) == 2:
            raise KeyboardInterrupt
        stored(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stored_runs, "add_scores", interrupted)
    assert run_cli("rescore", "--profile", LATER, "--home", str(home.root)).code == 130
    assert scores(home, LATER) == expected[:6], "the first three completions"
    assert cli(home, "rescore", "--profile", LATER).split()[-1] == "5"
    assert scores(home, LATER) == expected


def test_a_metric_from_outside_ranks_stored_runs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(metrics.Profile(name="edits", summary="Edits.", metrics=(test_contract.EDITS,), score=test_contract.score))
    monkeypatch.setattr(metrics, "PROFILES", (*metrics.PROFILES, "edits"))
    cli(home, "rescore", "--profile", LATER)
    unranked = " ".join(cli(home, "leaderboard", "--profile", "edits").split())
    assert "No run here has edits: not ranked." in unranked and "`ctxbench rescore --profile edits`" in unranked
    assert cli(home, "rescore").split()[1:] == ["theirs", "edits", "scored", "8"], "all that is installed"
    ranked = cli(home, "leaderboard", "--profile", "edits", "--explain")
    assert "Ranked by edits (edits, lower is better;" in ranked and "edits [95%]" in ranked
    blank = [value for *_, value in scores(home, "edits") if value]
    assert len(blank) == 2, "a blank completion counts as the edits that it needs"


def test_an_infinite_value_of_a_metric_is_one_line_and_stored_nowhere(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(
        metrics.Profile(
            name="endless", summary="Endless.", metrics=(test_contract.EDITS,), score=lambda *_: {"edits": math.inf}
        )
    )
    monkeypatch.setattr(metrics, "PROFILES", (*metrics.PROFILES, "endless"))
    result = run_cli("rescore", "--profile", "endless", "--home", str(home.root))
    assert_fault(result, "'edits' of profile 'endless' is infinite", "return a number from its score function")
    assert scores(home, "endless") == []
    (home.root / "answers.jsonl").write_text(
        json.dumps({"id": "a", "prompt": "x = ", "prediction": "1", "ground_truth": "2"}) + "\n"
    )
    of_file = run_cli("score", str(home.root / "answers.jsonl"), "--profile", "endless", "--language", "python")
    assert_fault(of_file, "'edits' of profile 'endless' is infinite", "None if undefined")


def test_a_set_that_is_gone_is_named_and_the_others_are_scored(home: Home) -> None:
    made = make_set(home, name="other", repos=1, per_repo=1)
    file = home.root / "other.jsonl"
    file.write_text("".join(json.dumps({"sample": id_, "text": "x"}) + "\n" for id_ in made.references))
    named = ["--samples", "other", "--strategy", "gone", "--generator", "model"]
    cli(home, "results", "import", "--format", "ctxbench", str(file), *named)
    (home.samples / "other").rename(home.root / "away")
    result = run_cli("rescore", "--profile", LATER, "--home", str(home.root))
    assert_fault(result, "cannot rescore", "other", "run the same command again")
    assert result.out.split()[1:] == ["theirs", LATER, "scored", "8"]


def test_an_unknown_profile_is_one_line(home: Home) -> None:
    assert_fault(run_cli("rescore", "--profile", "repocode", "--home", str(home.root)), "repocoder")
