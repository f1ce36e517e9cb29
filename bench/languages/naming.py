"""The names that a file gives to its own things, and parts of its text under other names.

By syntax alone: a name counts as the file's own wherever it stands, whatever it refers to there.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping

from tree_sitter import Node

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.syntax import Source

_SELF = frozenset((b"self", b"cls"))
_MEMBERS = {"attribute": "attribute", "field_access": "field", "method_invocation": "name"}
"""Types of nodes that reach a member of their ``object`` -> the field that names it."""


def identifiers(root: Node, start: int = 0, end: int = sys.maxsize) -> Iterator[Node]:
    """Yield the nodes that spell a name, at a node or below it, in order; only those between two bytes of the text."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.end_byte <= start or node.start_byte >= end:
            continue
        if node.type.endswith("identifier") and not node.child_count:
            yield node
        pending += reversed(node.children)


def own_names(source: Source, language: Language, needed: Collection[str] = ()) -> frozenset[str]:
    """Return the names that a file gives: to functions, classes, parameters, variables and fields.

    Left out are those of the language and its library (`Language.reserved`, `Language.library`), special ones
    (``__init__``), what import statements bring in, and what is reached through that (the ``path`` of ``os.path``).

    Args:
        source: the file; it may be cut off anywhere.
        language: its language; one without `Language.binders` has no names of its own.
        needed: further names of the project, which import statements may bring in.
    """
    own, imported = set(needed), set[str]()
    reached: list[tuple[str, str]] = []
    pending = [source.root]
    while pending:
        node = pending.pop()
        if node.type.startswith("import"):
            imported.update(map(source.text, identifiers(node)))
            continue
        if node.type in _MEMBERS and (member := node.child_by_field_name(_MEMBERS[node.type])) is not None:
            reached.append((source.text(_owner(node)), source.text(member)))
        field = language.binders.get(node.type)
        if field is not None:
            bound = node.children_by_field_name(field) if field else node.named_children
            own.update(source.text(name) for child in bound for name in _bound(child))
        pending += node.named_children
    imported.difference_update(needed)
    members = {member for owner, member in reached if owner in imported}
    kept = language.reserved | language.library | imported | (members - set(needed))
    return frozenset(name for name in own - kept if language.binders and not name.startswith("__"))


def renamed(source: Source, start: int, end: int, names: Mapping[str, str]) -> str:
    """Return the text between two bytes under other names.

    Args:
        source: the file.
        start: the first byte.
        end: the byte after the last one.
        names: name -> the one that takes its place; others stay.
    """
    parts, at = [], start
    for node in identifiers(source.root, start, end):
        name = source.text(node)
        if name in names and start <= node.start_byte and node.end_byte <= end:
            parts += [source.data[at : node.start_byte].decode("utf-8", "replace"), names[name]]
            at = node.end_byte
    return "".join([*parts, source.data[at:end].decode("utf-8", "replace")])


def _owner(node: Node) -> Node:
    """Return what a chain of members begins with."""
    while (owner := node.child_by_field_name("object")) is not None:
        node = owner
    return node


def _bound(node: Node) -> Iterator[Node]:
    """Yield the names that a target of an assignment or a parameter binds: also in patterns, and as ``self.name``."""
    if node.type.endswith("identifier") and not node.child_count:
        yield node
    elif node.type == "attribute":
        owner, name = node.child_by_field_name("object"), node.child_by_field_name("attribute")
        if owner is not None and owner.text in _SELF and name is not None:
            yield name
    elif "pattern" in node.type or node.type == "tuple":
        for child in node.named_children:
            yield from _bound(child)
