"""What the ``pom.xml`` files of a repository say of its modules: folders, dependencies, settings. Pure.

Read as text that a build tool would read, not as Maven reads it: profiles and parents outside the repository are
not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import dirname, normpath
from xml.etree import ElementTree as ET

POM = "pom.xml"
_BASE = re.compile(r"\$\{(project\.)?basedir\}/")
_PLACEHOLDER = re.compile(r"\$\{([\w.-]+)\}")
_DEPTH = 5
"""Of placeholders that stand for placeholders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """An artifact that a module needs."""

    group: str
    artifact: str
    test: bool
    """Whether only tests need it."""
    of_tests: bool
    """Whether it is the tests of that artifact."""

    def __str__(self) -> str:
        """Return ``group:artifact``."""
        return f"{self.group}:{self.artifact}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pom:
    """One ``pom.xml``."""

    artifact: str
    settings: Mapping[str, str]
    """Properties, and ``sourceDirectory``, ``testSourceDirectory``, ``release`` and ``source`` of the build."""
    dependencies: tuple[Dependency, ...]


class Poms:
    """All of a repository, by folder; "" is the repository's own."""

    def __init__(self, tree: Mapping[str, bytes]) -> None:
        """Read them; one that is no XML is left out."""
        poms = {dirname(path): _read(content) for path, content in tree.items() if f"/{path}".endswith(f"/{POM}")}
        self._of = {folder: pom for folder, pom in poms.items() if pom is not None}

    def setting(self, folder: str, *names: str) -> str:
        """Return the first of some settings that a module, or a folder around it, has; empty if none has."""
        value = next(filter(None, (self._setting(folder, name) for name in names)), "")
        for _ in range(_DEPTH):
            value = _PLACEHOLDER.sub(lambda match: self._setting(folder, match.group(1)), _BASE.sub("", value))
        return value

    def _setting(self, folder: str, name: str) -> str:
        around = (self._of[place].settings.get(name, "") for place in upwards(folder) if place in self._of)
        return next(filter(None, around), "")

    def dependencies(self, folder: str) -> tuple[Dependency, ...]:
        """Return what a module needs, and what the folders around it say that all modules need."""
        around = [self._of[place] for place in upwards(folder) if place in self._of]
        return tuple(dict.fromkeys(dependency for pom in around for dependency in pom.dependencies))

    def siblings(self, folder: str) -> tuple[tuple[str, Dependency], ...]:
        """Return the folders of the repository's modules that a module needs, itself and through others.

        What only tests need of the first is needed by tests alone; what a sibling's tests need is not needed.
        """
        folders = {pom.artifact: place for place, pom in self._of.items()}
        needed: dict[tuple[str, bool], Dependency] = {}
        # What the code needs comes first, so that a sibling of both is counted there.
        waiting = sorted(self.dependencies(folder), key=_for_tests)
        while waiting:
            dependency = waiting.pop(0)
            place = folders.get(dependency.artifact)
            if place is None or place == folder or (place, dependency.of_tests) in needed:
                continue
            needed[place, dependency.of_tests] = dependency
            waiting += [
                replace(further, test=dependency.test or further.test)
                for further in self.dependencies(place)
                if dependency.of_tests or not further.test
            ]
            waiting.sort(key=_for_tests)
        return tuple((place, dependency) for (place, _), dependency in needed.items())


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder, those around it from inside out, and last the repository's own, ""."""
    while folder:
        yield folder
        folder = dirname(folder)
    yield ""


def _read(content: bytes) -> Pom | None:
    try:
        # Of the repository; expat bounds what entities grow to.
        root = ET.fromstring(content)  # noqa: S314
    except (ET.ParseError, ValueError, LookupError):
        return None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    settings = {element.tag: _text(element) for element in root.findall("properties/*")}
    for name in ("sourceDirectory", "testSourceDirectory"):
        settings[name] = _text(root.find(f"build/{name}"))
    for plugin in root.iter("plugin"):
        if _text(plugin.find("artifactId")) == "maven-compiler-plugin":
            for name in ("release", "source"):
                settings.setdefault(name, _text(plugin.find(f"configuration/{name}")))
    dependencies = tuple(map(_dependency, root.findall("dependencies/dependency")))
    return Pom(artifact=_text(root.find("artifactId")), settings=settings, dependencies=dependencies)


def _dependency(element: ET.Element) -> Dependency:
    return Dependency(
        group=_text(element.find("groupId")),
        artifact=_text(element.find("artifactId")),
        test=_text(element.find("scope")) == "test",
        of_tests="tests"
        in (_text(element.find("classifier")), _text(element.find("type")).replace("test-jar", "tests")),
    )


def _for_tests(dependency: Dependency) -> bool:
    return dependency.test


def _text(element: ET.Element | None) -> str:
    return (element.text or "").strip() if element is not None else ""


def inside(folder: str, path: str) -> str:
    """Return a path of a module as one of the repository."""
    return normpath(f"{folder}/{path}").lstrip("/")
