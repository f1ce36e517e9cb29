"""Opening databases: new files, invalid files and invalid URLs."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.store import open_store
from ctxbench.harness.store.schema import METADATA, VIEWS
from tests.helpers.databases import set_schema


def test_a_new_database_has_every_table_and_view(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as store, store.reading() as connection:
        assert set(inspect(connection).get_table_names()) == set(METADATA.tables)
        for view in VIEWS.tables.values():
            columns = [column["name"] for column in inspect(connection).get_columns(view.name)]
            assert set(columns) == set(view.columns.keys()), view.name


def test_every_table_refuses_changes(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as store, store.reading() as connection:
        refusals = set(connection.scalars(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")))
    assert refusals >= {f"{table}_no_{change}" for table in METADATA.tables for change in ("update", "delete")}


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "100% mine" / "a.db"
    open_store(f"sqlite:///{path}").close()
    before = path.read_bytes()
    open_store(f"sqlite:///{path}").close()
    assert path.read_bytes() == before


def test_many_threads_open_a_new_database_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        for store in pool.map(open_store, [f"sqlite:///{tmp_path / 'a.db'}"] * 6):
            store.close()


def _of_another_version(path: Path) -> None:
    open_store(f"sqlite:///{path}").close()
    set_schema(path, 9999)


def _another_programs(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()


def _no_database(path: Path) -> None:
    path.write_text("this is a text file, and it is long enough to be looked at\n" * 100)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (_of_another_version, "another version of ctxbench created the database (schema 9999"),
        (_another_programs, "another program"),
        (_no_database, "is not a database"),
        (_folder, "the path is a folder"),
    ],
)
def test_bad_files_are_refused_and_not_changed(tmp_path: Path, prepare: object, words: str) -> None:
    path = tmp_path / "a.db"
    prepare(path)  # type: ignore[operator]
    kept = path.read_bytes() if path.is_file() else b""
    with pytest.raises(InputFault) as caught:
        open_store(f"sqlite:///{path}")
    assert words in str(caught.value) and "a.db" in str(caught.value) and "\n" not in str(caught.value)
    assert not path.is_file() or path.read_bytes() == kept


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("results.db", "sqlite:///FILE"),
        ("oracel://host/db", "sqlite:///FILE"),
        ("sqlite://", "give a file"),
        ("sqlite:///:memory:", "give a file"),
        ("mysql://me:secret@host/db", "is neither SQLite nor PostgreSQL; write it as sqlite:///FILE"),
        ("", "sqlite:///FILE"),
        ("sqlite:////proc/nothing/a.db", "check"),
    ],
)
def test_bad_urls_are_refused_without_their_password(url: str, words: str) -> None:
    with pytest.raises(InputFault) as caught:
        open_store(url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_postgres_without_its_driver_names_the_extra() -> None:
    try:
        import psycopg  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(InputFault, match="not installed") as caught:
            open_store("postgresql://me:secret@127.0.0.1:1/db")
        assert ".[postgres]" in str(caught.value)
    else:
        with pytest.raises(MachineFault) as found:
            open_store("postgresql://me:secret@127.0.0.1:1/db")
        assert "secret" not in str(found.value)


def test_opening_with_create_false_creates_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="no results yet"):
        open_store(f"sqlite:///{tmp_path / 'a.db'}", create=False)
    assert not (tmp_path / "a.db").exists()


def test_sqlite_uses_wal_and_foreign_keys(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as store, store.reading() as connection:
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "foreign_keys")]
    assert values == ["wal", 1]
