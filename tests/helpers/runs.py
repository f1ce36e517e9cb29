"""Small stored runs for tests of the leaderboard."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ctxbench.harness.results import RunInfo, RunTable, Status
from ctxbench.harness.store.runs import whole_id


def make_run(**changes: Any) -> RunInfo:
    fields: dict[str, Any] = {
        "id": "r1",
        "samples": "demo",
        "samples_digest": "d" * 64,
        "language": "python",
        "strategy": "lc.infile",
        "generator": "scripted",
    }
    return RunInfo(**{**fields, **changes})


def make_table(
    metrics: Mapping[str, Sequence[float | None]],
    repos: Sequence[str],
    *,
    status: Sequence[Status] = (),
    level: Sequence[str] = (),
    path: Sequence[str] = (),
    first: int = 0,
    **run: Any,
) -> RunTable:
    """Return a run with samples s0, s1, … (from `first` on), and values in the scale of the profile."""
    count = len(repos)
    return RunTable(
        run=make_run(**run),
        sample=tuple(f"s{first + index:05}" for index in range(count)),
        repo=tuple(repos),
        path=tuple(path),
        level=tuple(level) or ("single-line",) * count,
        status=tuple(status) or (Status.SCORED,) * count,
        metrics={name: tuple(column) for name, column in metrics.items()},
        context_tokens=(100.0,) * count,
        calls=(1.0,) * count,
        seconds=(0.5,) * count,
    )


def put_runs(patch: pytest.MonkeyPatch, *tables: RunTable) -> None:
    """Let commands read these runs from a store that exists only in memory."""

    def run_tables(_: object, *, samples: str | None = None, profile: str = "ctxbench", **__: object) -> list[RunTable]:
        found = [table for table in tables if samples in (None, table.run.samples.partition("[:")[0])]
        return [table for table in found if table.run.profile == profile]

    def find_run(_: object, run: str) -> RunInfo:
        id_ = whole_id(run, sorted({table.run.id for table in tables}))
        return next(table.run for table in tables if table.run.id == id_)

    patch.setattr("ctxbench.harness.store.store.open_reader", contextlib.nullcontext)
    patch.setattr("ctxbench.harness.store.runs.find_run", find_run)
    patch.setattr("ctxbench.harness.store.runs.run_tables", run_tables)
