"""Gains of the blocks of stored prompts: looked up, and appended a sample at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection, insert, select

from ctxbench.harness.store import schema as t
from ctxbench.harness.store.store import Store
from ctxbench.strategies.api import Block, BlockKind, Prompt

RETRIEVED = (BlockKind.SIMILAR, BlockKind.API)
"""Kinds of blocks that can be left out of a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """What there is to know of a run for pricing its prompts."""

    id: str
    samples: str
    samples_digest: str
    strategy: str
    coder: str


@dataclass(frozen=True, slots=True)
class Gain:
    """One priced block."""

    kind: str
    bits: float


def run_of(store: Store, id_start: str) -> list[StoredRun]:
    """Return the runs whose id begins with `wanted`."""
    r = t.RUN.c
    with store.reading() as connection:
        rows = connection.execute(select(r.id, r.samples, r.samples_digest, r.strategy, r.coder).order_by(r.id)).all()
    return [StoredRun(**row._mapping) for row in rows if row.id.startswith(id_start)]


def prompts(store: Store, run: str) -> list[tuple[str, Prompt]]:
    """Return the samples of a run that have blocks to leave out, with their prompts, in the plan's order."""
    r, p, b = t.RESULT.c, t.PLANNED.c, t.BLOCK.c
    joined = t.RESULT.join(t.PLANNED, (r.run_id == p.run_id) & (r.sample_id == p.sample_id)).join(
        t.PROMPT, r.prompt_digest == t.PROMPT.c.digest
    )
    texts = select(r.sample_id, t.PROMPT.c.text).select_from(joined).where(r.run_id == run).order_by(p.ordinal)
    spans = (
        select(b.sample_id, b.kind, b.char_start, b.char_end)
        .where(b.run_id == run, b.char_start.is_not(None))
        .order_by(b.sample_id, b.ordinal)
    )
    with store.reading() as connection:
        blocks: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        for sample, kind, start, end in connection.execute(spans):
            blocks[sample].append((kind, start, end))
        sample_prompts = [(sample, _prompt(text, blocks[sample])) for sample, text in connection.execute(texts)]
    return [
        (sample, prompt) for sample, prompt in sample_prompts if any(block.kind in RETRIEVED for block in prompt.blocks)
    ]


def _prompt(text: str, spans: Sequence[tuple[str, int, int]]) -> Prompt:
    return Prompt(blocks=tuple(Block(kind=BlockKind(kind), text=text[start:end]) for kind, start, end in spans))


def priced(store: Store, run: str, coder: str) -> frozenset[str]:
    """Return the samples of a run whose blocks a coder has priced."""
    g = t.BLOCK_GAIN.c
    with store.reading() as connection:
        query = select(g.sample_id).where(g.run_id == run, g.coder == coder).distinct()
        return frozenset(connection.scalars(query))


def add(store: Store, run: str, sample: str, coder: str, gains: Mapping[int, float]) -> bool:
    """Append the gains of one sample's blocks, by ordinal; return False if they were there already."""
    key = {"run_id": run, "sample_id": sample, "coder": coder}
    content = [{**key, "ordinal": ordinal, "gain": gain} for ordinal, gain in sorted(gains.items())]

    def append(connection: Connection) -> bool:
        g = t.BLOCK_GAIN.c
        query = select(g.ordinal).where(g.run_id == run, g.sample_id == sample, g.coder == coder)
        if not content or connection.execute(query).first() is not None:
            return False
        connection.execute(insert(t.BLOCK_GAIN), content)
        return True

    return store.settle(append)


def of_run(store: Store, run: str, coder: str) -> dict[str, list[Gain]]:
    """Return sample -> its priced blocks, in the order of the prompt."""
    g, b = t.BLOCK_GAIN.c, t.BLOCK.c
    joined = t.BLOCK_GAIN.join(
        t.BLOCK, (g.run_id == b.run_id) & (g.sample_id == b.sample_id) & (g.ordinal == b.ordinal)
    )
    query = (
        select(g.sample_id, b.kind, g.gain)
        .select_from(joined)
        .where(g.run_id == run, g.coder == coder)
        .order_by(g.sample_id, g.ordinal)
    )
    gains_by_sample: dict[str, list[Gain]] = defaultdict(list)
    with store.reading() as connection:
        for sample, kind, gain in connection.execute(query):
            gains_by_sample[sample].append(Gain(kind, gain))
    return gains_by_sample


def means(connection: Connection, runs: Iterable[str]) -> dict[str, dict[str, float | None]]:
    """Return run -> sample -> the mean gain of a block, in bits; of several coders the run's own, else the last."""
    g, r = t.BLOCK_GAIN.c, t.RUN.c
    query = (
        select(g.run_id, g.sample_id, g.coder, r.coder, g.gain)
        .select_from(t.BLOCK_GAIN.join(t.RUN, g.run_id == r.id))
        .where(g.run_id.in_(list(runs)))
        .order_by(g.run_id, g.sample_id, g.coder, g.ordinal)
    )
    means_by_run: dict[str, dict[str, float | None]] = defaultdict(dict)
    own: set[tuple[str, str]] = set()
    rows: Iterator[tuple[str, str, str, str, float]] = map(tuple, connection.execute(query))
    for (run, sample, coder, run_coder), group in groupby(rows, key=itemgetter(0, 1, 2, 3)):
        gains = [gain for *_, gain in group]
        if (run, sample) not in own:
            means_by_run[run][sample] = math.fsum(gains) / len(gains)
        if coder == run_coder:
            own.add((run, sample))
    return means_by_run
