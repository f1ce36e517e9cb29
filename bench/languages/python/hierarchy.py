"""Members of a Python project's classes, with what they inherit; None wherever that cannot be told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ctxbench.bench.languages.python.classes import Class, read_classes
from ctxbench.bench.languages.python.exports import Exports, PythonTarget
from ctxbench.bench.languages.python.library import inherited
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Language

_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.MULTILINE)
_WORD = re.compile(r"\w+")

Members = frozenset[str]


class Hierarchy:
    """The classes of one project."""

    def __init__(self, texts: Mapping[str, str], exports: Exports) -> None:
        """Use the project's files; each is read when it is first needed."""
        self._texts, self._exports = texts, exports
        self._classes: dict[str, dict[str, Class]] = {}
        self._members: dict[tuple[str, str], Members | None] = {}
        self._modules: dict[str, str | None] | None = None
        self._heirs: dict[str, list[tuple[str, str]]] | None = None

    def classes(self, path: str) -> Mapping[str, Class]:
        """Return the classes of a file."""
        if path not in self._classes:
            text = self._texts.get(path)
            self._classes[path] = {} if text is None else read_classes(Source(text, Language.PYTHON))
        return self._classes[path]

    def path(self, module: str) -> str | None:
        """Return the file of a dotted module; None if there is none, or more than one."""
        if self._modules is None:
            self._modules = {}
            for path in self._texts:
                name = self._exports.index.name(path)
                self._modules[name] = None if name in self._modules else path
        return self._modules.get(module)

    def members(self, path: str, name: str) -> Members | None:
        """Return the members of a class and of all that it inherits from."""
        key = (path, name)
        if key not in self._members:
            self._members[key] = None  # a circle of bases ends here
            definition = self.classes(path).get(name)
            self._members[key] = None if definition is None else self.with_bases(path, definition)
        return self._members[key]

    def with_bases(self, path: str, definition: Class) -> Members | None:
        """Return the members of a class that stands in `path`."""
        if definition.dynamic:
            return None
        names = definition.members | (inherited("builtins", "object") or frozenset())
        for base in definition.bases:
            more = self._base(path, definition, base)
            if more is None:
                return None
            names |= more
        return names

    def of_self(self, path: str, definition: Class) -> Members | None:
        """Return what an object of a class may have: its members, and those of the project's classes below it.

        A base class may count on what every class below it has.
        """
        if definition.name.endswith("Mixin"):
            return None
        names = self.with_bases(path, definition)
        for heir in self._below(definition.name.rpartition(".")[2]) if names is not None else ():
            more = self.members(*heir)
            if names is None or more is None:
                return None
            names |= more
        return names

    def _base(self, path: str, definition: Class, base: str) -> Members | None:
        if not base:
            return None
        name, *attributes = base.split(".")
        if not attributes and name in self.classes(path) and name != definition.name:
            return self.members(path, name)
        file = self._exports.files.get(path)
        items = [file.imports[index] for index in file.imported.get(name, ())] if file is not None else []
        if not items:
            bound = file is None or name in file.definitions or file.stars
            return None if bound or attributes else inherited("builtins", name)
        item = items[-1]
        target = self._exports.imported(path, item)
        if target is None:
            outside = (item.module, item.member or (attributes[-1] if attributes else ""))
            return inherited(*outside) if not item.level and len(attributes) == (item.member is None) else None
        last = item.member or name
        for part in attributes:
            step = self._exports.member(target.place, part) if target.place is not None else None
            if step is None:
                return None
            target, last = step, part
        return self._target(target, last)

    def _target(self, target: PythonTarget, name: str) -> Members | None:
        place = self.path(target.module) if target.kind == "class" else None
        return self.members(place, name) if place is not None else None

    def _below(self, name: str) -> list[tuple[str, str]]:
        """Return (path, class) of all that may derive from a class of that name."""
        if self._heirs is None:
            self._heirs = {}
            for path, text in self._texts.items():
                for heir, bases in _CLASS.findall(text):
                    for base in set(_WORD.findall(bases)):
                        self._heirs.setdefault(base, []).append((path, heir))
        heirs: dict[tuple[str, str], None] = {}
        pending = [name]
        while pending:
            for heir in self._heirs.get(pending.pop(), ()):
                if heir not in heirs:
                    heirs[heir] = None
                    pending.append(heir[1])
        return list(heirs)
