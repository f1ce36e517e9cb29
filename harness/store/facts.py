"""Appends finished samples in bulk and stores their prompts. Prompts stored together are compressed in packs."""

from __future__ import annotations

import functools
import json
import lzma
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.write import (
    Finished,
    StoredGeneration,
    StoredVerdict,
    clean,
    load,
    merge,
    name_numbers,
    numbers,
    parts,
    row_of,
)


def append_verdicts(connection: Connection, verdicts: Iterable[StoredVerdict]) -> None:
    """Append verdicts, except those that are already stored."""
    merge(connection, t.VERDICT, [row_of(t.VERDICT, verdict, flags=json.dumps(verdict.flags)) for verdict in verdicts])


def append_generations(
    connection: Connection, generations: Iterable[StoredGeneration], prompts: Mapping[str, int]
) -> None:
    """Append answers, except those that are already stored. `prompts` maps digests of prompts to row numbers."""
    by_id = {generation.id: generation for generation in generations}
    stored_ids = numbers(connection, t.GENERATION_FACT, "id", list(by_id))
    new = [generation for id_, generation in by_id.items() if id_ not in stored_ids]
    if not new:
        return
    keys = {(record.generator, record.version, record.sampling) for record in new}
    sources = name_numbers(connection, t.SOURCE, keys)
    rows = [
        row_of(
            t.GENERATION_FACT,
            record,
            source=sources[record.generator, record.version, record.sampling],
            prompt=prompts[record.prompt_digest],
        )
        for record in new
    ]
    merge(connection, t.GENERATION_FACT, rows)


def append_finished(
    connection: Connection,
    run: str,
    coder: str,
    finished: Iterable[Finished],
    generations: Iterable[StoredGeneration] = (),
) -> int:
    """Append samples of a run with all their rows, except stored samples; return the number of new samples.

    Raises:
        InputFault: if a sample is not planned, or its answer is not stored.
    """
    samples, answers = {sample.sample_id: sample for sample in finished}, list(generations)
    number = connection.scalar(select(t.RUN.c.number).where(t.RUN.c.id == run))
    keys, stored_ids = _keys(connection, number, list(samples))
    new = sorted(
        ((keys[id_], sample) for id_, sample in samples.items() if id_ in keys and id_ not in stored_ids),
        key=itemgetter(0),
    )
    # Add all prompts first. Concurrent writers of equal prompts then wait for each other in the same order.
    texts = {sample.prompt_digest: sample.prompt for _, sample in new}
    texts |= {cost.prompt_digest: cost.prompt for _, sample in new for cost in sample.bits}
    texts |= {answer.prompt_digest: answer.prompt for answer in answers}
    prompts = add_prompts(connection, texts)
    append_generations(connection, answers, prompts)
    named = {id_ for _, sample in new for _, id_ in sample.calls}
    named |= {completion.generation_id for _, sample in new for completion in sample.completions}
    answer_numbers = numbers(connection, t.GENERATION_FACT, "id", sorted(named))
    if lacking := sorted({*samples} - keys.keys()) or sorted(named - answer_numbers.keys()):
        raise InputFault(
            f"the run {run} refers to {lacking[0]!r}, which is neither a planned sample nor a stored answer",
            cure="store the run and its answers first",
        )
    _append_results(connection, new, prompts, answer_numbers)
    _append_scores(connection, number, new)
    _append_bits(connection, coder, [sample for _, sample in new], prompts)
    return len(new)


def _keys(connection: Connection, run: int | None, ids: Sequence[str]) -> tuple[dict[str, int], set[str]]:
    f, s, r = t.PLANNED_FACT.c, t.SAMPLE.c, t.RESULT_FACT.c
    joined = t.SAMPLE.join(t.PLANNED_FACT, f.sample == s.number).outerjoin(t.RESULT_FACT, r.key == f.key)
    query = select(s.id, f.key, r.key.label("result")).select_from(joined).where(f.run == run)
    keys: dict[str, int] = {}
    stored_ids: set[str] = set()
    for part in parts(ids):
        for id_, key, result in connection.execute(query.where(s.id.in_(part))):
            keys[id_] = key
            if result is not None:
                stored_ids.add(id_)
    return keys, stored_ids


def _append_results(
    connection: Connection,
    finished: Sequence[tuple[int, Finished]],
    prompts: Mapping[str, int],
    answers: Mapping[str, int],
) -> None:
    rows: dict[Table, list[tuple[Any, ...]]] = defaultdict(list)

    def add(table: Table, record: object, **others: Any) -> None:
        rows[table].append(row_of(table, record, **others))

    for key, sample in finished:
        prompt, flags = prompts[sample.prompt_digest], json.dumps(sample.flags)
        add(t.RESULT_FACT, sample, key=key, prompt=prompt, calls=len(sample.calls), flags=flags)
        for ordinal, (role, id_) in enumerate(sample.calls):
            add(t.CALL_FACT, None, key=key, ordinal=ordinal, role=role, generation=answers[id_])
        for use in sample.engines:
            add(t.ENGINE_FACT, use, key=key)
        if sample.access is not None:
            add(t.ACCESS_FACT, sample.access, key=key)
        for ordinal, block in enumerate(sample.blocks):
            add(t.BLOCK_FACT, block, key=key, ordinal=ordinal)
        for idx, completion in enumerate(sample.completions):
            number, flags = answers[completion.generation_id], json.dumps(completion.flags)
            add(t.COMPLETION_FACT, completion, key=key, idx=idx, generation=number, flags=flags)
            if completion.verdict is not None:
                add(t.JUDGED_FACT, None, key=key, idx=idx, verdict_key=completion.verdict)
    for table, table_rows in rows.items():
        load(connection, table, table_rows)


