"""The closing section of a function prompt: signature and docstring of the function to write. Pure.

It is not copied from the file: the function stands at the margin, however deep it is indented there. The built-in
generator recognises by `TITLE` that the function after it needs a body.
"""

from __future__ import annotations

import textwrap

from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.types import Query
from ctxbench.strategies.api import Block, BlockKind

TITLE = "### Function docstring:\n"
_STEP = "    "


def closing(query: Query, style: str = "paper") -> tuple[Block, Block]:
    """Return the title and the target as the two last blocks of a prompt (ICL-strategies paper, Listing of RAG).

    Args:
        query: the sample's query.
        style: Python: ``paper`` as it is printed there, with the quotes doubled; ``clean`` as it is written in a file.
    """
    return (
        Block(kind=BlockKind.TEXT, text=TITLE),
        Block(kind=BlockKind.INFILE, text=target(query, style)),
    )


def target(query: Query, style: str = "paper") -> str:
    """Return signature and docstring; no newline at the end.

    The lines of a Python docstring are indented by four spaces. Java, which the paper does not have: the Javadoc, then
    the signature without its brace, in either style.
    """
    signature, doc = query.signature or "", query.docstring or ""
    if query.language == JAVA:
        return _javadoc(doc) + signature.rstrip().removesuffix("{").rstrip()
    body = f"{textwrap.indent(doc, _STEP)}\n" if doc else ""
    quotes = f'{_STEP}"""'
    if style == "paper":
        return f'{signature} """\n{quotes}\n{body}{quotes}'
    return f"{signature}\n{quotes}\n{body}{quotes}" if doc else signature


def _javadoc(doc: str) -> str:
    if not doc.strip():
        return ""
    if doc.lstrip().startswith("/*"):
        return f"{doc.strip()}\n"
    # Samples that ctxbench mines store its text alone.
    lines = "".join(f" * {line}".rstrip() + "\n" for line in doc.split("\n"))
    return f"/**\n{lines} */\n"
