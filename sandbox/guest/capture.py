"""Captures the first and last bytes of a job's output, and one whole result."""

from __future__ import annotations

import os
import struct

RESULT_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 16


class Output:
    """A buffer that keeps the first and the last bytes of an output, half of a limit each."""

    def __init__(self, limit: int) -> None:
        """Keep at most `limit` bytes."""
        self._half = limit // 2
        self._first = limit - self._half
        self.head = bytearray()
        self._tail = bytearray()
        self.left_out = 0

    def add(self, data: bytes) -> None:
        """Append the next bytes of the output."""
        room = self._first - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > self._half + 4 * _CHUNK:
            self._shorten()

    def _shorten(self) -> None:
        extra = max(0, len(self._tail) - self._half)
        del self._tail[:extra]
        self.left_out += extra

    @property
    def tail(self) -> bytes:
        """The last bytes of the output, without those in `head`."""
        self._shorten()
        return bytes(self._tail)


class Result:
    """A buffer for one result, which arrives as its length and then that many bytes."""

    def __init__(self, limit: int) -> None:
        """Take at most `limit` bytes."""
        self._limit, self._data, self._over = limit + RESULT_LENGTH.size, bytearray(), False

    def add(self, data: bytes) -> None:
        """Append the next bytes of the result."""
        self._over = self._over or len(self._data) + len(data) > self._limit
        if not self._over:
            self._data += data

    @property
    def whole(self) -> bytes | None:
        """The result; None unless it is complete and within the limit."""
        if self._over or len(self._data) < RESULT_LENGTH.size:
            return None
        (size,) = RESULT_LENGTH.unpack_from(self._data)
        return bytes(self._data[RESULT_LENGTH.size :]) if len(self._data) == size + RESULT_LENGTH.size else None


def drain(handle: int, into: Output | Result, most: int = _CHUNK) -> bool:
    """Read up to `most` available bytes from a nonblocking pipe into a buffer; return False once the pipe has ended."""
    while most > 0:
        try:
            data = os.read(handle, min(most, _CHUNK))
        except BlockingIOError:
            return True
        if not data:
            return False
        into.add(data)
        most -= len(data)
    return True
