"""CoCoGen's prompts: two solved examples, retrieved functions, the problem; then the faults of the last answer.

Frame and labels are the release's. The examples are ours: those of the release are other people's code.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.bench.types import Query
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.baselines.answer import END, DraftedFile
from ctxbench.strategies.baselines.diagnosis import Category, DraftFault
from ctxbench.strategies.baselines.symbols import Symbol
from ctxbench.strategies.icl.source import bare

_SIGNATURE = "Function signature:  "
_PROBLEM = (
    "Write a function.\nFunction name: {name}\nFunction signature:  {signature}\nFunction Description:\n{description}"
)
_EXAMPLES = (
    (
        "clamp",
        "def clamp(value, low, high)",
        "Return the value, or the nearer bound if it lies outside of them.",
        "def clamp(value, low, high):\n    return max(low, min(value, high))",
    ),
    (
        "group_by_length",
        "def group_by_length(words)",
        "Return a dictionary from a length to the words that have it, in their order.",
        "def group_by_length(words):\n    groups = {}\n    for word in words:\n"
        "        groups.setdefault(len(word), []).append(word)\n    return groups",
    ),
)


def problem(query: Query) -> str:
    """Return the task as text: name, signature, and the docstring as its description.

    The release takes the description that people wrote for CoderEval, which mined samples lack.
    """
    return f"{_text_of(bare(query.name or ''), _signature(query), query.docstring or '')}\n"


def first(query: Query, contexts: Sequence[Block]) -> Prompt:
    """Return the first prompt.

    Args:
        query: the sample's query.
        contexts: retrieved functions, the most similar last.
    """
    context_parts = [part for block in contexts for part in (block, _text("\n"))] or [_text("\n")]
    return Prompt(blocks=(_text(f"{_shots()}```\n"), *context_parts, _text("```\n"), *_question(query), _text("A:\n")))


def repair(query: Query, draft: DraftedFile, reason: str) -> Prompt:
    """Return the prompt that shows the last answer and what is wrong with it; nothing retrieved is in it."""
    again = f"\nPrevious Answer: \n```\n{draft.function}\n```\nFail Reason:{reason}\nA:\n"
    return Prompt(blocks=(_text(_shots()), *_question(query), _text(again)))


def reason(fault: DraftFault, draft: DraftedFile, symbols: Sequence[Symbol], module: str) -> str:
    """Return one fault in words, with the symbols of the repository that may be meant; the words are ours."""
    line = f"In line: {draft.line(fault.line)}"
    if fault.category is Category.REDEFINED:
        return f"{line}\nError: {fault.name!r} is already defined above; use that definition."
    if fault.category not in (Category.UNDEFINED, Category.MEMBER):
        return f"{line} . {fault.message}"
    owner, _, member = fault.name.rpartition(".")
    error = f"{owner!r} has no member {member!r}." if owner else f"there is no symbol {member!r} in this context."
    text = f"{line}\nError: {error}\nCurrent Module: {module}"
    if not symbols:
        return text
    listed = "".join(f"\n```\n{symbol.text} ...\n```" for symbol in symbols)
    return f"{text}\nSymbols of the repository that may be used:{listed}"


def _text_of(name: str, signature: str, description: str) -> str:
    return _PROBLEM.format(name=name, signature=signature, description=description)


def _shots() -> str:
    shots = [f'Q: "{_text_of(*example)}"\nA:\n{solution}\n{END}\n' for *example, solution in _EXAMPLES]
    return "\n".join([*shots, ""])


def _question(query: Query) -> tuple[Block, ...]:
    """Return the problem between quotes, its signature as a block of its own: it is of the target file."""
    signature = _signature(query)
    whole = f'Q: "{problem(query)}"\n'
    at = whole.index(_SIGNATURE) + len(_SIGNATURE)
    return _text(whole[:at]), Block(kind=BlockKind.INFILE, text=signature), _text(whole[at + len(signature) :])


def _signature(query: Query) -> str:
    return (query.signature or "").rstrip().removesuffix(":")


def _text(text: str) -> Block:
    return Block(kind=BlockKind.TEXT, text=text)
