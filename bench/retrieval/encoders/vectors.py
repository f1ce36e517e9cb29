"""`Vectors`: each text is encoded once: kept in memory, and in a folder across runs and processes.

A vector is found by the encoder's spec and version and by the SHA-256 of its text, never by the
repository or the sample that it was first needed for.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.retrieval.encoders.vector_file import VectorFile
from ctxbench.bench.retrieval.types import Encoder

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.types import Floats

Progress = Callable[[int, int], None]
"""Texts encoded so far, and how many there are to encode."""

_MEMORY = 256 << 20
"""Bytes of vectors held in memory, of all encoders together."""
_PART = 128
"""Texts encoded between two reports, and kept together: what a killed process loses."""


class Vectors:
    """Vectors of texts, made when they are first asked for; may be shared by threads."""

    def __init__(self, folder: Path | None, *, memory: int = _MEMORY) -> None:
        """Open a cache; nothing is read or written yet.

        Args:
            folder: where vectors are kept, shared with other processes; None: in memory only.
            memory: bytes of vectors held in memory, the latest used.
        """
        self._folder, self._memory = folder, memory
        self._lock = threading.Lock()
        self._stores: dict[str, _Store] = {}
        self._held: OrderedDict[tuple[str, bytes], Floats] = OrderedDict()
        self._bytes = 0

    def of(self, encoder: Encoder, spec: str, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """Return the vectors of texts, in order: shape (texts, encoder.width).

        Args:
            encoder: what encodes a text that is not known yet.
            spec: the encoder's canonical spelling (`bench.retrieval.encoders.canonical`).
            texts: equal ones are encoded once.
            progress: told after each part of the missing texts, if any are missing.

        Raises:
            MachineFault: if a text cannot be encoded, or the folder cannot be written.
        """
        store = self._store(encoder, spec)
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        wanted = dict(zip(digests, texts, strict=True))
        found = self._known(store, wanted)
        # Texts of like length go together, which is what encoders are quick with.
        missing = sorted(wanted.keys() - found.keys(), key=lambda digest: (len(wanted[digest]), digest))
        for start in range(0, len(missing), _PART):
            part = missing[start : start + _PART]
            found |= self._made(encoder, store, {digest: wanted[digest] for digest in part})
            if progress is not None:
                progress(start + len(part), len(missing))
        made = np.empty((len(texts), encoder.width), dtype=np.float32)
        for row, digest in enumerate(digests):
            made[row] = found[digest]
        return made

    def _store(self, encoder: Encoder, spec: str) -> _Store:
        version, width = encoder.version, encoder.width
        key = f"{spec}\n{version}\n{width}"
        with self._lock:
            if key not in self._stores:
                name = f"{spec.partition('(')[0]}-{sha256(key)[:16]}.vectors".replace("/", "-")
                file = None if self._folder is None else VectorFile(self._folder / name, key=key, width=width)
                self._stores[key] = _Store(key, file)
            return self._stores[key]

    def _known(self, store: _Store, wanted: dict[bytes, str]) -> dict[bytes, Floats]:
        """Return what memory and file hold of the texts."""
        found: dict[bytes, Floats] = {}
        with self._lock:
            for digest in wanted:
                if (vector := self._held.get((store.key, digest))) is not None:
                    self._held.move_to_end((store.key, digest))
                    found[digest] = vector
        if store.file is not None and len(found) < len(wanted):
            read = store.file.read(wanted.keys() - found.keys())
            self._hold(store, read)
            found |= read
        return found

    def _made(self, encoder: Encoder, store: _Store, texts: dict[bytes, str]) -> dict[bytes, Floats]:
        """Encode the texts that no other thread or process has encoded meanwhile."""
        with store.encoding:
            found = self._known(store, texts)
            rest = [digest for digest in texts if digest not in found]
            if rest:
                vectors = _checked(encoder.encode([texts[digest] for digest in rest]), len(rest), encoder, store.key)
                # Copies: a row of the whole would hold the whole in memory.
                fresh = {digest: vector.copy() for digest, vector in zip(rest, vectors, strict=True)}
                if store.file is not None:
                    store.file.add(fresh)
                self._hold(store, fresh)
                found |= fresh
            return found

    def _hold(self, store: _Store, vectors: dict[bytes, Floats]) -> None:
        with self._lock:
            for digest, vector in vectors.items():
                key = (store.key, digest)
                self._bytes += vector.nbytes - (self._held[key].nbytes if key in self._held else 0)
                self._held[key] = vector
                self._held.move_to_end(key)
            while self._bytes > self._memory and self._held:
                _, vector = self._held.popitem(last=False)
                self._bytes -= vector.nbytes


def _checked(vectors: Floats, count: int, encoder: Encoder, key: str) -> Floats:
    """See that an encoder, which may be anyone's, gave what it should; what is kept is never looked at again."""
    if vectors.shape != (count, encoder.width) or not np.isfinite(vectors).all():
        raise MachineFault(
            f"gave an array of shape {vectors.shape} for {count} texts, or numbers that are none",
            where=f"encoder {key.partition(chr(10))[0]}",
            cure="check its weights and its code",
        )
    return vectors


class _Store:
    """What is kept of one encoder."""

    def __init__(self, key: str, file: VectorFile | None) -> None:
        self.key, self.file = key, file
        self.encoding = threading.Lock()
        """Held while texts are encoded, so that two threads do not encode the same one."""
