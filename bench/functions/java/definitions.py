"""The documented methods of a Java file: where each begins and ends, and why others are none.

Pure: text in, data out. Methods of anonymous and local classes are left out; constructors are no methods. The bodies of
both are counted with the others, since a body that stands there too is no secret.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.functions.candidates import Declaration, Definitions
from ctxbench.bench.languages.java.outline import (
    COMMENTS,
    MethodParts,
    behind_brace,
    body_end,
    body_start,
    declared,
    methods,
    name_of,
    shares_line,
    within,
)
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

_WITH_BODY = frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"})
_MARGIN = re.compile(r"^[ \t]*\*? ?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Declaration):
    """One method of a file."""

    body: tuple[int, int]
    """Bytes of the body, braces included."""
    blocks: tuple[Cursor, ...]
    """Behind the opening brace of the body and of every block in it."""


def definitions(source: Source) -> Definitions[Definition]:
    """Return the documented methods of a file, in the order of their lines."""
    met = list(methods(source, source.root))
    names = Counter(_qualified(source, node, owners) for node, owners in met)
    drops: Counter[str] = Counter()
    usable: list[Definition] = []
    documented = 0
    for node, owners in met:
        parts = declared(node)
        doc = _javadoc(source, node)
        if not doc:
            continue
        documented += 1
        reason = _reason(source, node, parts, doc)
        if reason or parts is None:
            drops[reason] += 1
            continue
        name = _qualified(source, node, owners)
        name += parameter_types(source, node) if names[name] > 1 else ""
        usable.append(described(source, parts, owners, name, doc))
    # `<T extends List<?>> first(T)` and `<T extends Map<?, ?>> first(T)` have one name still.
    shared = Counter(definition.name for definition in usable)
    drops += Counter(shares_name=sum(count for count in shared.values() if count > 1))
    usable = [definition for definition in usable if shared[definition.name] == 1]
    return Definitions(len(met), documented, tuple(usable), drops, Counter(_bodies(source)))


def _qualified(source: Source, node: Node, owners: tuple[str, ...]) -> str:
    return ".".join([*owners, name_of(source, node)])


def parameter_types(source: Source, node: Node) -> str:
    """Return ``(int,String[])``: the types of a method's parameters, as they are written."""
    parameters = node.child_by_field_name("parameters")
    types = []
    for child in parameters.named_children if parameters is not None else []:
        if child.type not in ("formal_parameter", "spread_parameter"):
            continue
        kind = child.child_by_field_name("type") or next(
            (grandchild for grandchild in child.named_children if grandchild.type not in ("modifiers", *COMMENTS)),
            None,
        )
        more = child.child_by_field_name("dimensions")
        written = source.text(kind) if kind is not None else ""
        written += source.text(more) if more is not None else ""
        types.append("".join(written.split()) + ("..." if child.type == "spread_parameter" else ""))
    return f"({','.join(types)})"


def _javadoc(source: Source, node: Node) -> str:
    """Return the text of the Javadoc directly before a method, without stars; empty if there is none."""
    before = node.prev_sibling
    if before is None or before.type != "block_comment":
        return ""
    text = source.text(before)
    if not text.startswith("/**") or len(text) < 5:
        return ""
    return _MARGIN.sub("", text[3:-2]).strip()


def _reason(source: Source, node: Node, parts: MethodParts | None, doc: str) -> str:
    if parts is None:
        return "no_body"
    modifiers = next((child for child in node.children if child.type == "modifiers"), None)
    words = {child.type for child in modifiers.children} if modifiers is not None else set()
    if "private" in words:
        return "private"
    if doc.replace("{@inheritDoc}", "").strip() == "":
        return "inherited_doc"
    if not [child for child in parts.body.named_children if child.type not in COMMENTS]:
        return "empty_body"
    if shares_line(source, parts):
        return "shares_line"
    return "broken" if node.has_error else ""


def described(source: Source, parts: MethodParts, owners: tuple[str, ...], name: str, doc: str) -> Definition:
    """Return what there is to a method, documented or not, but for its name and docstring."""
    first, body = parts.first, parts.body
    start = first.start_point[0]
    head = source.data[first.start_byte : body.start_byte].decode("utf-8", "replace")
    blocks = [node for node in within(body) if node.type == "block"]
    return Definition(
        name=name,
        signature=" ".join(head.split()),
        docstring=doc,
        start=start,
        cursor=body_start(source, body),
        tail=body_end(source, body),
        end=parts.node.end_point[0] + 1,
        owners=owners,
        body=(body.start_byte, body.end_byte),
        code=_code(source, body),
        blocks=tuple(behind_brace(source, block) for block in blocks),
    )


def _bodies(source: Source) -> Iterator[str]:
    """Yield the code of every body of a file, also of constructors and in anonymous and local classes."""
    for node in within(source.root):
        body = node.child_by_field_name("body") if node.type in _WITH_BODY else None
        if body is not None:
            yield _code(source, body)


def _code(source: Source, body: Node) -> str:
    words: list[str] = []
    stack = [body]
    while stack:
        node = stack.pop()
        if node.type in COMMENTS:
            continue
        if node.child_count and node.type not in ("string_literal", "character_literal"):
            stack.extend(reversed(node.children))
        else:
            words.append(source.text(node))
    return " ".join(words)
