"""Names of a Java project that a piece of code reads; see `bench.languages.base.ProjectNames`.

Judged are the project's types with the static member or member type that follows (``Rules.round``), members of
``this``, and methods called without a receiver. Members of what a variable holds are not judged, because that
needs its type; no more are methods where an anonymous class stands in the code. Read token by token, so that
code which is cut off anywhere is read as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tree_sitter import Node

from ctxbench.bench.languages.base import ProjectReading
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.syntax import Source

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
    source = Source(text, JAVA)
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


_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?(?:\*/|\Z)|"""(?:\\.|.)*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?'
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>::|[.(){};])|(?P<other>[^\s\w])|\d[\w.]*",
    re.DOTALL,
)
_ANONYMOUS = re.compile(r"\bnew\s+[\w.<>?,\s]+\([^;{}]*\)\s*\{")
_DECLARES = frozenset({"class", "interface", "enum", "record"})
_BEFORE_CALL = frozenset({"return", "throw", "else", "case", "assert", "yield", "do", "in"})
_NO_CALL = (
    frozenset({"if", "for", "while", "switch", "catch", "synchronized", "try", "super", "this", "new", "do", "else"})
    | _BEFORE_CALL
)
_NO_MEMBER = frozenset({"class", "this", "super", "length", "new"})


class _Token(NamedTuple):
    text: str
    start: int
    named: bool


class _Chain(NamedTuple):
    """A name with those that follow it after dots, and where it stands."""

    parts: tuple[str, ...]
    start: int
    called: bool
    """Whether a bracket follows the last one."""
    before: str
    """The token before."""
    types: tuple[str, ...]
    """The types around it, outermost first."""


