"""Sample sets of the stored runs: what a reader chooses from, and counts of their samples. No scores are read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ctxbench.harness.store import schema as t
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import shown_generator, shown_samples


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSet:
    """One sample set, or the first N samples of one, that runs were made over."""

    samples: str
    """As in `RunInfo.samples`."""
    name: str
    """Its name alone."""
    digest: str
    languages: tuple[str, ...]
    """The one with the most samples first."""
    generators: tuple[str, ...]
    """The one with the most runs first."""
    runs: int
    size: int
    """Samples of a run."""


def stored_sets(store: Store) -> list[StoredSet]:
    """Return the sets, the largest first: what a reader most likely wants to see."""
    runs_by_set: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
    with store.reading() as connection:
        for row in connection.execute(select(t.RUN)):
            runs_by_set[shown_samples(row), row.samples, row.samples_digest].append((row.id, shown_generator(row)))
        # Runs of one part of a set have the same samples, so that one of them tells the languages.
        spoken = _languages(connection, [runs[0][0] for runs in runs_by_set.values()])
    sets = []
    for (samples, name, digest), runs in runs_by_set.items():
        counts = spoken[runs[0][0]]
        sets.append(
            StoredSet(
                samples=samples,
                name=name,
                digest=digest,
                languages=_most_first(counts),
                generators=_most_first(Counter(generator for _, generator in runs)),
                runs=len(runs),
                size=counts.total(),
            )
        )
    return sorted(sets, key=lambda stored_set: (-stored_set.size, stored_set.samples, stored_set.digest))


def _most_first(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def _languages(connection: Connection, runs: Iterable[str]) -> dict[str, Counter[str]]:
    """Return run -> language -> planned samples."""
    p, s = t.PLANNED.c, t.SAMPLE.c
    query = (
        select(p.run_id, s.language, func.count())
        .select_from(t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id)))
        .where(p.run_id.in_(list(runs)))
        .group_by(p.run_id, s.language)
    )
    counts_by_run: dict[str, Counter[str]] = defaultdict(Counter)
    for run, language, count in connection.execute(query):
        counts_by_run[run][language] = count
    return counts_by_run


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCount:
    """How many samples of a set are alike."""

    benchmark: str
    repo: str
    language: str
    kind: str
    level: str
    samples: int


def contents(store: Store, set_digest: str) -> list[SampleCount]:
    """Count the stored samples of a set, by repository, language, kind and level.

    Only samples that a run was planned over are stored: of a set of which every run took a part, that part.
    """
    s = t.SAMPLE.c
    alike = (s.benchmark, s.repo, s.language, s.kind, s.subkind)
    query = select(*alike, func.count()).where(s.set_digest == set_digest).group_by(*alike)
    with store.reading() as connection:
        # Sorted here: a server's ORDER BY follows its locale.
        rows = sorted(map(tuple, connection.execute(query)))
    return [
        SampleCount(benchmark=benchmark, repo=repo, language=language, kind=kind, level=level, samples=samples)
        for benchmark, repo, language, kind, level, samples in rows
    ]
