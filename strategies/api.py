"""The types of a strategy's input and output: snippets, contexts, prompts, model and sandbox. Frozen data, no I/O.

A strategy is a function ``(query, repo, **parameters)``, or ``(query, repo, generate, **parameters)``
if it asks the model on the way. It returns a `Context` (ranked snippets, which ctxbench packs under
the budget in the similar-code layout) or a `Prompt` (the exact text, block by block). The harness
makes the last call to the model itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ctxbench.bench.files import sha256
from ctxbench.bench.types import Place


class BlockKind(StrEnum):
    """What a block of a prompt is; the built-in generator reads retrieved code by it."""

    INFILE = "infile"
    """The target file up to the cursor; always the last block of a line prompt."""
    SIMILAR = "similar"
    """Code retrieved from the repository."""
    API = "api"
    """Signatures, summaries or documentation of the repository's functions and classes."""
    TEXT = "text"
    """Fixed text: instructions, headers, separators."""
    AFTER = "after"
    """The target file behind the answer. The harness adds it where a run fills in the middle; no strategy has it."""
    MARK = "mark"
    """A special token of the model that separates texts; the harness adds it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A piece of the repository that a strategy chose to show."""

    path: str
    text: str
    start: int = 0
    """First line, 0-based."""
    end: int = 0
    """Line after the last; 0 if it is not a span of lines."""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Context:
    """Snippets from the best to the worst."""

    snippets: tuple[Snippet, ...]

    @classmethod
    def ranked(cls, snippets: Iterable[Snippet]) -> Context:
        """Order by score, best first; ties by path and line.

        Raises:
            InputFault: if a part of a snippet is not what it should be, such as a score that is no number.
        """
        from ctxbench.strategies.returned import check_context  # noqa: PLC0415 - it is about the types that are defined here

        context = cls(tuple(snippets))
        check_context(context)
        return cls(tuple(sorted(context.snippets, key=lambda s: (-s.score, s.path, s.start, s.end))))

    def top(self, count: int) -> Context:
        """Keep the best `count`."""
        return Context(self.snippets[:count])


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One stretch of a prompt; the blocks' texts joined are the prompt."""

    kind: BlockKind
    text: str
    places: tuple[Place, ...] = ()
    score: float | None = None
    cut: bool = False
    """Whether a part of it was cut off to fit the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A block that was considered and left out."""

    kind: BlockKind
    places: tuple[Place, ...]
    score: float | None
    reason: str
    """``budget`` or ``limit``, or a word of the strategy's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The exact text a model is shown, with the provenance of each block."""

    blocks: tuple[Block, ...]
    dropped: tuple[Dropped, ...] = ()
    flags: tuple[str, ...] = ()
    """Remarks for the record: ``no_candidates``, ``overflow_trimmed``, …"""

    @property
    def text(self) -> str:
        """The prompt as the model sees it."""
        return "".join(block.text for block in self.blocks)

    @property
    def digest(self) -> str:
        """SHA-256 of the text and of where its blocks begin, the key of cached generations."""
        shape = ",".join(f"{block.kind}:{len(block.text)}" for block in self.blocks)
        return sha256(f"{shape}\n{self.text}")


class Model(Protocol):
    """The model, as the harness lends it; every call is recorded and charged."""

    @property
    def instructs(self) -> bool:
        """Whether it follows instructions; one that only continues text can neither plan nor summarise."""
        ...

    def __call__(self, prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        """Return the model's raw answer (greedy, one sample)."""
        ...


class Generate(Model, Protocol):
    """The model, as a strategy may ask it: a text will do for a prompt."""

    def __call__(self, prompt: Prompt | str, *, role: str = "draft", max_tokens: int = 128) -> str:
        """Return the model's raw answer (greedy, one sample)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The outcome of a program that a strategy ran in the sandbox."""

    finished: bool
    """Whether it ended by itself with exit code 0."""
    output: str
    """What it printed and the traceback it died of, capped."""


class Execute(Protocol):
    """The sandbox, as a strategy may use it for what the model wrote: no repository, no network."""

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        """Run a Python program.

        Raises:
            InputFault: if this run has no sandbox.
        """
        ...
