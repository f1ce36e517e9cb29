"""`ctxbench run --measure` leaves work for `ctxbench rescore`, and no board shows the mean of a part."""

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext import InContext
from ctxbench.harness.results import GAINS, Measurement, drop_incomplete_columns
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies.api import Prompt
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

Rows = list[tuple[object, ...]]
SAMPLES = 8


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    make_set(home, name="demo")
    return home


def cli(home: Home, *arguments: str, db: str = "ctxbench.db") -> str:
    result = run_cli(*arguments, "--home", str(home.root), "--db", f"sqlite:///{home.root / db}")
    assert result.code == 0, result
    return result.out


def run(home: Home, *arguments: str, db: str = "ctxbench.db") -> str:
    choices = ("--samples", "demo", "--strategy", "lc.repocoder", "--generator", "scripted(mode=echo)")
    return cli(home, "run", *choices, *arguments, db=db).split()[0]


def rows(home: Home, query: str, db: str = "ctxbench.db") -> Rows:
    with contextlib.closing(sqlite3.connect(home.root / db)) as connection:
        return sorted(connection.execute(query))


def board(home: Home, *arguments: str) -> tuple[set[str], str]:
    """Return the metrics that the only run is shown with, and the board."""
    with open_store(f"sqlite:///{home.root / 'ctxbench.db'}") as store:
        [table] = run_tables(store)
    return set(table.metrics), " ".join(cli(home, "leaderboard", "--samples", "demo", *arguments).split())


SCORES = "SELECT sample_id, idx, profile, metric, value FROM score"


@pytest.mark.slow
def test_what_was_left_out_is_measured_later_to_the_same_numbers(home: Home) -> None:
    whole = run(home, db="whole.db")
    assert run(home, "--measure", "scores") == whole  # no part of a run's identity
    assert rows(home, "SELECT DISTINCT profile FROM score") == [("ctxbench",)]
    assert rows(home, "SELECT * FROM bits") == []
    shown, notes = board(home)
    assert "em" in shown and not {"copyable_bits", "context_waste"} & shown
    assert "`ctxbench rescore --measure gain`" in notes and "`ctxbench rescore --measure diagnostics`" in notes
    profiles = board(home, "--profile", "infercom")[1]
    assert "`ctxbench rescore --measure profiles`" in profiles and "measure profiles" not in notes
    cli(home, "rescore", "--measure", "gain")
    shown, notes = board(home)
    assert "copyable_bits" in shown and "measure gain" not in notes and "measure diagnostics" in notes
    cli(home, "rescore")
    assert rows(home, SCORES) == rows(home, SCORES, "whole.db")
    assert "rescore" not in board(home)[1] and "rescore" not in board(home, "--profile", "infercom")[1]
    assert "nothing to score" in cli(home, "rescore")


class OddCoder:
    """`InContext.bits`, which answers oddly where a text is to be priced."""

    def __init__(self, bad: str) -> None:
        self.bad = bad

    def __call__(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        if any(self.bad in text for text in texts):
            raise MachineFault("it answers oddly", cure="mend it")
        return [float(len(prompt.text)) for prompt in prompts]


@pytest.mark.slow
def test_what_cannot_be_priced_is_named_and_the_rest_is_measured(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = run(home, "--measure", "scores")
    references = sets.load(home, "demo").references
    text = references[min(references)].target
    bad = sorted(sample for sample, reference in references.items() if reference.target == text)
    line = f"not measured: {', '.join(f'{sample} of {id_}' for sample in bad)}; the first: it answers oddly; mend it"
    where = ("--home", str(home.root), "--db", f"sqlite:///{home.root / 'ctxbench.db'}")
    count = "SELECT count(DISTINCT sample_id) FROM score WHERE metric = 'copyable_bits'"
    monkeypatch.setattr(InContext, "bits", OddCoder(""))
    assert_fault(run_cli("rescore", "--measure", "gain", *where), "it answers oddly; mend it")
    assert rows(home, count) == [(0,)]
    monkeypatch.setattr(InContext, "bits", OddCoder(text))
    priced = SAMPLES - len(bad)
    for scored in (priced, 0):
        result = run_cli("rescore", "--measure", "gain", *where)
        assert_fault(result, line)
        assert f"gain  scored {scored}" in result.out and rows(home, count) == [(priced,)]
    diagnosed = run_cli("diagnose", id_, "--format", "json", *where)
    assert_fault(diagnosed, line)
    record = json.loads(diagnosed.out)
    assert record["faults"] == dict.fromkeys(bad, "it answers oddly; mend it") and record["new"] == priced


@pytest.mark.slow
def test_a_mean_over_a_part_is_never_shown(home: Home) -> None:
    whole = run(home, "--measure", "scores", "--measure", "diagnostics")
    finished = rows(home, "SELECT sample_id FROM result")
    assert len(finished) == SAMPLES
    with contextlib.closing(sqlite3.connect(home.root / "ctxbench.db")) as connection, connection:
        for metric in GAINS:
            connection.execute("INSERT OR IGNORE INTO measure (profile, metric) VALUES ('context', ?)", (metric,))
            connection.execute(
                "INSERT INTO score_fact (run, measure, key, idx, value)"
                " SELECT run.number, measure.number, result.key, 0, 1 FROM run, measure, result"
                " WHERE run.id = ? AND profile = 'context' AND metric = ?"
                " AND result.run_id = run.id ORDER BY result.key LIMIT 1",
                (whole, metric),
            )
    shown, notes = board(home)
    assert "copyable_bits" not in shown and "measure gain" in notes and "context_waste" in shown


def test_columns_without_a_remark_stay_as_they_are() -> None:
    columns = {"em": {"a": 1.0, "b": 0.0}, "bits": {"a": 2.0}, "copyable_bits": {"a": 1.0}}
    assert drop_incomplete_columns(columns, columns["em"], ("other",), profile="ctxbench") == (columns, ("other",))
    left = (Measurement.GAIN.remark,)
    assert drop_incomplete_columns(columns, columns["em"], left, profile="ctxbench") == ({"em": columns["em"]}, left)
