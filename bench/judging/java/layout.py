"""Finds a Java repository's source folders and compiler settings in its manifest and ``pom.xml`` files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import dirname, normpath
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from ctxbench.bench.errors import InputFault
from ctxbench.bench.repositories.manifest import TestSuite

OLDEST = 8
"""The oldest Java release that javac 17 accepts without warning."""
POM = "pom.xml"
_BASE = re.compile(r"\$\{(project\.)?basedir\}/")
_PLACEHOLDER = re.compile(r"\$\{([\w.-]+)\}")
_DEPTH = 5


class SourceKind(NamedTuple):
    """Main or test sources: their setting in a ``pom.xml``, and their default path."""

    setting: str
    usual: str


MAIN = SourceKind("sourceDirectory", "src/main/java")


TEST = SourceKind("testSourceDirectory", "src/test/java")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A repository's folders and compiler settings."""

    folder: str
    """Folder of the tested module, in which the tests run; "" for the repository's root."""
    main: tuple[str, ...]
    """Source folders of the tested module and of the modules that its main code needs."""
    test: tuple[str, ...]
    resources: tuple[str, ...]
    encoding: str
    release: str
    jars: tuple[str, ...] = ()
    """Jars in `/usr/share/java` that the repository needs besides JUnit."""
    flags: tuple[str, ...] = ()

    def compiling(self) -> dict[str, Any]:
        """Return the arguments that every call to `ctxbench_java` needs."""
        return {"encoding": self.encoding, "release": self.release, "jars": list(self.jars)}

    def running(self) -> dict[str, Any]:
        """Return the arguments of calls to `ctxbench_java` that run tests."""
        resources, flags = list(self.resources), list(self.flags)
        return {"folder": self.folder, "resources": resources, "flags": flags, **self.compiling()}


def layout(tests: TestSuite, tree: Mapping[str, bytes], source_dir: str = "") -> Layout:
    """Return a repository's layout: Maven's folders, with settings from the manifest or ``pom.xml`` files.

    Args:
        source_dir: the tested module, or a folder in it.

    Raises:
        InputFault: if the module has no sources or no tests.
    """
    poms = Poms(tree)
    folder = _module(tree, poms, source_dir)
    main, test = _folders(tree, poms, folder, MAIN), _folders(tree, poms, folder, TEST)
    if not test:
        what = f"the module has no {inside(folder, TEST.usual)}"
        raise InputFault(what, cure="set source_dir in the manifest to a module with tests beside its sources")
    resources = [*_resources(tree, folder)]
    for sibling, needed in poms.siblings(folder):
        folders = _folders(tree, poms, sibling, TEST if needed.of_tests else MAIN)
        main, test = (main, (*test, *folders)) if needed.test or needed.of_tests else ((*main, *folders), test)
        resources += _resources(tree, sibling)
    names = ("maven.compiler.release", "maven.compiler.source", "release", "source")
    release = (tests.release or poms.setting(folder, *names)).removeprefix("1.")
    return Layout(
        folder=folder,
        main=main,
        test=test,
        resources=tuple(resources),
        encoding=tests.encoding or poms.setting(folder, "project.build.sourceEncoding") or "UTF-8",
        release=str(max(int(release), OLDEST) if release.isdigit() else OLDEST),
        jars=tests.jars,
        flags=tests.arguments,
    )


def _module(tree: Mapping[str, bytes], poms: Poms, source_dir: str) -> str:
    for folder in upwards(source_dir):
        if _folders(tree, poms, folder, MAIN):
            return folder
    modules = sorted({path.partition(f"/{MAIN.usual}/")[0] for path in tree if f"/{MAIN.usual}/" in path})
    cure = "choose a repository in Maven's layout, or use line samples"
    if modules:
        cure = f"set source_dir in the manifest to one of its modules: {', '.join(modules)}"
    raise InputFault(f"the repository has no {inside(source_dir, MAIN.usual)}", cure=cure)


def _folders(tree: Mapping[str, bytes], poms: Poms, folder: str, kind: SourceKind) -> tuple[str, ...]:
    place = inside(folder, poms.setting(folder, kind.setting) or kind.usual)
    return (place,) if any(path.startswith(f"{place}/") for path in tree) else ()


def _resources(tree: Mapping[str, bytes], folder: str) -> Iterator[str]:
    for place in (inside(folder, f"src/{kind}/resources") for kind in ("main", "test")):
        if any(path.startswith(f"{place}/") for path in tree):
            yield place


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """An artifact that a module depends on."""

    artifact: str
    test: bool
    of_tests: bool
    """Whether the artifact contains another module's tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pom:
    """The relevant contents of a ``pom.xml`` file."""

    artifact: str
    settings: Mapping[str, str]
    """Properties, and the build's ``sourceDirectory``, ``testSourceDirectory``, ``release`` and ``source``."""
    dependencies: tuple[Dependency, ...]


class Poms:
    """A repository's ``pom.xml`` files by folder; "" is the root."""

    def __init__(self, tree: Mapping[str, bytes]) -> None:
        poms = {dirname(path): _read(content) for path, content in tree.items() if f"/{path}".endswith(f"/{POM}")}
        self._of = {folder: pom for folder, pom in poms.items() if pom is not None}

    def setting(self, folder: str, *names: str) -> str:
        """Return the value of the first of `names` that a module or an enclosing folder sets; empty if none is set."""
        value = next(filter(None, (self._setting(folder, name) for name in names)), "")
        for _ in range(_DEPTH):
            value = _PLACEHOLDER.sub(lambda match: self._setting(folder, match.group(1)), _BASE.sub("", value))
        return value

    def _setting(self, folder: str, name: str) -> str:
        around = (self._of[place].settings.get(name, "") for place in upwards(folder) if place in self._of)
        return next(filter(None, around), "")

    def dependencies(self, folder: str) -> tuple[Dependency, ...]:
        """Return a module's dependencies, including those of enclosing folders."""
        around = [self._of[place] for place in upwards(folder) if place in self._of]
        return tuple(dict.fromkeys(dependency for pom in around for dependency in pom.dependencies))

    def siblings(self, folder: str) -> tuple[tuple[str, Dependency], ...]:
        """Return the folder and dependency of each other module that a module needs, directly or indirectly."""
        folders = {pom.artifact: place for place, pom in self._of.items()}
        needed: dict[tuple[str, bool], Dependency] = {}
        # Dependencies of the code come first: a module that code and tests need counts as code.
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
    """Yield a folder, then its parents up to the root, ""."""
    while folder:
        yield folder
        folder = dirname(folder)
    yield ""


def _read(content: bytes) -> Pom | None:
    try:
        # The repository wrote this XML; expat limits entity expansion.
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
    """Convert a path in the module `folder` to a path in the repository."""
    return normpath(f"{folder}/{path}").lstrip("/")
