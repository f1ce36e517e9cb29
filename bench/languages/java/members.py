"""Names of a Java project that a piece of code reads; see `bench.languages.members`.

Judged are the project's types with the static member or member type that follows (``Rules.round``), members of
``this``, and methods called without a receiver. Members of what a variable holds are not judged, because that
needs its type; no more are methods where an anonymous class stands in the code. Read token by token, so that
code which is cut off anywhere is read as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ctxbench.bench.languages.java.classes import LIBRARY, JavaClass, JavaNames, read_names
from ctxbench.bench.languages.members import ProjectReading

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


def project(texts: Mapping[str, str]) -> JavaProject:
    """Return the project made of these files."""
    return JavaProject(texts)


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
