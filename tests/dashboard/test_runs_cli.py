"""`ctxbench runs` on the command line: the list, a single run, JSON, and a command that resumes a run."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.harness.results import Status
from ctxbench.harness.run.spec import place_options
from ctxbench.harness.store import open_store
from ctxbench.harness.store.write import StoredCompletion
from tests.dashboard.stored import HARMFUL
from tests.dashboard.test_runs_page import begun, ended
from tests.harness.store.making import make_finished
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.sets import make_set

_RUN = ("run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "scripted(text=apply_tax)")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "my home")
    make_set(home)
    return home


def runs_command(home: Home, *arguments: str) -> Result:
    result = run_cli("runs", *arguments, "--home", str(home.root))
    assert result.code == 0, result.err
    return result


def records(home: Home, *arguments: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(runs_command(home, *arguments, "--format", "json").out)
    return records


def test_the_list_shows_the_progress_of_each_run(home: Home) -> None:
    whole, partial = ended(home), ended(home, strategy="gold", limit=2)
    going = begun(home, faults=3, message="broken\nstrategy", detail="Traceback\n  line")
    heading, *lines = [line.split("  ") for line in runs_command(home).out.splitlines()]
    assert [word.strip() for word in heading if word][:4] == ["run", "state", "finished", "planned"]
    cells = {line[0]: [word.strip() for word in line if word.strip()] for line in lines}
    assert list(cells) == [going, partial, whole]
    assert [row[1:4] for row in cells.values()] == [
        ["no end recorded", "1", "8"],
        ["done", "2", "2"],
        ["done", "8", "8"],
    ]
    assert [row[-1] for row in cells.values()] == ["broken strategy", "gold", "lc.infile"]
    assert cells[going][4] == "3" and cells[partial][-3] == "demo[:2]"


def test_a_single_run_is_shown_with_attempts_faults_and_command(home: Home) -> None:
    ended(home)
    going = begun(home, faults=3, message="broken", detail="Traceback\n  line 1")
    text = runs_command(home, going[:6]).out
    assert text.startswith(f"{going}  demo  broken  ")
    assert "1 of 8 samples" in text and "no end recorded" in text and "or its process was killed" in text
    assert "strategy fault, 3 times, last in the attempt of" in text and "broken" in text
    assert "\n  Traceback\n    line 1\n" in text
    assert f"ctxbench run --samples demo --strategy broken --generator '{'<script>'}" in text
    assert text.count(shlex.join(["--home", str(home.root)])) == 1


def test_a_run_shows_the_number_of_samples_with_each_flag(home: Home) -> None:
    run = begun(home)
    flagged = {"status": Status.SCORED, "generation_id": "g", "text": "1", "flags": ("length",), "scores": {}}
    completions = (StoredCompletion(**flagged), StoredCompletion(**flagged))
    with open_store(home.database) as store:
        for sample, flags in zip(sets.load(home, "demo").samples[1:3], [(), ("cut", "length")], strict=True):
            store.add_finished(run, "", make_finished(sample.id, flags=flags, completions=completions))
    assert "\nsamples with each flag, of 3 finished: length 2, cut 1\n" in runs_command(home, run).out
    assert records(home, run)[0]["flags"] == {"length": 2, "cut": 1}


def test_terminal_escape_codes_are_shown_as_text(home: Home) -> None:
    going = begun(home, faults=1, message="bad \x1b[2J", detail="Traceback\n  \x1b]0;owned\x07")
    text = runs_command(home, going[:6]).out
    assert "\x1b" not in text and ": bad ␛[2J" in text and "\n    ␛]0;owned␇\n" in text


def test_runs_are_filtered_by_sample_set(home: Home) -> None:
    whole, part = ended(home), ended(home, limit=2)
    assert {record["run"] for record in records(home, "--samples", "demo")} == {whole, part}
    assert [record["run"] for record in records(home, "--samples", "demo[:2]")] == [part]
    assert_fault(run_cli("runs", "--samples", "demoo", "--home", str(home.root)), "did you mean demo")


def test_the_json_contains_attempts_and_faults_of_a_run(home: Home) -> None:
    going = begun(home, faults=2, message="broken", detail="Traceback")
    (record,) = records(home, going)
    assert (record["run"], record["state"], record["finished"], record["planned"]) == (going, "no end recorded", 1, 8)
    assert record["attempts"][0]["ended"] is None and record["attempts"][0]["faults"] == 2
    assert record["faults"][0]["count"] == len(record["faults"][0]["samples"]) == 2
    assert (record["faults"][0]["message"], record["faults"][0]["detail"]) == ("broken", "Traceback")
    assert record["sampling"]["temperature"] == 0 and record["judge"] is None and record["origin"] == "run"


@pytest.mark.slow
def test_the_printed_command_resumes_the_run_in_its_database(home: Home) -> None:
    url = f"sqlite:///{home.root.parent / 'else where.db'}"
    first = run_cli(*_RUN, "--limit", "5", "--home", str(home.root), "--db", url)
    assert first.code == 0, first.err
    (record,) = json.loads(run_cli("runs", "--format", "json", "--home", str(home.root), "--db", url).out)
    program, *words = shlex.split(record["command"])
    again = run_cli(*words)
    assert program == "ctxbench" and again.code == 0, again.err
    assert again.out == first.out and again.out.startswith(record["run"])


@pytest.mark.slow
def test_every_run_of_a_real_database_is_shown_with_its_command(database: Home) -> None:
    stored = records(database)
    text = runs_command(database).out
    assert len(stored) == len(text.splitlines()) - 1 > 5
    (imported,) = [record for record in stored if record["generator"] == HARMFUL and record["origin"] == "imported"]
    assert imported["command"].startswith("ctxbench results import --format ctxbench --samples demo")
    for record in stored:
        output = runs_command(database, record["run"]).out
        assert f"\n{record['command']}\n" in output and (record["judge"] is None or f"\n{record['judge']}\n" in output)


def test_a_database_without_runs_is_a_fault(home: Home) -> None:
    assert_fault(run_cli("runs", "--home", str(home.root)), "no runs are stored", "ctxbench run --samples")
    assert not (home.root / "results.db").exists()
    assert_fault(run_cli("runs", "--db", f"sqlite:///{home.root}/x.db"), "no results yet")
    assert_fault(run_cli("runs", "--db", "nothing"), "is not a database URL")
    open_store(home.database).close()
    assert_fault(run_cli("runs", "--home", str(home.root)), "no runs are stored")


def test_an_unknown_run_is_a_fault(home: Home) -> None:
    ended(home)
    assert_fault(run_cli("runs", "zz", "--home", str(home.root)), "no stored run is called 'zz'", "ctxbench runs")


def test_printed_commands_contain_no_password(home: Home) -> None:
    url = "postgresql+psycopg://me@host/db"
    assert place_options(home, "postgresql://me:secret@host/db", url) == ["--home", str(home.root), "--db", url]
    assert place_options(home, home.database, "whatever") == ["--home", str(home.root)]
