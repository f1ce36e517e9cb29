"""Rows of the tables of before move into the narrow ones: all of them, in parts, whenever it is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, Table, create_engine, insert, text

from ctxbench.bench.types import Kind
from ctxbench.harness.store import Store, notes, open_store, schema, upgrading, verdicts
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.details import call_texts, completion_texts, detail
from ctxbench.harness.store.engine import read_url
from ctxbench.harness.store.migrations import moving
from ctxbench.harness.store.prompts import prompt_texts
from ctxbench.harness.store.runs import run_tables, stored_runs
from ctxbench.harness.store.scores import add_gains
from ctxbench.harness.store.store import Older, open_reader
from ctxbench.harness.store.work import works
from ctxbench.harness.store.write import Imported, Mark, StoredCompletion, StoredFault
from tests.harness.store.making import fill, make_finished, make_generation, make_samples, make_spec
from tests.harness.store.test_verdicts import completion, make_verdict
from tests.helpers.samples import make_sample

pytestmark = pytest.mark.slow

LAST = "0014"
"""The last schema with a row of names for each score."""


def everything(store: Store) -> None:
    """Store lines and functions, prices, verdicts given again, gains, marks, notes, summaries and orphans."""
    fill(store)
    tested = tuple(make_sample(id=f"demo/{number}", kind=Kind.FUNCTION) for number in range(3))
    functions = store.add_run(make_spec(n=2, samples="functions", samples_digest="f" * 64), tested)
    judgements = [make_verdict(key=word[0] * 64, verdict=word) for word in ("PASSED", "FAILED")]
    for judgement in judgements:
        verdicts.add(store, judgement)
    completions = tuple(
        completion(f"text {judgement.verdict}", verdict=judgement.key, **{"pass": verdicts.passed(judgement)})
        for judgement in judgements
    )
    answers = [
        make_generation(id=f"f{number}", prompt_digest=f"q{number}", prompt="π = 3\n" * number, price=0.25)
        for number in range(5)
    ]
    store.add_generations([*answers, make_generation(id="orphan", prompt_digest="alone", prompt="nobody's")])
    calls = (("draft", "f1"), ("final", "f2"))
    prompt = "".join(f"line {number}\n" for number in range(400))
    finished = make_finished("demo/0", completions=completions, calls=calls, prompt_digest="long", prompt=prompt)
    assert store.add_finished(functions, "c", finished)
    verdicts.add_again(store, judgements[1].key, make_verdict(verdict="PASSED"), counts=True)
    add_gains(store, functions, "demo/0", "c 1", {0: -1.5})
    notes.add_imported(store, functions, Imported(format="f", source="s", sha256="e" * 64))
    notes.add_remarks(store, functions, ["one"])
    notes.add_marks(store, make_spec().samples_digest, [Mark(sample_id="demo/1", mark="broken")])
    store.add_summaries(functions, ["f3", "f4"])
    summarised = store.add_run(make_spec(seed=3, summariser="other", summariser_version="2"), make_samples(2))
    scores = {("ctxbench", "es"): 0.1, ("context", "bits"): 1e300}
    line = StoredCompletion(generation_id="g", status=finished.status, text="x", flags=("cut",), scores=scores)
    store.add_finished(summarised, "c", make_finished("demo/1", calls=(("summary", "f3"), *calls), completions=(line,)))
    attempt = store.start_attempt(summarised, "process")
    store.add_fault(attempt, StoredFault(sample_id="demo/0", kind="machine", message="gone"))
    store.end_attempt(attempt, reason="faults", finished=1, missing=1)


def older(store: Store, url: str) -> None:
    """Write all that a store holds into a database of the last schema with names in every row."""
    engine = create_engine(read_url(url))
    with engine.begin() as connection:
        upgrading.upgrade(connection, where="old", to=LAST)
    tables = MetaData()
    tables.reflect(engine)
    with store.reading() as source, engine.begin() as connection:
        digests = source.scalars(text("SELECT digest FROM prompt_fact ORDER BY number")).all()
        rows = [{"digest": digest, "text": words} for digest, words in prompt_texts(source, digests)]
        connection.execute(insert(tables.tables["prompt"]), rows)
        for table in tables.sorted_tables:
            if table.name not in ("prompt", "alembic_version"):
                names = [column.name for column in table.columns]
                query = text(f"SELECT {', '.join(names)} FROM {table.name}")
                if rows := [dict(row) for row in source.execute(query).mappings()]:
                    connection.execute(insert(table), _fitting(table, rows))
    engine.dispose()


def _fitting(table: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    booleans = [column.name for column in table.columns if column.type.python_type is bool]
    return [{**row, **{name: bool(row[name]) for name in booleans}} for row in rows]


def shown(store: Store) -> list[Any]:
    """Return all that a store shows, to the last bit."""
    found: list[Any] = [stored_runs(store), works(store)]
    found += [run_tables(store, profile=profile) for profile in ("ctxbench", "crosscodeeval")]
    for run in stored_runs(store):
        for sample in ("demo/0", "demo/1", "demo/2"):
            if sample in {one for table in found[2] if table.run.id == run.id for one in table.sample}:
                opened = detail(store, run.id, sample)
                found.append(opened)
                found += [call_texts(store, run.id, sample, call.ordinal) for call in opened.calls]
                found += [completion_texts(store, run.id, sample, one.idx) for one in opened.completions]
    with store.reading() as connection:
        for table in (t.SCORE, t.BITS, t.GENERATION, t.SUMMARISED, t.BLOCK, t.BLOCK_GAIN, t.JUDGED, t.CALL):
            names = [column.name for column in table.columns if column.name not in ("key", "number")]
            found.append(sorted(map(repr, connection.execute(text(f"SELECT {', '.join(names)} FROM {table.name}")))))
        digests = connection.scalars(text("SELECT digest FROM prompt_fact")).all()
        found.append(sorted(prompt_texts(connection, digests)))
    return [repr(one) for one in found]


def moved_whenever_killed(store: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a database of before ends as the store it was copied from, killed at every part on the way."""
    older(store, url)
    monkeypatch.setattr(moving, "_PROMPTS", 4)
    kills = 0
    while _killed_at_its_second_part(url):
        kills += 1
        with pytest.raises(Older, match="older ctxbench"):
            open_reader(url)
    # Of prompts, answers and the runs.
    assert kills > 8
    with open_store(url) as moved, moved.reading() as connection:
        assert upgrading.revision_of(connection) == schema.HEAD
        assert shown(moved) == shown(store)
        run = moved.add_run(make_spec(), make_samples(4))
        assert moved.add_finished(run, "c", make_finished("demo/3"))


def _killed_at_its_second_part(url: str) -> bool:
    """Open a database in a process that is killed when its second part has moved and is not committed."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    parts, real = 0, moving.move_part

    def move_part(connection: Any) -> bool:
        nonlocal parts
        more = real(connection)
        parts += 1
        if parts == 2 and more:
            os.kill(os.getpid(), signal.SIGKILL)
        return more

    code = 1
    try:
        moving.move_part = move_part
        open_store(url).close()
        code = 0
    finally:
        os._exit(code)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'source.db'}") as store:
        everything(store)
        yield store


def test_killed_at_every_part_it_loses_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved_whenever_killed(store, f"sqlite:///{tmp_path / 'old.db'}", monkeypatch)
    assert not (tmp_path / "old.db-journal").exists()


def test_rows_that_did_not_move_stop_it(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there is dropped only once all of it is in its new place."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    older(store, url)
    monkeypatch.setattr(moving, "move_part", lambda _: False)
    monkeypatch.setattr("ctxbench.harness.store.migrations.moving._move_run", lambda _: False)
    with pytest.raises(RuntimeError, match="rows have moved"):
        open_store(url)
    with pytest.raises(Older):
        open_reader(url)
