"""Java scopes and types while a file is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

from ctxbench.bench.languages.java.facts import METHOD, TYPE, VALUE


@dataclass(slots=True)
class JavaScope:
    """A type's body, a method or a lambda while a file is read."""

    parent: JavaScope | None
    values: set[str] = field(default_factory=set)
    """Fields, parameters and local variables."""
    methods: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    """Type parameters and member types."""

    def declares(self, name: str, role: str) -> bool:
        """Say whether this scope or one around it declares the name."""
        scope: JavaScope | None = self
        while scope is not None:
            names = {TYPE: scope.types, METHOD: scope.methods, VALUE: scope.values}[role]
            # `Foo.bar()` is a value only if a variable is called Foo, else a type (JLS 6.4.2, obscuring).
            if name in names or (role == VALUE and name in scope.types):
                return True
            scope = scope.parent
        return False


@dataclass(slots=True)
class TypeFacts:
    """A type declaration while it is read."""

    name: str
    open: bool
    """Whether members are static without saying so (interfaces' constants)."""
    members: dict[str, str] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)


class JavaPlace(NamedTuple):
    """The place of the walk in the tree."""

    scope: JavaScope
    owner: TypeFacts | None = None


class JavaRawLoad(NamedTuple):
    """A load before its scope has been looked at: locals may be declared after it in walk order."""

    scope: JavaScope
    name: str
    role: str
    chain: tuple[str, ...]
    near: int
    """How many parts of `chain`, from its beginning, stand on the name's own line."""
    node: Node
