"""`VectorFile`: the vectors of one encoder, in one file that is only appended to.

A header, then records of equal length: SHA-256 of the text, the vector, a checksum. Processes add
under a lock; a record that a killed process left unfinished is cut off by the next one that adds, and
a file whose header or a record is damaged is thrown away, since everything in it can be made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxbench.bench.files import explained, sha256

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.types import Floats

_DIGEST = 32
_CHECK = 4
_HEADER = 128
_READ = 1 << 24
"""Bytes read at once while the file's digests are collected."""


class VectorFile:
    """The vectors of one encoder on disk, for several threads and processes at once."""

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
