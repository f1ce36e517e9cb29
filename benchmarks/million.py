"""Time and memory of the dashboard's pages on a database of 1,000,000 scores, compared with their SQL alone.

For the reference, the driver repeats every query of the page and discards the rows. `ALL` lists the databases: SQLite
files, and with ``--postgresql`` also a private server.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.stored import LINE_METRICS, PAGE_METRICS, SHAPES, DatabaseShape, fill
from ctxbench.harness.store import open_store

ALL = {
    **SHAPES,
    "long": DatabaseShape(sets=1, generators=1, strategies=2, samples=50_000, metrics=PAGE_METRICS),
    "many": DatabaseShape(sets=50, generators=4, strategies=10, samples=10, metrics=LINE_METRICS),
}
PAGES = {
    "leaderboard": {},
    "compare": {},
    "cost": {},
    "samples": {},
    "samples, searched": {"words": "repo07", "order": "lowest of A"},
    "runs": {},
}
_LITTLE = 0.05
CHOICE = {"samples": "set0", "language": "python", "generator": "model0"}


@dataclass
class StatementLog:
    """The queries sent to a database."""

    statements: list[tuple[str, Any]] = field(default_factory=list)

    def note(self, _: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        """Record a query, from an engine's event."""
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            self.statements.append((statement, parameters))

    def again(self, url: str) -> tuple[float, int]:
        """Repeat the queries with the driver alone. Return the seconds and the number of rows."""
        rows = 0
        with contextlib.closing(_connected(url)) as connection:
            began = time.perf_counter()
            for statement, parameters in self.statements:
                rows += len(connection.execute(statement, parameters).fetchall())
            return time.perf_counter() - began, rows


def _connected(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)
    import psycopg

    return psycopg.connect(url)


@contextlib.contextmanager
def listening() -> Iterator[StatementLog]:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    log = StatementLog()
    event.listen(Engine, "before_cursor_execute", log.note)
    try:
        yield log
    finally:
        event.remove(Engine, "before_cursor_execute", log.note)


_ENVIRONMENT = {
    # As in `ctxbench`: otherwise threads of the linear algebra library wait for each other.
    "OPENBLAS_NUM_THREADS": "1",
}
_SCRIPT = """
import time
import streamlit as st
from ctxbench.dashboard.app import show_page

began = time.perf_counter()
show_page({page!r})
st.session_state["spent"] = time.perf_counter() - began
"""


def show(page: str, home: Path, url: str, **query: str) -> tuple[float, StatementLog]:
    """Show one page as the server does for a visit. Return its seconds and its queries."""
    from streamlit.testing.v1 import AppTest

    os.environ.update(CTXBENCH_HOME=str(home), CTXBENCH_DB=url)
    test = AppTest.from_string(_SCRIPT.format(page=page), default_timeout=600)
    for name, value in query.items():
        test.query_params[name] = value
    with listening() as log:
        test.run()
    assert not test.exception, test.exception
    assert not test.error, [element.value for element in test.error]
    return float(test.session_state["spent"]), log


def measure(shape: str, home: Path, url: str, small: str) -> None:
    """Measure visits to the pages of a database, and print the results. Visit those of the `small` database first."""
    # Streamlit warns that no browser is connected.
    logging.disable(logging.WARNING)
    for name in PAGES:
        show(name.split(",")[0], home, small, **CHOICE)
    for name, choices in PAGES.items():
        query = CHOICE | choices
        took, log = show(name.split(",")[0], home, url, **query)
        alone, rows = log.again(url)
        again, _ = show(name.split(",")[0], home, url, **query)
        # A ratio to almost nothing has no meaning.
        ratio = f": {took / alone:.2f} times" if alone > _LITTLE else ""
        print(
            f"{shape}, {name}: {took:.2f} s, {len(log.statements)} statements, {rows} rows; its SQL alone "
            f"{alone:.2f} s{ratio}; second visit {again:.2f} s"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{shape}: peak memory {peak:.0f} MB", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _visit_all(home, {name: f"sqlite:///{home / name}.db" for name in ("small", *ALL)})
        if sys.argv[1:] == ["--postgresql"]:
            from tests.harness.store import postgres_server as server

            binaries = server.binaries()
            if binaries is None:
                raise SystemExit("no PostgreSQL server is installed")
            with server.running(binaries) as port:
                server.execute(server.url(port), *(f'CREATE DATABASE "{name}"' for name in ("small", *ALL)))
                urls = {name: server.shown(server.url(port, name)) for name in ("small", *ALL)}
                _visit_all(home, urls, lambda name: server.execute(server.url(port, name), "ANALYZE"))


def _visit_all(home: Path, urls: dict[str, str], filled: Callable[[str], None] = lambda _: None) -> None:
    """Fill the databases and visit each. `filled` is called with a database's name after filling."""
    for name, shape in {"small": replace(SHAPES["sets"], samples=20), **ALL}.items():
        began = time.perf_counter()
        with open_store(urls[name]) as store:
            fill(store, shape)
        filled(name)
        spent = time.perf_counter() - began
        print(f"{urls[name].split(':')[0]}, {name}: {shape.scores} scores stored in {spent:.1f} s", flush=True)
        if name != "small":
            # In its own process, to measure its memory.
            command = [sys.executable, "-m", "benchmarks.million", name, str(home), urls[name], urls["small"]]
            subprocess.run(command, check=True, env={**os.environ, **_ENVIRONMENT})


if __name__ == "__main__":
    if len(sys.argv) == 5:
        measure(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        main()
