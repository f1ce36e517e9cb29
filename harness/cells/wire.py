"""What is said between a cell and the trusted side: length-prefixed JSON, checked on arrival.

Never pickle: what a cell sends is data that the strategy may have made up.
"""

from __future__ import annotations

import dataclasses
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

from bench.retrieval.types import Hit
from bench.types import Cursor, Kind, Language, Place, Query, Snippet, StoredContext
from bench.windows import WindowHit
from strategies.api import Block, BlockKind, Dropped, Prompt

LIMIT = 64 * 1024 * 1024
"""The largest message, in bytes."""
ORDER = struct.Struct(">cQ")
"""An order to the fork server: `START` (with a channel) or `END`, and the job's number."""
START, END = b"J", b"K"
_LENGTH = struct.Struct(">I")


class Garbage(ValueError):
    """Raised when a message is not what the protocol says."""


def send(channel: socket.socket, message: Mapping[str, Any]) -> None:
    """Send one message; blocks until it is taken."""
    raw = json.dumps(message).encode("ascii")
    if len(raw) > LIMIT:
        raise Garbage(f"a message of {len(raw)} bytes is over the limit of {LIMIT}")
    channel.sendall(_LENGTH.pack(len(raw)) + raw)


def receive(channel: socket.socket) -> dict[str, Any]:
    """Return the next message.

    Raises:
        EOFError: if the other side has gone.
        Garbage: if it is not a JSON object, or over the limit.
    """
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    if length > LIMIT:
        raise Garbage(f"a message of {length} bytes is over the limit of {LIMIT}")
    try:
        message = json.loads(_exactly(channel, length))
    except (ValueError, RecursionError) as error:
        raise Garbage(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise Garbage("not a JSON object")
    return message


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def dump_query(query: Query) -> dict[str, Any]:
    """Return a query as JSON data."""
    return dataclasses.asdict(query)


def load_query(data: Mapping[str, Any]) -> Query:
    """Return the query that `dump_query` wrote; the trusted side made it, so it is not checked."""
    changed = {
        "language": Language(data["language"]),
        "kind": Kind(data["kind"]),
        "cursor": Cursor(**data["cursor"]),
        "stored": tuple(_load_stored(one) for one in data["stored"]),
    }
    return Query(**{**data, **changed})


def _load_stored(data: Mapping[str, Any]) -> StoredContext:
    return StoredContext(**{**data, "snippets": tuple(Snippet(**one) for one in data["snippets"])})


def dump_hits(hits: tuple[WindowHit, ...]) -> list[Any]:
    """Return retrieved windows as JSON data."""
    return [[hit.text, hit.score, [_dump_place(place) for place in hit.places]] for hit in hits]


def load_hits(data: list[Any]) -> tuple[WindowHit, ...]:
    """Return the windows that `dump_hits` wrote."""
    return tuple(WindowHit(text=text, score=score, places=_load_places(places)) for text, score, places in data)


def dump_found(hits: tuple[Hit, ...]) -> list[Any]:
    """Return found units as JSON data."""
    return [[_dump_place(hit.place), hit.text, hit.score, hit.name, hit.matched] for hit in hits]


def load_found(data: list[Any]) -> tuple[Hit, ...]:
    """Return the units that `dump_found` wrote."""
    return tuple(
        Hit(place=Place(path=path, start=start, end=end), text=text, score=score, name=name, matched=matched)
        for (path, start, end), text, score, name, matched in data
    )


def dump_prompt(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt as JSON data."""
    return {
        "blocks": [[b.kind, b.text, [_dump_place(p) for p in b.places], b.score, b.cut] for b in prompt.blocks],
        "dropped": [[d.kind, [_dump_place(p) for p in d.places], d.score, d.reason] for d in prompt.dropped],
        "flags": list(prompt.flags),
    }


def load_prompt(data: object) -> Prompt:
    """Return the prompt that a cell sent, every field checked.

    Raises:
        Garbage: if a part is missing or of another type.
    """
    try:
        checked(data, dict)
        blocks, dropped, flags = data["blocks"], data["dropped"], data["flags"]  # type: ignore[index]
        return Prompt(
            blocks=tuple(_load_block(*block) for block in blocks),
            dropped=tuple(_load_dropped(*item) for item in dropped),
            flags=tuple(checked(flag, str) for flag in flags),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Garbage(f"not a prompt: {type(error).__name__}: {error}") from None


def _load_block(kind: object, text: object, places: list[Any], score: object, cut: object) -> Block:
    return Block(
        kind=BlockKind(checked(kind, str)),
        text=checked(text, str),
        places=_load_places(places),
        score=_load_score(score),
        cut=checked(cut, bool),
    )


def _load_dropped(kind: object, places: list[Any], score: object, reason: object) -> Dropped:
    return Dropped(
        kind=BlockKind(checked(kind, str)),
        places=_load_places(places),
        score=_load_score(score),
        reason=checked(reason, str),
    )


def _load_score(score: object) -> float | None:
    return None if score is None else float(checked(score, float, int))


def _dump_place(place: Place) -> list[Any]:
    return [place.path, place.start, place.end]


def _load_places(places: list[Any]) -> tuple[Place, ...]:
    return tuple(
        Place(path=checked(path, str), start=checked(start, int), end=checked(end, int)) for path, start, end in places
    )


def checked(value: Any, *kinds: type) -> Any:
    """Return the value if it is exactly of one of the types (a bool is no int).

    Raises:
        Garbage: if not.
    """
    if type(value) not in kinds:
        raise Garbage(f"{value!r:.60} is not {' or '.join(kind.__name__ for kind in kinds)}")
    return value
