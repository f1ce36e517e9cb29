"""Converts the messages of cells to and from JSON data. Invalid data from a cell raises `ProtocolError`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxbench.bench import languages
from ctxbench.bench.errors import InputFault
from ctxbench.bench.parameters import Parameter
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Cursor, Kind, Place, Query, StoredContext, StoredSnippet
from ctxbench.bench.windows import WindowHit
from ctxbench.harness.cells import protocol
from ctxbench.harness.cells.protocol import ProtocolError
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt
from ctxbench.strategies.chat import KINDS, Chat, Message, Role, Tool, ToolCall, ToolParameter
from ctxbench.strategies.registry import Registration

_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_DIGEST = re.compile(r"[0-9a-f]{0,64}")
_TEXT = {"text": str, "ranker": str}
ARGUMENTS: Mapping[str, Mapping[str, type]] = {
    "files": {},
    "read": {"path": str},
    "similar_windows": {"text": str, "top": int, "size": int, "stride": int, "before": int},
    "search": {**_TEXT, "unit": str, "top": int},
    "similarity": {**_TEXT, "candidates": list},
    "grep": {"pattern": str, "top": int},
    "engine": {"name": str, "text": str, "top": int, "before": int},
    "execute": {"program": str, "seconds": float},
}
"""Question -> names and types of its arguments. The items of a list are texts."""
_SWITCHES = ("optional", "wraps", "unmasks", "asks_engine", "names_encoder")
_PARAMETER = ("name", "kind", "default", "choices", "least", "most", *_SWITCHES)


_QUERY_FIELDS = tuple(field.name for field in dataclasses.fields(Query))


def dump_query(query: Query) -> dict[str, Any]:
    """Return a query as JSON data."""
    # `asdict` alone copies every value, which takes ten times as long.
    data = {name: getattr(query, name) for name in _QUERY_FIELDS}
    return data | {
        "cursor": dataclasses.asdict(query.cursor),
        "stored": [dataclasses.asdict(context) for context in query.stored],
    }


def load_query(data: Mapping[str, Any]) -> Query:
    """Return the query that `dump_query` wrote. The data is not checked, because ctxbench itself sends it."""
    changed = {
        "language": languages.get(data["language"]),
        "kind": Kind(data["kind"]),
        "cursor": Cursor(**data["cursor"]),
        "stored": tuple(_load_stored(context) for context in data["stored"]),
    }
    return Query(**{**data, **changed})


def _load_stored(data: Mapping[str, Any]) -> StoredContext:
    return StoredContext(**{**data, "snippets": tuple(StoredSnippet(**snippet) for snippet in data["snippets"])})


def dump_hits(hits: tuple[WindowHit, ...]) -> list[Any]:
    """Return similar windows as JSON data."""
    return [[hit.text, hit.score, [_dump_place(place) for place in hit.places]] for hit in hits]


def load_hits(data: list[Any]) -> tuple[WindowHit, ...]:
    """Return the similar windows that `dump_hits` wrote."""
    return tuple(WindowHit(text=text, score=score, places=_load_places(places)) for text, score, places in data)


def dump_found(hits: tuple[Hit, ...]) -> list[Any]:
    """Return search hits as JSON data."""
    return [[_dump_place(hit.place), hit.text, hit.score, hit.name, hit.matched] for hit in hits]


def load_found(data: list[Any]) -> tuple[Hit, ...]:
    """Return the search hits that `dump_found` wrote."""
    return tuple(
        Hit(place=Place(path=path, start=start, end=end), text=text, score=score, name=name, matched=matched)
        for (path, start, end), text, score, name, matched in data
    )


def dump_prompt(prompt: Prompt) -> dict[str, Any]:
    """Return a prompt as JSON data."""
    return {
        "blocks": [[b.kind, b.text, [_dump_place(p) for p in b.places], b.score, b.cut] for b in prompt.blocks],
        "dropped": [[d.kind, [_dump_place(p) for p in d.places], d.score, d.reason, d.tokens] for d in prompt.dropped],
        "flags": list(prompt.flags),
    }


def dump_chat(chat: Chat) -> dict[str, Any]:
    """Return a chat as JSON data."""
    return {
        "messages": [[m.role, m.text, [[call.name, call.arguments] for call in m.calls]] for m in chat.messages],
        "tools": [
            [tool.name, tool.help, [[p.name, p.help, p.kind, p.optional] for p in tool.parameters]]
            for tool in chat.tools
        ],
    }


def load_asked(data: object) -> Prompt | Chat:
    """Return the prompt or chat that a cell sends to the model. Every field is checked."""
    if "messages" not in checked(data, dict):
        return load_prompt(data)
    try:
        parts = fields(data, "messages", "tools")
        chat = Chat(
            messages=tuple(
                _load_message(*message) for message in items(parts["messages"], protocol.BLOCKS, "messages")
            ),
            tools=tuple(_load_tool(*tool) for tool in items(parts["tools"], protocol.FLAGS, "tools")),
        )
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"the chat is not valid: {error}") from None
    if chat.unanswered:
        raise ProtocolError(f"the chat is not valid: {chat.unanswered}")
    if len(chat.text) > protocol.CHARACTERS:
        raise ProtocolError(f"the chat has more than {protocol.CHARACTERS:,} characters")
    return chat


def _load_message(role: object, said: object, calls: object) -> Message:
    return Message(
        role=Role(checked(role, str)),
        text=checked(said, str),
        calls=tuple(
            # A model wrote both texts, so they may contain any character.
            ToolCall(name=checked(name, str), arguments=checked(arguments, str))
            for name, arguments in items(calls, protocol.FLAGS, "tool calls")
        ),
    )


def _load_tool(name: object, help_text: object, parameters: object) -> Tool:
    return Tool(
        name=word(name),
        help=text(help_text, protocol.TEXT),
        parameters=tuple(
            _load_tool_parameter(*parameter) for parameter in items(parameters, protocol.FLAGS, "tool parameters")
        ),
    )


def _load_tool_parameter(name: object, help_text: object, kind: object, optional: object) -> ToolParameter:
    if kind not in KINDS:
        raise ProtocolError(f"{kind!r:.60} is not a type of tool parameter")
    return ToolParameter(
        name=word(name), help=text(help_text, protocol.TEXT), kind=checked(kind, str), optional=checked(optional, bool)
    )


def load_prompt(data: object) -> Prompt:
    """Return the prompt that a cell sent. Every field is checked against the limits of `protocol`."""
    try:
        parts = fields(data, "blocks", "dropped", "flags")
        prompt = Prompt(
            blocks=tuple(_load_block(*block) for block in items(parts["blocks"], protocol.BLOCKS, "blocks")),
            dropped=tuple(_load_dropped(*item) for item in items(parts["dropped"], protocol.DROPPED, "dropped blocks")),
            flags=tuple(word(flag) for flag in items(parts["flags"], protocol.FLAGS, "flags")),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise ProtocolError(f"the prompt is not valid: {error}") from None
    every: list[Block | Dropped] = [*prompt.blocks, *prompt.dropped]
    places = [place for block in every for place in block.places]
    for what, amount, most in (
        ("characters", sum(len(block.text) for block in prompt.blocks), protocol.CHARACTERS),
        ("places", len(places), protocol.PLACES),
        ("lines in its places", sum(place.end - place.start for place in places), protocol.LINES),
    ):
        if amount > most:
            raise ProtocolError(f"the prompt has more than {most:,} {what}")
    return prompt


def _load_block(kind: object, text: object, places: object, score: object, cut: object) -> Block:
    return Block(
        kind=BlockKind(checked(kind, str)),
        text=checked(text, str),
        places=_load_places(places),
        score=_load_score(score),
        cut=checked(cut, bool),
    )


def _load_dropped(kind: object, places: object, score: object, reason: object, tokens: object) -> Dropped:
    return Dropped(
        kind=BlockKind(checked(kind, str)),
        places=_load_places(places),
        score=_load_score(score),
        reason=word(reason),
        tokens=whole(tokens, 0, protocol.CHARACTERS),
    )


def _load_score(score: object) -> float | None:
    return None if score is None else number(score, -protocol.SCORE, protocol.SCORE)


def dump_registration(registration: Registration) -> dict[str, Any]:
    """Return a strategy's registration as JSON data."""
    parameters = [
        {field: getattr(parameter, field) for field in _PARAMETER}
        | {"kind": parameter.kind.__name__, "choices": list(parameter.choices)}
        for parameter in registration.parameters
    ]
    plain = ("name", "drafts", "executes", "text", "source", "version")
    return {
        **{field: getattr(registration, field) for field in plain},
        "kinds": sorted(registration.kinds),
        "languages": sorted(registration.languages),
        "parameters": parameters,
    }


