"""Appends finished samples in bulk, and stores their prompts. Similar prompts are compressed together, in packs."""

from __future__ import annotations

import functools
import json
import lzma
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from ctxbench.bench.engines.types import EngineUse
from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.write import (
    Finished,
    StoredAccess,
    StoredBlock,
    StoredCompletion,
    StoredGeneration,
    StoredVerdict,
    append_new,
    clean,
    load,
    merge,
    name_numbers,
    number_or_null,
    numbers,
    parts,
    verdict_row,
)

_GENERATION = (
    *("id", "source", "prompt", "idx", "text", "finish"),
    *("tokens_in", "tokens_out", "seconds", "cached", "price"),
)


def append_verdicts(connection: Connection, verdicts: Iterable[StoredVerdict]) -> None:
    """Append verdicts, except those that are already stored."""
    append_new(connection, t.VERDICT, "key", {verdict.key: verdict_row(verdict) for verdict in verdicts})


def append_generations(
    connection: Connection, generations: Iterable[StoredGeneration], prompts: Mapping[str, int]
) -> None:
    """Append answers, except those that are already stored. `prompts` maps digests to row numbers."""
    by_id = {generation.id: generation for generation in generations}
    stored_ids = numbers(connection, t.GENERATION_FACT, "id", list(by_id))
    new = [generation for id_, generation in by_id.items() if id_ not in stored_ids]
    if not new:
        return
    keys = {(record.generator, record.version, record.sampling) for record in new}
    sources = name_numbers(connection, t.SOURCE, ("generator", "version", "sampling"), keys)
    rows = [
        (
            record.id,
            sources[record.generator, record.version, record.sampling],
            prompts[record.prompt_digest],
            record.idx,
            clean(record.text),
            clean(record.finish),
            record.tokens_in,
            record.tokens_out,
            record.seconds,
            record.cached,
            record.price,
        )
        for record in new
    ]
    merge(connection, t.GENERATION_FACT, _GENERATION, rows)


