"""Whether the functions that run and report tests are still those that were imported before the job came."""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

_WATCHED = ("pytest", "_pytest", "pluggy", "unittest", "ctxbench_pytest", "json")
_MISSING = object()
_Entry = tuple[Any, str, Any, Any]
"""Owner, name, what stands there, and what it runs."""


def _runs(value: Any) -> Any:
    """Return what a function, method or property runs: its code and defaults."""
    inner = getattr(value, "__func__", value)
    if isinstance(inner, types.FunctionType):
        return inner.__code__, inner.__defaults__, inner.__kwdefaults__
    if isinstance(inner, property):
        return tuple(_runs(part) for part in (inner.fget, inner.fset))
    return None


def _same(left: Any, right: Any) -> bool:
    """Compare what `_runs` gives by identity: equality could run foreign code."""
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return all(_same(*pair) for pair in zip(left, right, strict=True))
    return left is right


def _watched(name: str) -> bool:
    return name.split(".", 1)[0] in _WATCHED


def _functions(module: types.ModuleType) -> Iterator[_Entry]:
    """Yield the functions and classes that a module defines, and what those classes hold."""
    for name, value in list(vars(module).items()):
        if not isinstance(value, (types.FunctionType, type)) or not _watched(getattr(value, "__module__", "") or ""):
            continue
        yield module, name, value, _runs(value)
        if isinstance(value, type) and value.__module__ == module.__name__:
            for inner, held in list(vars(value).items()):
                if isinstance(held, (types.FunctionType, staticmethod, classmethod, property)):
                    yield value, inner, held, _runs(held)


class Seal:
    """What is there when it is made; `broken` compares."""

    def __init__(self) -> None:
        """Look at every module of pytest's and ours that is imported."""
        self._modules = {name: module for name, module in list(sys.modules.items()) if _watched(name)}
        self._entries = [entry for module in self._modules.values() for entry in _functions(module)]
        self._builtins = dict(vars(builtins))
        self._tests: list[tuple[str, Any, Any]] = []

    def add_tests(self, items: Iterable[Any]) -> None:
        """Watch the functions of these tests too."""
        for item in items:
            function = getattr(item, "obj", None)
            function = getattr(function, "__func__", function)
            if isinstance(function, types.FunctionType):
                self._tests.append((item.nodeid, function, _runs(function)))

    def broken(self) -> list[str]:
        """Return the names of what is no longer what it was."""
        found = [
            f"sys.modules[{name!r}]" for name, module in self._modules.items() if sys.modules.get(name) is not module
        ]
        for owner, name, value, runs in self._entries:
            held = vars(owner).get(name, _MISSING)
            if held is not value or not _same(_runs(held), runs):
                found.append(f"{owner.__name__}.{name}")
        found += [f"builtins.{name}" for name, value in self._builtins.items() if _changed(name, value)]
        found += [name for name, function, runs in self._tests if not _same(_runs(function), runs)]
        found += [f"sys.{get.__name__}" for get in (sys.gettrace, sys.getprofile) if get() is not None]
        return found


def _changed(name: str, value: Any) -> bool:
    # The prompt's last value, and what the interpreter sets itself.
    return name not in ("_", "__loader__", "__spec__") and vars(builtins).get(name, _MISSING) is not value
