"""Prompts in the store: those that are stored together are compressed together, in packs.

Prompts are most of what is stored, and those of one file or repository are much alike.
"""

from __future__ import annotations

import functools
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from ctxbench.harness.store import schema as t
from ctxbench.harness.store.loading import clean, merge, numbers, parts

_PACK_BYTES = 1 << 20
"""Of a pack before it is compressed: a prompt is read by unpacking its whole pack, in about three milliseconds."""
_PACKS_KEPT = 8
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": _PACK_BYTES}]
"""A higher preset makes a pack smaller by a twentieth and takes more than its time. zlib's window is too small: prompts
that are alike stand further apart."""


def add_prompts(connection: Connection, texts: Mapping[str, str]) -> dict[str, int]:
    """Store prompts that are not there yet; return digest -> number of all of them.

    Args:
        connection: in a transaction.
        texts: digest -> prompt; those that are likely to be alike next to each other.
    """
    stored = numbers(connection, t.PROMPT, "digest", list(texts))
    new = {digest: clean(text).encode() for digest, text in texts.items() if digest not in stored}
    if not new:
        return stored
    add_packs(connection, new)
    return stored | numbers(connection, t.PROMPT, "digest", list(new))


def add_packs(connection: Connection, prompts: Mapping[str, bytes]) -> None:
    """Store prompts, by digest, in as many packs as it takes; those that another process stores meanwhile stay."""
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
    """Yield (digest, prompt) of those that are stored, in the order in which they were."""
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
    """Return one prompt; None if it is not stored."""
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
