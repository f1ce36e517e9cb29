"""Reads the classes of a Python project, with their bases, own members and inherited members."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.modules import Exports, PythonTarget
from ctxbench.bench.languages.syntax import Source

SELF = frozenset({"self", "cls"})
"""Names that a method uses for its own object or class. Other names are not recognised."""
_PLAIN_DECORATORS = frozenset(
    {"dataclass", "define", "frozen", "mutable", "attrs", "final", "runtime_checkable", "total_ordering", "unique"}
)
"""Last names of decorators that add only special methods."""
_DYNAMIC = ("__getattr__", "__getattribute__", "__dict__", "setattr(", "vars(")
_NAMES = frozenset({"identifier", "pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "tuple"})
_TARGETS = frozenset({"assignment", "augmented_assignment", "for_statement", "for_in_clause"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """A Python class, with its bases and its own members."""

    name: str
    """Name with outer classes: ``Outer.Inner``."""
    bases: tuple[str, ...]
    """Bases as written, without subscripts: ``Base``, ``shop.Base``; "" for other expressions."""
    members: frozenset[str]
    """Names bound in the body, or assigned to the object or class in a method."""
    dynamic: bool
    """Whether members may come from elsewhere: a metaclass, a decorator, ``__getattr__``, ``setattr``."""


def read_classes(source: Source) -> dict[str, Class]:
    """Return a file's classes by name, except classes in functions. Classes with the same name are merged."""
    classes: dict[str, Class] = {}
    pending: list[tuple[Node, str]] = [(source.root, "")]
    while pending:
        node, outer = pending.pop()
        if node.type in ("function_definition", "lambda"):
            continue
        if node.type == "class_definition":
            definition = _class(node, outer, source)
            earlier = classes.get(definition.name)
            classes[definition.name] = _joined(earlier, definition) if earlier else definition
            outer = f"{definition.name}."
        pending += [(child, outer) for child in node.named_children]
    return classes


def _joined(earlier: Class, later: Class) -> Class:
    return Class(
        name=earlier.name,
        bases=tuple(dict.fromkeys([*earlier.bases, *later.bases])),
        members=earlier.members | later.members,
        dynamic=earlier.dynamic or later.dynamic,
    )


def _class(node: Node, outer: str, source: Source) -> Class:
    body = node.child_by_field_name("body")
    bases, keywords = _bases(node.child_by_field_name("superclasses"), source)
    text = source.text(node)
    return Class(
        name=outer + source.field(node, "name"),
        bases=bases,
        members=frozenset(_members(body, source)) if body is not None else frozenset(),
        dynamic=keywords or not _plainly_decorated(node, source) or any(word in text for word in _DYNAMIC),
    )


def _bases(arguments: Node | None, source: Source) -> tuple[tuple[str, ...], bool]:
    bases: list[str] = []
    keywords = False
    for argument in arguments.named_children if arguments is not None else ():
        base: Node | None = argument
        if argument.type == "subscript":
            base = argument.child_by_field_name("value")
        if argument.type == "keyword_argument":
            keywords = True
        elif argument.type != "comment":
            plain = base is not None and base.type in ("identifier", "attribute")
            bases.append("".join(source.text(base).split()) if plain and base is not None else "")
    return tuple(bases), keywords


def _plainly_decorated(node: Node, source: Source) -> bool:
    around = node.parent
    if around is None or around.type != "decorated_definition":
        return True
    decorators = [source.text(child) for child in around.named_children if child.type == "decorator"]
    return all(text[1:].partition("(")[0].strip().rpartition(".")[2] in _PLAIN_DECORATORS for text in decorators)


def _members(body: Node, source: Source) -> Iterator[str]:
    pending: list[tuple[Node, bool]] = [(child, False) for child in body.named_children]
    while pending:
        node, inside = pending.pop()
        if node.type in ("class_definition", "function_definition"):
            name = node.child_by_field_name("name")
            if not inside and name is not None:
                yield source.text(name)
            if node.type == "class_definition":
                continue
            inside = True
        target = node.child_by_field_name("left") if node.type in _TARGETS else None
        if node.type == "as_pattern_target":
            target = node
        if target is not None:
            yield from _assigned(target, inside, source)
            yield from _slots(node, target, source)
        if node.type in ("import_statement", "import_from_statement") and not inside:
            yield from _imported(node, source)
        pending += [(child, inside) for child in node.named_children]


def _assigned(target: Node, inside: bool, source: Source) -> Iterator[str]:
    pending = [target]
    while pending:
        node = pending.pop()
        if node.type == "identifier" and not inside:
            yield source.text(node)
        elif node.type == "attribute":
            owner, name = node.child_by_field_name("object"), node.child_by_field_name("attribute")
            if owner is not None and name is not None and source.text(owner) in SELF:
                yield source.text(name)
        elif node.type in _NAMES or node.type == "as_pattern_target":
            pending += node.named_children


def _slots(node: Node, target: Node, source: Source) -> Iterator[str]:
    right = node.child_by_field_name("right")
    if right is not None and source.text(target) == "__slots__":
        yield from map(source.text, source.find("string_content", right))


