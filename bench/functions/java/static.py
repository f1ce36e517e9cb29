"""Lists the methods of a Java repository that can become samples, with their levels and the project names they use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.functions.candidates import Declaration, Definitions, Static, static, test_places
from ctxbench.bench.functions.mining import Level, Project
from ctxbench.bench.languages.base import FileFacts, InternalLoad
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.outline import (
    COMMENTS,
    MethodParts,
    after_brace,
    body_end,
    body_start,
    declared,
    methods,
    shares_line,
)
from ctxbench.bench.languages.java.reader import METHOD, JavaFile, JavaImport, JavaRawLoad, JavaReader, JavaScope
from ctxbench.bench.languages.java.uses import ProjectTypes
from ctxbench.bench.languages.syntax import Source, named_descendants
from ctxbench.bench.masking import is_hidden
from ctxbench.bench.types import Cursor, Use

_WITH_BODY = frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"})
_MARGIN = re.compile(r"^[ \t]*\*? ?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Declaration):
    """A Java method that may become a sample."""

    body: tuple[int, int]
    blocks: tuple[Cursor, ...]
    """Places after the opening braces of the body and of all blocks in the body."""


def definitions(source: Source) -> Definitions[Definition]:
    """Return a file's usable documented methods in line order, with counts of all its methods."""
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
    # `<T extends List<?>> first(T)` and `<T extends Map<?, ?>> first(T)` have the same name.
    shared = Counter(definition.name for definition in usable)
    drops += Counter(shares_name=sum(count for count in shared.values() if count > 1))
    usable = [definition for definition in usable if shared[definition.name] == 1]
    return Definitions(len(met), documented, tuple(usable), drops, Counter(_bodies(source)))


def _qualified(source: Source, node: Node, owners: tuple[str, ...]) -> str:
    return ".".join([*owners, source.field(node, "name")])


def parameter_types(source: Source, node: Node) -> str:
    """Return a method's parameter types as written, but without spaces: ``(int,String[])``."""
    parameters = node.child_by_field_name("parameters")
    types = []
    for child in parameters.named_children if parameters is not None else []:
        if child.type not in ("formal_parameter", "spread_parameter"):
            continue
        kind = child.child_by_field_name("type") or next(
            (grandchild for grandchild in child.named_children if grandchild.type not in ("modifiers", *COMMENTS)),
            None,
        )
        written = source.text(kind) + source.field(child, "dimensions")
        types.append("".join(written.split()) + ("..." if child.type == "spread_parameter" else ""))
    return f"({','.join(types)})"


def _javadoc(source: Source, node: Node) -> str:
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
    """Return the definition of a method, with the given name and docstring."""
    first, body = parts.first, parts.body
    start = first.start_point[0]
    head = source.data[first.start_byte : body.start_byte].decode("utf-8", "replace")
    blocks = [node for node in named_descendants(body) if node.type == "block"]
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
        blocks=tuple(after_brace(source, block) for block in blocks),
    )


def _bodies(source: Source) -> Iterator[str]:
    for node in named_descendants(source.root):
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


_ORDER = tuple(Level)
_JDK = ("java.", "javax.", "jdk.", "org.w3c.dom.", "org.xml.sax.", "org.ietf.jgss.")
_ROOTS = frozenset({"java", "javax", "jdk"})
_WORDS = """
    Appendable AssertionError Boolean Byte CharSequence Character Class ClassLoader Cloneable Comparable
    Deprecated Double Enum Error Exception Float FunctionalInterface IllegalArgumentException
    IllegalStateException IndexOutOfBoundsException Integer Iterable Long Math NullPointerException
    Number NumberFormatException Object Override Process Runnable Runtime RuntimeException Short
    StrictMath String StringBuffer StringBuilder SuppressWarnings System Thread ThreadLocal Throwable
    UnsupportedOperationException Void AutoCloseable ArithmeticException ArrayIndexOutOfBoundsException
    ArrayStoreException ClassCastException ClassNotFoundException CloneNotSupportedException
    IllegalAccessException InstantiationException InterruptedException NegativeArraySizeException
    NoSuchFieldException NoSuchMethodException OutOfMemoryError Package Readable
    ReflectiveOperationException SecurityException StackOverflowError StackTraceElement
    StringIndexOutOfBoundsException
"""
_LANG = frozenset(_WORDS.split())


