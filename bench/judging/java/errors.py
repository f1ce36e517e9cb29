"""What javac says of a repository that does not compile, and why that may be. Pure."""

from __future__ import annotations

import contextlib
import functools
import re
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import basename, dirname

from ctxbench.bench.judging.java.layout import Dependency

MOST_ERRORS = 3
"""Errors, and missing names, of one message."""
_ERROR = re.compile(r"^(\S.*?\.java):(\d+): error: (.*)$")
_SYMBOL = re.compile(r"^  symbol: +(?:static )?(class|interface|variable|method) ([\w$]+)")
_WITHIN = re.compile(r"^  location: package ([\w.]+)$")
_PACKAGE = re.compile(r"package ([a-z]\w*(?:\.[a-z]\w*)*) does not exist")
_HIDDEN_IN_JAVA_8 = frozenset(("com.sun.nio.file", "sun.misc", "sun.reflect"))
"""What the JDK's module for unsupported packages exports: `javac --release 8` does not show it, later ones do."""
_OTHER_CODE = {".kt": "Kotlin", ".scala": "Scala", ".groovy": "Groovy"}
_DECLARED_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)", re.MULTILINE)
_DECLARED_TYPE = re.compile(r"\b(?:class|interface|object|trait|typealias)\s+(\w+)")
SHARE = Path("/usr/share/java")
_SECONDS = 60.0
_LIBRARY = re.compile(r"Depends: lib([a-z0-9.+-]+)-java")
_LEVELS = 2
"""Of packages' dependencies that are looked through for a jar."""
_PARTS = re.compile(r"[a-z]+")
_COMMON = frozenset({"api", "code", "com", "core", "io", "java", "javax", "net", "org", "project"})
_ENDINGS = re.compile(r"-(api|core|all|annotations)$|[0-9]+$")


@dataclass(frozen=True, slots=True)
class CompileError:
    """One error of javac's."""

    path: str
    line: int
    """From 1."""
    text: str
    """In one line, with the symbol's name where one is missing."""
    package: str = ""
    """That does not exist."""
    type: str = ""
    """Name of a type that is not found."""
    within: str = ""
    """The package that it is sought in, where the line says so; some of that package is there."""

    def __str__(self) -> str:
        """Return ``path:line: text``."""
        return f"{self.path}:{self.line}: {self.text}"


def read(messages: str) -> tuple[CompileError, ...]:
    """Return the errors of javac's output, in its order; a type that several lines miss is an error of each."""
    errors: list[CompileError] = []
    for line in messages.split("\n"):
        error = _ERROR.match(line)
        if error:
            path, number, text = error.groups()
            missing = _PACKAGE.search(text)
            errors.append(CompileError(path, int(number), text, package=missing.group(1) if missing else ""))
        elif errors:
            errors[-1] = _with_detail(errors[-1], line)
    return tuple(errors)


def _with_detail(error: CompileError, line: str) -> CompileError:
    """Return an error with what a line below it says: which symbol it is about, and where that is sought."""
    symbol, within = _SYMBOL.match(line), _WITHIN.match(line)
    if symbol and error.text == "cannot find symbol":
        kind, name = symbol.groups()
        is_type = kind in ("class", "interface") or (kind == "variable" and name[:1].isupper())
        return replace(error, text=f"{error.text}: {kind} {name}", type=name if is_type else "")
    if within and error.type and not error.within:
        return replace(error, text=f"{error.text} of package {within.group(1)}", within=within.group(1))
    return error


def summary(errors: Sequence[CompileError]) -> str:
    """Return how many errors there are, and the first of them that differ, in one line."""
    different: dict[str, CompileError] = {}
    for error in errors:
        different.setdefault(error.text, error)
    first = " | ".join(map(str, [*different.values()][:MOST_ERRORS]))
    return f"{len(errors)} error{'s' * (len(errors) != 1)}: {first}{' | …' if len(errors) > MOST_ERRORS else ''}"


def packages(errors: Iterable[CompileError], tree: Mapping[str, bytes], compiled: Sequence[str]) -> tuple[str, ...]:
    """Return the packages that are missing, each once; not those of the repository whose own files do not compile.

    Args:
        errors: javac's.
        tree: the repository's files.
        compiled: its folders that are compiled.
    """
    missing = dict.fromkeys(error.package or error.within for error in errors if error.package or error.within)
    folders = {dirname(path) for path in tree if path.endswith(".java")}
    return tuple(
        package
        for package in missing
        if not any(f"{folder}/{package.replace('.', '/')}" in folders for folder in compiled)
    )


