"""Everything that a run completed, read back: for exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select

from ctxbench.bench.secrets import redacted
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.queries import run_named
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import COUNTING_VERDICT
from ctxbench.harness.store.write import read_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One stored completion."""

    text: str
    verdict: str | None
    """None for lines, for an empty completion, and for what nobody judged yet."""
    reason: str
    flags: tuple[str, ...] = ()
    """Of its verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """One run and what it completed."""

    run: str
    samples: str
    samples_digest: str
    strategy: str
    generator: str
    n: int
    kinds: Mapping[str, str]
    """Every planned sample, in order -> its kind."""
    texts: Mapping[str, tuple[Text, ...]]
    """Sample -> its completions by index; samples that are missing are absent."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The planned samples that have no completions."""
        return tuple(sample for sample in self.kinds if sample not in self.texts)


def completed(store: Store, run_id: str) -> Completed:
    """Return the run with that id, or the only one whose id begins so.

    Raises:
        InputFault: if the id is not whole enough.
        UnknownName: if there is no such run.
    """
    run = run_named(store, run_id)
    p, s, c, j, v = t.PLANNED.c, t.SAMPLE.c, t.COMPLETION.c, COUNTING_VERDICT.c, t.VERDICT.c
    planned = t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id))
    judged = (
        t.COMPLETION.join(t.PLANNED, (c.run_id == p.run_id) & (c.sample_id == p.sample_id))
        .outerjoin(COUNTING_VERDICT, (c.run_id == j.run_id) & (c.sample_id == j.sample_id) & (c.idx == j.idx))
        .outerjoin(t.VERDICT, j.verdict_key == v.key)
    )
    texts: dict[str, list[Text]] = {}
    with store.reading() as connection:
        kinds = select(p.sample_id, s.kind).select_from(planned).where(p.run_id == run.id).order_by(p.ordinal)
        ordered: dict[str, str] = dict(connection.execute(kinds).all())
        query = select(c.sample_id, c.text, v.verdict, v.reason, v.flags).select_from(judged).where(c.run_id == run.id)
        for sample, text, verdict, reason, flags in connection.execute(query.order_by(p.ordinal, c.idx)):
            texts.setdefault(sample, []).append(
                Text(text=text, verdict=verdict, reason=reason or "", flags=read_flags(flags))
            )
    return Completed(
        run=run.id,
        samples=run.samples,
        samples_digest=run.samples_digest,
        strategy=run.strategy,
        generator=redacted(run.generator),
        n=run.n,
        kinds=ordered,
        texts={sample: tuple(sample_texts) for sample, sample_texts in texts.items()},
    )
