"""Stubs: source text with the bodies of its functions replaced and its comments removed."""

from __future__ import annotations

from tree_sitter import Node

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.syntax import Source

_FUNCTIONS = frozenset(
    {"function_definition", "method_declaration", "constructor_declaration", "compact_constructor_declaration"}
)
_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_BODY = {PYTHON: b"...", JAVA: b"{ ... }"}


def stub(text: str, language: Language) -> str:
    """Return a class or a file as a stub, without blank lines.

    Args:
        text: one or several definitions, whole; a broken one is taken as far as the parser understands it.
        language: its language.
    """
    source = Source(text, language)
    pieces, end = [], 0
    for start, stop, instead in _cuts(source.root, _BODY[language]):
        pieces += [source.data[end:start], instead]
        end = stop
    stubbed = b"".join([*pieces, source.data[end:]]).decode("utf-8", "replace")
    return "\n".join(line.rstrip() for line in stubbed.split("\n") if line.strip())


def _cuts(root: Node, body: bytes) -> list[tuple[int, int, bytes]]:
    """Return the stretches of bytes to replace, in order, and what takes their place."""
    cuts, stack = [], [root]
    while stack:
        node = stack.pop()
        inner = node.child_by_field_name("body") if node.type in _FUNCTIONS else None
        if node.type in _COMMENTS:
            cuts.append((node.start_byte, node.end_byte, b""))
        elif inner is not None:
            cuts.append((inner.start_byte, inner.end_byte, body))
        stack.extend(child for child in node.children if child != inner)
    return sorted(cuts)
