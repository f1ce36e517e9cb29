"""Samples by the day of their code: runs and boards over those after a day, and databases without days."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.leaderboard.scales import dated_after
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import runs_over
from ctxbench.harness.store.samples import stored_sets
from ctxbench.harness.store.work import run_works
from tests.helpers.cli import run_cli
from tests.helpers.runs import make_table
from tests.helpers.sets import make_set

RUN = ("run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "incontext")


def dated_set(home: Home, days: Sequence[date | None]) -> SampleSet:
    """Make a set whose samples have these days, the first ones first; None for those that nobody knows."""
    plain = make_set(home, repos=2, per_repo=2)
    assert len(plain.samples) == len(days)
    dated = [replace(sample, dated=day) for sample, day in zip(plain.samples, days, strict=True)]
    account = {key: value for key, value in plain.manifest.items() if key not in ("format", "samples", "files")}
    references = [plain.references[sample.id] for sample in plain.samples]
    return samples.save(home, plain.name, dated, references, account, force=True)


DAYS = (date(2024, 1, 1), date(2024, 6, 1), date(2024, 6, 2), None)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    place = Home(tmp_path / "home")
    dated_set(place, DAYS)
    return place


def records(home: Home, *options: str) -> list[dict[str, Any]]:
    result = run_cli("leaderboard", "--home", str(home.root), "--format", "json", *options)
    assert result.code == 0, result.err
    records: list[dict[str, Any]] = json.loads(result.out)
    return records


@pytest.mark.slow
def test_a_run_takes_only_samples_after_the_day(home: Home) -> None:
    result = run_cli(*RUN, "--after", "2024-06-01", "--home", str(home.root))
    assert result.code == 0 and "scored 1 " in result.out, result.err
    [row] = records(home)
    assert (row["samples"], row["n"]) == ("demo[after 2024-06-01]", 1)
    # A run over the whole set is another run.
    assert run_cli(*RUN, "--home", str(home.root)).code == 0
    assert {(row["samples"], row["n"]) for row in records(home)} == {("demo", 4), ("demo[after 2024-06-01]", 1)}
    with open_store(home.database) as store:
        runs = {work.choices.after: work for work in run_works(store)}
        sets = {stored.samples: stored for stored in stored_sets(store)}
        part = sets["demo[after 2024-06-01]"]
        chosen = runs_over(store, part.digest, part.samples)
    assert runs.keys() == {None, DAYS[1]} and sets.keys() == {"demo", part.samples}
    assert (part.name, part.size) == ("demo", 1) and [run.id for run in chosen] == [runs[DAYS[1]].id]
    # Its command, typed anew, makes the same run.
    database = f"sqlite:///{home.root / 'again.db'}"
    command = shlex.split(runs[DAYS[1]].repeat_command(["--home", str(home.root)]))
    assert run_cli(*command[1:], "--db", database).code == 0
    with open_store(database) as store:
        assert [work.id for work in run_works(store)] == [runs[DAYS[1]].id]


def test_a_day_after_all_samples_is_a_fault_with_a_cure(home: Home) -> None:
    result = run_cli(*RUN, "--after", "2024-06-02", "--home", str(home.root))
    assert result.code == 1 and "the newest is dated 2024-06-02" in result.err and "use an earlier day" in result.err
    assert run_cli(*RUN, "--after", "June", "--home", str(home.root)).code == 2


@pytest.mark.slow
def test_a_board_shows_only_samples_after_the_day(home: Home) -> None:
    assert run_cli(*RUN, "--home", str(home.root)).code == 0
    [row] = records(home, "--samples", "demo", "--after", "2024-05-31")
    assert (row["samples"], row["n"]) == ("demo[after 2024-05-31]", 2)
    assert row["remarks"] == ["1 sample without a known day are left out, as they may be older than 2024-05-31."]
    [whole] = records(home, "--samples", "demo")
    assert (whole["samples"], whole["n"]) == ("demo", 4)
    result = run_cli("leaderboard", "--home", str(home.root), "--after", "2025-01-01")
    assert result.code == 1 and "the newest is dated 2024-06-02" in result.err


def test_what_a_run_left_out_and_what_a_board_leaves_out_have_one_name() -> None:
    days = ("2024-01-01", "2024-06-02")
    whole = replace(make_table({"es": [0.1, 0.2]}, ["a", "b"]), dated=days)
    part = replace(make_table({"es": [0.1, 0.2]}, ["a", "b"], samples="demo[after 2023-12-31]"), dated=days)
    limited = replace(make_table({"es": [0.1]}, ["a"], samples="demo[after 2023-12-31][:1]"), dated=days[1:])
    assert [dated_after(table, "2024-06-01").run.samples for table in (whole, part, limited)] == [
        "demo[after 2024-06-01]",
        "demo[after 2024-06-01]",
        "demo[after 2023-12-31][:1][after 2024-06-01]",
    ]
    # An earlier day leaves nothing more out.
    assert dated_after(part, "2023-01-01").run.samples == "demo[after 2023-12-31]"


@pytest.mark.slow
def test_a_limit_is_of_what_is_left(home: Home) -> None:
    run = (*RUN, "--after", "2024-05-31", "--home", str(home.root), "--limit")
    assert run_cli(*run, "1").code == 0 and run_cli(*run, "3").code == 0
    # Three of two are all of them.
    assert {(row["samples"], row["n"]) for row in records(home)} == {
        ("demo[after 2024-05-31][:1]", 1),
        ("demo[after 2024-05-31]", 2),
    }
