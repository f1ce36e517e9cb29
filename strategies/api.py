"""Input and output types of strategies: snippets, contexts, prompts, model and sandbox."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import NoneType
from typing import Protocol, get_args, get_origin, get_type_hints, overload

from ctxbench.bench.code_tokens import count
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.types import Place
from ctxbench.strategies.chat import Chat, Message

TRIMMED, FAILED = "overflow_trimmed", "overflow_failed"
"""Flags: the prompt was truncated to its limit; the prompt exceeds the model's window."""


class BlockKind(StrEnum):
    """Kind of a prompt block's content. The built-in copy generator finds retrieved code by this kind."""

    INFILE = "infile"
    """Text of the target file before the cursor. The last block of every line prompt that a strategy returns."""
    SIMILAR = "similar"
    API = "api"
    """Signatures, summaries or documentation of the repository's functions and classes."""
    TEXT = "text"
    """Other text, such as instructions, headers and separators."""
    AFTER = "after"
    """The target file after the cursor. Only the harness adds it, for fill-in-the-middle runs."""
    MARK = "mark"
    """A special token of the model, such as a fill-in-the-middle separator. Only the harness adds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Repository text that a strategy selected. Lines are 0-based; a higher score is better."""

    path: str
    text: str
    start: int = 0
    end: int = 0
    """Line after the last; 0 if the snippet is not a range of lines."""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Context:
    """Ranked snippets, best first. ctxbench packs them into a prompt."""

    snippets: tuple[Snippet, ...]

    @classmethod
    def ranked(cls, snippets: Iterable[Snippet]) -> Context:
        """Return a context with the snippets sorted by score, best first; ties by path and line.

        Raises:
            InputFault: if a snippet's field has a wrong type or value.
        """
        context = cls(tuple(snippets))
        check_parts(context)
        return cls(tuple(sorted(context.snippets, key=lambda s: (-s.score, s.path, s.start, s.end))))

    def top(self, count: int) -> Context:
        """Return a context with the first `count` snippets."""
        return Context(self.snippets[:count])


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a prompt. A prompt is its blocks' texts, joined."""

    kind: BlockKind
    text: str
    places: tuple[Place, ...] = ()
    score: float | None = None
    cut: bool = False
    """Whether the text was shortened, for example to fit the budget."""


