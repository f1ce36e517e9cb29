"""Languages: where their files import and use names of their own project.

`analyse` reads one file (and can run in any process), `resolve` looks at all files of a repository.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from ctxbench.bench.languages.facts import FileFacts, InternalLoad
from ctxbench.bench.types import Language


class LanguageSupport(Protocol):
    """The two steps every language offers."""

    def analyse(self, path: str, text: str) -> FileFacts:
        """Read one file; the result is plain data that can travel between processes."""
        ...

    def resolve(self, files: Mapping[str, FileFacts]) -> dict[str, tuple[InternalLoad, ...]]:
        """Find the uses of project-internal imports, file by file, in line and column order."""
        ...


def support(language: Language) -> LanguageSupport:
    """Return the support of a language; its grammar is loaded only now."""
    return cast(LanguageSupport, importlib.import_module(f"ctxbench.bench.languages.{language.value}"))
