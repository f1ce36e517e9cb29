"""Documentation of a file in place of its code (ICL-strategies paper, Self-Doc). Pure.

The paper does not print the prompt that asks for it; this one is ours.
"""

from __future__ import annotations

import textwrap

from ctxbench.bench.languages.base import Function
from ctxbench.bench.languages.python import PYTHON
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.icl.source import SourceFile

TOKENS = 1024
"""Most new tokens of one file's documentation: the paper gives no limit; its prompts grow by 0.94K to 0.97K a file."""
_ASK = """\
You are an expert developer. Read the file below. For every function and method in it write its signature, what it \
does, and what it returns. Do not copy function bodies.

#####
FILE
#####
"""


def ask(file: SourceFile) -> Prompt:
    """Return the prompt that asks for a file's documentation."""
    head = Block(kind=BlockKind.TEXT, text=_ASK)
    code = Block(kind=BlockKind.SIMILAR, text=file.lines.text, places=file.lines.places(file.path))
    return Prompt(blocks=(head, code))


def plain(file: SourceFile) -> str:
    """Return signatures and docstrings of a file's functions, for a model that cannot describe them."""
    signature = _python if file.language == PYTHON else _java
    parts: list[str] = []
    types: tuple[str, ...] = ()
    for function in file.functions:
        headers = tuple(type_outline.header for type_outline in function.types)
        mark = ":" if file.language == PYTHON else " {"
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
