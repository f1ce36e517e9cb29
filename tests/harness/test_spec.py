"""The samples of a run, and the command that repeats a stored run with the same id in an empty database."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging import judge as judging
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.run.spec import ImportedFile, planned_samples, repeat_command, unfinished_samples
from ctxbench.harness.store import open_store
from ctxbench.harness.store.work import RunWork, run_works
from ctxbench.sandbox import registry
from tests.harness.cli.test_exec import Fake
from tests.harness.imported.records import java_task, python_task, write
from tests.harness.store.making import make_samples, make_spec
from tests.helpers.cli import Result, run_cli
from tests.helpers.functions import make_function_set
from tests.helpers.sets import make_set

MANY = (*make_samples(6, "a"), *make_samples(2, "b"), *make_samples(4, "c"))
pytestmark = pytest.mark.usefixtures("inline_cells")


def test_a_limit_takes_samples_from_repositories_in_turn() -> None:
    # The samples are drawn as a, b, c, a, b, c, a, and then run one repository after the other.
    assert [sample.repo for sample in planned_samples(MANY, 7)] == ["a", "a", "a", "b", "b", "c", "c"]
    assert planned_samples(MANY, 12) == planned_samples(MANY, 100) == MANY


def test_a_smaller_limit_selects_a_subset_of_a_larger_one() -> None:
    for smaller, larger in ((1, 2), (4, 9), (9, 11)):
        assert set(planned_samples(MANY, smaller)) < set(planned_samples(MANY, larger))
    assert set(planned_samples(tuple(reversed(MANY)), 5)) == set(planned_samples(MANY, 5))


def test_a_run_without_samples_is_refused() -> None:
    with pytest.raises(InputFault, match="leaves no samples"):
        planned_samples(MANY, 0)


def test_unfinished_samples_keep_their_order() -> None:
    assert unfinished_samples(MANY, {sample.id for sample in MANY[1:-1]}) == (MANY[0], MANY[-1])


@pytest.mark.parametrize(
    "change",
    [
        {"samples_digest": "e"},
        {"strategy": "lc.repocoder"},
        {"strategy_version": "2"},
        {"generator": "incontext"},
        {"generator_version": "2"},
        {"n": 2},
        {"seed": 1},
        {"limit": 5},
        {"tokenizer": "u"},
        {"code": "1"},
        {"coder": "x"},
        {"sampling": Sampling(temperature=0.5)},
        {"sampling": Sampling(fim=True)},
    ],
)
def test_every_choice_changes_the_run_id(change: dict[str, object]) -> None:
    assert make_spec(**change).id != make_spec().id == make_spec().id


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    make_set(found, repos=2, per_repo=2)
    return found


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Fake:
    found = Fake()
    monkeypatch.setattr(registry, "open_sandbox", found.open_sandbox)
    monkeypatch.setattr(judging, "Judge", found.judge)
    return found


def stored(database: str) -> dict[str, RunWork]:
    with open_store(database) as store:
        return {one.id: one for one in run_works(store)}


def run_again(home: Home, run: RunWork) -> Result:
    """Run the run's own command with an empty database."""
    options = ["--db", f"sqlite:///{home.root / 'again.db'}"]
    program, *words = shlex.split(run.repeat_command(options))
    assert program == "ctxbench"
    return run_cli(*words)


def check(home: Home, *arguments: str) -> None:
    """Check that the command of every run stored with these arguments stores the same run again."""
    assert run_cli(*arguments).code == 0
    first = stored(home.database)
    assert first
    for run in first.values():
        assert run_again(home, run).code == 0
    second = stored(f"sqlite:///{home.root / 'again.db'}")
    assert {id_: one.finished for id_, one in second.items()} == {id_: one.finished for id_, one in first.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--limit", "3"],
        ["--limit", "4"],
        ["--n", "2", "--seed", "7", "--temperature", "0.7", "--top-p", "0.95"],
        ["--strategy", "lc.repocoder(iterations=1)", "--strategy", "gold"],
    ],
)
def test_the_command_repeats_a_run_over_lines(home: Home, more: list[str]) -> None:
    check(home, "run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "scripted(mode=echo)", *more)


@pytest.mark.slow
def test_the_command_quotes_special_characters_for_a_shell(home: Home) -> None:
    text = "$(touch /tmp/x); 'a\" `b` \\ *\n--n 3"
    check(home, "run", "--samples", "demo", "--strategy", "lc.infile", "--generator", f"scripted(text={text!r})")


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--n", "2"], ["--n", "2", "--temperature", "0", "--top-p", "1"]])
def test_the_command_repeats_a_function_run_with_its_sandbox(home: Home, sandbox: Fake, more: list[str]) -> None:
    make_function_set(home)
    made = ["run", "--samples", "functions", "--strategy", "lc.infile", "--generator", "scripted(text=x)", *more]
    check(home, *made)
    assert sandbox.wanted[-1] == "docker"


@pytest.mark.slow
def test_the_command_repeats_a_function_run_without_a_sandbox(home: Home, sandbox: Fake) -> None:
    make_function_set(home)
    made = ["run", "--samples", "functions", "--strategy", "lc.infile", "--generator", "scripted(text=x)"]
    check(home, *made, "--sandbox", "none")
    assert not sandbox.wanted
    (run,) = stored(home.database).values()
    assert run.unjudged == 6 and run.functions


def test_the_command_repeats_an_import_of_a_file_with_labels(home: Home) -> None:
    lines = [
        {"sample": f"shop{at}/shop/pay.py#L4", "text": "x", "strategy": name, "generator": "m"}
        for name in ("a", "b")
        for at in (0, 1)
    ]
    file = write(home.root / "recorded.jsonl", lines)
    check(home, "results", "import", "--format", "ctxbench", "--samples", "demo", str(file))
    said = {run.repeat_command() for run in stored(home.database).values()}
    assert len(said) == 1 and "--strategy" not in said.pop()


def test_the_command_repeats_an_import_with_labels_as_options(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"task_id": f"shop{at}/shop/pay.py#L4", "pred": "x"} for at in (0, 1)]
    write(home.root / "--all.jsonl", lines)
    monkeypatch.chdir(home.root)
    words = ["--strategy", "their method", "--generator", "their model", "--language", "python"]
    check(home, "results", "import", "--format", "crosscodeeval", "--samples", "demo", *words, "--", "--all.jsonl")


@pytest.mark.parametrize("task", [python_task, java_task])
def test_the_command_repeats_an_import_of_a_file_that_names_its_samples(home: Home, task: Any) -> None:
    file = write(home.root / "c.jsonl", [task("a", True, False), task("b", False, False)])
    check(home, "results", "import", "--format", "codereval", str(file))


def test_the_command_shows_only_options_that_matter() -> None:
    run = make_spec(generator="m")
    assert repeat_command(run) == "ctxbench run --samples demo --strategy lc.infile --generator m"
    assert repeat_command(run, options=["--home", "a b"]).endswith("--generator m --home 'a b'")
    fim = replace(run, limit=2, n=2, seed=1, sampling=Sampling(fim=True))
    assert repeat_command(fim).endswith("--limit 2 --n 2 --seed 1 --temperature 0.0 --top-p 1.0 --fim")
    file = ImportedFile(format="infercom", source="p.jsonl", labels=("generator",))
    expected = "ctxbench results import --format infercom --samples demo --generator m p.jsonl"
    assert repeat_command(run, file) == expected
