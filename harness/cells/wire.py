"""What is said between a cell and the trusted side: length-prefixed JSON, checked on arrival.

Never pickle: what a cell sends is data that the strategy may have made up.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.types import Hit
from ctxbench.bench.types import Cursor, Kind, Language, Place, Query, Snippet, StoredContext
from ctxbench.bench.windows import WindowHit
from ctxbench.harness.cells import bounds
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt
from ctxbench.strategies.parameters import StrategyParameter
from ctxbench.strategies.registration import Registration

T = TypeVar("T")
LIMIT = 64 << 20
"""The largest message to a cell, in bytes; those from a cell are much smaller (`bounds.MESSAGE`)."""
ORDER = struct.Struct(">cQ")
"""An order to the fork server: `START` (with a channel) or `END`, and the job's number."""
START, END = b"J", b"K"
GREETING = b"\n"
"""What a cell sends before the strategy is there: with it comes the number of its process."""
_LENGTH = struct.Struct(">I")
_LONGEST_NUMBER = 19
"""Digits: no number of ours is as long, and Python's own may be without end."""
_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_DIGEST = re.compile(r"[0-9a-f]{0,64}")


class Garbage(ValueError):
    """Raised when a message is not what the protocol says."""


def send(
    channel: socket.socket, message: Mapping[str, Any], *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> int:
    """Send one message and return its size in bytes; blocks until it is taken.

    Args:
        channel: where it goes.
        message: what is sent.
        most: bytes that it may have.
        look: called now and then while it is not taken, if the channel has a timeout; what it raises ends this.

    Raises:
        Garbage: if it has more bytes than `most`.
    """
    raw = json.dumps(message).encode("ascii")
    if len(raw) > most:
        raise Garbage(f"a message of {len(raw)} bytes is over the limit of {most}")
    left = memoryview(_LENGTH.pack(len(raw)) + raw)
    while left:
        left = left[_patiently(lambda left=left: channel.send(left), look) :]  # type: ignore[misc]
    return len(raw)


def receive(
    channel: socket.socket, *, most: int = LIMIT, look: Callable[[], None] | None = None
) -> tuple[dict[str, Any], int]:
    """Return the next message and its size in bytes.

    Args:
        channel: where it comes from.
        most: bytes that it may have.
        look: called now and then while it is not all here, if the channel has a timeout; what it raises ends this.

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
    """Try again after each timeout, as long as `look` lets it."""
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
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Garbage("an object has a key twice")
    return found


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
    """Return the prompt that a cell sent, every field checked; see `bounds` for what it may hold at most.

    Raises:
        Garbage: if a part is missing, of another type, or out of bounds.
    """
    try:
        parts = fields(data, "blocks", "dropped", "flags")
        prompt = Prompt(
            blocks=tuple(_load_block(*block) for block in items(parts["blocks"], bounds.BLOCKS, "blocks")),
            dropped=tuple(_load_dropped(*item) for item in items(parts["dropped"], bounds.DROPPED, "dropped blocks")),
            flags=tuple(word(flag) for flag in items(parts["flags"], bounds.FLAGS, "flags")),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise Garbage(f"not a prompt: {error}") from None
    every: list[Block | Dropped] = [*prompt.blocks, *prompt.dropped]
    places = [place for block in every for place in block.places]
    for what, amount, most in (
        ("characters", sum(len(block.text) for block in prompt.blocks), bounds.CHARACTERS),
        ("places", len(places), bounds.PLACES),
        ("lines that its places span", sum(place.end - place.start for place in places), bounds.LINES),
    ):
        if amount > most:
            raise Garbage(f"a prompt with more than {most:,} {what}")
    return prompt


def _load_block(kind: object, text: object, places: object, score: object, cut: object) -> Block:
    return Block(
        kind=BlockKind(checked(kind, str)),
        text=checked(text, str),
        places=_load_places(places),
        score=_load_score(score),
        cut=checked(cut, bool),
    )


def _load_dropped(kind: object, places: object, score: object, reason: object) -> Dropped:
    return Dropped(
        kind=BlockKind(checked(kind, str)),
        places=_load_places(places),
        score=_load_score(score),
        reason=word(reason),
    )


def _load_score(score: object) -> float | None:
    return None if score is None else number(score, -bounds.SCORE, bounds.SCORE)


def dump_registration(registration: Registration) -> dict[str, Any]:
    """Return what a strategy says of itself as JSON data."""
    parameters = [
        [p.name, p.kind.__name__, p.default, list(p.choices), p.least, p.wraps] for p in registration.parameters
    ]
    plain = ("name", "drafts", "executes", "text", "source", "version")
    return {
        **{field: getattr(registration, field) for field in plain},
        "kinds": sorted(registration.kinds),
        "parameters": parameters,
    }


def load_registration(data: object, name: str) -> Registration:
    """Return what a strategy in a cell says of itself, every field checked.

    Args:
        data: what the cell sent.
        name: how the strategy must be called.

    Raises:
        Garbage: if a part is missing, of another type, or out of bounds.
    """
    try:
        parts = fields(data, "name", "kinds", "drafts", "executes", "parameters", "text", "source", "version")
        parameters = items(parts["parameters"], bounds.FLAGS, "parameters")
        registration = Registration(
            name=word(parts["name"]),
            kinds=frozenset(Kind(kind) for kind in items(parts["kinds"], len(Kind), "kinds")),
            drafts=checked(parts["drafts"], bool),
            executes=checked(parts["executes"], bool),
            parameters=tuple(_load_parameter(*parameter) for parameter in parameters),
            text=text(parts["text"], bounds.TEXT),
            source=text(parts["source"], bounds.PATH),
            version=text(parts["version"], bounds.WORD),
        )
    except (TypeError, ValueError, OverflowError, InputFault) as error:
        raise Garbage(f"no registration: {error}") from None
    names = [parameter.name for parameter in registration.parameters]
    if registration.name != name or not registration.kinds or len(set(names)) < len(names):
        raise Garbage("no registration: another name, no kinds, or a parameter twice")
    if not _DIGEST.fullmatch(registration.version):
        raise Garbage("no registration: its version is no digest")
    return registration


def _load_parameter(
    name: object, kind: object, default: object, choices: object, least: object, wraps: object
) -> StrategyParameter:
    if not _IDENTIFIER.fullmatch(word(name)):
        raise Garbage(f"{name!r:.60} is no parameter's name")
    parameter = StrategyParameter(
        name=word(name),
        kind=_TYPES[word(kind)] if kind in _TYPES else _no_type(kind),
        default=None,
        choices=tuple(word(choice) for choice in items(choices, bounds.FLAGS, "choices")),
        least=None if least is None else number(least, -math.inf, math.inf),
        wraps=checked(wraps, bool),
    )
    if isinstance(default, str):
        text(default, bounds.PATH)
    return dataclasses.replace(parameter, default=parameter.read(checked(default, *_TYPES.values()), "its default"))


def _no_type(kind: object) -> type:
    raise Garbage(f"{kind!r:.60} is no parameter's type")


def _dump_place(place: Place) -> list[Any]:
    return [place.path, place.start, place.end]


def _load_places(places: object) -> tuple[Place, ...]:
    return tuple(_load_place(*place) for place in items(places, bounds.PLACES, "places"))


def _load_place(path: object, start: object, end: object) -> Place:
    first = whole(start, 0, bounds.LAST_LINE)
    return Place(path=text(path, bounds.PATH), start=first, end=whole(end, first, bounds.LAST_LINE))


@contextlib.contextmanager
def named(argument: str) -> Iterator[None]:
    """Say which argument it is that is refused inside."""
    try:
        yield
    except Garbage as error:
        raise Garbage(f"{argument}: {error}") from None


def checked(value: Any, *kinds: type) -> Any:
    """Return the value if it is exactly of one of the types (a bool is no int).

    Raises:
        Garbage: if not.
    """
    if type(value) not in kinds:
        raise Garbage(f"{value!r:.60} is not {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def fields(data: object, *names: str) -> dict[str, Any]:
    """Return an object that has these very keys.

    Raises:
        Garbage: if it is none, or has others.
    """
    found: dict[str, Any] = checked(data, dict)
    if found.keys() != set(names):
        given = ", ".join(sorted(found)) or "nothing"
        raise Garbage(f"no {', '.join(names)}, but {given:.100}")
    return found


def items(data: object, most: int, what: str) -> Sequence[Any]:
    """Return a list of `most` items at most.

    Raises:
        Garbage: if it is none, or longer.
    """
    found: list[Any] = checked(data, list)
    if len(found) > most:
        raise Garbage(f"{len(found):,} {what} are over the limit of {most:,}")
    return found


def text(data: object, most: int) -> str:
    """Return a text of `most` characters at most.

    Raises:
        Garbage: if it is none, or longer.
    """
    found: str = checked(data, str)
    if len(found) > most:
        raise Garbage(f"a text of {len(found):,} characters is over the limit of {most:,}")
    return found


def word(data: object) -> str:
    """Return a short text without anything that a terminal or a database would not take as it is.

    Raises:
        Garbage: if it is none.
    """
    found = text(data, bounds.WORD)
    if not found.isprintable():
        raise Garbage(f"{found!r:.60} has characters that cannot be printed")
    return found


def whole(data: object, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`.

    Raises:
        Garbage: if it is none.
    """
    found: int = checked(data, int)
    if not least <= found <= most:
        raise Garbage(f"{found} is not from {least} to {most}")
    return found


def number(data: object, least: float, most: float) -> float:
    """Return a finite number from `least` to `most`.

    Raises:
        Garbage: if it is none.
    """
    found = float(checked(data, float, int))
    if not math.isfinite(found) or not least <= found <= most:
        raise Garbage(f"{found!r:.60} is no number from {least:g} to {most:g}")
    return found
