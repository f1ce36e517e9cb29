"""Imports as they were before everything was installed as `ctxbench`: they work for this version, with a hint.

Plug-ins and strategy files wrote ``from strategies import strategy``; now it is ``from ctxbench import strategy``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ROOMS = frozenset(("bench", "harness", "strategies"))
_MOVED = {"ctxbench.strategies.parameters": "ctxbench.bench.parameters"}
"""Modules that plug-ins imported -> where their content is now."""


class _OldNames(MetaPathFinder, Loader):
    """Finds ``strategies.x`` where nothing else is called so, and gives `ctxbench.strategies.x` itself."""

    def __init__(self) -> None:
        self.imported: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _MOVED:
            return ModuleSpec(name, self)
        room, dot, _ = name.partition(".")
        if room not in _ROOMS:
            return None
        if dot:
            is_ours = sys.modules.get(room) is sys.modules.get(f"ctxbench.{room}")
        else:
            others = [finder for finder in sys.meta_path if finder is not self]
            is_ours = not any(finder.find_spec(name, path, target) for finder in others)
        return ModuleSpec(name, self) if is_ours else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Have an empty module made: `exec_module` puts ours in its place, as the import system allows."""

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__.removeprefix("ctxbench.")
        sys.modules[module.__name__] = importlib.import_module(_MOVED.get(f"ctxbench.{old}", f"ctxbench.{old}"))
        self.imported.add(old.partition(".")[0])


_FINDER = _OldNames()


def accept() -> None:
    """Let what is imported from now on use the old names, where no package of that name is installed."""
    if _FINDER not in sys.meta_path:
        # First: otherwise what is inside our packages would be imported a second time under its old name.
        sys.meta_path.insert(0, _FINDER)


def hint() -> str:
    """Return one line that says what to write instead of the old names that were imported; empty if none was."""
    if not _FINDER.imported:
        return ""
    rooms = sorted(_FINDER.imported)
    better = [f"`from ctxbench{'' if room == 'strategies' else f'.{room}'} import …`" for room in rooms]
    old = [f"`from {room} import …`" for room in rooms]
    return f"{' and '.join(old)} will not work in the next version: write {' and '.join(better)}"