def cure(
    errors: Sequence[CompileError],
    tree: Mapping[str, bytes],
    compiled: Sequence[str],
    jars: Mapping[str, Jar],
    dependencies: Sequence[Dependency],
) -> str:
    """Return what to do about errors, in one line.

    Args:
        errors: javac's.
        tree: the repository's files.
        compiled: its folders that are compiled.
        jars: missing package -> the jar that has it, where that is known.
        dependencies: what the ``pom.xml`` says that it needs.
    """
    missing = packages(errors, tree, compiled)
    causes = [*_other_code(errors, missing, tree), *_elsewhere(errors, missing, tree, compiled)]
    if causes:
        return "; ".join(causes)
    steps = []
    if jars:
        providers = sorted(set(jars.values()), key=lambda jar: (jar.debian, jar.name))
        debian = ", ".join(f'"{name}"' for name in dict.fromkeys(jar.debian for jar in providers if jar.debian))
        names = ", ".join(f'"{jar.name}"' for jar in providers if jar.name)
        steps.append(f"add to [tests]: requirements = [{debian}], jars = [{names}]")
        nameless = dict.fromkeys(jar.debian for jar in providers if not jar.name)
        steps += [f"and of the jars that `apt-file list {name}` shows those that fit" for name in nameless]
        guessed = [*dict.fromkeys(jar.debian for jar in providers if jar.guessed)]
        if guessed:
            tell = "`apt-cache show PACKAGE` tells what a package is, `dpkg -L PACKAGE` which jars it brings"
            steps.append(f"of {_listed(guessed)} only the name fits: {tell}")
    hidden = [package for package in missing if package in _HIDDEN_IN_JAVA_8]
    if hidden:
        steps.append(
            f"{_listed(hidden)} {'is' if len(hidden) == 1 else 'are'} of the JDK, but hidden by release 8: "
            'set release = "9" or later in [tests]'
        )
    unknown = [package for package in missing if package not in jars and package not in hidden]
    if unknown:
        artifacts = ", ".join(map(str, dependencies[: 2 * MOST_ERRORS]))
        pom = f" (the pom names {artifacts})" if artifacts else ""
        steps.append(
            f"for {_listed(unknown)}{pom} find Debian's packages, e.g. with `apt-file search NAME.jar`, and add them "
            "to requirements, and their jars to jars, in [tests]"
        )
    return "; ".join(steps) or "see the repository's own notes on its build"


def _other_code(errors: Sequence[CompileError], missing: Sequence[str], tree: Mapping[str, bytes]) -> list[str]:
    """Say which files in other languages declare what is missing."""
    sought = {(error.type, dirname(error.path)) for error in errors if error.type}
    paths_in: dict[str, list[str]] = {}
    for path, content in tree.items():
        language = _OTHER_CODE.get(path[path.rfind(".") :])
        if language is None:
            continue
        text = content.decode("utf-8", "replace")
        declared = _DECLARED_PACKAGE.search(text)
        package = declared.group(1) if declared else ""
        types = {*_DECLARED_TYPE.findall(text), basename(path)[:-3]}
        place = package.replace(".", "/")
        if package in missing or any(name in types and folder.endswith(place) for name, folder in sought):
            paths_in.setdefault(language, []).append(path)
    return [
        f"its Java needs its {language} ({_listed(paths)}), which is not compiled here: "
        "choose a module without it, as source_dir, or another repository"
        for language, paths in paths_in.items()
    ]


