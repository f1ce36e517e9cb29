"""Choices that a search of samples offers: the runs over a set, and the facets of the samples of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ctxbench.harness.store import schema as t
from ctxbench.harness.store.details import kinds_of
from ctxbench.harness.store.notes import judged_again
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import COUNTING_VERDICT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """A run, as far as it takes to choose one."""

    id: str
    strategy: str
    generator: str
    n: int
    """Completions a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What the samples of a run can be filtered by; each sorted."""

    languages: tuple[str, ...]
    repos: tuple[str, ...]
    levels: tuple[str, ...]
    verdicts: tuple[str, ...]
    flags: tuple[str, ...]
    """Of prompts and of completions."""
    measures: tuple[tuple[str, str], ...]
    """(profile, metric) of the run's scores."""
    judged_again: str = ""
    """A sentence that counts the verdicts which were given once more; empty where none was."""


def runs_over(store: Store, digest: str, samples: str) -> list[RunChoice]:
    """Return the runs over a sample set, in the order of strategy, generator and id.

    Args:
        store: the database.
        digest: of the set.
        samples: the set's name, with ``[:N]`` behind it for the runs that were limited to its first N samples.
    """
    r = t.RUN.c
    query = select(r.id, r.samples, r.sample_limit, r.strategy, r.generator, r.n).where(r.samples_digest == digest)
    with store.reading() as connection:
        rows = connection.execute(query).all()
    stored_runs = [
        RunChoice(id=row.id, strategy=row.strategy, generator=row.generator, n=row.n)
        for row in rows
        if samples == (row.samples if row.sample_limit is None else f"{row.samples}[:{row.sample_limit}]")
    ]
    return sorted(stored_runs, key=lambda run: (run.strategy, run.generator, run.id))


def facets(store: Store, run: str) -> Facets:
    """Return what the samples of a run can be filtered by."""
    p, s, j, v = t.PLANNED.c, t.SAMPLE.c, COUNTING_VERDICT.c, t.VERDICT.c
    planned = t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id))
    places = select(s.language, s.repo, s.subkind).select_from(planned).where(p.run_id == run)
    judged = (
        select(v.verdict).select_from(COUNTING_VERDICT.join(t.VERDICT, j.verdict_key == v.key)).where(j.run_id == run)
    )
    scored = kinds_of(run)
    measures = select(scored.c.profile, scored.c.metric).where(scored.c.metric.is_not(None))
    with store.reading() as connection:
        rows = connection.execute(places.distinct()).all()
        return Facets(
            languages=_sorted(row.language for row in rows),
            repos=_sorted(row.repo for row in rows),
            levels=_sorted(row.subkind for row in rows),
            verdicts=_sorted(connection.scalars(judged.distinct())),
            flags=_sorted(_flags(connection, run)),
            measures=tuple(sorted((row.profile, row.metric) for row in connection.execute(measures))),
            judged_again="".join(sentence for _, sentence in judged_again(connection, [run])),
        )


def _sorted(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))


def _flags(connection: Connection, run: str) -> Iterator[str]:
    stored = [select(table.c.flags).where(table.c.run_id == run).distinct() for table in (t.COMPLETION, t.RESULT)]
    judged = COUNTING_VERDICT.join(t.VERDICT, COUNTING_VERDICT.c.verdict_key == t.VERDICT.c.key)
    stored.append(select(t.VERDICT.c.flags).select_from(judged).where(COUNTING_VERDICT.c.run_id == run).distinct())
    for query in stored:
        for flags in connection.scalars(query).all():
            yield from json.loads(flags)
