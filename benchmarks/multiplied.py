"""Bytes, time and memory of a store with so many finished samples, their rows multiplied from those of real runs.

``python -m benchmarks.multiplied FOLDER [SAMPLES] [--postgresql]``: the folder holds shards of runs over lines
(``ctxbench run … --shard 0/1 --out FOLDER``), best of many samples each. Each is written again and again through the
bulk entry, a transaction a copy, as other runs over a set of up to 10,000 samples, with prompts, answers and ids of
its own. A board of each generator is then made, beside its own SQL, that is the same queries sent to the driver
alone. With ``--postgresql``: into a PostgreSQL server of our own, by one writer and by ten at once.

Everything is in processor seconds, since other work on a machine changes wall time; of a server they are those of its
processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.million import StatementLog, listening
from ctxbench.bench.files import sha256
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Cursor, Kind, Sample
from ctxbench.harness.leaderboard import board
from ctxbench.harness.run.merging import shard_files
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store.runs import RunFilter, run_tables
from ctxbench.harness.store.shard import Shard, read
from ctxbench.harness.store.write import Finished, StoredGeneration

SET = 10_000
"""Samples of a run, at most."""
RUNS_OF_GENERATOR = 20
REPOSITORIES = 20
WRITERS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The rows of one shard, as those of other samples of another run."""

    finished: Sequence[Finished]
    generations: Sequence[StoredGeneration]


def copied(shard: Shard, run: str, first: int) -> Copied:
    """Return a shard's rows below a run, for the samples from number `first` on; no prompt is another's."""
    mark = f"# {run} {first}\n"

    def digest(of: str) -> str:
        return sha256(mark + of)

    answers = [
        replace(answer, id=digest(answer.id), prompt_digest=digest(answer.prompt_digest), prompt=mark + answer.prompt)
        for answer in shard.generations
    ]
    draw = random.Random(mark)
    finished = [
        replace(
            sample,
            sample_id=name_of(first + number),
            prompt_digest=digest(sample.prompt_digest),
            prompt=mark + sample.prompt,
            calls=tuple((role, digest(id_)) for role, id_ in sample.calls),
            completions=tuple(
                replace(
                    completion,
                    generation_id=digest(completion.generation_id),
                    scores={kind: _shifted(value, draw) for kind, value in completion.scores.items()},
                )
                for completion in sample.completions
            ),
            bits=tuple(
                replace(cost, prompt_digest=digest(cost.prompt_digest), prompt=mark + cost.prompt)
                for cost in sample.bits
            ),
        )
        for number, sample in enumerate(shard.finished)
    ]
    return Copied(finished=finished, generations=answers)


def _shifted(value: float | None, draw: random.Random) -> float | None:
    """Return a score that differs a little from the copied one, or is it where it is a yes or no."""
    return value if value in (None, 0.0, 1.0) else value * draw.uniform(0.9, 1.1)


def name_of(number: int) -> str:
    """Return the id of a sample of the multiplied set."""
    return f"org/repo{number % REPOSITORIES:02}/{number:06}"


def samples_of(count: int) -> list[Sample]:
    """Return the multiplied set."""
    return [
        Sample(
            id=name_of(number), benchmark="ctxbench", language=Language("python"), kind=Kind.LINE,
            subkind="single-line", repo=f"org/repo{number % REPOSITORIES:02}", path="a.py",
            cursor=Cursor(line=number, column=4), prefix="",
        )
        for number in range(count)
    ]  # fmt: skip


def specs_of(shards: Sequence[Shard], runs: range, samples: int) -> Iterator[tuple[RunSpec, Shard]]:
    """Yield multiplied runs, by number, each with the shard that it is made of."""
    for run in runs:
        shard = shards[run % len(shards)]
        assert shard.spec is not None
        method, model = f"lc.method{run % RUNS_OF_GENERATOR:02}", f"model{run // RUNS_OF_GENERATOR}"
        digest = f"{samples:064x}"
        yield replace(shard.spec, samples="many", samples_digest=digest, strategy=method, generator=model), shard


def fill(store: Store, shards: Sequence[Shard], runs: range, samples: int) -> tuple[int, int, float]:
    """Write runs; return how many samples and scores, and the processor seconds of the bulk entry alone."""
    planned, count, scores, spent = samples_of(samples), 0, 0, 0.0
    for spec, shard in specs_of(shards, runs, samples):
        began = time.process_time()
        run = store.add_run(spec, planned)
        spent += time.process_time() - began
        for first in range(0, samples, len(shard.finished)):
            rows = copied(shard, run, first)
            finished = rows.finished[: samples - first]
            scores += sum(len(completion.scores) for sample in finished for completion in sample.completions)
            began = time.process_time()
            count += store.add_all_finished(run, spec.coder, finished, generations=rows.generations)
            spent += time.process_time() - began
    return count, scores, spent


