"""Run the store's tests with PostgreSQL, and test faults of a server."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from psycopg._pipeline_base import BasePipeline
from sqlalchemy import URL, inspect, text

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.formats.rows import open_tables
from ctxbench.harness.exported import completed
from ctxbench.harness.imported import import_results
from ctxbench.harness.results import Status
from ctxbench.harness.store import Store, database, open_store
from ctxbench.harness.store.facts import append_finished
from ctxbench.harness.store.notes import add_name, names
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.schema import METADATA, VIEWS
from ctxbench.harness.store.store import open_reader
from ctxbench.harness.store.tables import delete_run, delete_verdicts
from ctxbench.harness.store.write import StoredCompletion, StoredFault
from tests.harness.imported.records import python_task, write
from tests.harness.store import (
    postgres_server,
    test_costs,
    test_gains,
    test_locks,
    test_notes,
    test_store,
    test_verdicts,
    test_work,
)
from tests.harness.store.making import fill, make_finished, make_generation
from tests.harness.store.postgres_server import shown
from tests.harness.store.test_store import add_run, count
from tests.helpers.extras import missing

pytestmark = pytest.mark.slow

_ONLY_SQLITE = {"test_a_full_disk_is_reported_and_loses_nothing"}
_SAME = {
    name: test
    for module in (test_store, test_verdicts, test_gains, test_notes, test_costs)
    for name, test in vars(module).items()
    if name.startswith("test_") and name not in _ONLY_SQLITE
}
# They use the fixture `store` of this module.
globals().update(_SAME)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    folder = postgres_server.binaries()
    if folder is None:
        missing("no PostgreSQL server is installed: the store is not tested in it here")
    with postgres_server.running(folder) as port:
        yield port


Make = Callable[..., URL]


@pytest.fixture(scope="module")
def make_database(port: int) -> Make:
    """Return a function that creates an empty database."""
    made: list[str] = []

    def make(options: str = "") -> URL:
        made.append(f"ctx{len(made)}")
        postgres_server.execute(postgres_server.url(port), f"CREATE DATABASE {made[-1]} {options}")
        return postgres_server.url(port, made[-1])

    return make


def refused(url: URL, kind: type[Exception] = InputFault) -> str:
    """Check that a database is refused, and return the error message."""
    with pytest.raises(kind) as caught:
        open_store(shown(url)).close()
    said = str(caught.value)
    assert "\n" not in said and postgres_server.PASSWORD not in said and "secret" not in said
    return said


@pytest.fixture
def url(make_database: Make) -> URL:
    return make_database()


@pytest.fixture
def store(url: URL) -> Iterator[Store]:
    with open_store(shown(url)) as store:
        yield store


def test_the_sqlite_tests_also_run_here() -> None:
    assert len(_SAME) >= 10


def test_a_run_knows_whether_a_process_works_on_it(store: Store) -> None:
    store.add_generations([make_generation()])
    test_work.test_a_run_knows_whether_a_process_works_on_it(store)


def test_a_run_is_locked_by_one_session_whose_process_is_named(store: Store, url: URL) -> None:
    test_locks.check_that_one_holder_is_named(store, shown(url))


def test_a_session_that_the_server_ends_leaves_no_lock(store: Store, url: URL) -> None:
    with store.run_lock("some-run"), open_reader(shown(url)) as reader:
        assert reader.locked(["some-run", "other-run"]) == {"some-run"}
        with store.reading() as connection:
            # A server does this when it loses contact with a client.
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' "
                    "AND pid <> pg_backend_pid()"
                )
            )
        assert reader.locked(["some-run"]) == set()


def test_opening_again_keeps_all_tables(url: URL) -> None:
    with open_store(shown(url)) as store:
        fill(store)
        before = run_tables(store)
    with open_store(shown(url)) as store, store.reading() as connection:
        assert run_tables(store) == before
        assert {*METADATA.tables, *VIEWS.tables} <= {
            *inspect(connection).get_table_names(),
            *inspect(connection).get_view_names(),
        }


def test_many_threads_open_a_new_database_at_once(url: URL) -> None:
    with ThreadPoolExecutor(6) as pool:
        for store in pool.map(open_store, [shown(url)] * 6):
            store.close()


def test_run_tables_equal_those_of_sqlite(store: Store, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as other:
        fill(store)
        fill(other)
        assert run_tables(store) == run_tables(other)
        assert [table.run.strategy for table in run_tables(store)] == ["A", "B", "a.x", "a_x", "b"]
    [table] = [table for table in run_tables(store) if table.run.strategy == "A"]
    assert table.metrics["em"][2] == pytest.approx(0.2, abs=1e-16)
    assert "es" not in table.metrics


def test_model_texts_are_stored_as_in_sqlite(store: Store, tmp_path: Path) -> None:
    """NUL becomes U+FFFD and a lone surrogate becomes a question mark. All other text is unchanged."""
    words = "\0 a\ud800b \udcff \x01\x7f\ufeff\uffff 😀 e\u0301 \r\n\u2028 \\u0000 '%s' $1"
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as other:
        for one in (store, other):
            run = add_run(one)
            one.add_generations([make_generation(text=words, prompt=words, finish=words)])
            completion = StoredCompletion(
                generation_id="g", status=Status.SCORED, text=words, flags=(words,), scores={}
            )
            finished = make_finished("demo/0", prompt=words, calls=((words, "g"),), completions=(completion,))
            assert one.add_finished(run, "c", finished)
            one.add_fault(
                one.start_attempt(run, words[:0]), StoredFault(sample_id="demo/0", kind="machine", message=words)
            )
        assert store.generations(["g"]) == other.generations(["g"])
    assert store.generations(["g"])["g"].text == words.replace("\0", "\ufffd").replace("\ud800", "?").replace(
        "\udcff", "?"
    )


def test_large_numbers_are_kept(store: Store) -> None:
    add_run(store, seed=2**63 - 1)
    with store.reading() as connection:
        assert connection.scalar(text("SELECT seed FROM run")) == 2**63 - 1


def test_writers_with_the_same_new_rows_do_not_deadlock(url: URL) -> None:
    """The writers add the same prompts in different orders. Without a lock, they would wait for each other."""
    stores = [open_store(shown(url)) for _ in range(4)]
    many = [make_generation(id=f"g{n}", prompt_digest=f"p{n}") for n in range(200)]

    def work(store: Store) -> int:
        run = add_run(store, samples=20)
        for start in range(0, 200, 40):
            part = many[start : start + 40]
            store.add_generations(part[::-1] if store in stores[::2] else part)
        attempt = store.start_attempt(run, "process")
        stored = 0
        for n in range(20):
            made = make_finished(f"demo/{n}", calls=(("final", "g0"),), completions=())
            stored += store.add_finished(run, "c", made)
            store.add_fault(attempt, StoredFault(sample_id=f"demo/{n}", kind="machine", message=""))
        return stored

    with ThreadPoolExecutor(len(stores)) as pool:
        assert sum(pool.map(work, stores)) == 20
    counts = {table: count(stores[0], table) for table in ("run", "planned", "result", "generation", "call", "fault")}
    assert counts == {"run": 1, "planned": 20, "result": 20, "generation": 200, "call": 20, "fault": 80}
    for store in stores:
        store.close()


def test_writers_of_finished_samples_do_not_wait_for_each_other(store: Store, url: URL) -> None:
    """One writer commits while the transaction of another is still open."""
    run = add_run(store)
    with open_store(shown(url)) as other, store._writing(together=True) as connection:
        append_finished(connection, run, "c", [make_finished("demo/0")], [make_generation()])
        answer = make_generation(id="h", prompt_digest="q")
        changes = {"prompt_digest": "q", "calls": (("final", "h"),), "completions": (), "bits": ()}
        assert other.add_all_finished(run, "c", [make_finished("demo/1", **changes)], generations=[answer]) == 1
        assert other.finished(run) == {"demo/1"}
    assert store.finished(run) == {"demo/0", "demo/1"}


def test_a_reader_sees_a_snapshot_and_does_not_wait_for_writers(store: Store) -> None:
    run = add_run(store)
    with store.reading() as connection:
        seen = "SELECT count(*) FROM fault"
        assert connection.scalar(text(seen)) == 0
        store.add_fault(store.start_attempt(run, "process"), StoredFault(sample_id="demo/0", kind="a", message=""))
        assert connection.scalar(text(seen)) == 0
    assert count(store, "fault") == 1
    with store._writing(), store.reading() as connection:
        assert connection.scalar(text(seen)) == 1


def test_a_writer_that_never_ends_is_named(store: Store, url: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_MS", 200)
    with store._writing():
        assert "another process keeps the database locked" in refused(url, MachineFault)


def test_deleting_a_named_run_does_not_allow_later_deletions(store: Store) -> None:
    run = add_run(store)
    assert add_name(store, run, "mine") and not add_name(store, run, "mine")
    with store.reading() as connection:
        assert names(connection) == {run: "mine"}
    assert delete_run(store, run) > 1
    assert count(store, "run") == count(store, "planned") == count(store, "named") == 0
    add_run(store)
    with pytest.raises(Exception, match="appended, never changed"), store._engine.begin() as connection:
        connection.execute(text("DELETE FROM planned_fact"))


def test_the_verdicts_of_a_run_are_deleted_with_their_scores(store: Store) -> None:
    run = test_verdicts.add_run(store)
    test_verdicts.finish(store, run, "demo/0", test_verdicts.completion("a"))
    store.link_verdicts(run, "demo/0", {0: test_verdicts.verdicts.add(store, test_verdicts.make_verdict())})
    assert delete_verdicts(store, run) == 1
    assert count(store, "judged") == count(store, "verdict") == count(store, "score") == 0
    assert [one.sample_id for one in test_verdicts.verdicts.unjudged(store, run)] == ["demo/0"]


def test_truncating_a_table_is_refused(store: Store) -> None:
    for table in METADATA.tables:
        with pytest.raises(Exception, match="appended, never changed"), store._engine.begin() as connection:
            connection.execute(text(f"TRUNCATE {table} CASCADE"))


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"password": "secret"}, InputFault, ("refused the user or password", "USER:PASSWORD@HOST")),
        ({"password": None}, InputFault, ("refused the user or password", "USER:PASSWORD@HOST")),
        ({"password": None, "query": {"password": "secret"}}, InputFault, ("refused the user or password",)),
        ({"username": "nobody"}, InputFault, ("refused the user or password",)),
        ({"database": "nothing"}, InputFault, ("no such database", "createdb --encoding=UTF8")),
        ({"port": 1}, MachineFault, ("does not answer", "check the host and port")),
        ({"host": "/nowhere"}, MachineFault, ("does not answer", "check the host and port")),
        ({"host": "nowhere.invalid"}, MachineFault, ("the host does not exist", "check the host and port")),
    ],
)
def test_wrong_urls_are_refused(port: int, changes: Any, kind: type[Exception], words: tuple[str, ...]) -> None:
    said = refused(postgres_server.url(**{"port": port, **changes}), kind)
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("options", "statements", "words"),
    [
        ("", ("CREATE TABLE run (distance int)",), ("another program", "choose another database")),
        (
            "TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'",
            (),
            ("has the encoding LATIN1", "--encoding=UTF8"),
        ),
        (
            "",
            ("CREATE TABLE schema_number (number int)", "INSERT INTO schema_number VALUES (9999)"),
            ("another version of ctxbench created the database (schema 9999", "choose a new database"),
        ),
    ],
)
def test_wrong_databases_are_refused_and_not_changed(
    make_database: Make, options: str, statements: tuple[str, ...], words: tuple[str, ...]
) -> None:
    url = make_database(options)
    postgres_server.execute(url, *statements)
    said = refused(url)
    assert all(word in said for word in words), said
    tables_left = [f"DROP TABLE {statement.split()[2]}" for statement in statements[:1]]
    postgres_server.execute(url, *tables_left, "CREATE TABLE sample (none_of_ours_is_here int)")


def test_unrelated_tables_do_not_prevent_opening(url: URL) -> None:
    postgres_server.execute(url, "CREATE TABLE bookmarks (url text)")
    open_store(shown(url)).close()
    postgres_server.execute(url, "SELECT url FROM bookmarks")


def test_a_user_without_rights_gets_a_grant_statement(url: URL) -> None:
    postgres_server.execute(url, "CREATE ROLE guest LOGIN PASSWORD 'secret'")
    postgres_server.execute(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    assert "GRANT CREATE" in refused(url.set(username="guest", password="secret"))


def test_a_connection_ended_by_the_server_is_reported_and_loses_nothing(store: Store, url: URL) -> None:
    run = add_run(store)
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{url.database}' AND pid <> pg_backend_pid()"
    )
    with pytest.raises(MachineFault, match="the server ended the connection"), store._writing() as connection:
        connection.execute(text("SELECT 1"))
        postgres_server.execute(url, end)
        connection.execute(text("SELECT 1"))
    postgres_server.execute(url, end)
    assert store.finished(run) == frozenset() and count(store, "run") == 1


def test_imported_results_equal_those_in_sqlite(store: Store, tmp_path: Path) -> None:
    records = [python_task("b", True, False), python_task("a", True, level="file_runnable")]
    [table] = open_tables([str(write(tmp_path / "m.jsonl", records))])
    with open_store(f"sqlite:///{tmp_path / 'a.db'}") as other:
        for _ in range(2):
            [one], [two] = (import_results(each, table, "codereval") for each in (store, other))
            assert one == two and one.planned == 2
        assert run_tables(store) == run_tables(other)
        assert completed(store, one.run) == completed(other, one.run)
    assert [table.metrics for table in run_tables(store)] == [{"pass@1": (0.5, 0.5)}]


def test_an_interrupted_write_logs_and_stores_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt(pipeline: BasePipeline, *, flush: bool = True) -> Iterator[None]:
        if flush:
            raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch, pytest.raises((KeyboardInterrupt, MachineFault)):
        patch.setattr(BasePipeline, "_fetch_gen", interrupt)
        store.add_generations([make_generation(id=str(number)) for number in range(3)])
    assert not caplog.records
    assert count(store, "generation") == 0
    store.add_generations([make_generation()])