def load_registration(data: object, name: str) -> Registration:
    """Return the registration of the strategy `name`, as a cell sent it. Every field is checked."""
    try:
        lists = ("kinds", "languages", "parameters")
        parts = fields(data, "name", *lists, "drafts", "executes", "text", "source", "version")
        parameters = items(parts["parameters"], protocol.FLAGS, "parameters")
        registration = Registration(
            name=word(parts["name"]),
            kinds=frozenset(Kind(kind) for kind in items(parts["kinds"], len(Kind), "kinds")),
            languages=frozenset(map(word, items(parts["languages"], protocol.FLAGS, "languages"))),
            drafts=checked(parts["drafts"], bool),
            executes=checked(parts["executes"], bool),
            parameters=tuple(_load_parameter(parameter) for parameter in parameters),
            text=text(parts["text"], protocol.TEXT),
            source=text(parts["source"], protocol.PATH),
            version=text(parts["version"], protocol.WORD),
        )
    except (TypeError, ValueError, OverflowError, InputFault) as error:
        raise ProtocolError(f"the registration is not valid: {error}") from None
    names = [parameter.name for parameter in registration.parameters]
    if registration.name != name or not registration.kinds or len(set(names)) < len(names):
        raise ProtocolError("the registration has another strategy's name, no kinds, or a duplicate parameter name")
    if not _DIGEST.fullmatch(registration.version):
        raise ProtocolError("the registration's version is not a digest")
    return registration