def text_block(text: str) -> Block:
    """Return a block of the kind `TEXT`."""
    return Block(kind=BlockKind.TEXT, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A block that did not get into the prompt."""

    kind: BlockKind
    places: tuple[Place, ...]
    score: float | None
    reason: str
    """Reason for dropping the block: ``budget``, ``limit``, or the strategy's own reason."""
    tokens: int = 0
    """Length in `ctxcode-1` tokens; 0 if unknown."""

    @classmethod
    def of(cls, block: Block, reason: str = "budget") -> Dropped:
        """Return the record of a block that was left out of the prompt."""
        tokens = count(block.text)
        return cls(kind=block.kind, places=block.places, score=block.score, reason=reason, tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The exact text for the model, in blocks that state where their text comes from."""

    blocks: tuple[Block, ...]
    dropped: tuple[Dropped, ...] = ()
    flags: tuple[str, ...] = ()
    """Notes on the prompt: ``no_candidates``, ``overflow_trimmed``, …"""

    @property
    def text(self) -> str:
        """The prompt as the model reads it."""
        return "".join(block.text for block in self.blocks)

    def flagged(self, *flags: str) -> Prompt:
        """Return the prompt with more flags, without duplicates."""
        return replace(self, flags=tuple(dict.fromkeys((*self.flags, *flags))))

    @property
    def digest(self) -> str:
        """SHA-256 of the text and the block boundaries. Cached generations use it as their key."""
        shape = ",".join(f"{block.kind}:{len(block.text)}" for block in self.blocks)
        return sha256(f"{shape}\n{self.text}")


SUMMARY_ROLE = "summary"
"""Role of model calls that the run's summariser answers."""


class Model(Protocol):
    """The model that the harness gives to a strategy. The harness counts every call."""

    @property
    def instructs(self) -> bool:
        """Whether the model follows instructions. If not, it only continues text."""
        ...

    @property
    def summarises(self) -> bool:
        """Whether a model that follows instructions answers calls with the role ``summary``."""
        ...

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        """Return the model's raw greedy answer. For a chat, tool calls are in the text format of `strategies.chat`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The result of a program that ran in the sandbox."""

    finished: bool
    """Whether the program exited with code 0."""
    output: str
    """The program's output and traceback, truncated."""


class Execute(Protocol):
    """The sandbox that runs the model's code, without the repository and without network."""

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        """Run a Python program for at most `seconds`.

        Raises:
            InputFault: if this run has no sandbox.
        """
        ...


class Misshapen(InputFault):
    """A part of a strategy's result has a wrong type or value."""

    def __init__(self, part: str, *, cure: str) -> None:
        self.part = part
        super().__init__(f"returned {part}", cure=cure)


def check_parts(whole: Context | Prompt) -> None:
    """Check the types and values of a context or a prompt.

    Raises:
        Misshapen: if a part is wrong.
    """
    _check(f"a {type(whole).__name__}", whole)


def named(at: int, block: Block) -> str:
    """Return a block's name for messages: its index, kind and first places."""
    places = block.places[:3] if isinstance(block.places, tuple) else ()
    spans = [f", {place.path} lines {place.start} to {place.end}" for place in places if isinstance(place, Place)]
    return f"block {at} ({block.kind}{''.join(spans)})"


_CURES = {int: "an int of at least 0", float: "a finite number, of Python's own types"}


def _fields(kind: type) -> Mapping[str, tuple[bool, tuple[type, ...]]]:
    hints = get_type_hints(kind)
    kinds = {name: tuple(part for part in get_args(hint) if part is not ...) for name, hint in hints.items()}
    return {name: (get_origin(hint) is tuple, kinds[name] or (hint,)) for name, hint in hints.items()}


_FIELDS = {kind: _fields(kind) for kind in (Context, Prompt, Snippet, Block, Dropped, Place)}


def _check(name: str, whole: object) -> None:
    # A strategy's own subclass may have more fields, of any type.
    fields = next(fields for kind, fields in _FIELDS.items() if isinstance(whole, kind))
    for field, (is_tuple, kinds) in fields.items():
        value = getattr(whole, field)
        if is_tuple and not isinstance(value, tuple):
            raise Misshapen(f"{name} with {field} of type {type(value).__name__}", cure="make them a tuple")
        for at, part in enumerate(value if is_tuple else (value,)):
            if _is_wrong(part, kinds):
                expected = " or ".join(_CURES.get(kind, f"a {kind.__name__}") for kind in kinds if kind is not NoneType)
                noun = field.removesuffix("s") if is_tuple else field
                raise Misshapen(f"{name} with the {noun} {part!r:.60}", cure=f"make it {expected}")
            if isinstance(part, tuple(_FIELDS)):
                _check(_part_name(name, at, part), part)
    if isinstance(whole, Place | Snippet) and (isinstance(whole, Place) or whole.end) and whole.end < whole.start:
        raise Misshapen(f"{name}, which ends before it starts", cure="set its end to the line after the last")


def _is_wrong(part: object, kinds: tuple[type, ...]) -> bool:
    if isinstance(part, bool):
        return bool not in kinds
    if isinstance(part, int):
        return float not in kinds and (int not in kinds or part < 0)
    return not isinstance(part, kinds) or (isinstance(part, float) and not math.isfinite(part))


def _part_name(whole: str, at: int, part: object) -> str:
    match part:
        case Block():
            return named(at, part)
        case Snippet():
            return f"snippet {at} ({part.path!r:.200})"
        case Dropped():
            return f"dropped block {at}"
    return whole


class Generate:
    """The model as strategies call it. It answers text with text, and a chat with a message."""

    def __init__(self, model: Model | Generate) -> None:
        self._model = model

    @property
    def instructs(self) -> bool:
        """Whether the model follows instructions."""
        return self._model.instructs

    @property
    def summarises(self) -> bool:
        """Whether the model for summaries follows instructions."""
        return self._model.summarises

    @overload
    def __call__(self, prompt: Prompt | str, *, role: str = "draft", max_tokens: int = 128) -> str: ...
    @overload
    def __call__(self, prompt: Chat, *, role: str = "draft", max_tokens: int = 128) -> Message: ...
    def __call__(self, prompt: Prompt | str | Chat, *, role: str = "draft", max_tokens: int = 128) -> str | Message:
        """Return the model's raw answer; for a chat, a message with its tool calls.

        Args:
            role: purpose of the call; a word for the record.
            max_tokens: maximum tokens of the answer.

        Raises:
            TypeError: if an argument, or a part of it, has another type, or a chat's calls lack their results.
        """
        for name, value, kinds, expected in (
            ("prompt", prompt, (Prompt, str, Chat), "a Prompt, a str or a Chat"),
            ("role", role, (str,), "a str"),
            ("max_tokens", max_tokens, (int,), "an int"),
        ):
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise TypeError(f"generate: {name} is {value!r:.60}, and should be {expected}")
        if isinstance(prompt, Chat):
            if wrong := prompt.unanswered:
                raise TypeError(f"generate: prompt is a Chat in which {wrong}")
            return Message.read(str(self._model(prompt, role=role, max_tokens=max_tokens)))
        if isinstance(prompt, str):
            prompt = Prompt(blocks=(text_block(prompt),))
        try:
            check_parts(prompt)
        except Misshapen as error:
            raise TypeError(f"generate: prompt has {error.part}; {error.cure}") from None
        return self._model(prompt, role=role, max_tokens=max_tokens)