def _elsewhere(
    errors: Sequence[CompileError], missing: Sequence[str], tree: Mapping[str, bytes], compiled: Sequence[str]
) -> list[str]:
    """Say where the repository itself declares what is missing, in folders that are not compiled."""
    others = [path for path in tree if path.endswith(".java") and not path.startswith(tuple(f"{f}/" for f in compiled))]
    folders = tuple("/" + package.replace(".", "/") for package in missing)
    files = {f"{error.type}.java" for error in errors if error.type}
    places = [path for path in others if f"/{dirname(path)}".endswith(folders) or basename(path) in files]
    what = f"what is missing stands in {_listed(places)}, which is compiled with neither its sources nor its tests"
    return [f"{what}: choose another module, as source_dir, or another repository"] if places else []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_ERRORS} more" if len(names) > MOST_ERRORS else ""
    return ", ".join(names[:MOST_ERRORS]) + more


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of `SHARE`."""

    name: str
    """Empty if only its package is known."""
    debian: str
    """The package that brings it; empty if that is not known."""
    guessed: bool = False
    """Whether it is taken only since the package has a usual name."""


def jar_of(package: str, dependencies: Sequence[Dependency], *, share: Path = SHARE) -> Jar | None:
    """Return the jar that has a Java package, None if nothing tells.

    Args:
        package: e.g. ``javax.annotation``.
        dependencies: what the project's pom names; the one most like the package is looked for if no jar has it.
        share: where jars are.
    """
    installed = _installed(package, share)
    if installed is not None:
        return Jar(installed.name, _owner(installed))
    words = _words(package)
    named = {dependency: _words(str(dependency)) for dependency in dependencies}
    # None but the most alike: another artifact of the same company is none that has it.
    most = max((len(words & own) for own in named.values()), default=0)
    alike = [dependency for dependency, own in named.items() if most and len(words & own) == most]
    alike.sort(key=lambda dependency: len(named[dependency]))
    return next(filter(None, map(_offered, alike)), None)


def companion(package: str, debian: Sequence[str]) -> Jar | None:
    """Return the jar that has a Java package which jars of Debian's need when they run, None if nothing tells.

    Args:
        package: e.g. ``org.objenesis``.
        debian: packages whose dependencies are looked at, e.g. ``libmockito-java``.
    """
    squeezed = package.replace(".", "").lower()
    level = tuple(debian)
    for _ in range(_LEVELS):
        if not level:
            break
        lines = (line.strip() for line in _lines_of("apt-cache", "depends", *level))
        stems = dict.fromkeys(match.group(1) for line in lines if (match := _LIBRARY.fullmatch(line)))
        named = [stem for stem in stems if re.sub(r"[\d.-]+", "", stem) in squeezed]
        if named:
            stem = max(named, key=len)
            return Jar(f"{stem}.jar", f"lib{stem}-java", guessed=True)
        level = tuple(f"lib{stem}-java" for stem in stems)
    return None


def _words(text: str) -> set[str]:
    return set(_PARTS.findall(text)) - _COMMON


def _installed(package: str, share: Path) -> Path | None:
    """Return the jar that has most of a package's classes, of several the one with the shortest name."""
    holders: list[tuple[int, int, str, Path]] = []
    for jar in sorted(share.glob("*.jar")):
        with contextlib.suppress(OSError, zipfile.BadZipFile):
            classes = _classes_by_package(jar, jar.stat().st_mtime_ns).get(package, 0)
            if classes:
                holders.append((-classes, len(jar.name), jar.name, jar))
    return min(holders)[-1] if holders else None


@functools.lru_cache(maxsize=4096)
def _classes_by_package(jar: Path, changed: int) -> Mapping[str, int]:  # noqa: ARG001 - `changed` keys what is kept
    """Return package -> how many classes a jar has of it; read once, as hundreds of packages may be missing."""
    with zipfile.ZipFile(jar) as archive:
        folders = (name.rpartition("/")[0] for name in archive.namelist() if name.endswith(".class"))
        return Counter(folder.replace("/", ".") for folder in folders)


def _owner(jar: Path) -> str:
    """Return the installed package that a file is of."""
    return next((line.partition(":")[0] for line in _lines_of("dpkg-query", "-S", str(jar)) if ": " in line), "")


def _offered(dependency: Dependency) -> Jar | None:
    """Return what Debian has of an artifact: by apt-file's index, else by a usual package name in apt's lists."""
    usual, stem = f"{dependency.artifact}.jar", _ENDINGS.sub("", dependency.artifact)
    folder = f"/usr/share/maven-repo/{dependency.group.replace('.', '/')}/{dependency.artifact}/"
    for name, search in ((usual, ("--fixed-string", f"{SHARE}/{usual}")), ("", (folder,))):
        for line in _lines_of("apt-file", "search", *search):
            return Jar(name, line.partition(":")[0])
    packages = set(_lines_of("apt-cache", "pkgnames", f"lib{stem}"))
    names = (f"lib{base}-java" for base in (dependency.artifact, stem))
    return next((Jar(usual, name, guessed=True) for name in names if name in packages), None)


def _lines_of(*command: str) -> Iterator[str]:
    """Yield the lines that a program prints; none where it is missing or fails."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
        yield from process.stdout.splitlines()
