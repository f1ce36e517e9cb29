"""What javac says of a repository that does not compile, and why that may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import dirname

from ctxbench.bench.judging.java.layout import Dependency

MOST_ERRORS = 3
"""Errors, and missing names, of one message."""
_ERROR = re.compile(r"^(\S.*?\.java):(\d+): error: (.*)$")
_SYMBOL = re.compile(r"^  symbol: +(?:static )?(class|interface|variable|method) ([\w$]+)")
_WITHIN = re.compile(r"^  location: package ([\w.]+)$")
_PACKAGE = re.compile(r"package ([a-z]\w*(?:\.[a-z]\w*)*) does not exist")
_HIDDEN_IN_JAVA_8 = frozenset(("com.sun.nio.file", "sun.misc", "sun.reflect"))
"""What the JDK's module for unsupported packages exports: `javac --release 8` does not show it, later ones do."""


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
    dependencies: Sequence[Dependency],
) -> str:
    """Return what to do about errors, in one line.

    Args:
        errors: javac's.
        tree: the repository's files.
        compiled: its folders that are compiled.
        dependencies: what the ``pom.xml`` says that it needs.
    """
    missing = packages(errors, tree, compiled)
    steps = []
    hidden = [package for package in missing if package in _HIDDEN_IN_JAVA_8]
    if hidden:
        steps.append(
            f"{_listed(hidden)} {'is' if len(hidden) == 1 else 'are'} of the JDK, but hidden by release 8: "
            'set release = "9" or later in [tests]'
        )
    unknown = [package for package in missing if package not in hidden]
    if unknown:
        artifacts = ", ".join(map(str, dependencies[: 2 * MOST_ERRORS]))
        pom = f" (the pom names {artifacts})" if artifacts else ""
        steps.append(
            f"for {_listed(unknown)}{pom} find Debian's packages, e.g. with `apt-file search NAME.jar`, and add them "
            "to requirements, and their jars to jars, in [tests]; if Kotlin, or another module, of the repository "
            "declares them, choose another module, as source_dir, or another repository"
        )
    return "; ".join(steps) or (
        "see the repository's own notes on its build; if its Kotlin, or another module, declares what is missing, "
        "choose another module, as source_dir"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_ERRORS} more" if len(names) > MOST_ERRORS else ""
    return ", ".join(names[:MOST_ERRORS]) + more
