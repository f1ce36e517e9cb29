"""The prompt of the family, byte for byte as the ICL-strategies paper prints it (Listings of RAG, RAGoT, Infile). Pure.

Instruction, blocks under ``FILE n``, steps, and the section with signature and docstring. A block's frame, the steps
and the instruction are blocks of kind TEXT; the target section is `strategies.layout.closing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.bench.types import Query
from ctxbench.strategies.api import Block, BlockKind, Prompt, text_block
from ctxbench.strategies.icl import steps as plan
from ctxbench.strategies.layout import TITLE, closing

_BEGIN = "You are an expert developer. You must write a function or method based on the function signature"
_PROVIDED = " provided in the context of the function "
_RESTATE = "(restate the function signature). "
_METHOD = "If a method signature is provided, implement just the method, do not implement the whole class. "
_TAGS = "The generated code must be between [CODE] and [/CODE] tags."
_PLAN = (
    "Firstly, make a high level plan with steps that progressively solves the task. "
    "Based on this plan, generate the code. "
)
INSTRUCTIONS = {
    "A": f"{_BEGIN}, docstring and documentation{_PROVIDED}{_RESTATE}{_PLAN}{_METHOD}{_TAGS}",
    "B": f"{_BEGIN}, docstring and implementations{_PROVIDED}{_RESTATE}{_METHOD}{_TAGS}",
    "direct": f"{_BEGIN} and docstring {_RESTATE}{_METHOD}{_TAGS}",
}
"""The paper prints A for RAG and RAG-S, B for RAGoT, and none for Direct: that one is B without the context."""
CONTEXT = "### Context with implementations:\n"
_RULE = "#####\n"
APART = "\n\n"
"""What stands after a block's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSection:
    """What stands under one ``FILE n``."""

    path: str
    block: Block
    retrieved: bool
    """Whether it was retrieved; else it is the current file, which comes last."""


def render(
    query: Query,
    sections: Sequence[FileSection],
    *,
    instruction: str,
    steps: Sequence[str] = (),
    style: str = "paper",
    show_paths: bool = False,
) -> Prompt:
    """Return the prompt.

    Args:
        query: the sample's query.
        sections: in order; without any the prompt has no context.
        instruction: ``A``, ``B`` or ``direct``.
        steps: shown between the context and the target, if any.
        style: of the target section.
        show_paths: whether a block's header names its file.
    """
    blocks = [text_block(f"{INSTRUCTIONS[instruction]}\n\n")]
    if sections:
        blocks.append(text_block(CONTEXT))
    for number, section in enumerate(sections, 1):
        named = f": {section.path}" if show_paths else ""
        blocks += [text_block(f"{_RULE}FILE {number}{named}\n{_RULE}"), section.block, text_block(APART)]
    if steps:
        blocks.append(text_block(plan.numbered_list(steps)))
    return Prompt(blocks=(*blocks, *closing(query, style)))


def with_section(prompt: Prompt, title: str, *section_blocks: Block) -> Prompt:
    """Return a prompt of `render` with one more section after its last block, as AIM adds one.

    The section's title stands between rules; its last block ends without a newline.
    """
    at = next(
        place
        for place, block in enumerate(prompt.blocks)
        if block.kind is BlockKind.TEXT and block.text.startswith((TITLE, plan.TITLE))
    )
    before = prompt.blocks[:at]
    header = CONTEXT if all(block.text != CONTEXT for block in before) else ""
    added = (text_block(f"{header}{_RULE}{title}\n{_RULE}"), *section_blocks, text_block(APART))
    return Prompt(blocks=(*before, *added, *prompt.blocks[at:]), dropped=prompt.dropped, flags=prompt.flags)
