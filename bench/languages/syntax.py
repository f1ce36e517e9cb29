"""Parses source text, walks syntax trees, and provides a default search for uses of imports."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import tree_sitter
from tree_sitter import Node

from ctxbench.bench.languages.base import FileFacts, Import, InternalLoad, Language
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.types import Use

_STRINGS = frozenset({"string", "string_literal", "character_literal", "template_string"})
_STRING_CONTENT = "string_content"
"""Node type of a Python string's content. Such a node counts as a leaf, although it may contain escapes."""
_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})


P = TypeVar("P")
Tokens = Mapping[int, tuple[Span, ...]]
Handler = Callable[[Any, Node, Any], None]
"""A method of a `TreeReader` that takes a node and its place."""


@functools.cache
def parser(language: Language) -> tree_sitter.Parser:
    """Return a language's parser. Each process creates only one parser per language."""
    return tree_sitter.Parser(tree_sitter.Language(language.grammar()))


class Source:
    """A parsed text. As in tree-sitter, only a newline ends a line."""

    def __init__(self, text: str, language: Language) -> None:
        self.data = text.encode("utf-8", "replace")
        self.root = parser(language).parse(self.data).root_node
        self._lines = None if len(self.data) == len(text) else self.data.split(b"\n")

    def column(self, row: int, byte: int) -> int:
        """Convert a column in bytes to a column in characters."""
        if self._lines is None:
            return byte
        return len(self._lines[row][:byte].decode("utf-8", "replace"))

    def text(self, node: Node | None) -> str:
        """Return a node's text; empty for None."""
        return "" if node is None else self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def field(self, node: Node, name: str) -> str:
        """Return the text of a node's field, such as ``name``; empty if missing."""
        return self.text(node.child_by_field_name(name))

    def find(self, kind: str, root: Node | None = None) -> Iterator[Node]:
        """Yield the named nodes of a type, in the whole text or from `root` down, in text order."""
        return (node for node in named_descendants(root or self.root) if node.type == kind)

    def tokens(self, rows: Iterable[int]) -> tuple[Tokens, Tokens]:
        """Return column spans of some lines' tokens twice: with each string as one token, and with split strings."""
        row_set = set(rows)
        with_strings, leaves = ({row: list[Span]() for row in sorted(row_set)} for _ in range(2))
        stack = [(self.root, False)] if row_set else []
        while stack:
            node, inside = stack.pop()
            (row, byte), (last_row, last_byte) = node.start_point, node.end_point
            if row_set.isdisjoint(range(row, last_row + 1)) or node.type in _COMMENTS:
                continue
            is_string = node.type in _STRINGS
            is_leaf = not node.child_count or node.type == _STRING_CONTENT
            if row == last_row and byte < last_byte and (is_leaf or is_string):
                token = (self.column(row, byte), self.column(row, last_byte))
                if not inside:
                    with_strings[row].append(token)
                if is_leaf:
                    leaves[row].append(token)
            if not is_leaf:
                stack.extend((child, inside or is_string) for child in node.children)
        return _sorted(with_strings), _sorted(leaves)


def _sorted(tokens: Mapping[int, list[Span]]) -> Tokens:
    return {row: tuple(sorted(spans)) for row, spans in tokens.items()}


def named_descendants(node: Node) -> Iterator[Node]:
    """Yield a node and all named nodes in it, in text order."""
    stack = [node]
    while stack:
        inner = stack.pop()
        yield inner
        stack.extend(reversed(inner.named_children))


def rows(node: Node) -> range:
    """Return the range of a node's lines."""
    return range(node.start_point[0], node.end_point[0] + 1)


def span(node: Node) -> Span:
    """Return the first line of a node and the line after its last line."""
    return node.start_point[0], node.end_point[0] + 1


