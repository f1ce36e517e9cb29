"""Score many completions on all cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from ctxbench.bench.concurrency import cores, starting_workers
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.metrics.profile import Case, Values, load

_CHUNK = 64
"""Cases a task: a task costs about as much to hand over as one case to score."""
_WORTH_A_POOL = 256
"""Fewer cases are scored before a pool has started."""


def score_many(
    cases: Sequence[Case],
    profile: str,
    workers: int | None = None,
    *,
    report: Callable[[int], None] = lambda _: None,
) -> list[Values]:
    """Score `cases` in their order; the values do not depend on the number of workers.

    Args:
        cases: what to score.
        profile: a name of `harness.metrics.PROFILES`.
        workers: processes; None for one a core. With 1, or few cases, all is done in this process.
        report: called with the number of cases done at each step.

    Raises:
        InputFault: if `workers` is less than 1, or a value is infinite.
        MachineFault: if a worker process was lost.
    """
    workers = cores() if workers is None else workers
    if workers < 1:
        raise InputFault(f"{workers} workers cannot work", cure="give 1 or more")
    chunks = [cases[at : at + _CHUNK] for at in range(0, len(cases), _CHUNK)]
    values: list[Values] = []
    work = partial(_score_chunk, profile)
    if workers == 1 or len(cases) < _WORTH_A_POOL:
        for chunk in chunks:
            values += work(chunk)
            report(len(chunk))
        return values
    # Not "fork": the caller may hold threads.
    with ProcessPoolExecutor(min(workers, len(chunks)), multiprocessing.get_context("spawn")) as pool:
        try:
            with starting_workers():
                parts = pool.map(work, chunks)
            for part in parts:
                values += part
                report(len(part))
        except BrokenProcessPool as error:
            raise MachineFault(
                "a scoring process was lost (killed, or out of memory)", cure="try again with fewer --workers"
            ) from error
    return values


def _score_chunk(profile: str, cases: Sequence[Case]) -> list[Values]:
    return list(map(load(profile).values, cases))
