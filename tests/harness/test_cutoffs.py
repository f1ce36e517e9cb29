"""Days of samples and training cutoffs: runs and boards after a day, and scores before and after a cutoff."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.cutoffs import Cutoff, Cutoffs, builtin, of_home
from ctxbench.harness.generators import base
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import board, render
from ctxbench.harness.leaderboard.notes import notes
from ctxbench.harness.leaderboard.rows import Group
from ctxbench.harness.leaderboard.scales import dated_after
from ctxbench.harness.run.runner import run
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables, runs_over
from ctxbench.harness.store.samples import stored_sets
from ctxbench.harness.store.work import run_works
from tests.helpers.cells import open_inline
from tests.helpers.cli import run_cli
from tests.helpers.runs import make_table
from tests.helpers.sets import make_set

CUTOFF = "2024-06-01"
OLD, SAME_DAY, NEW = "2023-01-01", CUTOFF, "2024-06-02"


def stated(day: str = CUTOFF, *match: str) -> Cutoffs:
    return Cutoffs((Cutoff(match=match or ("scripted",), day=date.fromisoformat(day)),))


def group(days: tuple[str | None, ...], cutoffs: Cutoffs, **run: str) -> Group:
    """Return a board of one run. Its samples have these days and the scores 0, 0.01, 0.02, …"""
    values = [index / 100 for index in range(len(days))]
    table = make_table({"es": values}, [f"r{index % 2}" for index in range(len(days))], **run)
    [only] = board([replace(table, dated=days)], cutoffs=cutoffs).groups
    return only


def test_cutoffs_of_the_home_come_before_the_shipped_ones(tmp_path: Path) -> None:
    home = Home(tmp_path)
    mini = "openai(model=gpt-4o-mini)"
    assert of_home(home) == builtin() and builtin().day(mini) == date(2023, 10, 1)
    (tmp_path / "cutoffs.toml").write_text(
        '[[cutoff]]\nmatch = "gpt-4o-mini"\nday = 2024-01-02\n[[cutoff]]\nmatch = ["hf(*"]\nday = 2024-03-04\n'
    )
    own = of_home(home)
    assert own.day(mini) == own.day(f"{mini} [fim]") == date(2024, 1, 2)
    assert own.day("hf(model=/models/any)") == date(2024, 3, 4)
    assert own.day("openai(model=gpt-4o)") == date(2023, 10, 1) and own.day("a label (of an import") is None


@pytest.mark.parametrize("label", ["hf(model=smollm2-135m)", "openai(model=org/own-model) [fim]", "scripted"])
def test_the_advice_for_an_unknown_cutoff_is_a_valid_entry(tmp_path: Path, label: str) -> None:
    [sentence] = [line for line in notes(group((OLD,), Cutoffs(), generator=label)) if "unknown" in line]
    lines = re.search(r"three lines: (\[\[cutoff\]\]), (match = .+) and (day = [\d-]+),", sentence)
    assert lines is not None and "\n" not in sentence
    (tmp_path / "cutoffs.toml").write_text("\n".join(lines.groups()))
    assert of_home(Home(tmp_path)).day(label) == date(2024, 6, 1)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('[[cutoff]]\nmatch = "m"\nday = "2024-06-01"\n', ["cutoff 1: day must be a date such as 2024-06-01"]),
        (
            "[[cutoff]]\nday = 2024-06-01T00:00:00\nwhen = 1\n",
            ["match must be", "day must be", "the key 'when' is unknown"],
        ),
        ("[[cutoff]]\nmatch = []\nday = 2024-06-01\nsource = 1\n", ["match must be", "source must be a string"]),
        ("[[rate]]\n", ["the key 'rate' is unknown"]),
        ("day = \n", ["is not valid TOML"]),
    ],
)
def test_all_faults_of_a_cutoff_file_are_reported_together(tmp_path: Path, text: str, faults: list[str]) -> None:
    (tmp_path / "cutoffs.toml").write_text(text)
    with pytest.raises(InputFault) as caught:
        of_home(Home(tmp_path))
    assert all(fault in str(caught.value) for fault in (*faults, "write each table as [[cutoff]] with match"))


def test_scores_before_and_after_the_cutoff_use_their_own_samples() -> None:
    shown = group((OLD, NEW, SAME_DAY, None, NEW), stated())
    [row] = shown.rows
    assert row.before_cutoff is not None and row.after_cutoff is not None
    # The values are 0 to 4. The cutoff's own day counts as before. A sample without a day counts for neither part.
    assert (row.before_cutoff.n, row.before_cutoff.mean) == (2, pytest.approx(1.0))
    assert (row.after_cutoff.n, row.after_cutoff.mean) == (2, pytest.approx(2.5))
    assert row.n == 5 and row.metrics["es"].mean == pytest.approx(2.0)
    [sentence] = [line for line in notes(shown) if "trained" in line]
    assert "may have read 2 of these samples, but not the 2 newer ones; the day of 1 is unknown" in sentence
    whole = board([replace(make_table({"es": [0.0, 0.1]}, ["a", "b"]), dated=(OLD, NEW))], cutoffs=stated())
    text, markdown = render.table(whole), render.markdown(whole)
    assert all(f"up to {CUTOFF} [95%]" in form and f"n after {CUTOFF}" in form for form in (text, markdown))
    [record] = json.loads(render.to_json(whole))
    assert (record["before_cutoff_n"], record["before_cutoff"]) == (1, 0.0)
    assert (record["after_cutoff_n"], record["after_cutoff"]) == (1, 10.0)


def test_metrics_of_a_board_are_the_same_with_and_without_days() -> None:
    with_days, without = (group(days, stated()) for days in ((OLD, NEW, NEW), (None, None, None)))
    assert with_days.rows[0].metrics == without.rows[0].metrics and without.ages is None
    assert not [line for line in notes(without) if "trained" in line]


@pytest.mark.parametrize(
    ("days", "cutoffs", "sentence"),
    [
        ((OLD, SAME_DAY), stated(), "all samples are older (2023-01-01 to 2024-06"),
        ((NEW, None), stated(), "all samples are newer: 2024-06-02; the day of 1 is unknown."),
        ((OLD, NEW), Cutoffs(), "is unknown, so the model may have read these samples, of 2023-01-01 to 2024-06-02."),
    ],
    ids=["older", "newer", "unknown"],
)
def test_a_board_without_both_parts_shows_a_sentence_and_no_split(
    days: tuple[str | None, ...], cutoffs: Cutoffs, sentence: str
) -> None:
    shown = group(days, cutoffs)
    assert [line for line in notes(shown) if sentence in line]
    assert shown.rows[0].before_cutoff is None and shown.rows[0].after_cutoff is None


def test_a_generator_without_training_has_no_cutoff() -> None:
    shown = group((OLD, NEW), stated(CUTOFF, "*"), generator="incontext")
    assert shown.ages is None and not [line for line in notes(shown) if "trained" in line or "may have read" in line]


@pytest.mark.slow
def test_a_cutoff_in_a_spec_does_not_change_the_run(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "cutoffs.toml").write_text('[[cutoff]]\nmatch = "scripted*"\nday = 2020-01-01\n')
    sample_set = make_set(home, per_repo=1)
    set_digest = sample_set.digest

    def days_of(spec: str) -> tuple[str, str | None]:
        with open_store(home.database) as store:
            [summary] = run(home, store, sample_set, strategies=["lc.infile"], generator=spec, cells=open_inline,
                            resolve=lambda _: model)  # fmt: skip
            [table] = run_tables(store)
        assert table.run.samples_digest == set_digest
        [only] = board([replace(table, dated=(OLD, NEW))], cutoffs=of_home(home)).groups
        return summary.run, only.ages.cutoff if only.ages else None

    model = Scripted(lambda request: "x", version="1", log_likelihoods=True)
    model.bits = lambda prompts, texts, language: [1.0] * len(texts)  # type: ignore[method-assign]
    first = days_of("scripted")
    assert first[1] == "2020-01-01", "the home's table holds where the spec says nothing"
    assert days_of("scripted(cutoff=2024-02)") == (first[0], "2024-02-29") and model.batches == [2], (
        "nothing is asked again"
    )
    assert days_of("scripted(cutoff=2024-06-01)") == (first[0], CUTOFF), "the last one that was stated counts"
    assert days_of("scripted") == (first[0], CUTOFF)


@pytest.mark.parametrize("text", ["2024", "2024-13", "2024-6", "yesterday", "2024-02-30"])
def test_an_invalid_cutoff_is_refused_before_anything_runs(text: str) -> None:
    with pytest.raises(InputFault, match=r"cutoff=.* is invalid.* a month such as 2024-06"):
        base.canonical(f"incontext(cutoff={text})")


def test_every_generator_takes_a_cutoff_and_keeps_its_name() -> None:
    assert base.canonical("incontext(cutoff=2024-06)") == "incontext"
    assert base.canonical("hf:some/model(cutoff=2024-06)") == base.canonical("hf:some/model")
    assert base.cutoff("hf:some/model(cutoff=2023-02)") == "2023-02-28" and base.cutoff("incontext") is None


RUN = ("run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "incontext")


def dated_set(home: Home, days: Sequence[date | None]) -> SampleSet:
    """Build a set whose samples have these days, in order. None means that the day is unknown."""
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
    # A run over the whole set has another id.
    assert run_cli(*RUN, "--home", str(home.root)).code == 0
    assert {(row["samples"], row["n"]) for row in records(home)} == {("demo", 4), ("demo[after 2024-06-01]", 1)}
    with open_store(home.database) as store:
        runs = {work.choices.after: work for work in run_works(store)}
        sets = {stored.samples: stored for stored in stored_sets(store)}
        part = sets["demo[after 2024-06-01]"]
        chosen = runs_over(store, part.digest, part.samples)
    assert runs.keys() == {None, DAYS[1]} and sets.keys() == {"demo", part.samples}
    assert (part.name, part.size) == ("demo", 1) and [run.id for run in chosen] == [runs[DAYS[1]].id]
    # Its command, typed again, repeats the same run.
    database = f"sqlite:///{home.root / 'again.db'}"
    command = shlex.split(runs[DAYS[1]].repeat_command(["--home", str(home.root)]))
    assert run_cli(*command[1:], "--db", database).code == 0
    with open_store(database) as store:
        assert [work.id for work in run_works(store)] == [runs[DAYS[1]].id]


def test_a_day_after_all_samples_is_refused_with_advice(home: Home) -> None:
    result = run_cli(*RUN, "--after", "2024-06-02", "--home", str(home.root))
    assert result.code == 1 and "the newest is dated 2024-06-02" in result.err and "use an earlier day" in result.err
    assert run_cli(*RUN, "--after", "June", "--home", str(home.root)).code == 2


@pytest.mark.slow
def test_a_board_shows_only_samples_after_the_day(home: Home) -> None:
    assert run_cli(*RUN, "--home", str(home.root)).code == 0
    [row] = records(home, "--samples", "demo", "--after", "2024-05-31")
    assert (row["samples"], row["n"]) == ("demo[after 2024-05-31]", 2)
    assert row["remarks"] == ["Left out: 1 sample without a known date, possibly older than 2024-05-31."]
    [whole] = records(home, "--samples", "demo")
    assert (whole["samples"], whole["n"]) == ("demo", 4)
    result = run_cli("leaderboard", "--home", str(home.root), "--after", "2025-01-01")
    assert result.code == 1 and "the newest is dated 2024-06-02" in result.err


def test_runs_and_boards_after_the_same_day_have_the_same_name() -> None:
    days = ("2024-01-01", "2024-06-02")
    whole = replace(make_table({"es": [0.1, 0.2]}, ["a", "b"]), dated=days)
    part = replace(make_table({"es": [0.1, 0.2]}, ["a", "b"], samples="demo[after 2023-12-31]"), dated=days)
    limited = replace(make_table({"es": [0.1]}, ["a"], samples="demo[after 2023-12-31][:1]"), dated=days[1:])
    assert [dated_after(table, "2024-06-01").run.samples for table in (whole, part, limited)] == [
        "demo[after 2024-06-01]",
        "demo[after 2024-06-01]",
        "demo[after 2023-12-31][:1][after 2024-06-01]",
    ]
    # An earlier day excludes no further samples.
    assert dated_after(part, "2023-01-01").run.samples == "demo[after 2023-12-31]"


@pytest.mark.slow
def test_a_limit_counts_only_samples_after_the_day(home: Home) -> None:
    run = (*RUN, "--after", "2024-05-31", "--home", str(home.root), "--limit")
    assert run_cli(*run, "1").code == 0 and run_cli(*run, "3").code == 0
    # Only two samples are left, so a limit of three selects both.
    assert {(row["samples"], row["n"]) for row in records(home)} == {
        ("demo[after 2024-05-31][:1]", 1),
        ("demo[after 2024-05-31]", 2),
    }
