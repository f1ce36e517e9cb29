"""CoCoGen: draft, let a static checker read the draft, ask for a repair (ICL-strategies paper, Table 4). Python.

Frame and labels of its prompts are the release's. The solved examples are ours: those of the release are other
people's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Block, BlockKind, Generate, Prompt, text_block
from ctxbench.strategies.baselines.diagnosis import Category, Checker, DraftFault, Symbol, Symbols
from ctxbench.strategies.baselines.rlcoder import WHOLE
from ctxbench.strategies.drafts import END, DraftedFile, bare_name, placed
from ctxbench.strategies.layout import left_block, left_flags
from ctxbench.strategies.registry import strategy

DRAFT = 1024
"""New tokens of a draft; as many as the harness asks for last, so that what was checked is what is scored."""
SUGGESTED = 5
"""Symbols listed for one fault at most."""
NO_INSTRUCTIONS = "no_instructions"
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


@strategy("base.cocogen", kinds=(Kind.FUNCTION,), languages=(PYTHON,))
def cocogen(
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    encoder: EncoderSpec = "minilm",
    contexts: Annotated[int, AtLeast(0)] = 1,
    repairs: Annotated[int, AtLeast(0)] = 3,
) -> Prompt:
    """Show like functions; check the draft without running it; tell the model what is wrong, up to three times.

    The checker looks for syntax errors, undefined names, members that the project does not have, and redefined
    functions, and lists symbols of the repository that may be meant. It reads the draft only: the release also
    skips tasks whose reference has such faults, which a strategy cannot know.

    A model that only continues code is shown the functions before the file, and after a fault the signatures of
    the symbols that may be meant (flag ``no_instructions``).

    Args:
        query: the sample's query.
        repo: the repository.
        generate: the model, asked for at most as many drafts as there are repairs.
        encoder: finds functions like the task, and symbols where no name is equal.
        contexts: functions shown (release: 3 for GPT-3.5, else 1).
        repairs: repairs at most.
    """
    checker, symbols = Checker(query, repo), Symbols(repo, query.path, encoder)
    context_blocks = _contexts(query, repo, encoder, contexts)
    instructs = generate.instructs
    prompt = first_prompt(query, context_blocks) if instructs else _plain(query, context_blocks)
    flags = [] if instructs else [NO_INSTRUCTIONS]
    if contexts and not context_blocks:
        flags.append("no_candidates")
    for _ in range(repairs):
        draft = placed(query, generate(prompt, role="draft", max_tokens=DRAFT))
        if draft is None:
            flags.append("empty_draft")
            break
        faults = checker.faults(draft)
        if not faults:
            break
        flags.append("repaired")
        suggestions = [(fault, _suggested(fault, draft, symbols)) for fault in faults]
        prompt = (
            _repair(query, draft, suggestions, symbols.module(query.path)) if instructs else _hinted(query, suggestions)
        )
    return Prompt(blocks=prompt.blocks, dropped=prompt.dropped, flags=tuple(dict.fromkeys((*prompt.flags, *flags))))


def _contexts(query: Query, repo: Repository, encoder: str, most: int) -> list[Block]:
    """Return the functions most like the task, the most similar last."""
    hits = repo.search(problem(query), unit="function", ranker=encoder, top=most) if most else ()
    blocks = [Block(kind=BlockKind.SIMILAR, text=hit.text, places=(hit.place,), score=hit.score) for hit in hits]
    return blocks[::-1]


def _suggested(fault: DraftFault, draft: DraftedFile, symbols: Symbols) -> tuple[Symbol, ...]:
    if fault.category not in (Category.UNDEFINED, Category.MEMBER):
        return ()
    return symbols.find(fault.name.rpartition(".")[2], draft.line(fault.line), SUGGESTED)


def _repair(
    query: Query, draft: DraftedFile, suggestions: Sequence[tuple[DraftFault, Sequence[Symbol]]], module: str
) -> Prompt:
    reasons = dict.fromkeys(reason_text(fault, draft, symbols, module) for fault, symbols in suggestions)
    return repair_prompt(query, draft, "\n".join(reasons))


def _plain(query: Query, context_blocks: Sequence[Block]) -> Prompt:
    """Return retrieved blocks and the file up to the cursor, for a model that goes on there."""
    apart = text_block("\n\n")
    left_context = left_block(query, WHOLE)
    return Prompt(
        blocks=(*(part for block in context_blocks for part in (block, apart)), left_context),
        flags=left_flags(query, left_context),
    )


def _hinted(query: Query, suggestions: Sequence[tuple[DraftFault, Sequence[Symbol]]]) -> Prompt:
    suggested_symbols = dict.fromkeys(symbol for _, symbols in suggestions for symbol in symbols)
    return _plain(query, [symbol.block() for symbol in suggested_symbols])


def problem(query: Query) -> str:
    """Return the task as text: name, signature, and the docstring as its description.

    The release takes the description that people wrote for CoderEval, which mined samples lack.
    """
    return f"{_text_of(bare_name(query.name or ''), _signature(query), query.docstring or '')}\n"


def first_prompt(query: Query, contexts: Sequence[Block]) -> Prompt:
    """Return the first prompt, with retrieved functions, the most similar last."""
    context_parts = [part for block in contexts for part in (block, text_block("\n"))] or [text_block("\n")]
    return Prompt(
        blocks=(
            text_block(f"{_shots()}```\n"),
            *context_parts,
            text_block("```\n"),
            *_question(query),
            text_block("A:\n"),
        )
    )


def repair_prompt(query: Query, draft: DraftedFile, reason: str) -> Prompt:
    """Return the prompt that shows the last answer and what is wrong with it; nothing retrieved is in it."""
    again = f"\nPrevious Answer: \n```\n{draft.function}\n```\nFail Reason:{reason}\nA:\n"
    return Prompt(blocks=(text_block(_shots()), *_question(query), text_block(again)))


def reason_text(fault: DraftFault, draft: DraftedFile, symbols: Sequence[Symbol], module: str) -> str:
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
    return (
        text_block(whole[:at]),
        Block(kind=BlockKind.INFILE, text=signature),
        text_block(whole[at + len(signature) :]),
    )


def _signature(query: Query) -> str:
    return (query.signature or "").rstrip().removesuffix(":")
