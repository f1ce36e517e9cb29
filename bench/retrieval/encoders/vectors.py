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
from ctxbench.bench.retrieval.types import Encoder

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.types import Floats
import contextlib
import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping

from ctxbench.bench.files import explained

Progress = Callable[[int, int], None]
"""Texts encoded so far, and how many there are to encode."""

_MEMORY = 256 << 20
"""Bytes of vectors held in memory, of all encoders together."""
_WRITTEN = 4 << 30
"""Bytes of vectors that one run adds to the files: a strategy can ask for as many texts as it likes."""
_PART = 128
"""Texts encoded between two reports, and kept together: what a killed process loses."""
_DIGEST = 32
_CHECK = 4
_HEADER = 128
_READ = 1 << 24
"""Bytes read at once while the file's digests are collected."""


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
                file = None if self._folder is None else VectorFile(self._folder / name, key=key, width=width)
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
    """The vectors of one encoder in a file that is only appended to, for several threads and processes at once.

    A header, then records of equal length: SHA-256 of the text, the vector, a checksum. Processes add
    under a lock; a record that a killed process left unfinished is cut off by the next one that adds, and
    a file whose header or a record is damaged is thrown away, since everything in it can be made again.
    """

    def __init__(self, path: Path, *, key: str, width: int) -> None:
        """Name a file; it is made when something is added.

        Args:
            path: the file; a file of the same name with ``.lock`` is put beside it.
            key: what decides the vectors; a file made for another key counts as damaged.
            width: the length of a vector.
        """
        self._path, self._width = path, width
        self._header = f"ctxbench vectors 1 {width} {sha256(key)}\n".encode().ljust(_HEADER)
        self._record = _DIGEST + 4 * width + _CHECK
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._inode, self._end = 0, _HEADER
        self._places: dict[bytes, int] = {}

    def read(self, digests: Iterable[bytes]) -> dict[bytes, Floats]:
        """Return the vectors that are there, by the digest of their text."""
        with self._lock, explained(self._path):
            try:
                handle = self._path.open("rb")
            except FileNotFoundError:
                self._forget()
                return {}
            with handle:
                vectors = self._vectors(handle.fileno(), digests)
                if vectors is None:
                    self._throw_away(handle.fileno())
                return vectors or {}

    def add(self, vectors: Mapping[bytes, Floats]) -> None:
        """Add vectors by the digest of their text; all of them or, after a crash, the first ones."""
        with self._lock, explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked(fcntl.LOCK_EX), self._path.open("ab") as handle:
                size = handle.seek(0, os.SEEK_END)
                if size and not self._ours(self._path):
                    handle.truncate(0)
                    size = 0
                data = b"" if size else self._header
                if unfinished := max(0, size - _HEADER) % self._record:
                    handle.truncate(size - unfinished)
                for digest, vector in vectors.items():
                    body = digest + np.ascontiguousarray(vector, dtype="<f4").tobytes()
                    data += body + zlib.crc32(body).to_bytes(_CHECK, "little")
                handle.write(data)

    def _vectors(self, number: int, digests: Iterable[bytes]) -> dict[bytes, Floats] | None:
        """Return the vectors that the open file holds; None if it is damaged."""
        with self._locked(fcntl.LOCK_SH):
            if not self._refresh(number):
                return None
            vectors: dict[bytes, Floats] = {}
            # In the file's order, which is quick to read.
            for place, digest in sorted((self._places[digest], digest) for digest in digests if digest in self._places):
                vector = self._checked(os.pread(number, self._record, place), digest)
                if vector is None:
                    return None
                vectors[digest] = vector
            return vectors

    def _refresh(self, number: int) -> bool:
        """Learn which digests are there by now; False if the file is none of ours."""
        state = os.fstat(number)
        if state.st_ino != self._inode or state.st_size < self._end:
            self._forget()
        if not self._places and os.pread(number, _HEADER, 0) != self._header:
            return False
        self._inode = state.st_ino
        whole = (state.st_size - self._end) // self._record
        at_once = max(1, _READ // self._record)
        for start in range(0, whole, at_once):
            count = min(at_once, whole - start)
            place = self._end + start * self._record
            rows = np.frombuffer(os.pread(number, count * self._record, place), dtype=np.uint8)
            for row, digest in enumerate(rows.reshape(count, self._record)[:, :_DIGEST]):
                self._places.setdefault(digest.tobytes(), place + row * self._record)
        self._end += whole * self._record
        return True

    def _checked(self, data: bytes, digest: bytes) -> Floats | None:
        body, check = data[:-_CHECK], data[-_CHECK:]
        if len(data) != self._record or body[:_DIGEST] != digest or zlib.crc32(body) != int.from_bytes(check, "little"):
            return None
        return np.frombuffer(body, dtype="<f4", offset=_DIGEST).astype(np.float32)

    def _ours(self, path: Path) -> bool:
        with path.open("rb") as handle:
            return handle.read(_HEADER) == self._header

    def _throw_away(self, number: int) -> None:
        """Remove the damaged file, unless another process has put a new one in its place."""
        with self._locked(fcntl.LOCK_EX), contextlib.suppress(FileNotFoundError):
            if self._path.stat().st_ino == os.fstat(number).st_ino:
                self._path.unlink()
        self._forget()

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Hold the lock of all processes, shared or alone; it is freed also when a process is killed."""
        with self._path.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, how)
            yield