def append_finished(
    connection: Connection,
    run: str,
    coder: str,
    finished: Iterable[Finished],
    generations: Iterable[StoredGeneration] = (),
) -> int:
    """Append samples of a run with all their rows; return the number of new samples.

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
    # All prompts first: writers of the same prompts then wait for each other in the same order.
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
    rows: dict[Table, list[tuple[Any, ...]]] = {
        table: []
        for table in (
            *(t.RESULT_FACT, t.CALL_FACT, t.ENGINE_FACT, t.ACCESS_FACT, t.BLOCK_FACT),
            *(t.COMPLETION_FACT, t.JUDGED_FACT),
        )
    }
    for key, sample in finished:
        rows[t.RESULT_FACT].append(_result_row(key, sample, prompts[sample.prompt_digest]))
        rows[t.CALL_FACT] += [
            (key, ordinal, clean(role), answers[id_]) for ordinal, (role, id_) in enumerate(sample.calls)
        ]
        rows[t.ENGINE_FACT] += [_engine_row(key, use) for use in sample.engines]
        if sample.access is not None:
            rows[t.ACCESS_FACT].append(_access_row(key, sample.access))
        rows[t.BLOCK_FACT] += [_block_row(key, ordinal, block) for ordinal, block in enumerate(sample.blocks)]
        for idx, completion in enumerate(sample.completions):
            number = answers[completion.generation_id]
            rows[t.COMPLETION_FACT].append(_completion_row(key, idx, completion, number))
            if completion.verdict is not None:
                rows[t.JUDGED_FACT].append((key, idx, completion.verdict))
    for table, table_rows in rows.items():
        load(connection, table, table.c.keys(), table_rows)


def _result_row(key: int, sample: Finished, prompt: int) -> tuple[Any, ...]:
    return (
        *(key, prompt, str(sample.status), sample.context_tokens, len(sample.calls)),
        *(json.dumps(sample.flags), sample.strategy_seconds, sample.generator_seconds),
    )


def _engine_row(key: int, use: EngineUse) -> tuple[Any, ...]:
    return (
        *(key, clean(use.engine), clean(use.version), str(use.mode), use.index_seconds, use.query_seconds),
        *(use.calls, use.places, use.cut, use.index_bytes),
    )


def _block_row(key: int, ordinal: int, block: StoredBlock) -> tuple[Any, ...]:
    return (
        *(key, ordinal, block.kind, clean(block.places), block.score, block.tokens, block.state),
        *(clean(block.reason), block.char_start, block.char_end),
    )


def _completion_row(key: int, idx: int, completion: StoredCompletion, answer: int) -> tuple[Any, ...]:
    return key, idx, answer, str(completion.status), clean(completion.text), json.dumps(completion.flags)


def _access_row(key: int, access: StoredAccess) -> tuple[Any, ...]:
    return (
        key,
        access.opened,
        access.searches,
        access.characters,
        access.explored_files,
        number_or_null(access.explored_recall),
    )


def _append_scores(connection: Connection, run: int | None, finished: Sequence[tuple[int, Finished]]) -> None:
    kinds = {kind for _, sample in finished for scores in sample.all_scores for kind in scores}
    measures = measure_numbers(connection, kinds)
    rows = [
        (run, measures[kind], key, idx, number_or_null(value))
        for key, sample in finished
        for idx, scores in enumerate(sample.all_scores)
        for kind, value in scores.items()
    ]
    # In the order of the table, so that neighbouring rows are written together.
    rows.sort(key=itemgetter(1, 2, 3))
    load(connection, t.SCORE_FACT, t.SCORE_FACT.c.keys(), rows)


def measure_numbers(connection: Connection, kinds: Collection[tuple[str, str]]) -> Mapping[tuple[str, ...], int]:
    """Return (profile, metric) -> row number. New pairs are added."""
    return name_numbers(connection, t.MEASURE, ("profile", "metric"), set(kinds))


def _append_bits(connection: Connection, coder: str, finished: Sequence[Finished], prompts: Mapping[str, int]) -> None:
    costs = {
        (prompts[cost.prompt_digest], cost.language, cost.target_digest): cost.bits
        for sample in finished
        for cost in sample.bits
    }
    coders = name_numbers(connection, t.CODER, ("coder", "language"), {(coder, language) for _, language, _ in costs})
    rows = [
        (prompt, coders[coder, language], target, bits) for (prompt, language, target), bits in sorted(costs.items())
    ]
    merge(connection, t.BITS_FACT, t.BITS_FACT.c.keys(), rows)


_PACK_BYTES = 1 << 20
"""Bytes of a pack before compression. Reading a prompt decompresses its pack, in about three milliseconds."""
_PACKS_KEPT = 8
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": _PACK_BYTES}]
"""LZMA settings. A higher preset makes a pack 5% smaller but takes far longer. zlib's window is smaller than the
distance between similar prompts."""


def add_prompts(connection: Connection, texts: Mapping[str, str]) -> dict[str, int]:
    """Store missing prompts, given as digest -> prompt; return digest -> row number for all of them."""
    stored = numbers(connection, t.PROMPT, "digest", list(texts))
    new = {digest: clean(text).encode() for digest, text in texts.items() if digest not in stored}
    if not new:
        return stored
    add_packs(connection, new)
    return stored | numbers(connection, t.PROMPT, "digest", list(new))


def add_packs(connection: Connection, prompts: Mapping[str, bytes]) -> None:
    """Store prompts, given as digest -> bytes. Prompts that another process stores meanwhile are skipped."""
    rows = []
    for together in _packs(prompts):
        data = lzma.compress(b"".join(prompts[digest] for digest in together), filters=_FILTERS)
        pack = connection.scalar(insert(t.PACK).returning(t.PACK.c.number), {"data": data})
        start = 0
        for digest in together:
            rows.append((digest, pack, start, len(prompts[digest])))
            start += len(prompts[digest])
    merge(connection, t.PROMPT, ("digest", "pack", "start", "size"), rows)


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
    """Return the prompt with a digest; None if it is not stored."""
    p = t.PROMPT.c
    query = select(p.start, p.size, t.PACK.c.data).select_from(t.PROMPT.join(t.PACK, p.pack == t.PACK.c.number))
    row = connection.execute(query.where(p.digest == digest)).first()
    return None if row is None else lzma.decompress(row.data)[row.start : row.start + row.size].decode()


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