class TreeReader(Generic[P]):
    """Walks a tree once, in text order. Public attributes of subclasses contain the results.

    A place describes the walk's position in the code. If a node has no handler, only its children are walked.
    """

    HANDLERS: ClassVar[Mapping[str, Handler]] = {}
    """Methods by node type. Each reads a node and pushes the nodes to walk next."""

    def __init__(self, source: Source, place: P) -> None:
        """Walk the tree of `source`, starting at `place`."""
        self.source = source
        self.barred: dict[int, str] = {}
        self._stack: list[tuple[Node, P]] = [(source.root, place)]
        while self._stack:
            node, place = self._stack.pop()
            handler = self.HANDLERS.get(node.type)
            if handler is not None:
                handler(self, node, place)
            else:
                self._push(node.named_children, place)

    def _push(self, nodes: list[Node], place: P) -> None:
        self._stack.extend((node, place) for node in reversed(nodes))

    def _push_field(self, node: Node, name: str, place: P) -> None:
        child = node.child_by_field_name(name)
        if child is not None:
            self._stack.append((child, place))

    def _bar(self, lines: range, reason: str) -> None:
        for line in lines:
            self.barred.setdefault(line, reason)


_DECLARING = ("declarator", "declaration", "definition", "parameter")
_DECLARED = ("name", "pattern", "parameter")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportingFile(FileFacts):
    """Facts about a file: the names that imports bind, and the places that read these names."""

    imports: tuple[Import, ...]
    loads: tuple[tuple[int, int, str], ...]


def analyse(language: Language, path: str, text: str) -> ImportingFile:
    """Return the imports of a file, and the places that read imported names, from its tree-sitter syntax tree."""
    source = Source(text, language)
    imports = tuple(language.imports(source))
    imported, declared = {item.name for item in imports}, set[str]()
    barred = {line: "import" for item in imports for line in range(*item.lines)}
    loads: list[tuple[int, int, str]] = []
    pending = [source.root]
    while pending:
        node = pending.pop()
        reason = language.barred.get(node.type, "")
        for line in _barred(node, reason):
            barred.setdefault(line, reason)
        if node.type in language.names and (name := source.text(node)) in imported:
            row, byte = node.start_point
            if _is_declared(node):
                declared.add(name)
            elif barred.get(row) != "import":
                loads.append((row, source.column(row, byte), name))
        pending += reversed(node.children)
    loads = [load for load in loads if load[2] not in declared]
    lines = {line for line, _, _ in loads}
    tokens, leaves = source.tokens(lines)
    return ImportingFile(
        path=path,
        broken=source.root.has_error,
        tokens=tokens,
        leaves=leaves,
        barred={line: barred[line] for line in sorted(lines & barred.keys())},
        imports=imports,
        loads=tuple(loads),
    )


def _barred(node: Node, reason: str) -> range:
    lines = rows(node)
    if not reason or (reason == "multiline_string" and len(lines) == 1):
        return range(0)
    body = node.child_by_field_name("body") if reason == "header" else None
    return lines if body is None else range(lines.start, body.start_point[0] + 1)


def _is_declared(node: Node) -> bool:
    around = node.parent
    if around is None or not around.type.endswith(_DECLARING):
        return False
    return any(around.child_by_field_name(field) == node for field in _DECLARED)


def resolve(language: Language, files: Mapping[str, ImportingFile]) -> dict[str, tuple[InternalLoad, ...]]:
    """Return each file's uses of names that it imports from other files of the project, by path."""
    return {path: tuple(_internal(language, file, files)) for path, file in files.items()}


def _internal(language: Language, file: ImportingFile, files: Mapping[str, ImportingFile]) -> list[InternalLoad]:
    origins: dict[str, str] = {}
    statements: dict[str, list[Span]] = {}
    for item in file.imports:
        origin = language.locate(item.module, file.path, files)
        if origin is not None and origin != file.path:
            origins[item.name] = language.module_of(origin)
            statements.setdefault(item.name, []).append(item.lines)
    loads = []
    for line, column, name in file.loads:
        if name in origins:
            uses = (Use(name=name, module=origins[name], kind="unknown"),)
            spans = tuple(sorted(statements[name]))
            loads.append(
                InternalLoad(line=line, column=column, name=name, uses=uses, near=uses, statements=spans, quoted=False)
            )
    return loads
