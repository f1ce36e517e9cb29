"""Prompts of the ICL strategies: the final prompt as in the ICL-strategies paper, and ctxbench's own other prompts."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from ctxbench.bench.languages.outline import Function
from ctxbench.bench.types import Query
from ctxbench.strategies.api import Block, BlockKind, Prompt, text_block
from ctxbench.strategies.icl.source import SourceFile
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
"""A is the paper's for RAG and RAG-S, B for RAGoT. For Direct, it prints none: ours is B without the context."""
CONTEXT = "### Context with implementations:\n"
_RULE = "#####\n"
APART = "\n\n"


def render(
    query: Query, sections: Sequence[Block], *, instruction: str, steps: Sequence[str] = (), style: str = "paper"
) -> Prompt:
    """Return the prompt that asks for the function's code.

    Args:
        sections: text of each ``FILE n``, the current file last. Without sections, the prompt has no context.
    """
    blocks = [text_block(f"{INSTRUCTIONS[instruction]}\n\n")]
    if sections:
        blocks.append(text_block(CONTEXT))
    for number, section in enumerate(sections, 1):
        blocks += [text_block(f"{_RULE}FILE {number}\n{_RULE}"), section, text_block(APART)]
    if steps:
        blocks.append(text_block(numbered_list(steps)))
    return Prompt(blocks=(*blocks, *closing(query, style)))


def with_section(prompt: Prompt, title: str, *section_blocks: Block) -> Prompt:
    """Add a section to a prompt of `render`, after the last FILE section. The section must not end with a newline."""
    at = next(
        place
        for place, block in enumerate(prompt.blocks)
        if block.kind is BlockKind.TEXT and block.text.startswith((TITLE, STEPS_TITLE))
    )
    before = prompt.blocks[:at]
    header = CONTEXT if all(block.text != CONTEXT for block in before) else ""
    added = (text_block(f"{header}{_RULE}{title}\n{_RULE}"), *section_blocks, text_block(APART))
    return Prompt(blocks=(*before, *added, *prompt.blocks[at:]), dropped=prompt.dropped, flags=prompt.flags)


STEPS_TOKENS = 512
"""Maximum new tokens of a plan. The paper states no limit."""
STEPS_TITLE = "Here are the steps to implement it:\n"
_ASK_FOR_STEPS = """\
You are an expert developer. Below are the signature and docstring of a function or method that must be added to an \
existing repository. Break its implementation down into a few steps, at most {most}. Write one step per line in the form
1. **Short title**: one or two sentences that say what the step does.
Do not write code and do not write anything before or after the list.

"""
DOCUMENTATION = "### Documentation of the repository:\n"
_NUMBER = re.compile(r"^\s*\d+[.)]\s+")
_SECTION = re.compile(
    r"\s*(?:[:@]\w+|>>>|\.\. |-{3,}"
    r"|(?:args|arguments|parameters|params|returns?|raises|yields|examples?|notes?|see also)\s*:?\s*$)",
    re.I,
)
"""Lines that end a docstring's prose: fields, examples, headings."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'*(])")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
DOCUMENTATION_TOKENS = 1024
"""Maximum new tokens of one file's documentation. In the paper, each file adds 0.94K to 0.97K tokens to the prompt."""
_ASK_FOR_DOCUMENTATION = """\
You are an expert developer. Read the file below. For every function and method in it write its signature, what it \
does, and what it returns. Do not copy function bodies.

#####
FILE
#####
"""


def ask_for_steps(query: Query, most: int, style: str, documents: Sequence[Block] = ()) -> Prompt:
    """Return the prompt that asks for a plan of at most `most` steps.

    Args:
        style: docstring style, as for `layout.closing`.
        documents: documentation before the signature (Self-Doc + RAGoT-S).
    """
    blocks = [text_block(_ASK_FOR_STEPS.format(most=most))]
    if documents:
        blocks.append(text_block(DOCUMENTATION))
        for documentation in documents:
            blocks += [documentation, text_block("\n\n")]
    return Prompt(blocks=(*blocks, *closing(query, style)))


def parse_steps(answer: str) -> tuple[str, ...]:
    """Return the steps of a numbered answer, without their numbers. An answer without numbers is one step.

    A line without a number continues its step. Text before the first number is ignored.
    """
    steps: list[list[str]] = []
    for line in answer.strip().split("\n"):
        if number := _NUMBER.match(line):
            steps.append([line[number.end() :]])
        elif steps:
            steps[-1].append(line)
    texts = ["\n".join(lines).strip() for lines in steps] or [answer.strip()]
    return tuple(step for step in texts if step)


def plain_steps(query: Query, most: int) -> tuple[str, ...]:
    """Return steps without a model: the docstring's first sentences; without a docstring, the words of the name."""
    prose: list[str] = []
    for line in (query.docstring or "").strip().split("\n"):
        if _SECTION.match(line):
            break
        prose.append(line.strip())
    sentences = [" ".join(sentence.split()) for sentence in _SENTENCE.split("\n".join(prose))]
    steps = tuple(sentence for sentence in sentences if _WORD.search(sentence))[:most]
    words = _WORD.findall((query.name or "").partition("(")[0].rpartition(".")[2])
    return steps or ((" ".join(words).lower(),) if words else ())


def numbered_list(steps: Sequence[str]) -> str:
    """Return the steps as the prompt's numbered list, from 1."""
    return STEPS_TITLE + "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1)) + "\n"


def ask_for_documentation(file: SourceFile) -> Prompt:
    """Return the prompt that asks for a file's documentation."""
    head = text_block(_ASK_FOR_DOCUMENTATION)
    code = Block(kind=BlockKind.SIMILAR, text=file.lines.text, places=file.lines.places(file.path))
    return Prompt(blocks=(head, code))


def plain_documentation(file: SourceFile) -> str:
    """Return a file's documentation without a model: its functions' signatures and docstrings."""
    signature = _python if file.language.indented else _java
    parts: list[str] = []
    types: tuple[str, ...] = ()
    for function in file.functions:
        headers = tuple(type_outline.header for type_outline in function.types)
        mark = ":" if file.language.indented else " {"
        if headers != types:
            parts += [f"{'    ' * depth}{header}{mark}" for depth, header in enumerate(headers)]
        types = headers
        parts.append(textwrap.indent(signature(function), "    " * len(headers)))
    return "\n".join(parts)


def _python(function: Function) -> str:
    prefix = "async def" if "async" in function.modifiers else "def"
    returns = f" -> {function.returns}" if function.returns else ""
    head = f"{prefix} {function.name}({function.parameters_text}){returns}:"
    documented = f'"""{function.docstring}"""'
    return f"{head}\n{textwrap.indent(documented, '    ')}" if function.docstring else head


def _java(function: Function) -> str:
    words = [*function.modifiers, *([function.returns] if function.returns else [])]
    throws = f" {function.throws}" if function.throws else ""
    head = f"{' '.join([*words, function.name])}({function.parameters_text}){throws};"
    doc = "\n".join(f" * {line}".rstrip() for line in function.docstring.split("\n"))
    return f"/**\n{doc}\n */\n{head}" if function.docstring else head
