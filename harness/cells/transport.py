"""Transport between a cell and the trusted side: orders to the fork server, and messages of length-prefixed JSON.

Never pickle: a message from a cell may hold anything that a strategy made up, so every number and key is checked.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
LIMIT = 64 << 20
"""The largest message to a cell, in bytes; those from a cell are much smaller (`bounds.MESSAGE`)."""
ORDER = struct.Struct(">cQ")
"""An order to the fork server: `START` (with a channel) or `END`, and the job's number; or `BIND`, and the number of
bytes of a spec, which follow."""
START, END, BIND = b"J", b"K", b"B"
GREETING = b"\n"
"""A cell's first byte, before the strategy is there: the number of its process comes with it."""
PLAIN = tuple(f"ctxbench.strategies.{name}" for name in ("repocoder", "stored"))
"""Modules of our own strategies that need no parser. A server for these alone holds little, and every cell pays for
what its server holds."""
_LENGTH = struct.Struct(">I")
_LONGEST_NUMBER = 19
"""Digits: none of our numbers is as long, and Python's own may be without end."""


class Garbage(ValueError):
    """Raised when a message breaks the protocol."""


def send(
    channel: socket.socket, message: Mapping[str, Any], *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> int:
    """Send one message and return its size in bytes; block until it is taken.

    Args:
        channel: to the other side.
        message: the message.
        most: the most bytes that it may have.
        look: called now and then while the message waits, if the channel has a timeout; may raise to end the wait.

    Raises:
        Garbage: if it has more bytes than `most`.
    """
    raw = json.dumps(message).encode("ascii")
    if len(raw) > most:
        raise Garbage(f"a message of {len(raw)} bytes is over the limit of {most}")
    unsent = memoryview(_LENGTH.pack(len(raw)) + raw)
    while unsent:
        unsent = unsent[_patiently(lambda unsent=unsent: channel.send(unsent), look) :]  # type: ignore[misc]
    return len(raw)


def take(channel: socket.socket) -> dict[str, Any]:
    """Return the next message of the trusted side, which is not checked.

    Raises:
        EOFError: if the other side has gone.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, None))
    message: dict[str, Any] = json.loads(_exactly(channel, length, None))
    return message


def receive(
    channel: socket.socket, *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> tuple[dict[str, Any], int]:
    """Return the next message and its size in bytes.

    Args:
        channel: to the other side.
        most: the most bytes that it may have.
        look: called now and then while a part is missing, if the channel has a timeout; may raise to end the wait.

    Raises:
        EOFError: if the other side has gone.
        Garbage: if it is not a JSON object, or over the limit.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size, look))
    if length > most:
        raise Garbage(f"a message of {length} bytes is over the limit of {most}")
    return _parsed(_exactly(channel, length, look)), length


def _exactly(channel: socket.socket, size: int, look: Callable[[], None] | None) -> bytes:
    parts: list[bytes] = []
    while size:
        most = min(size, 1 << 20)
        part = _patiently(lambda most=most: channel.recv(most), look)  # type: ignore[misc]
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
        if size and look is not None:
            look()
    return b"".join(parts)


def _patiently(attempt: Callable[[], T], look: Callable[[], None] | None) -> T:
    """Try again after each timeout, until `look` raises."""
    while True:
        try:
            return attempt()
        except TimeoutError:
            if look is None:
                raise
        look()


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        message = json.loads(
            raw.decode("ascii"),
            parse_constant=_no_number,
            parse_float=_float,
            parse_int=_int,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError) as error:
        raise Garbage(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise Garbage("not a JSON object")
    return message


def _no_number(word: str) -> float:
    raise Garbage(f"{word} is no number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Garbage(f"{text:.20} is no number")
    return number


def _int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise Garbage(f"a number of {len(text)} digits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Garbage("an object has a key twice")
    return members
