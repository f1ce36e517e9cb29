"""Changes that must not affect any number: order, names, other runs and interrupts."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.independent.drawing import Made
from tests.independent.inserting import GREEDY, Done, Planned, Rows
from tests.independent.test_recomputed import Record, board

SEEDS = (3, 5, 9)
FACTS = ("result_fact", "call_fact", "generation_fact", "completion_fact", "score_fact", "planned_fact")
TABLES = ("run", "sample", "verdict", *FACTS)
DRAWN = 20
"""More repositories than the exact test handles. Flips are then drawn, from a seed that must not depend on names."""
Change = Callable[[sqlite3.Connection], object]


@pytest.fixture(scope="module", params=[*SEEDS, "many"])
def before(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("before") / "results.db"
    if request.param == "many":
        _many(path)
    else:
        Made(request.param).write(path)
    return path


def _many(path: Path) -> None:
    draw, rows = random.Random(0), Rows(path)
    samples = [Planned(id=f"s{place:03}", repo=f"r{place % DRAWN}") for place in range(3 * DRAWN)]
    rows.samples(samples)
    for place, strategy in enumerate(("lc.infile", "b", "a")):
        scores = {one.id: {("ctxbench", "es"): [draw.gauss(0.5 + 0.02 * place, 0.1)]} for one in samples}
        rows.run(f"run{place}", list(scores), {id_: Done(scores=of) for id_, of in scores.items()}, strategy=strategy)
    rows.close()


@pytest.fixture
def after(before: Path, tmp_path: Path) -> Callable[[Change], list[Record]]:
    def changed(change: Change) -> list[Record]:
        path = Path(shutil.copy(before, tmp_path / "after.db"))
        db = sqlite3.connect(path)
        db.execute("PRAGMA foreign_keys=OFF")
        # The triggers would refuse changes to rows.
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        change(db)
        db.commit()
        db.close()
        return board(path)

    return changed


After = Callable[[Change], list[Record]]


def test_the_order_of_stored_rows_does_not_change_the_board(before: Path, after: After) -> None:
    def rewrite(db: sqlite3.Connection) -> None:
        for table in TABLES:
            rows = db.execute(f"SELECT * FROM {table}").fetchall()
            random.Random(0).shuffle(rows)
            db.execute(f"DELETE FROM {table}")
            for row in rows:
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    assert after(rewrite) == board(before)


def test_the_order_of_planned_samples_does_not_change_the_board(before: Path, after: After) -> None:
    assert after(lambda db: db.execute("UPDATE planned_fact SET ordinal = 100000 - ordinal")) == board(before)


def test_names_of_runs_do_not_change_the_board(before: Path, after: After) -> None:
    def rename(db: sqlite3.Connection) -> None:
        for table, column in (("run", "id"), ("attempt", "run_id")):
            # The last run becomes the first.
            db.execute(f"UPDATE {table} SET {column} = 'x' || (9 - substr({column}, 4))")

    renamed = {f"x{9 - place}": f"run{place}" for place in range(9)}
    assert [{**one, "run": renamed[one["run"]]} for one in after(rename)] == board(before)


def test_names_of_strategies_do_not_change_the_board(before: Path, after: After) -> None:
    def rename(db: sqlite3.Connection) -> None:
        db.execute("UPDATE run SET strategy = 'zz.' || strategy WHERE strategy NOT IN ('lc.infile', 'oracle-context')")

    def plain(records: list[Record]) -> list[Record]:
        # Rows with equal means are sorted by name.
        named = [{**one, "strategy": one["strategy"].removeprefix("zz.")} for one in records]
        return sorted(named, key=lambda one: (one["language"], one["run"]))

    baseline = {one["baseline"] for one in board(before)} <= {None, "lc.infile"}
    assert baseline and plain(after(rename)) == plain(board(before))


def test_runs_with_other_models_suffixes_or_limits_do_not_change_the_board(before: Path, after: After) -> None:
    def add(db: sqlite3.Connection) -> None:
        for id_, column, value in (
            ("other1", "generator", "another"),
            ("other2", "sampling", json.dumps({**GREEDY, "fim": True})),
            ("other3", "sample_limit", 7),
        ):
            [(run, other)] = db.execute("SELECT number, (SELECT max(number) + 1 FROM run) FROM run WHERE id = 'run0'")
            names = [row[1] for row in db.execute("PRAGMA table_info(run)")]
            kept = ", ".join({"id": f"'{id_}'", "number": str(other), column: "?"}.get(name, name) for name in names)
            db.execute(f"INSERT INTO run SELECT {kept} FROM run WHERE id = 'run0'", [value])
            keys = [key for (key,) in db.execute("SELECT key FROM planned_fact WHERE run = ?", [run])]
            shift = db.execute("SELECT max(key) FROM planned_fact").fetchone()[0]
            for table in ("planned_fact", "result_fact", "completion_fact", "score_fact"):
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                moved = {"key": f"key + {shift}", "run": str(other)}
                cells = ", ".join(moved.get(name, name) for name in columns)
                among = ", ".join(map(str, keys))
                db.execute(f"INSERT INTO {table} SELECT {cells} FROM {table} WHERE key IN ({among})")

    found = after(add)
    # The run over a part has its own board, which also shows the other runs on its samples.
    whole = [one for one in found if "[:" not in one["samples"]]
    assert [one for one in whole if not one["run"].startswith("other")] == board(before)
    assert {one["run"] for one in found} >= {"other1", "other2", "other3"}


def test_repeated_interrupts_do_not_change_the_board(before: Path, after: After) -> None:
    def interrupt(db: sqlite3.Connection) -> None:
        rows = [(run, started, "process") for (run,) in db.execute("SELECT id FROM run") for started in (5.0, 9.0, 7.0)]
        db.executemany("INSERT INTO attempt (run_id, started, isolation) VALUES (?, ?, ?)", rows)
        db.execute("INSERT INTO outcome SELECT id, started + 1, 'interrupted', 0, 9 FROM attempt")
        db.execute("INSERT INTO fault SELECT id, 0, 's1', 'machine', 'lost', '' FROM attempt")

    assert after(interrupt) == board(before)
