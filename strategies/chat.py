"""Chats with tool calls, and their text format for models without tool calls.

A message follows a heading (``### user``). Qwen and Hermes models are trained on the tags of calls:

    <tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ctxbench.bench.files import sha256

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_CALL = re.compile(rf"{_OPEN}(.*?)(?:{_CLOSE}|$)", re.S)
_KINDS: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"type": kind} for kind in ("string", "integer", "number", "boolean")},
    "strings": {"type": "array", "items": {"type": "string"}},
}
KINDS = tuple(_KINDS)
_DECODER = json.JSONDecoder()
HEADING = "### "
_RULES = f"""\
You can call tools. To call one, end your answer with a line of this form:
{_OPEN}{{"name": "NAME", "arguments": {{"PARAMETER": VALUE}}}}{_CLOSE}
Its result is the next message. These are the tools:
"""


class Role(StrEnum):
    """A message's author."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    """A tool call's result. Results follow the message with the calls, in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParameter:
    """A tool's parameter."""

    name: str
    help: str
    kind: str = "string"
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the model may call. The strategy executes it."""

    name: str
    help: str
    parameters: tuple[ToolParameter, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        properties = {p.name: {**_KINDS[p.kind], "description": p.help} for p in self.parameters}
        required = [p.name for p in self.parameters if not p.optional]
        return {"type": "object", "properties": properties, "required": required}

    def __str__(self) -> str:
        """Describe the tool, in the text format."""
        lines = [f"- {self.name}: {self.help}"]
        lines += [f"    {p.name} ({p.kind}{', optional' * p.optional}): {p.help}" for p in self.parameters]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's tool call, unchecked."""

    name: str
    arguments: str
    """JSON text, possibly malformed."""

    @property
    def values(self) -> dict[str, Any] | None:
        """Arguments by name; None if they are not a JSON object."""
        values = _json(self.arguments)
        return values if isinstance(values, dict) else None

    def __str__(self) -> str:
        """Return the call in the text format."""
        values = self.values
        content = {"name": self.name, "arguments": self.arguments if values is None else values}
        return f"{_OPEN}{_written(content)}{_CLOSE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A chat message."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls, in the model's messages only."""

    @classmethod
    def read(cls, answer: str) -> Message:
        """Parse a model's answer in the text format.

        A malformed call stays text. If an answer lacks tags and all its JSON objects are calls, other text is dropped.
        """
        if _OPEN not in answer and (bare := _bare(answer)):
            return cls(role=Role.ASSISTANT, calls=bare)
        calls = [call for written in _CALL.findall(answer) if (call := _call(written)) is not None]
        text = _CALL.sub(lambda written: written[0] if _call(written[1]) is None else "", answer)
        return cls(role=Role.ASSISTANT, text=text.strip(), calls=tuple(calls))

    def __str__(self) -> str:
        """Return the message in the text format."""
        return "\n".join(filter(None, [self.text, *map(str, self.calls)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Messages, oldest first, and the tools that the model may call next."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()

    def then(self, *messages: Message) -> Chat:
        """Return the chat with more messages."""
        return Chat(messages=(*self.messages, *messages), tools=self.tools)

    @property
    def text(self) -> str:
        """The chat in the text format, up to the point where the model continues."""
        rules = _RULES + "\n".join(map(str, self.tools)) + "\n\n" if self.tools else ""
        messages = "".join(f"{HEADING}{message.role}\n{message}\n\n" for message in self.messages)
        return f"{rules}{messages}{HEADING}{Role.ASSISTANT}\n"

    @property
    def digest(self) -> str:
        """SHA-256 of messages and tools."""
        messages = [[m.role, m.text, [[c.name, c.arguments] for c in m.calls]] for m in self.messages]
        return sha256(json.dumps([messages, [[tool.name, tool.help, tool.schema] for tool in self.tools]]))

    @property
    def unanswered(self) -> str:
        """The first error in the order of tool calls and results; empty if each call has its result, in order."""
        due = 0
        for at, message in enumerate(self.messages):
            if (message.role is Role.TOOL) != (due > 0):
                return f"message {at} has the role {message.role}; calls without a result: {due}"
            due = due - 1 if message.role is Role.TOOL else len(message.calls)
        return f"calls at the end lack results: {due}" if due else ""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(content: Any) -> str:
    return _whole(json.dumps(content, ensure_ascii=False))


def _whole(text: str) -> str:
    """Replace lone surrogates. JSON allows them, but they cannot be stored or sent."""
    return text.encode("utf-8", "replace").decode()


def _call(text: str) -> ToolCall | None:
    return _call_of(_json(text))


def _call_of(content: Any) -> ToolCall | None:
    if not isinstance(content, dict) or not isinstance(content.get("name"), str) or not content["name"]:
        return None
    arguments = content.get("arguments", content.get("parameters", {}))
    return ToolCall(
        name=_whole(content["name"]), arguments=_whole(arguments) if isinstance(arguments, str) else _written(arguments)
    )


def _bare(answer: str) -> tuple[ToolCall, ...]:
    calls: dict[ToolCall, None] = {}
    end = 0
    while (start := answer.find("{", end)) >= 0:
        try:
            content, end = _DECODER.raw_decode(answer, start)
        except (ValueError, RecursionError):
            break
        if (call := _call_of(content)) is None:
            return ()
        calls[call] = None
    return tuple(calls)
