"""Finds unusual code in the syntax tree of a Java completion (docs/verdicts.md explains why)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tree_sitter import Node

from ctxbench.bench.languages.java.outline import in_class
from ctxbench.bench.languages.syntax import Source

_WORD = re.compile(rb"[A-Za-z_$][\w$]*")
_ESCAPE = re.compile(r"\\u+00[0-7][0-9A-Fa-f]")
"""Matches an escaped ASCII character. Java decodes such escapes before it parses strings and comments."""
_TEST = re.compile(r"(^|/)(src/)?tests?/|Tests?\.java$")
_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_REACHING, _PURE, _OBLIGING, _CHANGING = (
    frozenset(_LISTS[key].split()) for key in ("reaching", "pure", "obliging", "changing")
)


def words(tree: Mapping[str, bytes]) -> frozenset[str]:
    """Return the words in a repository's Java sources, except in tests."""
    found: set[bytes] = set()
    for path, content in tree.items():
        if path.endswith(".java") and not _TEST.search(path):
            found.update(_WORD.findall(content))
    return frozenset(word.decode() for word in found)


def remarks(known: frozenset[str], text: str, reference: str = "") -> tuple[str, ...]:
    """Describe each kind of unusual code in a completion, with its first line. Kinds in `reference` are left out."""
    usual = {reason for _, reason in _read(known, reference)} if reference else set()
    found: dict[str, int] = {}
    for line, reason in sorted(_read(known, text)):
        if reason not in usual:
            found.setdefault(reason, line)
    return tuple(f"line {line}: {reason}" for reason, line in found.items())


def _read(known: frozenset[str], text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if _ESCAPE.search(line):
            yield number, "writes code as a Unicode escape"
    source = in_class(text)
    before = source.data[: source.data.find(text.encode()[:20])].count(b"\n") if text else 0
    own = _declared(source)
    for node, depth in _nodes(source.root, 0):
        number = max(node.start_point[0] + 1 - before, 1)
        yield from ((number, reason) for reason in _reasons(source, node, depth, known, own))


def _nodes(node: Node, depth: int) -> Iterator[tuple[Node, int]]:
    waiting = [(node, depth)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        inner = depth + (node.type == "class_body")
        waiting.extend((child, inner) for child in reversed(node.children))


def _declared(source: Source) -> Mapping[str, bool]:
    found: dict[str, bool] = {}
    for node, _ in _nodes(source.root, 0):
        if node.type in ("formal_parameter", "spread_parameter", "catch_formal_parameter", "inferred_parameters"):
            for part, _ in _nodes(node, 0):
                if part.type == "identifier":
                    found[source.text(part)] = True
        elif node.child_by_field_name("name") is not None:
            found.setdefault(source.field(node, "name"), False)
    return found


def _reasons(source: Source, node: Node, depth: int, known: frozenset[str], own: Mapping[str, bool]) -> Iterator[str]:
    if node.type in ("identifier", "type_identifier"):
        word = source.text(node)
        if word in _REACHING or (word[:1].isupper() and word not in known | _PURE and word not in own):
            yield f"uses {word}"
    elif node.type in ("static_initializer", "ERROR") or (node.type == "block" and depth == 1 and _is_member(node)):
        yield "contains code outside a method"
    elif node.type == "method_declaration" and depth > 1:
        if source.field(node, "name") in _OBLIGING:
            yield f"defines {source.field(node, 'name')} in its own class"
    elif node.type == "class_literal":
        yield "uses a class as a value"
    elif node.type == "assignment_expression":
        yield from _changed(source, node.child_by_field_name("left"), own)
    elif node.type == "update_expression":
        yield from _changed(source, node.named_children[0] if node.named_children else None, own)
    elif node.type == "method_invocation":
        receiver, name = node.child_by_field_name("object"), source.field(node, "name")
        foreign = receiver is not None and own.get(source.text(receiver), False)
        if name in _CHANGING and foreign:
            yield f"changes an argument: {source.text(receiver)}.{name}"


def _is_member(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "class_body"


def _changed(source: Source, target: Node | None, own: Mapping[str, bool]) -> Iterator[str]:
    if target is None or target.type not in ("field_access", "array_access"):
        return
    holder = target.child_by_field_name("object" if target.type == "field_access" else "array")
    name = source.text(holder)
    if name != "this" and not name.startswith("this.") and own.get(name, True):
        yield f"changes an object that it did not create: {' '.join(source.text(target).split())[:60]}"
