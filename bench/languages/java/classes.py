"""The types of one Java file: what they extend, and their members."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Language

_DECLARATIONS = {
    "class_declaration": "class",
    "interface_declaration": "interface",
    "enum_declaration": "enum",
    "record_declaration": "record",
    "annotation_type_declaration": "annotation",
}
_MADE_UP = re.compile(r"^import\s+(?:static\s+)?lombok\b", re.MULTILINE)
_OBJECT = frozenset(["clone", "equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait"])
_ENUM = frozenset(["values", "valueOf", "name", "ordinal", "compareTo", "getDeclaringClass", "describeConstable"])
_THROWABLE = frozenset(
    [
        "addSuppressed",
        "fillInStackTrace",
        "getCause",
        "getLocalizedMessage",
        "getMessage",
        "getStackTrace",
        "getSuppressed",
        "initCause",
        "printStackTrace",
        "setStackTrace",
    ]
)
LIBRARY = {
    **dict.fromkeys(("Object", "Serializable", "Cloneable"), frozenset[str]()),
    **dict.fromkeys(("AutoCloseable", "Closeable"), frozenset({"close"})),
    **dict.fromkeys(
        ("Throwable", "Exception", "RuntimeException", "IllegalArgumentException", "IllegalStateException", "Error"),
        _THROWABLE,
    ),
    "IOException": _THROWABLE,
    "Comparable": frozenset({"compareTo"}),
    "Runnable": frozenset({"run"}),
    "Callable": frozenset({"call"}),
    "Iterable": frozenset({"iterator", "forEach", "spliterator"}),
    "Supplier": frozenset({"get"}),
}
"""Members of the few library types that are known as supertypes; any other leaves a type's members open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaClass:
    """One type."""

    name: str
    """With the types around it: ``Outer.Inner``."""
    supers: tuple[str, ...]
    """Names of what it extends and implements, without type arguments."""
    members: frozenset[str]
    """Fields, constants, methods, record components and member types of its own, and what every type has."""
    dynamic: bool
    """Whether members may be made up when the file is compiled (Lombok)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaNames:
    """The names that one file declares and imports."""

    package: str
    imports: dict[str, str]
    """Simple name -> qualified name, of single-type imports."""
    wildcards: tuple[str, ...]
    """Packages, or types, all of whose types are imported."""
    static: frozenset[str]
    """Names of single static imports."""
    static_wildcards: bool
    types: dict[str, JavaClass]


_PACKAGE = re.compile(r"^\s*package\s+([\w.\s]+);", re.MULTILINE)
_IMPORT = re.compile(r"^\s*import\s+(static\s+)?([\w.]+?)(\.\*)?\s*;", re.MULTILINE)


def read_names(text: str) -> JavaNames:
    """Return the names of a file, or of the beginning of one."""
    imports = _IMPORT.findall(text)
    package = _PACKAGE.search(text)
    source = Source(text, Language.JAVA)
    dynamic = _MADE_UP.search(text) is not None
    types = {java_class.name: java_class for java_class in _types(source.root, "", source, dynamic)}
    return JavaNames(
        package="".join(package[1].split()) if package else "",
        imports={name.rpartition(".")[2]: name for static, name, star in imports if not static and not star},
        wildcards=tuple(name for static, name, star in imports if not static and star),
        static=frozenset(name.rpartition(".")[2] for static, name, star in imports if static and not star),
        static_wildcards=any(static and star for static, _, star in imports),
        types=types,
    )


def _types(node: Node, outer: str, source: Source, dynamic: bool) -> Iterator[JavaClass]:
    for child in node.named_children:
        kind = _DECLARATIONS.get(child.type)
        name, body = child.child_by_field_name("name"), child.child_by_field_name("body")
        if kind is None or name is None or body is None:
            if child.type in ("enum_body_declarations", "ERROR"):
                yield from _types(child, outer, source, dynamic)
            continue
        qualified = f"{outer}{source.text(name)}"
        members = _OBJECT | frozenset(_members(body, source)) | (_ENUM if kind == "enum" else frozenset())
        if kind == "record":
            members |= frozenset(_components(child, source))
        yield JavaClass(name=qualified, supers=tuple(_supers(child, source)), members=members, dynamic=dynamic)
        yield from _types(body, f"{qualified}.", source, dynamic)


def _members(body: Node, source: Source) -> Iterator[str]:
    for child in body.named_children:
        if child.type in ("enum_body_declarations", "ERROR"):
            yield from _members(child, source)
        for declarator in child.children_by_field_name("declarator"):
            name = declarator.child_by_field_name("name")
            if name is not None:
                yield source.text(name)
        name = child.child_by_field_name("name")
        if name is not None:
            yield source.text(name)


def _components(record: Node, source: Source) -> Iterator[str]:
    parameters = record.child_by_field_name("parameters")
    for parameter in parameters.named_children if parameters is not None else ():
        name = parameter.child_by_field_name("name")
        if name is not None:
            yield source.text(name)


def _supers(node: Node, source: Source) -> Iterator[str]:
    for child in node.named_children:
        if child.type in ("superclass", "super_interfaces", "extends_interfaces"):
            pending = list(child.named_children)
            while pending:
                type_node = pending.pop(0)
                if type_node.type in ("type_list", "interface_type_list", "annotated_type"):
                    pending += type_node.named_children
                elif type_node.type == "generic_type":
                    pending += type_node.named_children[:1]
                elif type_node.type in ("type_identifier", "scoped_type_identifier"):
                    yield "".join(source.text(type_node).split())
