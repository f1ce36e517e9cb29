"""The data of the pages: cached, and read again only when rows were added."""

import shutil
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.dashboard import data
from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store.store import open_reader
from tests.dashboard.stored import HARMFUL, STRATEGIES
from tests.harness.store.making import make_samples, make_spec

_QUESTIONS: list[str] = []


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "small")
    monkeypatch.setenv("CTXBENCH_HOME", str(home.root))
    with open_store(home.database) as store:
        store.add_run(make_spec(), make_samples(2))
    return home


def count_rows(store: Store, what: str) -> int:
    _QUESTIONS.append(what)
    return len(_QUESTIONS)


def test_read_data_is_cached_until_rows_are_added(small: Home) -> None:
    first = data.cached(count_rows, "a")
    assert data.cached(count_rows, "a") == first
    assert data.cached(count_rows, "b") != first
    with open_store(small.database) as store:
        store.add_run(make_spec(generator="new"), make_samples(2))
    assert data.cached(count_rows, "a") != first
    assert data.sets()[0].generators == ("new", "scripted")


def test_a_recreated_database_is_read_again(small: Home) -> None:
    assert data.sets()[0].samples == "demo"
    shutil.rmtree(small.root)
    assert data.sets() == ()
    with open_store(small.database) as store:
        store.add_run(make_spec(samples="other"), make_samples(1))
    assert data.sets()[0].samples == "other"


def test_two_sets_with_equal_names_get_their_digests_as_suffixes(small: Home) -> None:
    with open_store(small.database) as store:
        store.add_run(make_spec(samples_digest="e" * 64), make_samples(2))
    first, second = data.sets()
    assert (first.samples, second.samples) == (f"demo {'d' * 12}", f"demo {'e' * 12}")
    assert [table.run.samples_digest for table in data.tables(second.samples)] == ["e" * 64]


def test_a_missing_database_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXBENCH_HOME", str(tmp_path / "none"))
    assert data.sets() == ()
    with pytest.raises(InputFault, match="no results yet"):
        data.store()


def test_the_url_of_another_database_is_used(small: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with open_store(other) as store:
        store.add_run(make_spec(samples="elsewhere"), make_samples(1))
    monkeypatch.setenv("CTXBENCH_DB", other)
    assert data.sets()[0].samples == "elsewhere"


@pytest.mark.slow
def test_tables_are_filtered_by_set_language_and_generator(database: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXBENCH_HOME", str(database.root))
    assert [choice.samples for choice in data.sets()] == ["demo", "functions", "planted", "demo[:4]"]
    assert {table.run.generator for table in data.tables("demo")} == {"incontext", HARMFUL}
    assert [table.run.strategy for table in data.tables("demo", "python", "incontext")] == list(STRATEGIES)
    assert data.tables("demo", "java") == [] and data.tables("gone") == []
    limited = data.tables("demo[:4]", "python", "incontext")
    assert {len(table.sample) for table in limited} == {4}
    assert {table.run.strategy for table in limited} == set(STRATEGIES), "beside it, those over more at its samples"
    [group] = data.board("demo", "python", "incontext").groups
    assert {row.run.strategy for row in group.rows} == set(STRATEGIES)
    assert data.board("demo", "python", "incontext") is data.board("demo", "python", "incontext")
    with open_reader(database.database) as reader:
        assert reader.where == data.store().where
