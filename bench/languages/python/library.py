"""Members that a class inherits from the standard library, for the few bases that add nothing at run time."""

from __future__ import annotations

import functools
import importlib
import inspect

_MODULES = ("builtins", "abc", "enum", "collections.abc")
_TYPING = frozenset({"Generic", "Protocol"})
_ENUM = frozenset({"name", "value", "_name_", "_value_"})


@functools.cache
def inherited(module: str, name: str) -> frozenset[str] | None:
    """Return the members of a base class from the standard library; None where they cannot be told.

    Only classes whose objects carry no more than the class does are listed: built-ins, `abc`, `enum`,
    `collections.abc`, and the two marks of `typing`.

    Args:
        module: dotted; ``builtins`` for what needs no import.
        name: the class.
    """
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
