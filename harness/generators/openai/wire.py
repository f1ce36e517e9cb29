"""Requests to and replies from OpenAI-compatible servers, as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ctxbench.bench import code_tokens
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.escaping import visible
from ctxbench.harness.generators import answers, fim
from ctxbench.harness.generators.answers import LINE_CLOSE, LINE_OPEN
from ctxbench.harness.generators.base import MOST_TOKENS, CutShort, Request, Response, TooLong, sample_seed
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.strategies.chat import Chat, Message, Role, ToolCall

_BEGIN, _END = "<think>", "</think>"
"""Tags around the thoughts of open models. A server with the right parser removes the thoughts itself."""
_CODE = re.compile(
    rf"""
    ^[ \t]*(`{{3,}}|~{{3,}})(?!~)[^`\n]*\n(?:(?![ \t]*\1[ \t]*\w).*\n)*?[ \t]*\1[ \t]*$   # between fences
    | {LINE_OPEN}(?:(?!{LINE_OPEN})[\s\S])*?(?:{"|".join(LINE_CLOSE)})                       # between a line's marks
    | \[(?i:code)\](?:(?!\[(?i:code)\])[\s\S])*?\[/(?i:code)\]                            # between a function's
    | (?<![^\Wfrb])(?<!\\)(["'`])(?:\\.|(?!\2|{LINE_OPEN})[^\\\n])*\2                     # a string, no apostrophe
    """,
    re.M | re.X,
)
"""Matches code in an answer, where a thinking tag is ordinary text. Unclosed fences or backquotes are not code."""


def answer_after_thoughts(text: str) -> str | None:
    """Return a model's text after its thoughts; empty if the thoughts do not end; None without thoughts.

    Some chat templates write the start tag, so the text may contain only the end tag. An end tag inside code counts
    only if the text begins with the start tag and has no end tag outside code.
    """
    begun = text.lstrip().startswith(_BEGIN)
    if _END not in text:
        return "" if begun else None
    words = _CODE.sub(lambda code: " " * len(code[0]), text)
    before, end, _ = words.partition(_END)
    if begun and not end:
        before, _, _ = text.partition(_END)
    elif not begun and (not end or _BEGIN in before):
        return None
    return text[len(before) + len(_END) :]


Body = dict[str, Any]
SHORT, LONG = "max_tokens", "max_completion_tokens"
_STOPPED = ("stop", "eos", "eos_token", "stop_sequence", "end_turn")
_CALLED = ("tool_calls", "function_call")
_CUT = ("length", "max_tokens", "model_length")
_BROKEN = (None, "", "abort", "error", "insufficient_system_resource")
"""Finish reasons of a server that stopped early. The same request may succeed the next time."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_THOUGHT_PARTS = ("thinking", "reasoning")
_LONGEST = 200_000
"""Maximum characters of an answer. No run requests so many tokens, and scoring a longer answer takes minutes."""
_LABEL = 100
_READ = 1000
_FEW = 16
"""Token limit below which an empty answer is plausible, because the first token may be only part of a character."""
SHORTER = (
    "set window=TOKENS and tokenizer=FOLDER, so that prompts are cut; or set a "
    "smaller window or limit for the strategy, or serve the model with a longer context"
)

ROOM = "reserve tokens for thinking, for example thinking=8000, or switch it off with extra= (see docs/generator.md)"


def path(settings: OpenAISettings) -> str:
    """Return the path of requests, relative to the server's address."""
    return "/chat/completions" if settings.chat else "/completions"


def ends_with_line(request: Request, settings: OpenAISettings) -> bool:
    """Return whether to ask the server to end the answer at a newline, which saves tokens if only one line counts.

    An answer that begins with a blank line is requested again. For sampled answers, this would change the distribution,
    so only greedy requests end at a newline. Requests to chat models do not, because their code is between tags.
    """
    greedy = settings.extra.get("temperature", request.sampling.temperature) == 0
    return request.one_line and not settings.chat and greedy and "stop" not in settings.extra


def body(request: Request, settings: OpenAISettings, *, line: bool = False) -> Body:
    """Return the body of a request for one answer. With `line`, the answer ends with its first line.

    Greedy requests have temperature 0, without seed and top_p, which some servers refuse. Each of n completions is its
    own request with its own seed, because many servers ignore ``n``.
    """
    how = request.sampling
    fields: Body = {"model": settings.model}
    text = message(request, settings)
    if request.chat is not None:
        fields |= chat_fields(request.chat)
    else:
        system = [{"role": "system", "content": request.system}] * bool(request.system)
        fields |= {"messages": [*system, {"role": "user", "content": text}]} if settings.chat else {"prompt": text}
    # OpenAI's newer models accept only the long name, all other servers the short one. The limit includes thinking
    # tokens.
    fields[LONG if settings.chat and settings.is_openai else SHORT] = how.max_tokens + settings.thinking
    fields["temperature"] = how.temperature
    if how.temperature > 0:
        fields["seed"] = sample_seed(how.seed, request.index)
        if how.top_p < 1:
            fields["top_p"] = how.top_p
    if stops := [*how.stop, *([answers.LINE_END] if line else [])]:
        fields["stop"] = stops
    return with_extra(fields, settings)


def message(request: Request, settings: OpenAISettings) -> str:
    """Return the text to send: the message for a chat model, or the prompt."""
    return answers.line_message(request) if settings.chat else request.prompt.text


def sent(request: Request, settings: OpenAISettings) -> str:
    """Return the text of a request: all messages of its chat, or its message or prompt without `Request.system`."""
    if request.chat is None:
        return message(request, settings)
    return "\n".join(entry.text for entry in request.chat.messages)


def chat_fields(chat: Chat) -> Body:
    """Return a chat's messages and tools as fields of a request's body. Tool results refer to calls by number."""
    messages: list[Body] = []
    numbers = range(0)
    last = 0
    for entry in chat.messages:
        fields: Body = {"role": str(entry.role), "content": entry.text}
        if entry.role is Role.TOOL:
            fields["tool_call_id"] = _call_id(numbers[0])
            numbers = numbers[1:]
        if entry.calls:
            numbers = range(last, last + len(entry.calls))
            last = numbers.stop
            fields["tool_calls"] = [
                {"id": _call_id(at), "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
                for at, call in zip(numbers, entry.calls, strict=True)
            ]
        messages.append(fields)
    tools = [
        {"type": "function", "function": {"name": tool.name, "description": tool.help, "parameters": tool.schema}}
        for tool in chat.tools
    ]
    return {"messages": messages, **({"tools": tools} if tools else {})}


def _arguments(call: ToolCall) -> str:
    """Return a call's arguments. Invalid arguments become an empty object, because servers refuse them or crash."""
    return "{}" if call.values is None else call.arguments


def _call_id(number: int) -> str:
    """Return the id of a tool call: nine letters and digits, as Mistral's models require."""
    return f"call{number:05d}"


def renamed(fields: Body) -> Body:
    """Return a request's body with its field ``max_tokens`` renamed to ``max_completion_tokens``."""
    return {LONG if key == SHORT else key: value for key, value in fields.items()}


def with_extra(fields: Body, settings: OpenAISettings) -> Body:
    """Return a request's body with the spec's extra fields. A value of None removes the field."""
    return {key: value for key, value in {**fields, **settings.extra}.items() if value is not None}


class Garbled(Exception):
    """Raised for a reply with status 200 that is unusable: incomplete, inconsistent, or from another program."""


@dataclass(frozen=True, slots=True)
class Served:
    """The model behind an answer, as the server reports it."""

    model: str
    fingerprint: str = ""
    provider: str = ""
    """The service that ran the model, if the server only forwards requests."""
    counted: bool = True
    """Whether the server reported the numbers of tokens read and written."""
    repeats: bool = False
    """Whether the answer contained a secret that was sent."""

    def __str__(self) -> str:
        more = [self.fingerprint, f"by {self.provider}" if self.provider else ""]
        more += [] if self.counted else ["the server counts no tokens, so ctxbench counts them"]
        more += ["the server repeats the key in its answers, and ctxbench removed it"] if self.repeats else []
        return f"{self.model} ({', '.join(filter(None, more))})" if any(more) else self.model


@dataclass(frozen=True, slots=True)
class _Words:
    text: str
    thought: bool
    has_thoughts: bool = False


def failure(reply: Any) -> dict[str, Any] | None:
    """Return the error in a reply with status 200, as ``{"error": …}``; None without an error.

    Services that forward requests, such as OpenRouter, answer 200 before they know the outcome.
    """
    for error in (dig(reply, "error"), dig(reply, "choices", 0, "error")):
        if error:
            return {"error": error}
    return None


def response(reply: Any, request: Request, settings: OpenAISettings, seconds: float, *, least: int = 0) -> Response:
    """Return the answer in a reply.

    Raises:
        Garbled: if the reply contains no usable answer.
        MachineFault: if the service withheld the answer, the model read fewer than `least` tokens of the prompt, the
            reply has only thoughts, or prompt and answer exceed the window.
        InputFault: if the model's thoughts used up the tokens of the answer.
    """
    finish = dig(choice(reply), "finish_reason")
    finish = finish.lower() if isinstance(finish, str) else finish
    if finish in _BROKEN:
        raise Garbled(f"the answer ended without a valid reason (finish_reason {finish!r})")
    if finish not in (*_STOPPED, *_CUT, *(_CALLED if request.chat is not None else ())):
        # Do not score a text that a filter truncated or replaced, because it is not the model's answer.
        raise MachineFault(
            f"the service ended the answer early (finish_reason {finish!r})",
            where=settings.where,
            cure="use a service that lets the model answer; the sample stays missing",
        )
    words = _words(reply, settings)
    if request.chat is not None:
        words = replace(words, text=str(Message(role=Role.ASSISTANT, text=words.text, calls=_calls(reply))))
    if settings.chat:
        _see_answer(words, finish in _CUT, request, settings)
    if len(words.text) > _LONGEST:
        raise Garbled(f"the answer is too long: {len(words.text):,} characters")
    text = fim.cut(words.text) if request.sampling.fim else words.text
    tokens_in, tokens_out = _tokens(reply)
    if tokens_in is not None:
        see_whole(reply, tokens_in, least, settings)
    code = answers.line_answer(request, text) if settings.chat else text
    end = answers.end(text) if request.one_line and not settings.chat else None
    answered = Response(
        text=code[:end],
        finish="length" if finish in _CUT and end is None else "stop",
        tokens_in=code_tokens.count(request.prompt.text) if tokens_in is None else tokens_in,
        tokens_out=code_tokens.count(text) if tokens_out is None else tokens_out,
        seconds=seconds,
        cached=min(_cached(reply), tokens_in or 0),
        counted=tokens_in is not None and tokens_out is not None,
    )
    # ctxbench's count may exceed the model's. So the lower bound is used if the server counted no tokens.
    used = (least if tokens_in is None else tokens_in) + (tokens_out or 0)
    if settings.window and used > settings.window:
        raise TooLong(
            f"prompt and answer have at least {used} tokens, but the window has {settings.window}",
            where=settings.where,
            cure=SHORTER,
        )
    return answered


def served(reply: Any, settings: OpenAISettings) -> Served:
    """Return the model behind a reply, with the reply's name for it, or the spec's if the reply names none."""
    model, fingerprint, provider = (dig(reply, key) for key in ("model", "system_fingerprint", "provider"))
    return Served(
        model=_label(model) or settings.model,
        fingerprint=_label(fingerprint),
        provider=_label(provider),
        counted=None not in _tokens(reply),
    )


def dig(value: Any, *keys: str | int) -> Any:
    """Return the value at a path in JSON data; None if the path does not exist."""
    for key in keys:
        if isinstance(key, str) and isinstance(value, dict):
            value = value.get(key)
        elif isinstance(key, int) and isinstance(value, list) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def choice(reply: Any) -> Any:
    """Return the only answer of a reply.

    Raises:
        Garbled: if the reply has no answer, several answers, or an answer with an index other than 0.
    """
    choices = dig(reply, "choices")
    if not isinstance(choices, list) or not choices:
        raise Garbled("the reply has no answer")
    if len(choices) > 1 or dig(choices, 0, "index") not in (None, 0):
        raise Garbled("the reply answers more than one request")
    return choices[0]


def _label(value: Any) -> str:
    text = visible(" ".join(value[:_READ].split())) if isinstance(value, str) else ""
    return text if len(text) <= _LABEL else f"{text[:_LABEL]}…"


def _words(reply: Any, settings: OpenAISettings) -> _Words:
    if not settings.chat:
        return _Words(_text(dig(choice(reply), "text")), False)
    message = dig(choice(reply), "message")
    if not isinstance(message, dict):
        raise Garbled("the reply has no message")
    content = message.get("content")
    has_thoughts = any(message.get(key) for key in _THOUGHTS)
    thought = has_thoughts or bool(_count(reply, "completion_tokens_details", "reasoning_tokens"))
    if isinstance(content, list):
        thought = thought or any(dig(part, "type") in _THOUGHT_PARTS for part in content)
        content = "".join(_text(dig(part, "text")) for part in content if dig(part, "type") == "text")
    if content is None:
        content = message.get("refusal") or ""
    text = _text(content)
    if (answer := answer_after_thoughts(text)) is not None:
        return _Words(answer, thought=True, has_thoughts=False)
    return _Words(text, thought, has_thoughts)


def _calls(reply: Any) -> tuple[ToolCall, ...]:
    written = dig(choice(reply), "message", "tool_calls") or []
    calls = [
        ToolCall(name=dig(call, "function", "name"), arguments=dig(call, "function", "arguments") or "{}")
        for call in (written if isinstance(written, list) else [None])
    ]
    if not all(isinstance(part, str) and part for call in calls for part in (call.name, call.arguments)):
        raise Garbled("the reply has a tool call without a name, or with arguments that are not text")
    return tuple(calls)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Garbled("the reply has no text")
    return value


def _see_answer(words: _Words, cut: bool, request: Request, settings: OpenAISettings) -> None:
    limit = request.sampling.max_tokens
    hidden = not words.text and limit >= _FEW
    if cut and (words.thought or hidden) and not settings.thinking:
        raise InputFault(
            f"the model's thoughts used the {limit} tokens of its answer",
            where=settings.where,
            cure=ROOM,
        )
    if words.has_thoughts and not cut and not words.text.strip():
        # A server with another model's parser mistakes the answer for a thought.
        raise MachineFault(
            "the reply contains thoughts, but no answer",
            where=settings.where,
            cure="start the server with the reasoning parser for this model; the sample stays missing",
        )


def see_whole(reply: Any, read: int, least: int, settings: OpenAISettings) -> None:
    """Check by the server's own count that the model read at least `least` tokens, including cached ones.

    Raises:
        CutShort: if the model read fewer tokens, or the server reports that it truncated the prompt.
    """
    # A service may exclude cached tokens from its count.
    if dig(reply, "truncated") is True or read + _cached(reply) < least:
        raise CutShort(
            f"the server silently cut the prompt: it read {read} of at least {least} tokens",
            where=settings.where,
            cure=f"{SHORTER}; or set whole=off if the server only counts differently",
        )


def _tokens(reply: Any) -> tuple[int | None, int | None]:
    read, written, total = (_count(reply, key) for key in ("prompt_tokens", "completion_tokens", "total_tokens"))
    if written is not None and read and total is not None:
        written = max(written, total - read)
    # 0 means not counted: old Ollama reports 0 for a cached prompt.
    return read or None, written


def _cached(reply: Any) -> int:
    """Return the number of cached tokens of the prompt, from the fields of OpenAI, DeepSeek or Moonshot."""
    places = (("prompt_tokens_details", "cached_tokens"), ("prompt_cache_hit_tokens",), ("cached_tokens",))
    return next((tokens for place in places if (tokens := _count(reply, *place))), 0)


def _count(reply: Any, *keys: str) -> int | None:
    number = dig(reply, "usage", *keys)
    return number if type(number) is int and 0 <= number <= MOST_TOKENS else None
