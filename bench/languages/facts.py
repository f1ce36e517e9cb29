"""Plain data that the analysis of source files yields, the same for every language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.types import Use

Span = tuple[int, int]
"""Start and exclusive end: of lines in a file, or of columns (characters) in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The facts of one file by itself. Each language adds its imports, definitions and name loads."""

    path: str
    broken: bool
    """Whether the parser met a syntax error."""
    tokens: Mapping[int, tuple[Span, ...]]
    """Line -> its tokens (a string is one token, comments are none), for lines that may use an import."""
    barred: Mapping[int, str]
    """Line -> why it is no target: ``import``, ``decorator``, ``header``, ``multiline_string``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalLoad:
    """One place where a name that comes from another file of the same repository is read."""

    line: int
    column: int
    name: str
    """The name as it is bound in the file."""
    uses: tuple[Use, ...]
    """The binding itself and, where it is a module or a class, the member reached through it."""
    near: tuple[Use, ...]
    """`uses` as far as they are spelled on this line: what is reached may stand on the next one."""
    statements: tuple[Span, ...]
    """Lines of every import statement of the file that brings the name in."""
    quoted: bool
    """Whether it stands inside a string (an f-string's expression)."""


def ends(reached: Sequence[Use]) -> tuple[Use, ...]:
    """Return what is bound and what is reached through it, of all the steps between."""
    return tuple(dict.fromkeys((reached[0], reached[-1])))
