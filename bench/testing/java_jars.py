"""Which Debian package has a Java package: asked of the jars of this machine, of apt-file and of apt, all offline."""

from __future__ import annotations

import contextlib
import re
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.testing.java_pom import Dependency

SHARE = Path("/usr/share/java")
_SECONDS = 60.0
_PARTS = re.compile(r"[a-z]+")
_COMMON = frozenset({"api", "code", "com", "core", "io", "java", "javax", "net", "org", "project"})
_ENDINGS = re.compile(r"-(api|core|all|annotations)$|[0-9]+$")


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


def _words(text: str) -> set[str]:
    return set(_PARTS.findall(text)) - _COMMON


def _installed(package: str, share: Path) -> Path | None:
    """Return the jar that has most of a package's classes, of several the one with the shortest name."""
    holders: list[tuple[int, int, str, Path]] = []
    inside = re.compile(re.escape(package.replace(".", "/")) + r"/[^/]+\.class")
    for jar in sorted(share.glob("*.jar")):
        with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(jar) as archive:
            classes = sum(inside.fullmatch(name) is not None for name in archive.namelist())
            if classes:
                holders.append((-classes, len(jar.name), jar.name, jar))
    return min(holders)[-1] if holders else None


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
