"""The Benchmark page: ordinary, missing and damaged sets, and harmful texts."""

import json
import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.notes import add_marks
from ctxbench.harness.store.write import Mark
from tests.dashboard.browser import app, own_main
from tests.dashboard.stored import PLANTED
from tests.dashboard.test_runs_page import ended, page_text
from tests.helpers.sets import make_set


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    make_set(home)
    ended(home)
    return home


@pytest.mark.slow
def test_the_page_shows_the_contents_of_a_set(home: Home) -> None:
    sample_set = sets.load(home, "demo")
    with open_store(home.database) as store:
        add_marks(store, sample_set.digest, [Mark(sample_id=sample_set.samples[0].id, mark="broken", reason=PLANTED)])
    page = app("benchmark", home.root)
    text = page_text(page)
    assert "8 samples from 2 repositories, 1 stored run" in text and sample_set.digest[:12] in text
    kinds, repositories, marks, about = (table.value for table in page.dataframe)
    assert (list(kinds["samples"]), list(kinds["level"])) == ([8], ["single-line"])
    assert (list(repositories["repository"]), list(repositories["samples"])) == (["shop0", "shop1"], [4, 4])
    assert list(marks["reason"]) == [PLANTED]
    assert list(about["what"]) == ["made"]


def test_a_set_that_the_home_lacks_is_reported(home: Home) -> None:
    shutil.rmtree(home.samples / "demo")
    page = app("benchmark", home.root)
    text = page_text(page)
    assert "does not contain the set demo" in text and not page.dataframe


@pytest.mark.slow
def test_a_rebuilt_set_is_listed_beside_the_old_one(home: Home) -> None:
    old = sets.load(home, "demo").digest
    shutil.rmtree(home.samples / "demo")
    new = make_set(home, per_repo=3).digest
    (sets_box,) = (box for box in app("benchmark", home.root).selectbox if box.label == "Sample set")
    assert sets_box.options == ["demo", f"demo {new[:12]}"]
    first = app("benchmark", home.root, samples=f"demo {new[:12]}")
    assert "6 samples from 2 repositories, 0 stored runs" in page_text(first)
    text = page_text(app("benchmark", home.root, samples="demo"))
    assert "does not contain the set demo" in text and old[:12] in text


@pytest.mark.slow
def test_the_set_that_was_chosen_on_another_page_is_shown(home: Home) -> None:
    make_set(home, name="other", repos=3)
    ended(home, samples="other")
    ended(home, samples="other", limit=2)
    two_pages = (
        "import streamlit as st\nfrom ctxbench.dashboard.app import show_page\n"
        "show_page(st.session_state.get('page', 'runs'))\n"
    )
    page = AppTest.from_string(two_pages, default_timeout=60)
    page.query_params["samples"] = "other[:2]"
    with own_main():
        page.run()
        page.session_state["page"] = "benchmark"
        page.query_params.clear()
        page.run()
    assert "from 3 repositories" in page_text(page) and "Runs over other[:2] use a part of other" in page_text(page)
    assert page.query_params["samples"] == "other[:2]"


@pytest.mark.slow
def test_damaged_sets_are_reported_and_other_sets_are_shown(home: Home) -> None:
    make_set(home, name="torn")
    (home.samples / "torn" / "manifest.json").write_text("{")
    page = app("benchmark", home.root)
    assert "torn" in page_text(page) and "8 samples from 2 repositories" in page_text(page)


def test_a_set_that_was_changed_by_hand_is_refused(home: Home) -> None:
    changed = home.samples / "demo" / "samples.jsonl"
    changed.write_text(changed.read_text() + "\n")
    assert "was changed after it was built" in page_text(app("benchmark", home.root))


@pytest.mark.slow
def test_harmful_markup_in_a_manifest_is_shown_as_text(home: Home) -> None:
    place = home.samples / "demo" / "manifest.json"
    manifest = json.loads(place.read_text())
    manifest["remarks"] = [PLANTED]
    manifest["repositories"]["shop0"] |= {"license": PLANTED, "drops": {PLANTED: 3}}
    place.write_text(json.dumps(manifest))
    page = app("benchmark", home.root)
    assert PLANTED in list(page.dataframe[1].value["licence"])
    assert PLANTED in [
        reason for table in page.dataframe if "reason" in table.value for reason in table.value["reason"]
    ]
    assert not any(PLANTED in element.value for element in [*page.markdown, *page.get("html"), *page.caption])
