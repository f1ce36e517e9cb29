"""The names that a Python module offers: definitions, re-exports, star imports, submodules; followed to the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxbench.bench.languages.python.facts import ImportedName, PythonFile, StarImport
from ctxbench.bench.languages.python.modules import ModuleIndex


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """The definition that a name stands for."""

    kind: str
    """``module``, ``class``, ``function``, ``variable`` or ``unknown``."""
    module: str
    """Dotted name of the module that defines it (or of the module itself)."""
    place: str | None = None
    """For a module: where it lies."""


OUTSIDE = PythonTarget("outside", "")
"""A name that the repository only passes on: it is defined in another package."""


class Exports:
    """Follows names through the modules of one repository."""

    def __init__(self, files: Mapping[str, PythonFile], index: ModuleIndex) -> None:
        """Take the facts of every file."""
        self.files, self.index = files, index
        self._members: dict[tuple[str, str], PythonTarget | None] = {}
        self._public: dict[str, frozenset[str]] = {}

    def place(self, path: str, item: ImportedName | StarImport) -> str | None:
        """Return the module an import statement in `path` names, None if it is not of the repository."""
        if item.level:
            return self.index.relative(path, item.level, item.module)
        return self.index.absolute(path, item.module)

    def module(self, place: str) -> PythonTarget:
        """Return the target for a module itself."""
        return PythonTarget("module", self.index.name(place), place)

    def imported(self, path: str, item: ImportedName) -> PythonTarget | None:
        """Return what an imported name stands for; None if it comes from outside the repository."""
        place = self.place(path, item)
        if place is None:
            return None
        if item.member is None:
            return self.module(place)
        target = self.member(place, item.member)
        if target is OUTSIDE:
            return None
        if target is None:
            # Made at run time, or defined by code that is not in the repository: still its module's API.
            return PythonTarget("unknown", self.index.name(place)) if place in self.files else None
        return target

    def member(self, place: str, name: str) -> PythonTarget | None:
        """Return what `name` stands for in a module; None if nothing there is called so."""
        key = (place, name)
        if key not in self._members:
            self._members[key] = None  # a circle of imports ends here
            self._members[key] = self._find(place, name)
        return self._members[key]

    def _find(self, place: str, name: str) -> PythonTarget | None:
        file = self.files.get(place)
        submodule = self.index.submodule(place, name)
        if file is not None:
            defined = file.definitions.get(name)
            passed_on = self._passed_on(file, name)
            if passed_on is not None and passed_on.kind == "unknown" and submodule is not None:
                return self.module(submodule)  # `from . import name` in a package's own __init__.py
            if passed_on is not None and (passed_on is not OUTSIDE or defined is None):
                return passed_on
            if defined is not None:
                return PythonTarget(defined, self.index.name(place))
        if submodule is not None:
            return self.module(submodule)
        return self._from_stars(file, name) if file is not None else None

    def _passed_on(self, file: PythonFile, name: str) -> PythonTarget | None:
        """Look through the module's own imports of the name; the last one inside the repository counts."""
        answer: PythonTarget | None = None
        for index in file.imported.get(name, ()):
            item = file.imports[index]
            if item.dotted and "." in item.module:
                item_place = self.index.absolute(file.path, item.bound)
                target = self.module(item_place) if item_place else None
            else:
                target = self.imported(file.path, item)
            if target is not None:
                answer = target
            elif answer is None:
                answer = OUTSIDE
        return answer

    def _from_stars(self, file: PythonFile, name: str) -> PythonTarget | None:
        for star in reversed(file.stars):
            place = self.place(file.path, star)
            if place is not None and name in self.public(place):
                return self.member(place, name)
        return None

    def public(self, place: str) -> frozenset[str]:
        """Return the names that ``from module import *`` brings in."""
        if place not in self._public:
            self._public[place] = frozenset()  # a circle of star imports ends here
            file = self.files.get(place)
            if file is not None:
                self._public[place] = self._names(file)
        return self._public[place]

    def _names(self, file: PythonFile) -> frozenset[str]:
        if file.exported is not None:
            return frozenset(file.exported)
        names = {*file.definitions, *file.imported}
        for star in file.stars:
            place = self.place(file.path, star)
            if place is not None:
                names |= self.public(place)
        return frozenset(name for name in names if not name.startswith("_"))
