"""Readers write no rows, schemas or files, and report in one line what they cannot read."""

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import exc, insert, text

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.store import open_store
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.samples import stored_sets
from ctxbench.harness.store.store import exists, open_reader, version, which
from tests.harness.store.making import make_samples, make_spec
from tests.helpers.databases import set_schema


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = url_of(tmp_path / "a folder" / "results.db")
    with open_store(url) as store:
        store.add_run(make_spec(), make_samples(2))
    return url


def test_a_reader_cannot_write(database: str) -> None:
    with open_reader(database) as reader:
        with pytest.raises((MachineFault, InputFault)):
            reader.add_run(make_spec(seed=5), make_samples(1))
        with pytest.raises((MachineFault, InputFault, exc.SQLAlchemyError)), reader.reading() as connection:
            connection.execute(insert(t.REMARK), {"run_id": "x", "ordinal": 0, "text": "x"})
        with pytest.raises((MachineFault, InputFault, exc.SQLAlchemyError)), reader.reading() as connection:
            connection.execute(text("CREATE TABLE more (x INTEGER)"))


def test_reading_does_not_change_the_file(database: str) -> None:
    path = Path(database.removeprefix("sqlite:///"))
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with open_reader(database) as reader:
        stored_sets(reader)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="no results yet") as fault:
        open_reader(url_of(tmp_path / "none" / "results.db"))
    assert "ctxbench quickstart" in fault.value.cure and not (tmp_path / "none").exists()
    assert not exists(url_of(tmp_path / "none.db")) and which(url_of(tmp_path / "none.db")) == ""


def test_another_schema_is_refused_and_not_changed(database: str) -> None:
    path = Path(database.removeprefix("sqlite:///"))
    set_schema(path, 2)
    for opened in (open_reader, open_store):
        with pytest.raises(InputFault, match="another version of ctxbench created the database .schema 2;") as fault:
            opened(database)
        assert "choose a new database with --db" in fault.value.cure
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT number FROM schema_number").fetchall() == [(2,)]
    raw.close()


def test_files_of_other_programs_are_refused(database: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as raw:
        raw.execute("CREATE TABLE theirs (x)")
    raw.close()
    with pytest.raises(InputFault, match="no ctxbench results"):
        open_reader(url_of(tmp_path / "other.db"))
    (tmp_path / "text.db").write_text("no database at all, and long enough to be read as one" * 100)
    with pytest.raises(InputFault):
        open_reader(url_of(tmp_path / "text.db"))


def test_the_version_changes_exactly_when_rows_are_added(database: str) -> None:
    with open_store(database) as store, open_reader(database) as reader:
        first = version(reader, database)
        stored_sets(reader)
        assert version(reader, database) == first
        run = store.add_run(make_spec(), make_samples(2))
        seen = {version(reader, database)}
        for number in range(20):
            store.start_attempt(run, f"inline {number}")
            seen.add(version(reader, database))
        assert len(seen) >= 21


def test_a_replaced_file_has_another_identity_and_version(database: str) -> None:
    path = Path(database.removeprefix("sqlite:///"))
    with open_reader(database) as reader:
        before = which(database), version(reader, database)
        kept = path.with_suffix(".kept")
        os.rename(path, kept)
        with pytest.raises(InputFault, match="cannot be read"):
            version(reader, database)
        path.write_bytes(kept.read_bytes())
        assert which(database) != before[0] and version(reader, database) != before[1]


def test_sets_are_distinguished_by_limit_and_digest(tmp_path: Path) -> None:
    url = url_of(tmp_path / "results.db")
    with open_store(url) as store:
        store.add_run(make_spec(), make_samples(3))
        store.add_run(make_spec(generator="other"), make_samples(3))
        store.add_run(make_spec(limit=1), make_samples(1))
        store.add_run(make_spec(samples_digest="e" * 64), make_samples(2))
    with open_reader(url) as reader:
        found = [(one.samples, one.digest[0], one.generators, one.runs) for one in stored_sets(reader)]
    assert found == [
        ("demo", "d", ("other", "scripted"), 2),
        ("demo", "e", ("scripted",), 1),
        ("demo[:1]", "d", ("scripted",), 1),
    ]