def _imported(node: Node, source: Source) -> Iterator[str]:
    for child in node.children_by_field_name("name"):
        alias = child.child_by_field_name("alias")
        yield source.text(alias) if alias is not None else source.text(child).partition(".")[0]


_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.MULTILINE)
_WORD = re.compile(r"\w+")

Members = frozenset[str]


class Hierarchy:
    """Looks up the members of a project's classes."""

    def __init__(self, texts: Mapping[str, str], exports: Exports) -> None:
        """Store the texts of the project's files by path. Each file is read only when needed."""
        self._texts, self._exports = texts, exports
        self._classes: dict[str, dict[str, Class]] = {}
        self._members: dict[tuple[str, str], Members | None] = {}
        self._modules: dict[str, str | None] | None = None
        self._heirs: dict[str, list[tuple[str, str]]] | None = None

    def classes(self, path: str) -> Mapping[str, Class]:
        """Return a file's classes by name."""
        if path not in self._classes:
            text = self._texts.get(path)
            self._classes[path] = {} if text is None else read_classes(Source(text, PYTHON))
        return self._classes[path]

    def path(self, module: str) -> str | None:
        """Return the file of a dotted module; None unless exactly one file has this module name."""
        if self._modules is None:
            self._modules = {}
            for path in self._texts:
                name = self._exports.index.name(path)
                self._modules[name] = None if name in self._modules else path
        return self._modules.get(module)

    def members(self, path: str, name: str) -> Members | None:
        """Return the names of a class's own and inherited members; None if the class or some members may be unknown."""
        key = (path, name)
        if key not in self._members:
            self._members[key] = None  # ends cycles of bases
            definition = self.classes(path).get(name)
            self._members[key] = None if definition is None else self.with_bases(path, definition)
        return self._members[key]

    def with_bases(self, path: str, definition: Class) -> Members | None:
        """Return the names of a class's own and inherited members; None if some may be unknown."""
        if definition.dynamic:
            return None
        names = definition.members | (inherited("builtins", "object") or frozenset())
        for base in definition.bases:
            more = self._base(path, definition, base)
            if more is None:
                return None
            names |= more
        return names

    def of_self(self, path: str, definition: Class) -> Members | None:
        """Return the members that `self` may have in a class, also from subclasses; None if some may be unknown."""
        if definition.name.endswith("Mixin"):
            return None
        names = self.with_bases(path, definition)
        for heir in self._below(definition.name.rpartition(".")[2]) if names is not None else ():
            more = self.members(*heir)
            if names is None or more is None:
                return None
            names |= more
        return names

    def _base(self, path: str, definition: Class, base: str) -> Members | None:
        if not base:
            return None
        name, *attributes = base.split(".")
        if not attributes and name in self.classes(path) and name != definition.name:
            return self.members(path, name)
        file = self._exports.files.get(path)
        items = [file.imports[index] for index in file.imported.get(name, ())] if file is not None else []
        if not items:
            bound = file is None or name in file.definitions or file.stars
            return None if bound or attributes else inherited("builtins", name)
        item = items[-1]
        target = self._exports.imported(path, item)
        if target is None:
            outside = (item.module, item.member or (attributes[-1] if attributes else ""))
            return inherited(*outside) if not item.level and len(attributes) == (item.member is None) else None
        last = item.member or name
        for part in attributes:
            step = self._exports.member(target.place, part) if target.place is not None else None
            if step is None:
                return None
            target, last = step, part
        return self._target(target, last)

    def _target(self, target: PythonTarget, name: str) -> Members | None:
        place = self.path(target.module) if target.kind == "class" else None
        return self.members(place, name) if place is not None else None

    def _below(self, name: str) -> list[tuple[str, str]]:
        if self._heirs is None:
            self._heirs = {}
            for path, text in self._texts.items():
                for heir, bases in _CLASS.findall(text):
                    for base in set(_WORD.findall(bases)):
                        self._heirs.setdefault(base, []).append((path, heir))
        heirs: dict[tuple[str, str], None] = {}
        pending = [name]
        while pending:
            for heir in self._heirs.get(pending.pop(), ()):
                if heir not in heirs:
                    heirs[heir] = None
                    pending.append(heir[1])
        return list(heirs)


_MODULES = ("builtins", "abc", "enum", "collections.abc")
_TYPING = frozenset({"Generic", "Protocol"})
_ENUM = frozenset({"name", "value", "_name_", "_value_"})


@functools.cache
def inherited(module: str, name: str) -> frozenset[str] | None:
    """Return the names of a standard-library class's members; None if the class is not among the few known."""
    if module in ("typing", "typing_extensions") and name in _TYPING:
        return frozenset()
    if module not in _MODULES:
        return None
    library_class = getattr(importlib.import_module(module), name, None)
    if not isinstance(library_class, type):
        return None
    names = {
        attribute
        for kind in (library_class, type(library_class))
        for base in inspect.getmro(kind)
        for attribute in vars(base)
    }
    return frozenset(names) | (_ENUM if module == "enum" else frozenset())
