"""`ctxbench score`, `rescore`, `diagnose` and `run --measure`: scores of files and of stored runs."""

import contextlib
import json
import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.harness import metrics
from ctxbench.harness.generators.incontext import InContext
from ctxbench.harness.metrics import profile
from ctxbench.harness.results import GAINS, Measurement, drop_incomplete_columns
from ctxbench.harness.run import stored as stored_runs
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies.api import Prompt
from tests.harness.leaderboard import test_contract
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

LATER = "repocoder"
Rows = list[tuple[object, ...]]


def fill(root: Path) -> Home:
    """Create a home with an imported run of eight completions, one blank and one wrong."""
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
    """Return a home whose run was stored before the profile `repocoder` was installed."""
    with monkeypatch.context() as patch:
        patch.setattr(metrics, "PROFILES", tuple(name for name in metrics.PROFILES if name != LATER))
        return fill(tmp_path / "home")


@pytest.fixture
def expected(tmp_path: Path) -> Rows:
    """Return the scores of the same run if the profile is installed from the start."""
    rows = scores(fill(tmp_path / "whole"), LATER)
    assert len(rows) == 16
    return rows


def cli(home: Home, *arguments: str, db: str = "results.db") -> str:
    result = run_cli(*arguments, "--home", str(home.root), "--db", f"sqlite:///{home.root / db}")
    assert result.code == 0, result
    return result.out


def scores(home: Home, name: str) -> Rows:
    query = text("SELECT sample_id, idx, metric, value FROM score WHERE profile = :name ORDER BY 1, 2, 3")
    with open_store(home.database) as store, store.reading() as connection:
        return [tuple(row) for row in connection.execute(query, {"name": name})]


def test_later_scores_equal_those_of_a_run_with_the_profile(home: Home, expected: Rows) -> None:
    others = scores(home, "ctxbench")
    said = cli(home, "leaderboard", "--profile", LATER)
    assert "No run here has es, so no run is ranked." in said and f"`ctxbench rescore --profile {LATER}`" in said
    machine = run_cli("leaderboard", "--profile", LATER, "--format", "json", "--home", str(home.root))
    assert json.loads(machine.out) and f"`ctxbench rescore --profile {LATER}`" in machine.err
    assert cli(home, "rescore", "--profile", LATER).split()[1:] == ["theirs", LATER, "scored", "8"]
    assert scores(home, LATER) == expected
    assert "Ranked by es" in cli(home, "leaderboard", "--profile", LATER, "--explain")
    assert scores(home, "ctxbench") == others, "no stored score changes"


