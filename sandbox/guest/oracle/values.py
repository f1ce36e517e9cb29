"""Plain values as bytes and back: the only things that pass between a check and the code it tests.

The encoding is closed: the exact types None, bool, int, float, complex, str, bytes, list, tuple, dict,
set, frozenset and range, nested. What is decoded is always of one of them, whoever wrote the bytes, so a
comparison in the trusted process never runs code of the other's. Numbers are exact: integers of any size,
-0.0, infinities, NaN. Three dictionaries of the standard library (OrderedDict, defaultdict, Counter) are
sent as plain ones, to which they are equal; an iterator is sent as its items, and arrives as an iterator.
No other subclass, no function and no object can be sent.
"""

from __future__ import annotations

import collections
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

LIMIT = 8 << 20
"""Bytes of one message."""
ITEMS = 1_000_000
"""Values in one message, nested ones included: a byte each can stand for hundreds in memory."""
DEPTH = 100

_LENGTH = struct.Struct(">I")
_FLOAT = struct.Struct(">d")
_COMPLEX = struct.Struct(">dd")
_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


class NotPlain(Exception):
    """Raised when a value cannot be sent: its type is not in the list, or it is too large or too deep."""


class MalformedValue(Exception):
    """Raised when bytes are no message of this encoding."""


def encode(value: object) -> bytes:
    """Return a value as bytes.

    Raises:
        NotPlain: if it holds anything that cannot be sent, or passes a limit.
        Exception: whatever an iterator in it raises.
    """
    encoder = _Encoder()
    encoder.put(value, DEPTH)
    return b"".join(encoder.parts)


class _Encoder:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = self.items = 0

    def put(self, value: Any, depth: int) -> None:
        kind = type(value)
        self.items += 1
        if not depth or self.items > ITEMS:
            raise NotPlain(f"a value of more than {ITEMS} parts" if depth else f"a value nested deeper than {DEPTH}")
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            tag, write = scalar
            self._add(tag, write(value))
        elif kind in _DICTS:
            self._add(b"d", _LENGTH.pack(len(value)))
            for key, inner in dict.items(value):
                self.put(key, depth - 1)
                self.put(inner, depth - 1)
        elif kind in _SEQUENCES:
            self._several(_SEQUENCES[kind], value, len(value), depth)
        elif isinstance(value, Iterator):
            drained = list(islice(value, ITEMS + 1))
            self._several(b"I", drained, len(drained), depth)
        else:
            raise NotPlain(f"a value of type {kind.__name__}")

    def _several(self, tag: bytes, values: Iterable[object], count: int, depth: int) -> None:
        self._add(tag, _LENGTH.pack(count))
        for value in values:
            self.put(value, depth - 1)

    def _add(self, tag: bytes, data: bytes) -> None:
        self.size += len(tag) + len(data)
        if self.size > LIMIT:
            raise NotPlain(f"a value of more than {LIMIT} bytes")
        self.parts += (tag, data)


def _sized(data: bytes) -> bytes:
    if len(data) > LIMIT:
        raise NotPlain(f"a value of more than {LIMIT} bytes")
    return _LENGTH.pack(len(data)) + data


def _integer(value: int) -> bytes:
    return _sized(value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _range(value: range) -> bytes:
    return _integer(value.start) + _integer(value.stop) + _integer(value.step)


_SCALARS: dict[type, tuple[bytes, Callable[[Any], bytes]]] = {
    type(None): (b"N", lambda _: b""),
    bool: (b"?", lambda value: b"\1" if value else b"\0"),
    int: (b"i", _integer),
    float: (b"f", _FLOAT.pack),
    complex: (b"c", lambda value: _COMPLEX.pack(value.real, value.imag)),
    str: (b"s", lambda value: _sized(value.encode("utf-8", "surrogatepass"))),
    bytes: (b"b", _sized),
    range: (b"r", _range),
}
_SEQUENCES: dict[type, bytes] = {list: b"l", tuple: b"t", set: b"S", frozenset: b"Z"}


def decode(data: bytes) -> Any:
    """Return the value that bytes stand for; of the listed types only, iterators included.

    Raises:
        Malformed: if they are not exactly one value of this encoding in its limits.
    """
    if len(data) > LIMIT:
        raise MalformedValue(f"a message of more than {LIMIT} bytes")
    decoder = _Decoder(data)
    try:
        value = decoder.take(DEPTH)
    except (struct.error, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
        raise MalformedValue(f"no message: {error}") from None
    if decoder.at != len(data):
        raise MalformedValue("bytes after the value")
    return value


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.items = data, 0, 0

    def take(self, depth: int) -> Any:
        self.items += 1
        if not depth or self.items > ITEMS:
            raise MalformedValue("too deep or too many values")
        tag = self._bytes(1)
        read = _READERS.get(tag)
        if read is None:
            raise MalformedValue(f"no value begins with {tag!r}")
        return read(self, depth - 1)

    def _bytes(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise MalformedValue("a value that is cut off")
        part = self.data[self.at : end]
        self.at = end
        return part

    def _length(self) -> int:
        return int(_LENGTH.unpack(self._bytes(4))[0])

    def _text(self) -> bytes:
        return self._bytes(self._length())

    def _flag(self) -> bool:
        return {b"\0": False, b"\1": True}.get(self._bytes(1)) is True

    def _whole(self) -> int:
        return int.from_bytes(self._text(), "big", signed=True)

    def _list(self, depth: int) -> list[Any]:
        return [self.take(depth) for _ in range(self._length())]

    def _dict(self, depth: int) -> dict[Any, Any]:
        count = self._length()
        pairs = {self.take(depth): self.take(depth) for _ in range(count)}
        _distinct(len(pairs), count)
        return pairs

    def _set(self, depth: int) -> set[Any]:
        count = self._length()
        members = {self.take(depth) for _ in range(count)}
        _distinct(len(members), count)
        return members


def _distinct(distinct: int, count: int) -> None:
    if distinct != count:
        raise MalformedValue("a key that comes twice")


_READERS: dict[bytes, Callable[[_Decoder, int], Any]] = {
    b"N": lambda _, __: None,
    b"?": lambda it, _: it._flag(),
    b"i": lambda it, _: it._whole(),
    b"f": lambda it, _: _FLOAT.unpack(it._bytes(8))[0],
    b"c": lambda it, _: complex(*_COMPLEX.unpack(it._bytes(16))),
    b"s": lambda it, _: it._text().decode("utf-8", "surrogatepass"),
    b"b": lambda it, _: it._text(),
    b"r": lambda it, _: range(it._whole(), it._whole(), it._whole()),
    b"l": lambda it, depth: it._list(depth),
    b"t": lambda it, depth: tuple(it._list(depth)),
    b"S": lambda it, depth: it._set(depth),
    b"Z": lambda it, depth: frozenset(it._set(depth)),
    b"d": lambda it, depth: it._dict(depth),
    b"I": lambda it, depth: iter(it._list(depth)),
}
