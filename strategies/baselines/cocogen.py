"""CoCoGen: draft, let a static checker read the draft, ask for a repair (ICL-strategies paper, Table 4). Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Block, BlockKind, Generate, Prompt
from ctxbench.strategies.baselines import cocogen_prompts as prompts
from ctxbench.strategies.baselines.answer import DraftedFile, placed
from ctxbench.strategies.baselines.diagnosis import Category, Checker, DraftFault
from ctxbench.strategies.baselines.left import left_block, left_flags
from ctxbench.strategies.baselines.mini_blocks import WHOLE
from ctxbench.strategies.baselines.symbols import Symbol, Symbols
from ctxbench.strategies.parameters import AtLeast
from ctxbench.strategies.registry import strategy

DRAFT = 1024
"""New tokens of a draft; as many as the harness asks for last, so that what was checked is what is scored."""
SUGGESTED = 5
"""Symbols listed for one fault at most."""
NO_INSTRUCTIONS = "no_instructions"


def python_only(query: Query, name: str) -> None:
    """Refuse queries of other languages.

    Raises:
        InputFault: if the query is not of Python.
    """
    if query.language != PYTHON:
        raise InputFault(f"{name} is for Python", where=query.id, cure="choose Python samples or another strategy")


@strategy("base.cocogen", kinds=(Kind.FUNCTION,))
def cocogen(
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    encoder: str = "minilm",
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

    Raises:
        InputFault: if the query is not of Python.
    """
    python_only(query, "base.cocogen")
    checker, symbols = Checker(query, repo), Symbols(repo, query.path, encoder)
    context_blocks = _contexts(query, repo, encoder, contexts)
    instructs = generate.instructs
    prompt = prompts.first(query, context_blocks) if instructs else _plain(query, context_blocks)
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
    hits = repo.search(prompts.problem(query), unit="function", ranker=encoder, top=most) if most else ()
    blocks = [Block(kind=BlockKind.SIMILAR, text=hit.text, places=(hit.place,), score=hit.score) for hit in hits]
    return blocks[::-1]


def _suggested(fault: DraftFault, draft: DraftedFile, symbols: Symbols) -> tuple[Symbol, ...]:
    if fault.category not in (Category.UNDEFINED, Category.MEMBER):
        return ()
    return symbols.find(fault.name.rpartition(".")[2], draft.line(fault.line), SUGGESTED)


def _repair(
    query: Query, draft: DraftedFile, suggestions: Sequence[tuple[DraftFault, Sequence[Symbol]]], module: str
) -> Prompt:
    reasons = dict.fromkeys(prompts.reason(fault, draft, symbols, module) for fault, symbols in suggestions)
    return prompts.repair(query, draft, "\n".join(reasons))


def _plain(query: Query, context_blocks: Sequence[Block]) -> Prompt:
    """Return retrieved blocks and the file up to the cursor, for a model that goes on there."""
    apart = Block(kind=BlockKind.TEXT, text="\n\n")
    left_context = left_block(query, WHOLE)
    return Prompt(
        blocks=(*(part for block in context_blocks for part in (block, apart)), left_context),
        flags=left_flags(query, left_context),
    )


def _hinted(query: Query, suggestions: Sequence[tuple[DraftFault, Sequence[Symbol]]]) -> Prompt:
    suggested_symbols = dict.fromkeys(symbol for _, symbols in suggestions for symbol in symbols)
    return _plain(query, [symbol.block() for symbol in suggested_symbols])
