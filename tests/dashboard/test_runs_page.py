"""The Runs page: ordinary runs, missing runs, faults with harmful texts, and updates without a reload."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.dashboard.pages import runs as runs_page
from ctxbench.harness.run.spec import planned_samples
from ctxbench.harness.store import open_store
from ctxbench.harness.store.tables import delete_run
from ctxbench.harness.store.work import run_works
from ctxbench.harness.store.write import StoredFault
from tests.dashboard.browser import app, cells, own_main, serving, settled
from tests.dashboard.stored import PLANTED
from tests.harness.store.making import make_finished, make_generation, make_spec
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from streamlit.testing.v1 import AppTest


def ended(home: Home, **changes: Any) -> str:
    """Store a complete run over `demo`, and return its id."""
    sample_set = sets.load(home, changes.get("samples", "demo"))
    planned = planned_samples(sample_set.samples, changes.get("limit"))
    with open_store(home.database) as store:
        run = store.add_run(make_spec(samples_digest=sample_set.digest, **changes), planned)
        attempt = store.start_attempt(run, "process")
        store.add_generations([make_generation()])
        for sample in planned:
            store.add_finished(run, "", make_finished(sample.id))
        store.end_attempt(attempt, reason="done", finished=len(planned), missing=0)
    return run


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    make_set(home)
    ended(home)
    ended(home, strategy="gold", limit=2)
    return home


def begun(home: Home, *, faults: int = 0, message: str = "server down", detail: str = "", locked: bool = False) -> str:
    """Store a run that has started but not ended, with faults, and return its id."""
    sample_set = sets.load(home, "demo")
    with open_store(home.database) as store:
        run = store.add_run(
            make_spec(samples_digest=sample_set.digest, strategy=message, generator=PLANTED), sample_set.samples
        )
        attempt = store.start_attempt(run, "process", locked=locked)
        store.add_generations([make_generation()])
        store.add_finished(run, "", make_finished(sample_set.samples[0].id))
        for sample in sample_set.samples[1 : 1 + faults]:
            store.add_fault(attempt, StoredFault(sample_id=sample.id, kind="strategy", message=message, detail=detail))
    return run


@contextlib.contextmanager
def working(home: Home, run: str) -> Iterator[None]:
    with open_store(home.database) as store, store.run_lock(run):
        yield


def page_text(page: AppTest) -> str:
    """Return all text of a page, without the backslashes that escape Markdown."""
    assert not page.exception
    parts = [*page.markdown, *page.header, *page.caption, *page.get("html"), *page.info, *page.error, *page.code]
    return re.sub(r"\\(?=[!-/:-@\[-`{-~])|\u2060", "", "\n".join(str(element.value) for element in parts))


def test_the_page_shows_runs_and_the_command_of_a_run(home: Home) -> None:
    page = app("runs", home.root, samples="demo[:2]")
    (table, attempts) = page.dataframe
    assert (list(table.value["strategy"]), list(table.value["state"])) == (["gold"], ["done"])
    assert list(table.value["progress"]) == [100.0] and list(attempts.value["end"]) == ["done"]
    assert page.code[0].value == (
        f"ctxbench run --samples demo --strategy gold --generator scripted --limit 2 --home {home.root}"
    )
    assert "No faults are stored." in page_text(page)


def test_a_run_without_a_recorded_end_is_not_shown_as_running(home: Home) -> None:
    run = begun(home)
    page = app("runs", home.root, run=run)
    assert "1 of 8 samples: no end recorded" in page_text(
        page
    ) and "it is still running, or its process was killed" in page_text(page)
    assert page.dataframe[0].value["state"].tolist().count("done") == 2


def test_a_run_is_shown_as_died_when_its_process_ends(home: Home) -> None:
    run = begun(home, locked=True)
    with working(home, run):
        page = app("runs", home.root, run=run)
    assert "1 of 8 samples: running" in page_text(page)
    with own_main():
        # The database has not changed.
        page.run()
    assert "1 of 8 samples: died" in page_text(page) and "its process is gone" in page_text(page)
    assert page.dataframe[0].value["state"].tolist() == ["died", "done", "done"]


def test_faults_are_grouped_and_shown_as_text(home: Home) -> None:
    harmful = PLANTED + "\x1b[31m \u202e \n``` \n" + "long " * 100
    run = begun(home, faults=3, message=harmful, detail=f"Traceback of {PLANTED}")
    page = app("runs", home.root, run=run)
    faults = page.dataframe[2].value
    assert (list(faults["count"]), list(faults["kind"])) == ([3], ["strategy"])
    (detail,) = page.expander
    assert "<script>" not in detail.label.replace("\\<script\\>", "")
    message, traceback = (code.value for code in detail.code)
    # Invisible characters are replaced by visible codes.
    assert message.startswith(PLANTED) and message.endswith("long " * 100) and "\u202e" not in message
    assert traceback == f"Traceback of {PLANTED}"
    assert not any(PLANTED in element.value for element in [*page.markdown, *page.header, *page.caption])
    assert all(PLANTED not in element.value for element in page.get("html"))


def test_the_page_chooses_again_after_the_last_run_of_a_set_is_deleted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ChoosesAgain(Exception):
        pass

    def rerun() -> None:
        raise ChoosesAgain

    app("runs", home.root, samples="demo[:2]")
    with open_store(home.database) as store:
        (run,) = [work.id for work in run_works(store) if work.choices.strategy == "gold"]
        delete_run(store, run)
    monkeypatch.setattr("streamlit.rerun", rerun)
    with pytest.raises(ChoosesAgain):
        runs_page._refreshed(runs_page._overview, "demo[:2]", run, False)


def test_an_unknown_run_or_set_is_reported(home: Home) -> None:
    page = app("runs", home.root, run="no such run", samples="other")
    assert "no such run does not exist here" in page_text(page) and "other does not exist here" in page_text(page)


def test_a_running_run_is_followed_without_a_reload(home: Home, browser: Browser) -> None:
    run = begun(home, locked=True)
    samples = sets.load(home, "demo").samples
    with working(home, run), serving(home.root) as site, browser.new_context() as context:
        page = context.new_page()
        site.watch(page)
        site.visit(page, "runs", run=run)
        page.get_by_text("1 of 8 samples: running").wait_for(timeout=30_000)
        page.evaluate("window.stays = true")
        away = home.root / "away.db"
        (home.root / "results.db").rename(away)
        page.get_by_text("no results yet").wait_for(timeout=40_000)
        site.check(page)
        away.rename(home.root / "results.db")
        page.get_by_text("no results yet").wait_for(state="detached", timeout=40_000)
        with open_store(home.database) as store:
            store.add_finished(run, "", make_finished(samples[1].id))
            page.get_by_text("2 of 8 samples: running").wait_for(timeout=30_000)
            for sample in samples[2:]:
                store.add_finished(run, "", make_finished(sample.id))
            attempt = run_works(store, [run])[0].attempts[0].id
            store.end_attempt(attempt, reason="done", finished=7, missing=0)
        page.get_by_text("8 of 8 samples: done").wait_for(timeout=30_000)
        settled(page)
        site.check(page)
        assert page.evaluate("window.stays === true"), "the page was loaded anew"
        assert next(row["state"] for row in cells(page) if row["run"] == run) == "done"
