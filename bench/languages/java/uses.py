"""Finds uses of project-internal imports in Java files (JLS 6.4.1, 7.5), and definitions that files refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from posixpath import basename, dirname
from typing import NamedTuple

from ctxbench.bench.languages.base import DefinitionName, FileFacts, InternalLoad, ends
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.reader import (
    LABEL,
    METHOD,
    TYPE,
    VALUE,
    JavaFile,
    JavaImport,
    JavaLoad,
    JavaReader,
    JavaType,
)
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Use


class JavaTarget(NamedTuple):
    """The declaration that a name refers to."""

    kind: str
    owner: str
    """Qualified name of the class or, for a member, of the class that declares the member."""


class ProjectTypes:
    """A repository's importable types by qualified name."""

    def __init__(self, files: Mapping[str, JavaFile]) -> None:
        self._types: dict[str, JavaType] = {}
        self._paths: dict[str, str] = {}
        self._packages: dict[str, set[str]] = {}
        for file in files.values():
            for java_type in file.types:
                self._types.setdefault(_join(file.package, java_type.name), java_type)
                self._paths.setdefault(_join(file.package, java_type.name), file.path)
                if "." not in java_type.name:
                    self._packages.setdefault(file.package, set()).add(java_type.name)

    def path(self, item: JavaImport) -> str | None:
        """Return the file of an imported type, or of an imported static member's class; None if not in the project."""
        owner = item.name.rpartition(".")[0] if item.static and not item.wildcard else item.name
        return self._paths.get(owner)

    def type(self, qualified: str) -> JavaTarget | None:
        """Return a type by qualified name; None if the project does not declare the type."""
        return JavaTarget("class", qualified) if qualified in self._types else None

    def member(self, owner: str, name: str, *, static: bool = False) -> JavaTarget | None:
        """Return a class's nested type, field or method by name; None if missing. `static` skips instance members."""
        nested = self.type(_join(owner, name))
        if nested is not None:
            return nested
        owner_type = self._types.get(owner)
        if owner_type is None or name not in owner_type.members or (static and name not in owner_type.static):
            return None
        return JavaTarget(owner_type.members[name], owner)

    def in_package(self, package: str, name: str) -> JavaTarget | None:
        """Return a package's top-level type by name; None if the package has no such type."""
        return self.type(_join(package, name)) if name in self._packages.get(package, ()) else None


def resolve(files: Mapping[str, FileFacts]) -> dict[str, tuple[InternalLoad, ...]]:
    """Return each Java file's uses of project-internal names, by path, in line and column order."""
    java = {path: file for path, file in files.items() if isinstance(file, JavaFile)}
    types = ProjectTypes(java)
    return {path: _uses(file, types) for path, file in java.items()}


def _uses(file: JavaFile, types: ProjectTypes) -> tuple[InternalLoad, ...]:
    loads = (_load(file, load, types) for load in file.loads)
    return tuple(load for load in loads if load is not None)


def _load(file: JavaFile, load: JavaLoad, types: ProjectTypes) -> InternalLoad | None:
    single = [item for item in file.imports if not item.wildcard and item.name.rpartition(".")[2] == load.name]
    hits = [(item, target) for item in single if (target := _single(item, load, types)) is not None]
    if not hits and load.role == LABEL:
        return None
    if not hits:
        # Single-type imports and the own package take precedence over wildcards (JLS 6.4.1).
        outside = any(not item.static for item in single) and load.role != METHOD
        if outside or (load.role != METHOD and types.in_package(file.package, load.name) is not None):
            return None
        wildcards = [item for item in file.imports if item.wildcard]
        hits = [(item, target) for item in wildcards if (target := _wildcard(item, load, types)) is not None]
    # Declarations of the file itself are not another file's API, even if the file imports them.
    if not hits or any(types.path(item) == file.path for item, _ in hits):
        return None
    return _internal_load(load, hits, types)


def _single(item: JavaImport, load: JavaLoad, types: ProjectTypes) -> JavaTarget | None:
    if not item.static:
        return types.type(item.name) if load.role not in (METHOD, LABEL) else None
    owner, _, name = item.name.rpartition(".")
    if types.type(owner) is None:
        return None
    target = types.member(owner, name) or JavaTarget("unknown", owner)
    return target if _fits(target, load) else None


