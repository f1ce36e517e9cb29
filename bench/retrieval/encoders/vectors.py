"""`Vectors`: each text is encoded once: kept in memory, and in a folder across runs and processes.

A vector is found by the encoder's spec and version and by the SHA-256 of its text, never by the
repository or the sample that it was first needed for.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import threading
import zlib
from collections import OrderedDict
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
"""Texts encoded so far, and how many there are to encode."""

_MEMORY = 256 << 20
"""Bytes of vectors held in memory, of all encoders together."""
_WRITTEN = 4 << 30
"""Bytes of vectors that one run adds to the files: a strategy can ask for as many texts as it likes."""
_PART = 128
"""Texts encoded between two reports, and kept together: what a killed process loses."""
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB, crc32 INTEGER) WITHOUT ROWID"
_SELECT = "SELECT CAST(vector AS BLOB), crc32 FROM vectors WHERE digest = ?"
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
"""Errors that say that the file is none of ours, or no longer; all others are the machine's."""
_PATIENCE = 60.0
"""Seconds to wait for another process that writes."""


class Vectors:
    """Vectors of texts, made when they are first asked for; may be shared by threads."""

    def __init__(self, folder: Path | None, *, memory: int = _MEMORY, written: int = _WRITTEN) -> None:
        """Open a cache; nothing is read or written yet.

        Args:
            folder: where vectors are kept, shared with other processes; None: in memory only.
            memory: bytes of vectors held in memory, the latest used.
            written: bytes of vectors added to the files; later ones are made again by the next run.
        """
        self._folder, self._most_bytes, self._left = folder, memory, written
        self._lock = threading.Lock()
        self._stores: dict[str, _Store] = {}
        self._recent: OrderedDict[tuple[str, bytes], Floats] = OrderedDict()
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
        texts_by_digest = dict(zip(digests, texts, strict=True))
        vectors = self._stored(store, texts_by_digest)
        # Texts of like length go together, which is what encoders are quick with.
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
                file = None if self._folder is None else VectorFile(self._folder / name)
                self._stores[key] = _Store(key, file)
            return self._stores[key]

    def _stored(self, store: _Store, texts: dict[bytes, str]) -> dict[bytes, Floats]:
        """Return what memory and file hold of the texts."""
        vectors: dict[bytes, Floats] = {}
        with self._lock:
            for digest in texts:
                if (vector := self._recent.get((store.key, digest))) is not None:
                    self._recent.move_to_end((store.key, digest))
                    vectors[digest] = vector
        if store.file is not None and len(vectors) < len(texts):
            read = store.file.read(texts.keys() - vectors.keys())
            self._hold(store, read)
            vectors |= read
        return vectors

    def _encoded(self, encoder: Encoder, store: _Store, texts: dict[bytes, str]) -> dict[bytes, Floats]:
        """Encode the texts that no other thread or process has encoded meanwhile."""
        with store.encoding:
            vectors = self._stored(store, texts)
            missing = [digest for digest in texts if digest not in vectors]
            if missing:
                encoded = _checked(
                    encoder.encode([texts[digest] for digest in missing]), len(missing), encoder, store.key
                )
                # Copies: a row of the whole would hold the whole in memory.
                fresh = {digest: vector.copy() for digest, vector in zip(missing, encoded, strict=True)}
                size = sum(vector.nbytes for vector in fresh.values())
                with self._lock:
                    keeps = size <= self._left
                    self._left -= size if keeps else 0
                if store.file is not None and keeps:
                    store.file.add(fresh)
                self._hold(store, fresh)
                vectors |= fresh
            return vectors

    def _hold(self, store: _Store, vectors: dict[bytes, Floats]) -> None:
        with self._lock:
            for digest, vector in vectors.items():
                key = (store.key, digest)
                self._bytes += vector.nbytes - (self._recent[key].nbytes if key in self._recent else 0)
                self._recent[key] = vector
                self._recent.move_to_end(key)
            while self._bytes > self._most_bytes and self._recent:
                _, vector = self._recent.popitem(last=False)
                self._bytes -= vector.nbytes


def _checked(vectors: Floats, count: int, encoder: Encoder, key: str) -> Floats:
    """Check the vectors of an encoder, which may be anyone's: once kept, they are never checked again."""
    if vectors.shape != (count, encoder.width) or not np.isfinite(vectors).all():
        raise MachineFault(
            f"gave an array of shape {vectors.shape} for {count} texts, or numbers that are none",
            where=f"encoder {key.partition(chr(10))[0]}",
            cure="check its weights and its code",
        )
    return vectors


class _Store:
    """The stored vectors of one encoder."""

    def __init__(self, key: str, file: VectorFile | None) -> None:
        self.key, self.file = key, file
        self.encoding = threading.Lock()
        """Held while texts are encoded, so that two threads do not encode the same one."""


class VectorFile:
    """The vectors of one encoder in a SQLite file, for several threads and processes at once.

    Everything in it can be made again: a damaged file is thrown away, a damaged vector is none.
    """

    def __init__(self, path: Path) -> None:
        """Name a file; it is made when something is added."""
        self._path = path

    def read(self, digests: Collection[bytes]) -> dict[bytes, Floats]:
        """Return the vectors that are there, by the digest of their text.

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
        """Add vectors by the digest of their text, all of them or none.

        Raises:
            InputFault: if the folder cannot be made.
            MachineFault: if the file cannot be written.
        """
        raw = {digest: np.ascontiguousarray(vector, dtype="<f4").tobytes() for digest, vector in vectors.items()}
        rows = [(digest, vector, zlib.crc32(digest + vector)) for digest, vector in raw.items()]
        with explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._do(lambda file: file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows))

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do one transaction; a damaged file is removed, and there is no result."""
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=_PATIENCE)) as file, file:
                file.execute(_TABLE)
                return work(file)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in _DAMAGED:
                self._path.unlink(missing_ok=True)
                return None
            cure = "free space on the disk, or name another folder with CTXBENCH_CACHE; then run the same command again"
            raise MachineFault(f"vectors cannot be kept: {error}", where=str(self._path), cure=cure) from error