class FileNames:
    """A lookup of the level of each method in a file, and of the project names that the method uses."""

    def __init__(self, source: Source, internal: Iterable[InternalLoad], types: ProjectTypes) -> None:
        """Read a file. `internal` lists the file's uses of names from other files of the project."""
        self._source, self._types = source, types
        self._reader = JavaReader(source)
        self._internal = {(load.line, load.column): load for load in internal}
        self._parents = self._superclasses()

    def needs(self, method: Definition) -> tuple[Level, tuple[Use, ...]]:
        """Return a method's level, and the project names that its body uses."""
        level = self._own_object(method)
        uses: list[Use] = []
        for load in self._loads(method):
            row, byte = load.node.start_point
            internal = self._internal.get((row, self._source.column(row, byte)))
            needed, more = (Level.PROJECT, internal.uses) if internal is not None else self._level(load, method)
            level = max(level, needed, key=_ORDER.index)
            uses += more
        return level, tuple(dict.fromkeys(uses))

    def _loads(self, method: Definition) -> Iterator[JavaRawLoad]:
        start, end = method.body
        for load in self._reader.loads:
            if start <= load.node.start_byte < end:
                yield load

    def _own_object(self, method: Definition) -> Level:
        start, end = method.body
        stack = [self._source.root.descendant_for_byte_range(start, end - 1)]
        while stack:
            node = stack.pop()
            if node is None:
                continue
            if node.type in ("this", "super"):
                return Level.CLASS
            # In an anonymous class, `this` and `super` refer to another object.
            stack.extend(child for child in node.children if child.type != "class_body")
        return Level.SELF_CONTAINED

    def _level(self, load: JavaRawLoad, method: Definition) -> tuple[Level, tuple[Use, ...]]:
        depth = _binder_depth(load)
        if depth is not None:
            own = len(method.owners)
            return (Level.SELF_CONTAINED if depth > own else Level.CLASS if depth == own else Level.FILE), ()
        for item in self._reader.imports:
            if not item.wildcard and item.name.rpartition(".")[2] == load.name and item.static == (load.role == METHOD):
                # Imports from other files of the project are resolved already, so this import is from the same file.
                return (Level.FILE if self._types.path(item) else _origin(item)), ()
        if load.role == METHOD:
            return self._inherited(load, method)
        return self._unbound(load, method)

    def _unbound(self, load: JavaRawLoad, method: Definition) -> tuple[Level, tuple[Use, ...]]:
        neighbour = self._types.in_package(self._reader.package, load.name)
        if neighbour is not None:
            return Level.PROJECT, self._spelled(load, neighbour.owner)
        if load.name in _ROOTS and load.chain:
            return Level.SLIB, ()
        statics = [item for item in self._reader.imports if item.static and item.name.rpartition(".")[2] == load.name]
        if statics:
            return _origin(statics[0]), ()
        if not load.name[:1].isupper():
            return self._inherited(load, method)
        wild = [item for item in self._reader.imports if item.wildcard and not item.static]
        if not wild or load.name in _LANG:
            return Level.SELF_CONTAINED, ()
        return max((_origin(item) for item in wild), key=_ORDER.index), ()

    def _inherited(self, load: JavaRawLoad, method: Definition) -> tuple[Level, tuple[Use, ...]]:
        parent = self._parents.get(method.owners[-1] if method.owners else "")
        if parent is None:
            wild = [item for item in self._reader.imports if item.static and item.wildcard]
            return max((_origin(item) for item in wild), key=_ORDER.index, default=Level.CLASS), ()
        ancestor = self._resolve(parent)
        if ancestor is None:
            return Level.CLASS, ()
        return Level.PROJECT, (Use(name=load.name, module=ancestor, kind=_kind(load)),)

    def _resolve(self, name: str) -> str | None:
        for item in self._reader.imports:
            if item.name.rpartition(".")[2] == name and self._types.type(item.name) is not None:
                return item.name
        neighbour = self._types.in_package(self._reader.package, name)
        return neighbour.owner if neighbour is not None else None

    def _spelled(self, load: JavaRawLoad, owner: str) -> tuple[Use, ...]:
        uses = [Use(name=load.name, module=owner, kind="class")]
        member = self._types.member(owner, load.chain[0]) if load.chain else None
        if member is not None:
            uses.append(Use(name=f"{load.name}.{load.chain[0]}", module=member.owner, kind=member.kind))
        return tuple(uses)

    def _superclasses(self) -> dict[str, str]:
        superclasses: dict[str, str] = {}
        for node in self._source.find("class_declaration"):
            parent = node.child_by_field_name("superclass")
            if parent is not None and parent.named_children:
                written = self._source.text(parent.named_children[0])
                superclasses.setdefault(self._source.field(node, "name"), written.partition("<")[0].strip())
        return superclasses