def read_board(store: Store, url: str, generators: int) -> str:
    """Return what boards of the first generators cost beside their own SQL."""
    total = alone = tables_only = 0.0
    for number in range(generators):
        with listening() as log:
            began = time.process_time()
            tables = run_tables(store, selection=RunFilter(generator=f"model{number}"))
            tables_only += time.process_time() - began
            board(tables)
            total += time.process_time() - began
        alone += _alone(log, url)
    return (
        f"{generators} boards of {RUNS_OF_GENERATOR} strategies: {total:.1f} s, reading alone {tables_only:.1f} s, "
        f"their SQL {alone:.1f} s: {total / alone:.2f} times"
    )


def _alone(log: StatementLog, url: str) -> float:
    began = time.process_time()
    log.again(url)
    return time.process_time() - began


def memory() -> float:
    """Return the most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def on_sqlite(shards: Sequence[Shard], total: int) -> None:
    """Write and read in a file."""
    samples = min(SET, total)
    runs = max(1, total // samples)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.db"
        with open_store(f"sqlite:///{path}") as store:
            count, scores, spent = fill(store, shards, range(runs), samples)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        print(
            f"SQLite: {count} samples, {scores} scores: {size / count:.0f} bytes a sample; written in {spent:.1f} s, "
            f"{1000 * spent / count:.2f} ms a sample, {scores / spent:.0f} scores a second; at most {memory():.0f} MB",
            flush=True,
        )
        # In a process of its own, so that its memory is its own.
        subprocess.run([sys.executable, "-m", "benchmarks.multiplied", "--read", str(path), str(runs)], check=True)


def on_postgresql(folder: Path, total: int) -> None:
    """Write into a server, by one process and by several at once."""
    from tests.harness.store import postgres_server as server

    binaries = server.binaries()
    if binaries is None:
        raise SystemExit("no PostgreSQL server is installed")
    samples = min(SET, max(1, total // WRITERS))
    runs = max(WRITERS, total // samples)
    with server.running(binaries) as port:
        for writers in (1, WRITERS):
            name = f"by{writers}"
            server.execute(server.url(port), f'CREATE DATABASE "{name}"')
            url = server.shown(server.url(port, name))
            open_store(url).close()
            before, began = _server_seconds(port, server), time.monotonic()
            parts = [(runs * at // writers, runs * (at + 1) // writers) for at in range(writers)]
            command = [sys.executable, "-m", "benchmarks.multiplied", "--write", url, str(samples)]
            processes = [
                subprocess.Popen([*command, f"{first}-{last}", str(folder)], stdout=subprocess.PIPE, text=True)
                for first, last in parts
            ]
            told = [json.loads(process.communicate()[0]) for process in processes]
            wall, served = time.monotonic() - began, _server_seconds(port, server) - before
            scores, spent = sum(of[1] for of in told), sum(of[2] for of in told)
            print(
                f"PostgreSQL, {writers} writers: {scores} scores in {wall:.1f} s of wall time; {spent:.1f} s of the "
                f"writers, {served:.1f} s of the server: {scores / spent:.0f} and {scores / served:.0f} scores a "
                f"second, {scores / (spent + served):.0f} where they take turns",
                flush=True,
            )


def _server_seconds(port: int, server: Any) -> float:
    """Return the processor seconds of a server's processes, those that have ended included."""
    import psycopg

    with psycopg.connect(server.shown(server.url(port)), autocommit=True) as connection:
        [parent] = Path("/proc", str(connection.info.backend_pid), "status").read_text().split("PPid:")[1].split()[:1]
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if stat.parent.name == parent:
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == parent:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def shards_of(folder: Path) -> list[Shard]:
    """Return the shards with samples that a folder holds."""
    return [shard for shard in map(read, shard_files([folder])) if shard.finished]


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("samples", type=int, nargs="?", default=100_000)
    parser.add_argument("--postgresql", action="store_true")
    asked = parser.parse_args()
    if asked.postgresql:
        on_postgresql(asked.folder, asked.samples)
    else:
        on_sqlite(shards_of(asked.folder), asked.samples)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--read", path, runs]:
            with open_store(f"sqlite:///{path}") as opened:
                generators = max(1, int(runs) // RUNS_OF_GENERATOR)
                print(read_board(opened, f"sqlite:///{path}", generators), f"at most {memory():.0f} MB", sep="; ")
        case ["--write", url, samples, numbers, folder]:
            with open_store(url) as opened:
                print(
                    json.dumps(
                        fill(opened, shards_of(Path(folder)), range(*map(int, numbers.split("-"))), int(samples))
                    )
                )
        case _:
            main()
