"""Write rows of a store with plain SQL, so that a test determines exactly what is stored."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxbench.harness.store import open_store

DIGEST = "d" * 64
GREEDY = {"max_tokens": 128, "seed": 0, "stop": [], "temperature": 0.0, "top_p": 1.0}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A sample of the set."""

    id: str
    repo: str
    language: str = "python"
    kind: str = "line"
    subkind: str = "single-line"
    benchmark: str = "ctxbench"


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A call of a model."""

    tokens_in: int = 100
    tokens_out: int = 10
    cached: int = 0
    seconds: float = 0.5
    price: float | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """A finished sample of a run."""

    status: str = "scored"
    scores: Mapping[tuple[str, str], Sequence[float | None]] = field(default_factory=dict)
    """(profile, metric) -> value of each completion."""
    calls: Sequence[ModelCall] = (ModelCall(),)
    tested: Mapping[int, float] = field(default_factory=dict)
    """Completion that has a verdict -> seconds of its tests."""
    completions: int = 1
    strategy_seconds: float = 0.25
    context_tokens: int = 1000


class Rows:
    """An open database, closed by `close`."""

    def __init__(self, path: Path) -> None:
        """Create the tables."""
        open_store(f"sqlite:///{path}").close()
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA foreign_keys=OFF")
        self._made = 0
        for table, row in (
            ("pack", "(1, '')"),
            ("prompt_fact", "(1, 'p', 1, 0, 0)"),
            ("source", "(1, 'scripted', '', '{}')"),
        ):
            self._db.execute(f"INSERT INTO {table} VALUES {row} ON CONFLICT DO NOTHING")

    def keep(self) -> None:
        """Commit the inserted rows."""
        self._db.commit()

    def close(self) -> None:
        """Commit and close."""
        self.keep()
        self._db.close()

    def add(self, table: str, **row: Any) -> None:
        """Insert a row."""
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        self._db.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', tuple(row.values()))

    def samples(self, planned: Iterable[Planned], digest: str = DIGEST) -> None:
        """Insert the samples of a set."""
        for line, one in enumerate(planned):
            number = self._next("sample", "number")
            self.add("sample", set_digest=digest, line=line, col=0, path="a.py", number=number, **vars(one))

    def _next(self, table: str, column: str) -> int:
        return int(self._db.execute(f"SELECT coalesce(max({column}), 0) + 1 FROM {table}").fetchone()[0])

    def _number(self, table: str, column: str = "number", **names: Any) -> int:
        """Return the number of the row that has these values."""
        same = " AND ".join(f"{name} = ?" for name in names)
        return int(self._db.execute(f"SELECT {column} FROM {table} WHERE {same}", tuple(names.values())).fetchone()[0])

    def run(
        self, id_: str, planned: Iterable[str], done: Mapping[str, Done], *, begun: Sequence[float] = (1.0,), **run: Any
    ) -> None:
        """Insert a run with all its rows.

        Args:
            id_: the run's id.
            planned: ids of the run's samples.
            done: id -> result, for samples that have one.
            begun: start times of the attempts.
            run: columns of the run that differ from the defaults.
        """
        usual = {
            "samples": "demo", "samples_digest": DIGEST, "set_size": 0, "sample_limit": None, "strategy": "lc.infile",
            "strategy_version": "s1", "generator": "scripted", "generator_version": "g1", "coder": "c",
            "sampling": json.dumps(GREEDY), "n": 1, "seed": 0, "tokenizer": "ctxcode-1", "code": "0.1.0",
            "summariser": "", "summariser_version": "", "summarises_tests": False,
        }  # fmt: skip
        row = {"id": id_, **usual, **run}
        number = self._next("run", "number")
        self.add("run", number=number, **row)
        for ordinal, sample in enumerate(planned):
            place = self._number("sample", set_digest=row["samples_digest"], id=sample)
            key = self._next("planned_fact", "key")
            self.add("planned_fact", key=key, run=number, sample=place, ordinal=ordinal)
        for sample, one in done.items():
            self._result(id_, sample, one)
        for started in begun:
            self.add("attempt", run_id=id_, started=started, isolation="process")

    def _result(self, run: str, sample: str, one: Done) -> None:
        number = self._number("run", id=run)
        key = {"key": self._number("planned", "key", run_id=run, sample_id=sample)}
        self.add(
            "result_fact", **key, status=one.status, prompt=1, context_tokens=one.context_tokens,
            calls=len(one.calls), flags="[]", strategy_seconds=one.strategy_seconds,
            generator_seconds=sum(asked.seconds for asked in one.calls),
        )  # fmt: skip
        for ordinal, asked in enumerate(one.calls):
            self._made += 1
            self.add(
                "generation_fact", number=self._made, id=f"g{self._made}", source=1, prompt=1, idx=0, text="x",
                finish="stop", **vars(asked),
            )  # fmt: skip
            self.add("call_fact", **key, ordinal=ordinal, role="final", generation=self._made)
        for idx in range(one.completions):
            made = {"generation": self._made, "status": one.status, "text": "x", "flags": "[]"}
            self.add("completion_fact", **key, idx=idx, **made)
        for (profile, metric), values in one.scores.items():
            names = {"profile": profile, "metric": metric}
            self._db.execute(
                "INSERT INTO measure (profile, metric) VALUES (?, ?) ON CONFLICT DO NOTHING", [profile, metric]
            )
            measure = self._number("measure", **names)
            for idx, value in enumerate(values):
                self.add("score_fact", **key, run=number, measure=measure, idx=idx, value=value)
        for idx, seconds in one.tested.items():
            verdict = f"{run}/{sample}/{idx}"
            self.add(
                "verdict", key=verdict, sample_digest="s", text_digest="t", image="i", sandbox="docker",
                verdict="FAILED", reason="", tests_run=1, output="", seconds=seconds, peak_bytes=1,
                flags="[]", earlier="", run="",
            )  # fmt: skip
            self.add("judged_fact", **key, idx=idx, verdict_key=verdict)
