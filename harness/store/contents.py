"""What the store knows of the samples of one set: places and kinds, no text. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from ctxbench.harness.store import tables as t
from ctxbench.harness.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many samples of a set are alike."""

    benchmark: str
    repo: str
    language: str
    kind: str
    level: str
    samples: int


def contents(store: Store, set_digest: str) -> list[Counted]:
    """Count the stored samples of a set, by repository, language, kind and level.

    Only samples that a run was planned over are stored: of a set of which every run took a part, that part.
    """
    s = t.SAMPLE.c
    alike = (s.benchmark, s.repo, s.language, s.kind, s.subkind)
    query = select(*alike, func.count()).where(s.set_digest == set_digest).group_by(*alike)
    with store.reading() as connection:
        # Sorted here: a server's ORDER BY follows its locale.
        found = sorted(map(tuple, connection.execute(query)))
    return [
        Counted(benchmark=benchmark, repo=repo, language=language, kind=kind, level=level, samples=samples)
        for benchmark, repo, language, kind, level, samples in found
    ]
