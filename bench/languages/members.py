"""Names of a project that a piece of code reads, and whether the project defines them. Static; never guesses.

Only what can be resolved from the files alone is judged: names that visible imports bring in from the project,
members of its modules and classes, members of the class that the code stands in. What cannot be resolved (a
base class from outside, a module that makes names up, a local variable) is no reading at all.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ctxbench.bench.types import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectReading:
    """One place where code reads a name of the project."""

    name: str
    """As spelled, up to the member that was judged: ``rules.round_up``, ``self.total``, ``Cart``."""
    line: int
    column: int
    """Where it begins in the code, 0-based, in characters."""
    known: bool
    """Whether the project defines it."""


class ProjectNames(Protocol):
    """The files of one repository, as far as names are concerned. Files are read when they are first needed."""

    def readings(self, path: str, code: str, *, start: tuple[int, int] = (0, 0)) -> tuple[ProjectReading, ...]:
        """Return what `code` reads of the project, in the order of lines.

        Args:
            path: the file that the code stands in; its own definitions and classes are those of the project's
                file, together with those that the code itself has.
            code: a file, or a part of one that holds the imports it needs; it may be cut off anywhere.
            start: line and column from which on readings are wanted; what is before is only read.
        """
        ...


def project(language: Language, texts: Mapping[str, str]) -> ProjectNames:
    """Return a project for asking about names.

    Args:
        language: of the files.
        texts: path -> text, POSIX paths inside the repository.
    """
    names: ProjectNames = importlib.import_module(f"ctxbench.bench.languages.{language.value}.members").project(texts)
    return names