def _append_scores(connection: Connection, run: int | None, finished: Sequence[tuple[int, Finished]]) -> None:
    kinds = {kind for _, sample in finished for scores in sample.all_scores for kind in scores}
    measures = measure_numbers(connection, kinds)
    rows = [
        (run, measures[kind], key, idx, clean(value))
        for key, sample in finished
        for idx, scores in enumerate(sample.all_scores)
        for kind, value in scores.items()
    ]
    # Sort the rows in the order of the table, so that neighbouring rows are written together.
    rows.sort(key=itemgetter(1, 2, 3))
    load(connection, t.SCORE_FACT, rows)


def measure_numbers(connection: Connection, kinds: Collection[tuple[str, str]]) -> Mapping[tuple[str, ...], int]:
    """Return the row numbers of (profile, metric) pairs, by pair, and add rows for new pairs."""
    return name_numbers(connection, t.MEASURE, set(kinds))


def _append_bits(connection: Connection, coder: str, finished: Sequence[Finished], prompts: Mapping[str, int]) -> None:
    costs = {
        (prompts[cost.prompt_digest], cost.language, cost.target_digest): cost.bits
        for sample in finished
        for cost in sample.bits
    }
    coders = name_numbers(connection, t.CODER, {(coder, language) for _, language, _ in costs})
    rows = [
        (prompt, coders[coder, language], target, bits) for (prompt, language, target), bits in sorted(costs.items())
    ]
    merge(connection, t.BITS_FACT, rows)


_PACK_BYTES = 1 << 20
"""Maximum bytes of a pack of several prompts before compression. Reading a prompt decompresses its pack in 3 ms."""
_PACKS_KEPT = 8
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": _PACK_BYTES}]
"""LZMA settings. A higher preset makes a pack 5% smaller but takes far longer. zlib is unsuitable, because similar
prompts are farther apart than its window."""


def add_prompts(connection: Connection, texts: Mapping[str, str]) -> dict[str, int]:
    """Store the new prompts among `texts`, which maps digests to prompts; return the row numbers of all, by digest."""
    stored = numbers(connection, t.PROMPT, "digest", list(texts))
    new = {digest: clean(text).encode() for digest, text in texts.items() if digest not in stored}
    if not new:
        return stored
    add_packs(connection, new)
    return stored | numbers(connection, t.PROMPT, "digest", list(new))


def add_packs(connection: Connection, prompts: Mapping[str, bytes]) -> None:
    """Store prompts, given as bytes by digest. Skip prompts that another process has stored meanwhile."""
    rows = []
    for together in _packs(prompts):
        data = lzma.compress(b"".join(prompts[digest] for digest in together), filters=_FILTERS)
        pack = connection.scalar(insert(t.PACK).returning(t.PACK.c.number), {"data": data})
        start = 0
        for digest in together:
            rows.append((digest, pack, start, len(prompts[digest])))
            start += len(prompts[digest])
    merge(connection, t.PROMPT, rows)


def prompt_texts(connection: Connection, digests: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (digest, prompt) for the stored prompts among `digests`, in the order of storage."""
    p = t.PROMPT.c
    query = select(p.digest, p.pack, p.start, p.size)
    rows: list[Any] = []
    for part in parts(sorted(set(digests))):
        rows += connection.execute(query.where(p.digest.in_(part)))

    @functools.lru_cache(_PACKS_KEPT)
    def unpacked(pack: int) -> bytes:
        return lzma.decompress(connection.scalar(select(t.PACK.c.data).where(t.PACK.c.number == pack)) or b"")

    for digest, pack, start, size in sorted(rows, key=lambda row: (row.pack, row.start)):
        yield digest, unpacked(pack)[start : start + size].decode()


def prompt_text(connection: Connection, digest: str) -> str | None:
    """Return the prompt with this digest; None if it is not stored."""
    return dict(prompt_texts(connection, [digest])).get(digest)


def _packs(prompts: Mapping[str, bytes]) -> Iterator[Sequence[str]]:
    together: list[str] = []
    size = 0
    for digest, prompt in prompts.items():
        if together and size + len(prompt) > _PACK_BYTES:
            yield together
            together, size = [], 0
        together.append(digest)
        size += len(prompt)
    if together:
        yield together