class JavaProject:
    """The names of a Java project."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Use files; a type is looked for in the file called like it, in a folder that ends like its package."""
        self._texts = {path: texts[path] for path in texts if path.endswith(".java")}
        self._paths: dict[str, list[str]] = {}
        for path in self._texts:
            self._paths.setdefault(path.rpartition("/")[2].removesuffix(".java"), []).append(path)
        self._names: dict[str, JavaNames] = {}

    def readings(self, path: str, code: str, *, start: tuple[int, int] = (0, 0)) -> tuple[ProjectReading, ...]:
        """Return what `code` reads of the project from `start` on, in the order of lines."""
        file_names = self._file(path) if path in self._texts else None
        code_names = read_names(code)
        # Imports are those that the code shows: others of its file may be masked.
        view = _View(path, code_names, code_names.types)
        if file_names is not None:
            # A masked static import, too, can bring in a method.
            static, open_ = (
                code_names.static | file_names.static,
                code_names.static_wildcards or file_names.static_wildcards,
            )
            view = _View(
                path,
                replace(code_names, package=file_names.package, static=static, static_wildcards=open_),
                file_names.types,
            )
        anonymous = _ANONYMOUS.search(code) is not None
        starts = [0, *(match.end() for match in re.finditer("\n", code))]
        judged = []
        for chain in _chains(code):
            line = bisect_right(starts, chain.start) - 1
            column = chain.start - starts[line]
            judgement = self._judge(view, chain, anonymous) if (line, column) >= start else None
            if judgement is not None:
                judged.append(ProjectReading(name=judgement[0], line=line, column=column, known=judgement[1]))
        return tuple(judged)

    def _judge(self, view: _View, chain: _Chain, anonymous: bool) -> tuple[str, bool] | None:
        first, *following = chain.parts
        if first == "this" and following and not anonymous:
            is_defined = self._of_enclosing(view, chain.types[-1:], following[0])
            return (f"this.{following[0]}", is_defined) if is_defined is not None else None
        if not following and chain.called and first[:1].islower():
            # `Type name(` declares; `new Type(` and brackets after keywords are no calls of a method.
            declared = (chain.before[:1].isalpha() and chain.before not in _BEFORE_CALL) or chain.before in (">", "]")
            if anonymous or declared or first in _NO_CALL or view.names.static_wildcards or first in view.names.static:
                return None
            is_defined = self._of_enclosing(view, chain.types, first)
            return (first, is_defined) if is_defined is not None else None
        return self._of_type(view, chain)

    def _of_enclosing(self, view: _View, types: tuple[str, ...], name: str) -> bool | None:
        """Return whether one of the types around the code has a member; None if that cannot be told."""
        member_sets: list[frozenset[str] | None] = []
        for depth in range(1, len(types) + 1):
            qualified = ".".join(types[:depth]) if len(types) > 1 else view.innermost(types[0])
            java_class = view.types.get(qualified)
            member_sets.append(self._members(view.path, view, java_class, ()) if java_class is not None else None)
        if not member_sets or any(members is None for members in member_sets):
            return None
        return any(name in members for members in member_sets if members is not None)

    def _of_type(self, view: _View, chain: _Chain) -> tuple[str, bool] | None:
        first, *following = chain.parts
        if not first[:1].isupper() or chain.before in _DECLARES:
            return None
        resolved = self._find(view, first, chain.types)
        if resolved is None:
            return None
        spelled = first
        for part in following:
            path, java_class = resolved
            if part in _NO_MEMBER:
                break
            inner = self._file_view(path).types.get(f"{java_class.name}.{part}")
            members = self._members(path, self._file_view(path), java_class, ())
            if members is None and inner is None:
                break
            spelled = f"{spelled}.{part}"
            if inner is None:
                return spelled, part in (members or ())
            resolved = (path, inner)
        return spelled, True

    def _find(self, view: _View, name: str, around: tuple[str, ...]) -> tuple[str, JavaClass] | None:
        """Return the project's type that a simple name stands for (JLS 6.4.1), with its file."""
        for depth in range(len(around), -1, -1):
            inner = view.types.get(".".join((*around[:depth], name)))
            if inner is not None:
                return view.path, inner
        if name in view.names.imports:
            return self._qualified(view.names.imports[name])
        own = self._qualified(_join(view.names.package, name))
        if own is not None:
            return own
        hits = [hit for package in view.names.wildcards if (hit := self._qualified(f"{package}.{name}")) is not None]
        return hits[0] if len(hits) == 1 else None

    def _qualified(self, qualified: str) -> tuple[str, JavaClass] | None:
        """Return the type of a qualified name; None if there is none, or more than one."""
        parts = qualified.split(".")
        for at in range(len(parts) - 1, -1, -1):
            package, name = ".".join(parts[:at]), ".".join(parts[at:])
            hits = [
                (path, java_class)
                for path in self._paths.get(parts[at], ())
                if (java_class := self._file(path).types.get(name)) is not None and self._file(path).package == package
            ]
            if hits:
                return hits[0] if len(hits) == 1 else None
        return None

    def _members(
        self, path: str, view: _View, java_class: JavaClass, visited: tuple[str, ...]
    ) -> frozenset[str] | None:
        """Return the members of a type and of all that it extends; None if one of these is not known."""
        if java_class.dynamic or f"{path}:{java_class.name}" in visited:
            return None
        names = java_class.members
        for name in java_class.supers:
            super_class = (
                self._find(view, name, tuple(java_class.name.split("."))) if "." not in name else self._qualified(name)
            )
            more = LIBRARY.get(name) if super_class is None else None
            if super_class is not None:
                where = self._file_view(super_class[0])
                more = self._members(super_class[0], where, super_class[1], (*visited, f"{path}:{java_class.name}"))
            if more is None:
                return None
            names |= more
        return names

    def _file(self, path: str) -> JavaNames:
        if path not in self._names:
            self._names[path] = read_names(self._texts[path])
        return self._names[path]

    def _file_view(self, path: str) -> _View:
        names = self._file(path)
        return _View(path, names, names.types)


class _View(NamedTuple):
    """The names that code in one file can see."""

    path: str
    names: JavaNames
    types: Mapping[str, JavaClass]

    def innermost(self, name: str) -> str:
        """Return the qualified name of a type, told by its last part, if there is only one."""
        matches = [qualified for qualified in self.types if qualified == name or qualified.endswith(f".{name}")]
        return matches[0] if len(matches) == 1 else name


def _tokens(code: str) -> list[_Token]:
    return [
        _Token(match[0], match.start(), match["name"] is not None)
        for match in _TOKEN.finditer(code)
        if match["name"] or match["sign"] or match["other"]
    ]


def _chains(code: str) -> Iterator[_Chain]:
    """Yield the names that follow no dot, each with those that follow it."""
    tokens = _tokens(code)
    around: list[str] = []
    announced, at = "", 0
    while at < len(tokens):
        token = tokens[at]
        before = tokens[at - 1].text if at else ""
        if token.text == "{":
            around.append(announced)
            announced = ""
        elif token.text == "}" and around:
            around.pop()
        elif token.named and before in _DECLARES and (at < 2 or tokens[at - 2].text not in (".", "::")):
            announced = token.text
        if not token.named or before in (".", "::"):
            at += 1
            continue
        parts, end = [token.text], at + 1
        while end + 1 < len(tokens) and tokens[end].text in (".", "::") and tokens[end + 1].named:
            parts.append(tokens[end + 1].text)
            end += 2
        called = end < len(tokens) and tokens[end].text == "("
        yield _Chain(tuple(parts), token.start, called, before, tuple(name for name in around if name))
        at = end


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
