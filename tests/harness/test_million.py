"""Reads are proportional to what is shown. The tests count statements and rows on 100,000 scores, not seconds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from benchmarks.stored import SHAPES, DatabaseShape, fill
from ctxbench.harness.leaderboard import board
from ctxbench.harness.store import Store, database, open_store
from ctxbench.harness.store.runs import RunFilter, run_tables

SETS = replace(SHAPES["sets"], samples=100)
GROUP = replace(SHAPES["group"], samples=400)


@dataclass
class Read:
    statements: list[tuple[str, Any]] = field(default_factory=list)
    rows: int = 0
    """Rows of queries that can return many rows."""


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    """Record the statements of every database engine, and count the rows."""
    read = Read()
    real = database.fetched

    def fetched(*arguments: Any, **named: Any) -> list[tuple[Any, ...]]:
        found = real(*arguments, **named)
        read.rows += len(found)
        return found

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            read.statements.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    for module in ("samples", "scores"):
        monkeypatch.setattr(f"ctxbench.harness.store.{module}.fetched", fetched)
    try:
        yield read
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("million")


def made(folder: Path, name: str, shape: DatabaseShape) -> Store:
    path = folder / f"{name}.db"
    fresh = not path.exists()
    store = open_store(f"sqlite:///{path}")
    if fresh:
        fill(store, shape)
    return store


@pytest.mark.slow
def test_showing_one_group_of_many_reads_only_its_own_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SETS.scores == GROUP.scores == 100_000
    with made(folder, "sets", SETS) as store, counted(monkeypatch) as read:
        wanted = RunFilter(samples="set1", language="python", generator="model0")
        found = run_tables(store, samples="set1", selection=wanted)
    assert [(one.run.samples, one.run.generator) for one in found] == [("set1", "model0")] * SETS.strategies
    # The set's samples are read once; each run adds its plan, its calls and the scores of the shown profile.
    shown = sum(map(len, GROUP.metrics.values()))
    assert read.rows == SETS.samples + SETS.strategies * SETS.samples * (2 + shown)
    assert len(read.statements) <= 3 * SETS.strategies + 19


@pytest.mark.slow
def test_a_group_of_all_scores_reads_each_score_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(folder, "group", GROUP) as store, counted(monkeypatch) as read:
        found = run_tables(store)
    assert read.rows == GROUP.samples + GROUP.runs * GROUP.samples * 2 + GROUP.scores
    assert len(read.statements) <= 3 * GROUP.runs + 19
    # All runs share one tuple of sample names.
    assert len({id(one.sample) for one in found}) == 1
    group = board(found).groups[0]
    assert len(group.rows) == GROUP.strategies and group.family.pairs == GROUP.strategies - 1
    assert all(row.n == GROUP.samples for row in group.rows)
