"""What the dashboard's pages take on a database of 1,000,000 scores, beside their own SQL, and in how much memory.

The reference is the database itself: every question that the page asked, asked again of the driver alone, its rows
fetched and thrown away. Two shapes: ``sets`` (five sets by two generators; a page shows one group of five runs) and
``group`` (25 strategies over 4,000 samples, all of which a page shows).
"""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.stored import SHAPES, Shape, fill
from harness.store import open_store

FIRST = "set0"


@dataclass
class Asked:
    """The questions that were asked of a database."""

    statements: list[tuple[str, Any]] = field(default_factory=list)

    def note(self, _: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        """Keep a question, as an engine's event tells it."""
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            self.statements.append((statement, parameters))

    def again(self, database: Path) -> tuple[float, float, int]:
        """Return the seconds and processor seconds that the driver alone takes, and the rows it gives."""
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        rows = 0
        began, worked = time.perf_counter(), time.process_time()
        for statement, parameters in self.statements:
            rows += len(connection.execute(statement, parameters).fetchall())
        spent = time.perf_counter() - began, time.process_time() - worked
        connection.close()
        return *spent, rows


@contextmanager
def listening() -> Iterator[Asked]:
    """Note every question of any engine in this process."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    asked = Asked()
    event.listen(Engine, "before_cursor_execute", asked.note)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", asked.note)


_ENVIRONMENT = {
    # As `ctxbench` sets it: threads of the linear algebra would wait for each other.
    "OPENBLAS_NUM_THREADS": "1",
    "STREAMLIT_LOGGER_LEVEL": "error",
}
_SCRIPT = """
import time
import streamlit as st
from dashboard.app import show_page

began, worked = time.perf_counter(), time.process_time()
show_page({page!r})
st.session_state["spent"] = time.perf_counter() - began, time.process_time() - worked
"""


def show(page: str, home: Path, **query: str) -> tuple[float, float, Asked]:
    """Show one page as the server does for a visit; return its seconds and processor seconds, and what it asked."""
    from streamlit.testing.v1 import AppTest

    os.environ["CTXBENCH_HOME"] = str(home)
    test = AppTest.from_string(_SCRIPT.format(page=page), default_timeout=300)
    for name, value in query.items():
        test.query_params[name] = value
    with listening() as asked:
        test.run()
    assert not test.exception, test.exception
    took, worked = test.session_state["spent"]
    return took, worked, asked


def measure(shape: str, home: Path, small: Path) -> None:
    """Visit the pages of a database, in a process that has visited those of a small one."""
    choice = {"samples": FIRST, "language": "python", "generator": "model0"}
    show("leaderboard", small, **choice)
    show("samples", small, **choice)
    for page in ("leaderboard", "samples"):
        took, worked, asked = show(page, home, **choice)
        alone, alone_worked, rows = asked.again(home / "results.db")
        print(
            f"{shape}, {page}: {took:.2f} s, {len(asked.statements)} statements, {rows} rows; its SQL alone "
            f"{alone:.2f} s: {took / alone:.2f} times (processor time: {worked / alone_worked:.2f} times)"
        )
        again, _, asked = show(page, home, **choice)
        print(f"{shape}, {page}, seen again: {again:.2f} s, {len(asked.statements)} statements")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{shape}: at most {peak:.0f} MB", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = _made(Path(folder) / "small", replace(SHAPES["sets"], samples=20))
        for name, shape in SHAPES.items():
            home = _made(Path(folder) / name, shape)
            # A process of its own, so that its memory is its own.
            command = [sys.executable, "-m", "benchmarks.million", name, str(home), str(small)]
            subprocess.run(command, check=True, env={**os.environ, **_ENVIRONMENT})


def _made(home: Path, shape: Shape) -> Path:
    began = time.perf_counter()
    with open_store(f"sqlite:///{home / 'results.db'}") as store:
        fill(store, shape)
    print(
        f"{home.name}: {shape.scores} scores of {shape.runs} runs, stored in {time.perf_counter() - began:.1f} s",
        flush=True,
    )
    return home


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