def _wildcard(item: JavaImport, load: JavaLoad, types: ProjectTypes) -> JavaTarget | None:
    if item.static:
        target = types.member(item.name, load.name, static=True)
        return target if target is not None and _fits(target, load) else None
    if load.role == METHOD:
        return None
    if types.type(item.name) is not None:
        return types.type(_join(item.name, load.name))
    return types.in_package(item.name, load.name)


def _fits(target: JavaTarget, load: JavaLoad) -> bool:
    roles = {"class": (TYPE, VALUE), "function": (METHOD,), "variable": (VALUE, LABEL)}
    return load.role in roles.get(target.kind, (TYPE, METHOD, VALUE))


def _internal_load(load: JavaLoad, hits: list[tuple[JavaImport, JavaTarget]], types: ProjectTypes) -> InternalLoad:
    target = hits[0][1]
    reached = [Use(name=load.name, module=target.owner, kind=target.kind)]
    for part in load.chain:
        member = types.member(target.owner, part) if target.kind == "class" else None
        if member is None:
            break
        target = member
        reached.append(Use(name=f"{reached[-1].name}.{part}", module=target.owner, kind=target.kind))
    return InternalLoad(
        line=load.line,
        column=load.column,
        name=load.name,
        uses=ends(reached),
        near=ends(reached[: load.near + 1]),
        statements=tuple(sorted({item.lines for item, _ in hits})),
        quoted=False,
    )


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def analyse(path: str, text: str) -> JavaFile:
    """Return a Java file's package, imports, types and used names."""
    source = Source(text, JAVA)
    reader = JavaReader(source)
    loads = _loads(reader)
    needed = {load.line for load in loads}
    tokens, leaves = source.tokens(needed)
    return JavaFile(
        path=path,
        broken=source.root.has_error,
        tokens=tokens,
        leaves=leaves,
        barred={line: reason for line, reason in sorted(reader.barred.items()) if line in needed},
        package=reader.package,
        imports=tuple(reader.imports),
        types=tuple(
            JavaType(
                name=java_type.name, members=dict(sorted(java_type.members.items())), static=frozenset(java_type.static)
            )
            for java_type in reader.types
        ),
        loads=loads,
    )


def _loads(reader: JavaReader) -> tuple[JavaLoad, ...]:
    named = {item.name.rpartition(".")[2] for item in reader.imports if not item.wildcard}
    wildcards = any(item.wildcard for item in reader.imports)
    loads = []
    static = {item.name.rpartition(".")[2] for item in reader.imports if item.static and not item.wildcard}
    labels = [load for load in reader.labels if load.name in static]
    for scope, name, role, chain, near, node in [*reader.loads, *labels]:
        if (name not in named and not wildcards) or scope.declares(name, VALUE if role == LABEL else role):
            continue
        row, byte = node.start_point
        load = JavaLoad(name=name, role=role, chain=chain, near=near, line=row, column=reader.source.column(row, byte))
        loads.append(load)
    return tuple(sorted(loads, key=lambda load: (load.line, load.column)))


_WORD = re.compile(r"\w+")


def referred(path: str, texts: Mapping[str, str]) -> Iterator[DefinitionName]:
    """Yield the types that a file imports or may import by wildcard (see `bench.languages.base.Language.referred`)."""
    words = frozenset(_WORD.findall(texts[path]))
    for item in analyse(path, texts[path]).imports:
        owner = item.name.rpartition(".")[0] if item.static and not item.wildcard else item.name
        types = list(_types(owner, texts))
        yield from types
        if item.wildcard and not item.static and not types:
            yield from (named for named in _package(item, texts) if named.name in words)


def _types(owner: str, paths: Iterable[str]) -> Iterator[DefinitionName]:
    parts = owner.split(".")
    for length in range(len(parts), 0, -1):
        ending = "/".join(parts[:length]) + ".java"
        matches = [path for path in paths if path == ending or path.endswith("/" + ending)]
        if matches:
            yield from (DefinitionName(path, "class", ".".join(parts[length - 1 :])) for path in matches)
            return


def _package(item: JavaImport, paths: Iterable[str]) -> Iterator[DefinitionName]:
    folder = item.name.replace(".", "/")
    for path in paths:
        if dirname(path) == folder or dirname(path).endswith("/" + folder):
            yield DefinitionName(path, "class", basename(path).removesuffix(".java"))