def _load_parameter(data: object) -> Parameter:
    parts = fields(data, *_PARAMETER)
    name, kind, default = (parts[field] for field in ("name", "kind", "default"))
    if not _IDENTIFIER.fullmatch(word(name)):
        raise ProtocolError(f"{name!r:.60} is not a valid parameter name")
    parameter = Parameter(
        name=word(name),
        kind=_TYPES[word(kind)] if kind in _TYPES else _no_type(kind),
        choices=tuple(word(choice) for choice in items(parts["choices"], protocol.FLAGS, "choices")),
        least=_load_bound(parts["least"]),
        most=_load_bound(parts["most"]),
        **{field: checked(parts[field], bool) for field in _SWITCHES},
    )
    if isinstance(default, str):
        text(default, protocol.PATH)
    stated = checked(default, *_TYPES.values(), type(None))
    return dataclasses.replace(parameter, default=parameter.read(stated, "its default"))


def _load_bound(bound: object) -> float | None:
    return None if bound is None else number(bound, -math.inf, math.inf)


def _no_type(kind: object) -> type:
    raise ProtocolError(f"{kind!r:.60} is not a parameter type")


def _dump_place(place: Place) -> list[Any]:
    return [place.path, place.start, place.end]


def _load_places(places: object) -> tuple[Place, ...]:
    return tuple(_load_place(*place) for place in items(places, protocol.PLACES, "places"))


def _load_place(path: object, start: object, end: object) -> Place:
    first = whole(start, 0, protocol.LAST_LINE)
    return Place(path=text(path, protocol.PATH), start=first, end=whole(end, first, protocol.LAST_LINE))


@contextlib.contextmanager
def named(argument: str) -> Iterator[None]:
    """Prefix a `ProtocolError` raised inside the context with the argument's name."""
    try:
        yield
    except ProtocolError as error:
        raise ProtocolError(f"{argument}: {error}") from None


def checked(value: Any, *kinds: type) -> Any:
    """Return the value if its type is exactly one of `kinds`; a bool is not an int."""
    if type(value) not in kinds:
        raise ProtocolError(f"{value!r:.60} is not of type {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def fields(data: object, *names: str) -> dict[str, Any]:
    """Return `data`, checked to be an object with exactly the keys `names`."""
    members: dict[str, Any] = checked(data, dict)
    if members.keys() != set(names):
        names_sent = ", ".join(sorted(members)) or "nothing"
        raise ProtocolError(f"an object has the keys {names_sent:.100} instead of {', '.join(names)}")
    return members


def items(data: object, most: int, what: str) -> Sequence[Any]:
    """Return `data`, checked to be a list of at most `most` items. `what` names the items in errors."""
    elements: list[Any] = checked(data, list)
    if len(elements) > most:
        raise ProtocolError(f"{len(elements):,} {what} are over the limit of {most:,}")
    return elements


def text(data: object, most: int) -> str:
    """Return `data`, checked to be a text of at most `most` characters."""
    string: str = checked(data, str)
    if len(string) > most:
        raise ProtocolError(f"a text has {len(string):,} characters, over the limit of {most:,}")
    return string


def word(data: object) -> str:
    """Return `data`, checked to be a short text of printable characters, safe for terminals and databases."""
    string = text(data, protocol.WORD)
    if not string.isprintable():
        raise ProtocolError(f"{string!r:.60} contains unprintable characters")
    return string


def whole(data: object, least: int, most: int) -> int:
    """Return `data`, checked to be a whole number from `least` to `most`."""
    integer: int = checked(data, int)
    if not least <= integer <= most:
        raise ProtocolError(f"{integer} is not between {least} and {most}")
    return integer


def number(data: object, least: float, most: float) -> float:
    """Return `data` as a float, checked to be a finite number from `least` to `most`."""
    value = float(checked(data, float, int))
    if not math.isfinite(value) or not least <= value <= most:
        raise ProtocolError(f"{value!r:.60} is not a number from {least:g} to {most:g}")
    return value


def fitting(call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Check the types of a question's arguments, and return the arguments.

    Raises:
        TypeError: if an argument has the wrong type.
    """
    if wrong := misfit(call, arguments):
        raise TypeError(wrong)
    return arguments


def misfit(call: str, arguments: Mapping[str, Any]) -> str:
    """Return a message about the first argument with a wrong type; empty if all types are right."""
    for name, kind in ARGUMENTS[call].items():
        value: Any = arguments[name]
        if type(value) is not kind:
            return f"{call}: {name} is {value!r:.60}, and should be of type {kind.__name__}"
        texts: Any = value if kind is list else ()
        for at, text in enumerate(texts):
            if type(text) is not str:
                return f"{call}: {name}[{at}] is {text!r:.60}, and should be of type str"
    return ""