def test_rescore_continues_after_an_interrupt(home: Home, expected: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_plugins_metric_ranks_stored_runs(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(metrics.Profile(name="edits", summary="Edits.", metrics=(test_contract.EDITS,), score=test_contract.score))
    monkeypatch.setattr(metrics, "PROFILES", (*metrics.PROFILES, "edits"))
    cli(home, "rescore", "--profile", LATER)
    unranked = " ".join(cli(home, "leaderboard", "--profile", "edits").split())
    assert (
        "No run here has edits, so no run is ranked." in unranked and "`ctxbench rescore --profile edits`" in unranked
    )
    assert cli(home, "rescore").split()[1:] == ["theirs", "edits", "scored", "8"], "all that is installed"
    ranked = cli(home, "leaderboard", "--profile", "edits", "--explain")
    assert "Ranked by edits (edits, lower is better;" in ranked and "edits [95%]" in ranked
    blank = [value for *_, value in scores(home, "edits") if value]
    assert len(blank) == 2, "a blank completion counts as the edits that it needs"


def test_an_infinite_value_is_a_one_line_fault_and_not_stored(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_missing_set_is_named_and_the_others_are_scored(home: Home) -> None:
    made = make_set(home, name="other", repos=1, per_repo=1)
    file = home.root / "other.jsonl"
    file.write_text("".join(json.dumps({"sample": id_, "text": "x"}) + "\n" for id_ in made.references))
    named = ["--samples", "other", "--strategy", "gone", "--generator", "model"]
    cli(home, "results", "import", "--format", "ctxbench", str(file), *named)
    (home.samples / "other").rename(home.root / "away")
    result = run_cli("rescore", "--profile", LATER, "--home", str(home.root))
    assert_fault(result, "cannot rescore", "other", "run the same command again")
    assert result.out.split()[1:] == ["theirs", LATER, "scored", "8"]


def test_an_unknown_profile_is_a_one_line_fault(home: Home) -> None:
    assert_fault(run_cli("rescore", "--profile", "repocode", "--home", str(home.root)), "repocoder")


SAMPLES = 8


@pytest.fixture
def measured(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    make_set(home, name="demo")
    return home


def run(home: Home, *arguments: str, db: str = "results.db") -> str:
    choices = ("--samples", "demo", "--strategy", "lc.repocoder", "--generator", "scripted(mode=echo)")
    return cli(home, "run", *choices, *arguments, db=db).split()[0]


def rows(home: Home, query: str, db: str = "results.db") -> Rows:
    with contextlib.closing(sqlite3.connect(home.root / db)) as connection:
        return sorted(connection.execute(query))


def board(home: Home, *arguments: str) -> tuple[set[str], str]:
    """Return the metrics of the only run, and the board."""
    with open_store(f"sqlite:///{home.root / 'results.db'}") as store:
        [table] = run_tables(store)
    return set(table.metrics), " ".join(cli(home, "leaderboard", "--samples", "demo", *arguments).split())


SCORES = "SELECT sample_id, idx, profile, metric, value FROM score"


@pytest.mark.slow
def test_later_measurements_equal_those_of_a_full_run(measured: Home) -> None:
    whole = run(measured, db="whole.db")
    assert run(measured, "--measure", "scores") == whole  # the measurements are not part of the run's identity
    assert rows(measured, "SELECT DISTINCT profile FROM score") == [("ctxbench",)]
    assert rows(measured, "SELECT * FROM bits") == []
    shown, notes = board(measured)
    assert "em" in shown and not {"copyable_bits", "context_waste"} & shown
    assert "`ctxbench rescore --measure gain`" in notes and "`ctxbench rescore --measure diagnostics`" in notes
    profiles = board(measured, "--profile", "infercom")[1]
    assert "`ctxbench rescore --measure profiles`" in profiles and "measure profiles" not in notes
    cli(measured, "rescore", "--measure", "gain")
    shown, notes = board(measured)
    assert "copyable_bits" in shown and "measure gain" not in notes and "measure diagnostics" in notes
    cli(measured, "rescore")
    assert rows(measured, SCORES) == rows(measured, SCORES, "whole.db")
    assert "rescore" not in board(measured)[1] and "rescore" not in board(measured, "--profile", "infercom")[1]
    assert "nothing to score" in cli(measured, "rescore")


class OddCoder:
    """`InContext.bits` with a fault for every text that contains some words."""

    def __init__(self, bad: str) -> None:
        self.bad = bad

    def __call__(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        if any(self.bad in text for text in texts):
            raise MachineFault("it answers oddly", cure="mend it")
        return [float(len(prompt.text)) for prompt in prompts]


@pytest.mark.slow
def test_samples_without_a_price_are_named_and_the_rest_is_measured(
    measured: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = run(measured, "--measure", "scores")
    references = sets.load(measured, "demo").references
    text = references[min(references)].target
    bad = sorted(sample for sample, reference in references.items() if reference.target == text)
    names = ", ".join(f"{sample} of {id_}" for sample in bad)
    line = f"the bits of {names} could not be measured; the first fault: it answers oddly; mend it"
    where = ("--home", str(measured.root), "--db", f"sqlite:///{measured.root / 'results.db'}")
    count = "SELECT count(DISTINCT sample_id) FROM score WHERE metric = 'copyable_bits'"
    monkeypatch.setattr(InContext, "bits", OddCoder(""))
    assert_fault(run_cli("rescore", "--measure", "gain", *where), "it answers oddly; mend it")
    assert rows(measured, count) == [(0,)]
    monkeypatch.setattr(InContext, "bits", OddCoder(text))
    priced = SAMPLES - len(bad)
    for scored in (priced, 0):
        result = run_cli("rescore", "--measure", "gain", *where)
        assert_fault(result, line)
        assert f"gain  scored {scored}" in result.out and rows(measured, count) == [(priced,)]
    diagnosed = run_cli("diagnose", id_, "--format", "json", *where)
    assert_fault(diagnosed, line)
    record = json.loads(diagnosed.out)
    assert record["faults"] == dict.fromkeys(bad, "it answers oddly; mend it") and record["new"] == priced


@pytest.mark.slow
def test_a_mean_over_some_samples_is_not_shown(measured: Home) -> None:
    whole = run(measured, "--measure", "scores", "--measure", "diagnostics")
    finished = rows(measured, "SELECT sample_id FROM result")
    assert len(finished) == SAMPLES
    with contextlib.closing(sqlite3.connect(measured.root / "results.db")) as connection, connection:
        for metric in GAINS:
            connection.execute("INSERT OR IGNORE INTO measure (profile, metric) VALUES ('context', ?)", (metric,))
            connection.execute(
                "INSERT INTO score_fact (run, measure, key, idx, value)"
                " SELECT run.number, measure.number, result.key, 0, 1 FROM run, measure, result"
                " WHERE run.id = ? AND profile = 'context' AND metric = ?"
                " AND result.run_id = run.id ORDER BY result.key LIMIT 1",
                (whole, metric),
            )
    shown, notes = board(measured)
    assert "copyable_bits" not in shown and "measure gain" in notes and "context_waste" in shown


def test_columns_without_a_remark_do_not_change() -> None:
    columns = {"em": {"a": 1.0, "b": 0.0}, "bits": {"a": 2.0}, "copyable_bits": {"a": 1.0}}
    assert drop_incomplete_columns(columns, columns["em"], ("other",), profile="ctxbench") == (columns, ("other",))
    left = (Measurement.GAIN.remark,)
    assert drop_incomplete_columns(columns, columns["em"], left, profile="ctxbench") == ({"em": columns["em"]}, left)


def test_diagnosing_a_run_without_results_is_a_one_line_fault(measured: Home) -> None:
    home = str(measured.root)
    result = run_cli("diagnose", "abc", "--home", home)
    assert (result.code, result.err.count("\n")) == (1, 1) and "no results yet" in result.err


@pytest.mark.slow
def test_diagnose_measures_and_shows_the_gain_of_blocks(measured: Home) -> None:
    home = str(measured.root)
    ran = run_cli("run", "--home", home, "--samples", "demo", "--generator", "incontext",
                  "--strategy", "lc.repocoder(iterations=1)", "--strategy", "lc.infile")  # fmt: skip
    assert ran.code == 0, ran.err
    repocoder, infile = (line.split()[0] for line in ran.out.splitlines())
    first = run_cli("diagnose", repocoder, "--home", home, "--limit", "1")
    assert first.code == 0 and "samples 1  new 1  left 7" in first.out and "similar" in first.out, first
    again = run_cli("diagnose", repocoder[:8], infile, "--home", home, "--format", "json")
    one, other = map(json.loads, again.out.splitlines())
    assert (one["new"], one["left"], len(one["samples"])) == (7, 0, 8) and other["samples"] == {}
    assert any(block["gain"] > 0 for blocks in one["samples"].values() for block in blocks)
    rows = json.loads(run_cli("leaderboard", "--home", home, "--format", "json").out)
    shown = {row["strategy"]: row for row in rows}
    assert shown["lc.repocoder(iterations=1)"]["block_gain"]["mean"] > 0 and "block_gain" not in shown["lc.infile"]
    table = run_cli("leaderboard", "--home", home, "--diagnostics").out
    assert "api_recall" not in table and "context_waste % [95%]" in table and "block_gain bits [95%]" in table
    unknown = run_cli("diagnose", "zzz", "--home", home)
    assert unknown.code == 1 and "zzz" in unknown.err


GOOD = {"id": "a", "prompt": "x = ", "prediction": "f(a)  # no\nmore", "ground_truth": "f(a)"}
BLANK = {"id": "b", "prompt": "x = ", "prediction": "g(b)", "ground_truth": " "}
METRICS = ["em", "es", "id_em", "id_precision", "id_recall", "id_f1"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "predictions.jsonl", GOOD, BLANK)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def parse(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_scores_go_to_stdout_in_order_and_means_to_stderr(file: Path) -> None:
    result = run_cli("score", str(file), "--language", "python")
    assert result.code == 0, result
    rows = parse(result.out)
    assert [row["id"] for row in rows] == ["a", "b"]
    assert list(rows[0]) == ["id", *METRICS]
    assert rows[0] == {"id": "a", **dict.fromkeys(METRICS, 1)}
    assert "50.00" in result.err


def test_official_profiles_keep_their_scale_and_omit_undefined_values(file: Path) -> None:
    rows = parse(run_cli("score", str(file), "--language", "python", "--profile", "crosscodeeval").out)
    assert rows[0]["es"] == 100 and rows[0]["es_difflib"] == 100 and rows[1]["es"] == 0
    result = run_cli("score", str(file), "--language", "python", "--profile", "repocoder")
    assert parse(result.out)[1] == {"id": "b", "em": 1}
    assert "1 of 2 completions have a blank target" in result.err


def test_the_out_file_equals_stdout(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "scores.jsonl"
    result = run_cli("score", str(file), "--language", "python", "--out", str(out))
    assert result.code == 0 and result.out == ""
    assert out.read_text() == run_cli("score", str(file), "--language", "python", "--workers", "1").out


def test_all_profiles_are_shown_in_one_table(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    result = run_cli("score", str(file), "--language", "python", "--profile", "all", "--out", str(out))
    table = [line.split() for line in result.out.splitlines()]
    assert table[0] == ["profile", "n", "em", "es", "id_em", "id_f1", "chrf"]
    names = ["ctxbench", "context_collection", "crosscodeeval", "infercom", "repocoder", "rlcoder_repoeval"]
    assert [row[0] for row in table[1:]] == names
    assert table[5] == ["repocoder", "2", "0.00", "40.00", "-", "-", "-"]
    assert list(parse(out.read_text())[0]) == ["id", *names]


LINE = json.dumps(GOOD)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("predictions.jsonl", "no completion", "ground_truth")),
        ("\n\n", ("no completion",)),
        (LINE[:-9], (":1:", "not valid json", "nothing was scored")),
        (f"{LINE}\n[1]\n", (":2:", "not a json object")),
        (f"{LINE}\n{LINE}\n", (":2:", "'a'", "line 1")),
        (json.dumps({**GOOD, "prompt": None}), (":1:", "field 'prompt' is not text")),
        (json.dumps({**GOOD, "id": 3}), (":1:", "field 'id' is not text")),
        (json.dumps({**GOOD, "id": "\ud800"}), (":1:", "unprintable")),
        (json.dumps({"id": "a", "prompt": "", "prediction": ""}), ("field 'ground_truth' is missing",)),
        ("[" * 100_000, (":1:",)),
        ("{}\n{}\n", (":1: field 'id' is missing", "(and 3 more)", "a JSON object")),
        (f'{LINE}\n{{"id"\n{LINE}\n', (":2:", ":3:", "nothing was scored")),
    ],
)
def test_a_broken_file_is_a_one_line_fault_with_every_place(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    file = tmp_path / "predictions.jsonl"
    file.write_text(text, "utf-8")
    out = tmp_path / "scores.jsonl"
    result = run_cli("score", str(file), "--language", "python", "--out", str(out))
    assert_fault(result, *words)
    assert result.out == "" and not out.exists()


def test_a_missing_file_a_folder_and_another_encoding_are_refused(tmp_path: Path) -> None:
    assert_fault(run_cli("score", str(tmp_path / "no.jsonl"), "--language", "python"), "no such file", "check the path")
    assert_fault(run_cli("score", str(tmp_path), "--language", "python"), "folder", "path of a file")
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"id": "\xe9"}')
    assert_fault(run_cli("score", str(latin), "--language", "python"), "UTF-8")


def test_an_unknown_profile_and_an_invalid_out_path_are_refused(file: Path, tmp_path: Path) -> None:
    command = ("score", str(file), "--language", "python")
    assert_fault(run_cli(*command, "--profile", "repocode"), "did you mean repocoder")
    assert_fault(run_cli(*command, "--out", str(file / "below.jsonl")), "not a folder")
    kept = tmp_path / "scores.jsonl"
    kept.write_text("kept")
    assert_fault(
        run_cli("score", str(tmp_path / "no.jsonl"), "--language", "python", "--out", str(kept)), "no such file"
    )
    assert kept.read_text() == "kept"
