"""Engines that cheat or break are refused, cut or reported as machine faults. No answer reaches a prompt."""

from pathlib import Path

import pytest

from ctxbench.bench.engines import box, boxes
from ctxbench.bench.engines.types import Mode
from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.sandbox.types import Sandbox
from tests.bench.engines.rooms import answer_of, attempt, make_set, prompts, query_database, spy

pytestmark = pytest.mark.slow

REFUSED = {
    "Outside": "outside the indexed files",
    "Text": "with text",
    "Words": "instead of a list of places",
    "Absolute": "an absolute path",
    "Numbers": "an invalid score",
    "Backwards": "invalid lines",
}
LOST = {
    "Hangs": "answer in 0.7 seconds",
    "Floods": "more than",
    "Dies": "exit code 7: good bye",
    "Raises": "KeyError",
    "Nameless": "name and a version",
}
HARMLESS = ("Honest", "Prints", "Forks", "CallsOut")
FIRST = "# def levy(zq_amount):"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "PATIENCE", box.EngineTimeLimits(index=60, search=60))


@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_that_is_not_a_place_in_the_tree_is_refused(
    name: str, tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    summary = attempt(tmp_path, bubblewrap_sandbox, spy(name))
    assert summary.missing == 3 and summary.scored == 0
    assert all(fault.kind == "strategy" and REFUSED[name] in fault.message for fault in summary.faults)


@pytest.mark.parametrize("name", LOST)
def test_an_engine_that_breaks_is_a_machine_fault(
    name: str, tmp_path: Path, bubblewrap_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "Hangs":
        monkeypatch.setattr(box, "PATIENCE", box.EngineTimeLimits(index=60, search=0.7))
    summary = attempt(tmp_path, bubblewrap_sandbox, spy(name))
    assert summary.missing == 3 and summary.scored == 0
    assert all(fault.kind == "machine" and LOST[name] in fault.message for fault in summary.faults)


def test_an_engine_that_crashes_repeatedly_is_not_started_again(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    home = Home(tmp_path / "home")
    make_set(home, per_file=5)
    summary = attempt(tmp_path, bubblewrap_sandbox, spy("Dies"), home=home)
    ended = ["exit code 7" in fault.message for fault in summary.faults]
    assert summary.missing == 5 and sum(ended) == 3
    assert "3 times in a row, so it is not started again for shop/pay.py" in summary.faults[-1].message


@pytest.mark.parametrize("mode", [Mode.PER_FILE, Mode.SHARED])
def test_a_repository_that_crashes_an_engine_costs_no_sample_of_others(
    mode: Mode, tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    home = Home(tmp_path / "home")
    make_set(home, repos=5, files=2, per_file=2)
    engine = spy("TooBig") if mode is Mode.PER_FILE else f"{spy('TooBig')}(mode=shared)"
    summary = attempt(tmp_path, bubblewrap_sandbox, engine, home=home)
    assert (summary.scored, summary.missing) == (8, 12)
    assert {fault.sample_id.partition("/")[0] for fault in summary.faults} == {"shop0", "shop1", "shop2"}


def test_an_engine_that_never_answers_is_not_started_for_every_file(
    tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    home = Home(tmp_path / "home")
    make_set(home, files=8, per_file=2)
    summary = attempt(tmp_path, bubblewrap_sandbox, spy("Dies"), home=home)
    ended = ["exit code 7" in fault.message for fault in summary.faults]
    # There are two workers: one may start a box while the other loses the last one.
    assert summary.missing == 16 and 12 <= sum(ended) <= 13
    assert any("before its first answer" in fault.message for fault in summary.faults)


def test_the_board_shows_engine_calls_places_and_seconds_per_sample(
    tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    attempt(tmp_path, bubblewrap_sandbox, spy("Behind"))
    with open_store(Home(tmp_path / "home").database) as store:
        [table] = run_tables(store)
    assert table.costs["engine_calls"] == (1, 1, 1) and table.costs["places_cut"] == (2, 2, 2)
    # The file has one index, and only its first sample waited for it.
    assert [bool(seconds) for seconds in table.costs["index_seconds"]] == [True, False, False]
    assert all(table.costs["query_seconds"])


@pytest.mark.parametrize("name", HARMLESS)
def test_side_effects_in_a_box_do_not_change_the_prompts(
    name: str, tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    assert attempt(tmp_path, bubblewrap_sandbox, spy(name)).scored == 3
    assert all(FIRST in prompt for prompt in prompts(tmp_path).values())


@pytest.mark.parametrize(("mode", "cut"), [("per-file", 2), ("shared", 3)])
def test_places_that_overlap_hidden_lines_are_cut_and_counted(
    mode: str, cut: int, tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    assert attempt(tmp_path, bubblewrap_sandbox, f"{spy('Behind')}(mode={mode})").scored == 3
    _no_answer(tmp_path)
    # A place that extends past the cursor is cut only if the box contained the lines after the cursor.
    assert query_database(tmp_path, "SELECT places, cut, calls FROM engine_use") == [(1, cut, 1)] * 3


@pytest.mark.parametrize(
    ("name", "mode"), [("Remembers", "per-file"), ("Remembers", "shared"), ("Carries", "per-file")]
)
def test_no_answer_reaches_a_prompt_from_an_engine_that_remembers(
    name: str, mode: str, tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    home = Home(tmp_path / "home")
    make_set(home, files=4, per_file=2)
    spec = f"{spy(name)}(mode={mode})"
    assert attempt(tmp_path, bubblewrap_sandbox, spec, home=home).scored == 8
    _no_answer(tmp_path, files=4, per_file=2)
    # Its knowledge shows only in its ranking, and only if it saw whole files. One sample is right by chance.
    assert _ranked(tmp_path) == (8 if mode == "shared" else 1)
    remarks = query_database(tmp_path, "SELECT text FROM remark")
    assert bool(remarks) == (mode == "shared")


def test_an_answer_in_the_base_would_reach_the_ranking(
    tmp_path: Path, bubblewrap_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the test above would detect a leak."""
    monkeypatch.setattr(boxes, "tree_of_base", lambda snapshot, _: dict(snapshot.texts))
    home = Home(tmp_path / "home")
    make_set(home, files=4, per_file=2)
    assert attempt(tmp_path, bubblewrap_sandbox, spy("Carries"), home=home).scored == 8
    assert _ranked(tmp_path) == 8


def _ranked(folder: Path) -> int:
    """Return the number of samples for which the answer's function was ranked first."""
    names = [f"def {answer_of(0, number).partition('(')[0]}(" for number in range(8)]
    contexts = [prompt.partition("from shop import")[0] for _, prompt in sorted(prompts(folder).items())]
    return sum(name in context for name, context in zip(names, contexts, strict=True))


def _no_answer(folder: Path, *, files: int = 1, per_file: int = 3) -> None:
    answers = [answer_of(0, number) for number in range(files * per_file)]
    for sample, prompt in prompts(folder).items():
        context = prompt.partition("from shop import")[0]
        assert not [answer for answer in answers if answer in context], sample
