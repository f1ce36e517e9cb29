"""Python scopes: which names a scope binds, and to which imports a load refers.

Flow is approximated line by line: a plain rebinding after the import (an assignment outside ``if``,
``try`` and loops, a ``def``, a parameter) hides it; a conditional one is taken for a fallback.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MODULE, CLASS, FUNCTION, COMPREHENSION = "module", "class", "function", "comprehension"


@dataclass(slots=True)
class PythonScope:
    """One scope while a file is read. Positions are byte offsets."""

    kind: str
    parent: PythonScope | None
    stores: dict[str, list[int]] = field(default_factory=dict)
    """Name -> positions from which a plain binding holds; conditional bindings have position -1."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Name -> ``class``, ``function`` or ``variable`` (the first definition that says most)."""
    imports: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Name -> (position, index of the import)."""
    outside: set[str] = field(default_factory=set)
    """Names declared ``global``."""
    nonlocals: set[str] = field(default_factory=set)

    def store(self, name: str, position: int, *, plain: bool, kind: str = "variable") -> None:
        """Note that the name is bound here by something other than an import."""
        if name in self.outside:
            self.module().stores.setdefault(name, []).append(-1)
            return
        if name in self.nonlocals:
            return
        self.stores.setdefault(name, []).append(position if plain else -1)
        if kind != "variable" or name not in self.kinds:
            self.kinds[name] = kind

    def module(self) -> PythonScope:
        """Return the module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str, position: int) -> tuple[int, ...] | None:
        """Return the imports that a load of `name` may mean.

        Returns:
            Indices of imports; empty if something else binds the name; None if nothing does.
        """
        scope = self.binder(name)
        if scope is None:
            return None
        return scope.imports_at(name, position, nested=scope is not self) if name in scope.imports else ()

    def binder(self, name: str) -> PythonScope | None:
        """Return the scope of the file that binds `name` where this one reads it, None if none does."""
        scope: PythonScope | None = self
        while scope is not None:
            if scope is self or scope.kind != CLASS:
                if name in scope.outside:
                    scope = scope.module()
                if name in scope.imports or name in scope.stores:
                    return scope
            scope = scope.parent
        return None

    def imports_at(self, name: str, position: int, *, nested: bool) -> tuple[int, ...]:
        """Return the imports of this scope that bind `name` where it is read."""
        imports = self.imports[name]
        before = [place for place, _ in imports if nested or place < position]
        if not before:
            return ()
        last = max(before)
        if any(last < place and (nested or place <= position) for place in self.stores.get(name, ())):
            return ()
        return tuple(index for _, index in imports)
