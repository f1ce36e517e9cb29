"""Readers of PostgreSQL see new rows and cannot write."""

from collections.abc import Iterator

import pytest
from sqlalchemy import insert, make_url

from ctxbench.bench.errors import CtxbenchError, InputFault
from ctxbench.harness.store import open_store
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.samples import stored_sets
from ctxbench.harness.store.store import exists, open_reader, version, which
from tests.harness.store import postgres_server
from tests.harness.store.making import make_samples, make_spec
from tests.harness.store.postgres_server import shown
from tests.helpers.extras import missing

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    folder = postgres_server.binaries()
    if folder is None:
        missing("no PostgreSQL server is installed: readers are not tested in it here")
    with postgres_server.running(folder) as port:
        postgres_server.execute(postgres_server.url(port), "CREATE DATABASE reading")
        yield shown(postgres_server.url(port, "reading"))


def test_a_reader_sees_new_rows_and_cannot_write(url: str) -> None:
    with pytest.raises(InputFault, match="contains no ctxbench results"):
        open_reader(url)
    with open_store(url) as store:
        store.add_run(make_spec(), make_samples(2))
        with open_reader(url) as reader:
            assert exists(url) and which(url) == ""
            before = version(reader, url)
            assert [one.runs for one in stored_sets(reader)] == [1]
            store.add_run(make_spec(seed=1), make_samples(2))
            assert version(reader, url) != before
            assert [one.runs for one in stored_sets(reader)] == [2]
            with pytest.raises(CtxbenchError):
                reader.add_run(make_spec(seed=2), make_samples(1))
            with pytest.raises(CtxbenchError), reader.reading() as connection:
                connection.execute(insert(t.REMARK), {"run_id": "x", "ordinal": 0, "text": "x"})
            assert [one.runs for one in stored_sets(reader)] == [2]


def test_the_version_changes_exactly_when_rows_become_visible(url: str) -> None:
    with open_store(url) as store, open_reader(url) as reader:
        store.add_run(make_spec(seed=8), make_samples(2))
        before = version(reader, url)
        # The server's own work is logged but adds no rows.
        postgres_server.execute(make_url(url), "CHECKPOINT", "SELECT pg_switch_wal()")
        assert version(reader, url) == before
        with store._writing() as connection:
            connection.execute(insert(t.REMARK), {"run_id": make_spec(seed=8).id, "ordinal": 0, "text": "x"})
            during = version(reader, url)
        assert version(reader, url) not in (before, during)
