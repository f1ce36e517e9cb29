"""Small stored runs for tests of the leaderboard."""

from collections.abc import Mapping, Sequence
from typing import Any

from ctxbench.harness.results import RunInfo, RunTable, Status


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
