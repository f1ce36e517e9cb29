"""Runs in the box: detects changes of the functions that run and report tests."""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_IMPORTERS = ("importlib", "_frozen_importlib", "_frozen_importlib_external")
_WATCHED = frozenset({"pytest", "_pytest", "pluggy", "unittest", "ctxbench_pytest", "json", "ast", *_IMPORTERS})
_NOT_KEPT = frozenset({"_", "__loader__", "__spec__"})
"""Built-ins that the interpreter itself sets."""
_MISSING = object()
_CALLED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, staticmethod, classmethod, property)


def _watched(name: str) -> bool:
    return name.split(".", 1)[0] in _WATCHED


def _functions(value: Any) -> Iterator[types.FunctionType]:
    parts = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
    yield from (part for part in parts if isinstance(part, types.FunctionType))


def _members(module: types.ModuleType) -> Iterator[tuple[Mapping[str, Any], str, Any, str]]:
    """Yield watched functions and classes, and the classes' members: (namespace, name in it, object, label)."""
    for name, value in list(vars(module).items()):
        if not isinstance(value, types.FunctionType | type) or not _watched(getattr(value, "__module__", "") or ""):
            continue
        yield vars(module), name, value, f"{module.__name__}.{name}"
        if isinstance(value, type) and value.__module__ == module.__name__:
            for inner, member in list(vars(value).items()):
                if isinstance(member, types.FunctionType | staticmethod | classmethod | property):
                    yield vars(value), inner, member, f"{value.__name__}.{inner}"


class Seal:
    """A snapshot of functions and classes, compared by identity because equality could run foreign code."""

    def __init__(self) -> None:
        """Record the built-ins, and the modules (pytest's, ctxbench's and others) that run and report tests."""
        modules = {name: module for name, module in list(sys.modules.items()) if _watched(name)}
        self._places: list[tuple[Mapping[str, Any], str, Any, str]] = [
            (sys.modules, name, module, f"sys.modules[{name!r}]") for name, module in modules.items()
        ]
        space = vars(builtins)
        self._places += [(space, name, space[name], f"builtins.{name}") for name in space.keys() - _NOT_KEPT]
        self._places += [place for module in modules.values() for place in _members(module)]
        # pytest's finder is first; it rewrites the tests at import.
        self._finder = sys.meta_path[0] if sys.meta_path else None
        self._path_hooks = list(sys.path_hooks)
        self._code: list[tuple[types.FunctionType, Any, Any, Any, str]] = []
        for *_, value, label in self._places:
            self._add_code(value, label)

    def _add_code(self, value: Any, label: str) -> None:
        for function in _functions(value):
            self._code.append((function, function.__code__, function.__defaults__, function.__kwdefaults__, label))

    def add_tests(self, items: Iterable[Any]) -> None:
        """Also record these tests' functions, and the callables and modules in the tests' modules and classes."""
        owners: dict[int, Any] = {}
        for item in items:
            self._add_code(getattr(item, "obj", None), item.nodeid)
            kinds = getattr(item, "cls", None)
            for owner in (getattr(item, "module", None), *(kinds.__mro__ if isinstance(kinds, type) else ())):
                if owner is not None and not _watched(getattr(owner, "__module__", "") or ""):
                    owners[id(owner)] = owner
        for owner in owners.values():
            for name, value in list(vars(owner).items()):
                if isinstance(value, _CALLED):
                    self._places.append((vars(owner), name, value, f"{owner.__name__}.{name}"))

    def broken(self) -> list[str]:
        """Return the labels of all recorded objects that changed, and of active trace or profile functions."""
        changes = [label for space, name, value, label in self._places if space.get(name, _MISSING) is not value]
        changes += [
            label
            for function, code, defaults, more, label in self._code
            if function.__code__ is not code
            or function.__defaults__ is not defaults
            or function.__kwdefaults__ is not more
        ]
        if not sys.meta_path or sys.meta_path[0] is not self._finder:
            changes.append("sys.meta_path")
        if [id(hook) for hook in sys.path_hooks] != [id(hook) for hook in self._path_hooks]:
            changes.append("sys.path_hooks")
        return changes + [f"sys.{get.__name__}" for get in (sys.gettrace, sys.getprofile) if get() is not None]
