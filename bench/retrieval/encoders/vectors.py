"""A cache of texts' vectors, in memory or in a folder that processes share. Beyond a size limit, nothing is stored."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.retrieval.encoders import Encoder

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.encoders import Floats

T = TypeVar("T")
Progress = Callable[[int, int], None]

_MEMORY = 256 << 20
"""Maximum bytes of vectors in memory, for all encoders together."""
_WRITTEN = 4 << 30
"""Maximum bytes of vectors that a run may add to the files. Strategies can request any number of texts."""
_PART = 128
"""Number of texts that are encoded and stored together. A killed process loses at most these."""
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB, crc32 INTEGER) WITHOUT ROWID"
_SELECT = "SELECT CAST(vector AS BLOB), crc32 FROM vectors WHERE digest = ?"
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
_PATIENCE = 60.0


class Vectors:
    """A thread-safe cache of texts' vectors, which are computed when needed."""

    def __init__(self, folder: Path | None, *, most: int | None = None) -> None:
        """Create a cache, without I/O.

        Args:
            folder: folder for vectors, shared with other processes; None for memory only.
            most: maximum bytes to store. Further vectors are computed each time.
        """
        self._folder = folder
        self._left = most if most is not None else _MEMORY if folder is None else _WRITTEN
        self._lock = threading.Lock()
        self._stores: dict[str, _Store] = {}

    def of(self, encoder: Encoder, spec: str, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """Return the vectors of texts, in order: shape (texts, encoder.width).

        Args:
            spec: canonical spec of the encoder.
            progress: receives the number of texts encoded so far, and the number that had no stored vector.

        Raises:
            InputFault: if the encoder's model cannot be loaded, or the folder cannot be created.
            MachineFault: if a text cannot be encoded, or the folder cannot be read or written.
        """
        store = self._store(encoder, spec)
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        texts_by_digest = dict(zip(digests, texts, strict=True))
        vectors = store.kept.read(texts_by_digest)
        missing = sorted(
            texts_by_digest.keys() - vectors.keys(), key=lambda digest: (len(texts_by_digest[digest]), digest)
        )
        for start in range(0, len(missing), _PART):
            part = missing[start : start + _PART]
            vectors |= self._encoded(encoder, store, {digest: texts_by_digest[digest] for digest in part})
            if progress is not None:
                progress(start + len(part), len(missing))
        matrix = np.empty((len(texts), encoder.width), dtype=np.float32)
        for row, digest in enumerate(digests):
            matrix[row] = vectors[digest]
        return matrix

    def _store(self, encoder: Encoder, spec: str) -> _Store:
        version, width = encoder.version, encoder.width
        key = f"{spec}\n{version}\n{width}"
        with self._lock:
            if key not in self._stores:
                name = f"{spec.partition('(')[0]}-{sha256(key)[:16]}.vectors".replace("/", "-")
                self._stores[key] = _Store(key, VectorFile(self._folder / name) if self._folder else VectorTable())
            return self._stores[key]

    def _encoded(self, encoder: Encoder, store: _Store, texts: dict[bytes, str]) -> dict[bytes, Floats]:
        with store.encoding:
            vectors = store.kept.read(texts)
            missing = [digest for digest in texts if digest not in vectors]
            if missing:
                encoded = _checked(
                    encoder.encode([texts[digest] for digest in missing]), len(missing), encoder, store.key
                )
                # Copy each row: a view would keep the whole array in memory.
                fresh = {digest: vector.copy() for digest, vector in zip(missing, encoded, strict=True)}
                size = sum(vector.nbytes for vector in fresh.values())
                with self._lock:
                    keeps = size <= self._left
                    self._left -= size if keeps else 0
                if keeps:
                    store.kept.add(fresh)
                vectors |= fresh
            return vectors


def _checked(vectors: Floats, count: int, encoder: Encoder, key: str) -> Floats:
    """Check an encoder's vectors. The encoder may be a plugin, and stored vectors are never checked again."""
    if vectors.shape != (count, encoder.width) or not np.isfinite(vectors).all():
        raise MachineFault(
            f"the encoder's array of shape {vectors.shape} for {count} texts has the wrong shape or non-finite numbers",
            where=f"encoder {key.partition(chr(10))[0]}",
            cure="check the encoder's weights and code",
        )
    return vectors


class _Store:
    def __init__(self, key: str, kept: VectorFile | VectorTable) -> None:
        self.key, self.kept = key, kept
        self.encoding = threading.Lock()
        """Lock for encoding, so that two threads do not encode the same text."""


class VectorTable:
    """One encoder's vectors in memory. Thread-safe."""

    def __init__(self) -> None:
        self._vectors: dict[bytes, Floats] = {}

    def read(self, digests: Collection[bytes]) -> dict[bytes, Floats]:
        """Return the stored vectors of texts with these digests, by digest."""
        return {digest: self._vectors[digest] for digest in digests if digest in self._vectors}

    def add(self, vectors: Mapping[bytes, Floats]) -> None:
        """Store vectors, by digest of the text."""
        self._vectors.update(vectors)


class VectorFile:
    """One encoder's vectors in an SQLite file, for several threads and processes.

    A damaged file is deleted and a damaged vector is ignored, because vectors can be computed again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, digests: Collection[bytes]) -> dict[bytes, Floats]:
        """Return the stored vectors of texts with these digests, by digest.

        Raises:
            MachineFault: if the file cannot be read.
        """

        def found(file: sqlite3.Connection) -> dict[bytes, Floats]:
            vectors: dict[bytes, Floats] = {}
            for digest in digests:
                row = file.execute(_SELECT, (digest,)).fetchone()
                if row is not None and row[0] is not None and zlib.crc32(digest + row[0]) == row[1]:
                    vectors[digest] = np.frombuffer(row[0], dtype="<f4").astype(np.float32)
            return vectors

        return (self._do(found) or {}) if self._path.exists() else {}

    def add(self, vectors: Mapping[bytes, Floats]) -> None:
        """Store vectors by digest of the text, either all or none.

        Raises:
            InputFault: if the folder cannot be created.
            MachineFault: if the file cannot be written.
        """
        raw = {digest: np.ascontiguousarray(vector, dtype="<f4").tobytes() for digest, vector in vectors.items()}
        rows = [(digest, vector, zlib.crc32(digest + vector)) for digest, vector in raw.items()]
        with explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._do(lambda file: file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows))

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as file, file:
                file.execute(_TABLE)
                return work(file)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in _DAMAGED:
                self._path.unlink(missing_ok=True)
                return None
            cure = "free some disk space, or set CTXBENCH_CACHE to another folder; then run the same command again"
            raise MachineFault(f"cannot read or store vectors: {error}", where=str(self._path), cure=cure) from error
