"""Paths of Python modules: from dotted names to files of the repository and back.

A place is a repository path: a ``.py`` file, a package's ``__init__.py``, or the folder of a
namespace package. Roots are the folders from which absolute imports start; they are found from the
files alone: the repository itself, folders called ``src``, and the parents of topmost packages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from posixpath import basename, dirname

_ASIDE = frozenset({"test", "tests", "testing", "testdata", "fixtures", "doc", "docs", "example", "examples"})
_STANDARD = sys.stdlib_module_names - {"test"}
_INIT = "__init__.py"


class ModuleIndex:
    """The modules of one repository."""

    def __init__(self, paths: Iterable[str], imported: Iterable[str]) -> None:
        """Find the roots.

        Args:
            paths: every ``.py`` file.
            imported: every dotted module that the repository imports by its absolute name; it tells
                a namespace package (``ns.pkg`` is imported, so ``ns`` is no root) from a source root.
        """
        self._files = frozenset(paths)
        self._folders = frozenset(folder for path in self._files for folder in _parents(path))
        self._dotted = frozenset(part for name in imported for part in _tails(name))
        self._own = {path: self._root_of(path) for path in sorted(self._files)}
        sources = {folder for folder in self._folders if basename(folder) == "src" and not self._is_package(folder)}
        packages = {root for path, root in self._own.items() if self._is_package(dirname(path))}
        self._roots = sorted({""} | sources | packages, key=lambda root: (len(root), root))

    def _is_package(self, folder: str) -> bool:
        return _join(folder, _INIT) in self._files

    def _root_of(self, path: str) -> str:
        """Return the folder from which the file's own absolute name starts."""
        folder = dirname(path)
        # A repository with an __init__.py of its own is no package: nothing says what it would be called.
        if not folder or not self._is_package(folder):
            return folder
        while folder and self._is_package(folder):
            top, folder = folder, dirname(folder)
        # The parents of a package may be namespace packages: then some import spells them out.
        name, root = basename(top), folder
        while folder:
            name, folder = f"{basename(folder)}.{name}", dirname(folder)
            if name in self._dotted:
                root = folder
        return root

    def relative(self, path: str, level: int, module: str) -> str | None:
        """Return the place that ``from <level dots><module> import …`` in `path` names."""
        folder = dirname(path)
        for _ in range(level - 1):
            if not folder:
                return None
            folder = dirname(folder)
        if module:
            return self._below(folder, module)
        return _join(folder, _INIT) if self._is_package(folder) else folder

    def absolute(self, path: str, module: str) -> str | None:
        """Return the place of an absolute import made in `path`, None if it lies outside the repository."""
        if not module or module.partition(".")[0] in _STANDARD:
            return None
        for root in dict.fromkeys([self._own[path], dirname(path), *self._roots]):
            if not self._visible(root, path):
                continue
            place = self._below(root, module)
            # A bare folder of that name is more likely to be a script folder than what is meant.
            if place is not None and (place.endswith(".py") or "." in module):
                return place
        return None

    def _visible(self, root: str, path: str) -> bool:
        if root == dirname(path) and root != self._own[path]:
            return False  # inside a package, neighbours are reached by relative imports only
        aside = not _ASIDE.isdisjoint(root.split("/"))
        return not aside or path.startswith(root + "/")

    def _below(self, folder: str, module: str) -> str | None:
        place: str | None = folder
        for part in module.split("."):
            if place is None or place.endswith(".py"):
                return None
            place = self._child(place, part)
            if place is not None and basename(place) == _INIT:
                place = dirname(place)
        if place is not None and self._is_package(place):
            return _join(place, _INIT)
        return place

    def _child(self, folder: str, name: str) -> str | None:
        inner = _join(folder, name)
        for candidate in (_join(inner, _INIT), f"{inner}.py"):
            if candidate in self._files:
                return candidate
        return inner if inner in self._folders else None

    def submodule(self, place: str, name: str) -> str | None:
        """Return the module `name` inside a package, None if there is none."""
        if basename(place) == _INIT:
            return self._child(dirname(place), name)
        return None if place.endswith(".py") else self._child(place, name)

    def name(self, place: str) -> str:
        """Return the dotted name of a place, from its longest root."""
        stem = dirname(place) if basename(place) == _INIT else place.removesuffix(".py")
        root = self._own.get(place, "")
        if place not in self._own or not self._is_package(dirname(place)):
            inside = [root for root in self._roots if not root or stem.startswith(root + "/")]
            root = inside[-1] if inside else ""
        return stem[len(root) :].strip("/").replace("/", ".")


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _parents(path: str) -> list[str]:
    parents, folder = [], dirname(path)
    while folder:
        parents.append(folder)
        folder = dirname(folder)
    return parents


def _tails(name: str) -> list[str]:
    """Return every stretch of at least two parts of a dotted name."""
    parts = name.split(".")
    return [".".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 2, len(parts) + 1)]
