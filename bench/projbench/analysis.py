"""Read the files of repositories on all cores; the result does not depend on their number."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from ctxbench.bench.languages.base import FileFacts, Language
from ctxbench.bench.processes import uninterrupted
from ctxbench.bench.repositories.snapshot import Snapshot

POOL_FROM = 3_000_000
"""Characters from which worker processes pay: below, starting them takes longer than the work."""
_BATCH = 250_000

_Batch = tuple[str, Language, tuple[tuple[str, str], ...]]


def analyse(snapshots: Sequence[Snapshot], *, workers: int = 1) -> dict[str, dict[str, FileFacts]]:
    """Return the facts of every file: repository name -> path -> facts.

    Args:
        snapshots: the repositories, names unique.
        workers: processes to use at most.
    """
    batches = [batch for snapshot in snapshots for batch in _batches(snapshot)]
    size = sum(len(text) for snapshot in snapshots for text in snapshot.texts.values())
    facts_of: dict[str, dict[str, FileFacts]] = {snapshot.name: {} for snapshot in snapshots}
    if workers > 1 and len(batches) > 1 and size >= POOL_FROM:
        _in_processes(batches, min(workers, len(batches)), facts_of)
        return facts_of
    for batch in batches:
        _keep(batch, _analyse(batch), facts_of)
    return facts_of


def _in_processes(batches: Sequence[_Batch], workers: int, facts_of: Mapping[str, dict[str, FileFacts]]) -> None:
    # Spawned, not forked: the caller may have threads.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        with uninterrupted():
            results = pool.map(_analyse, batches)
        for batch, facts in zip(batches, results, strict=True):
            _keep(batch, facts, facts_of)
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(snapshot: Snapshot) -> list[_Batch]:
    batches: list[_Batch] = []
    files: list[tuple[str, str]] = []
    size = 0
    for path, text in snapshot.texts.items():
        files.append((path, text))
        size += len(text)
        if size >= _BATCH:
            batches.append((snapshot.name, snapshot.language, tuple(files)))
            files, size = [], 0
    if files:
        batches.append((snapshot.name, snapshot.language, tuple(files)))
    return batches


def _analyse(batch: _Batch) -> list[FileFacts]:
    _, language, files = batch
    return [
        replace(facts, broken=facts.broken or not language.parses(text))
        for path, text in files
        for facts in (language.analyse(path, text),)
    ]


def _keep(batch: _Batch, facts: Sequence[FileFacts], facts_of: Mapping[str, dict[str, FileFacts]]) -> None:
    facts_of[batch[0]].update((file.path, file) for file in facts)