def _kind(load: JavaRawLoad) -> str:
    return "function" if load.role == METHOD else "variable"


def _origin(item: JavaImport) -> Level:
    return Level.SLIB if f"{item.name}.".startswith(_JDK) else Level.PLIB


def _binder_depth(load: JavaRawLoad) -> int | None:
    scope: JavaScope | None = load.scope
    while scope is not None:
        if JavaScope(None, scope.values, scope.methods, scope.types).declares(load.name, load.role):
            depth = 0
            while scope.parent is not None:
                scope, depth = scope.parent, depth + 1
            return depth
        scope = scope.parent
    return None


def read_functions(project: Project, main: tuple[str, ...], test: tuple[str, ...] = ()) -> Static[Definition]:
    """List the documented methods that can become samples. `main` are source folders, and `test` are test folders."""
    texts = project.snapshot.texts
    suite = project.manifest.tests
    apart = [folder for folder in test if not any(f"{source}/".startswith(f"{folder}/") for source in main)]
    hidden = test_places(texts, suite.paths if suite is not None else (), apart)
    left_out: Counter[str] = Counter()
    bodies: Counter[str] = Counter()
    read_sources: dict[str, Source] = {}
    read_files: dict[str, Definitions[Definition]] = {}
    for path, text in texts.items():
        if is_hidden(path, hidden):
            left_out["test"] += 1
            continue
        source = Source(text, JAVA)
        in_file = definitions(source)
        # Count files without samples too: strategies see them.
        bodies.update(in_file.bodies)
        reason = _left_out(path, source, project, main)
        if reason:
            left_out[reason] += 1
        else:
            read_sources[path], read_files[path] = source, in_file
    facts: dict[str, FileFacts] = {path: JAVA.analyse(path, text) for path, text in texts.items()}
    loads = JAVA.resolve(facts)
    types = ProjectTypes({path: file for path, file in facts.items() if isinstance(file, JavaFile)})

    def names(path: str) -> FileNames:
        return FileNames(read_sources[path], loads[path], types)

    return static(read_files, names, bodies, hidden=hidden, left_out=left_out)


def _left_out(path: str, source: Source, project: Project, main: tuple[str, ...]) -> str:
    if not any(path.startswith(f"{folder}/") for folder in main):
        return "no_main_source"
    if project.manifest.excludes(path):
        return "excluded"
    if "\ufffd" in project.snapshot.texts[path]:
        return "bad_encoding"
    return "syntax_error" if source.root.has_error else ""
