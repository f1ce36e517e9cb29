"""The lines of a file that can become samples, and the imports to mask for each.

A candidate is a body line (no import, decorator or header of a class or function, not part of a string
that spans lines) of at least four tokens that reads a name imported from the same repository. If it is
the first line of its file to use that name, every import statement before it that brings the name in is
blanked, whole: a statement that also binds names used earlier is blanked with them (``shared``), since
only so the needed import is never visible and line numbers hold. Statements inside functions count the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from ctxbench.bench.languages.base import FileFacts, InternalLoad, Span
from ctxbench.bench.types import Use

MIN_TOKENS = 4
MAX_CHARACTERS = 400
"""Longer lines are data or minified code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCandidate:
    """One line that uses the repository's own API."""

    path: str
    line: int
    text: str
    """The line without trailing white space."""
    tokens: tuple[Span, ...]
    column: int
    """Where its first internal name starts."""
    uses: tuple[Use, ...]
    masked: tuple[Span, ...]
    shared: bool
    """Whether a masked statement also binds a name that an earlier line uses."""


def candidates(
    lines: list[str], facts: FileFacts, loads: tuple[InternalLoad, ...]
) -> tuple[list[LineCandidate], Counter[str]]:
    """Return the candidates of one file in line order, and why its other lines of use are none."""
    usable: list[LineCandidate] = []
    drops: Counter[str] = Counter()
    earlier_names: set[tuple[str, tuple[Span, ...]]] = set()
    used: set[Span] = set()
    for line, group in groupby(loads, key=lambda load: load.line):
        line_loads = list(group)
        reason = _reason(lines[line], facts, line, line_loads)
        if reason:
            drops[reason] += 1
        else:
            usable.append(
                _candidate(lines[line], facts, [load for load in line_loads if not load.quoted], earlier_names, used)
            )
        earlier_names.update((load.name, load.statements) for load in line_loads)
        used.update(statement for load in line_loads for statement in load.statements)
    return usable, drops


def _reason(text: str, facts: FileFacts, line: int, loads: list[InternalLoad]) -> str:
    if line in facts.barred:
        return facts.barred[line]
    if all(load.quoted for load in loads):
        return "in_string"
    if len(facts.tokens.get(line, ())) < MIN_TOKENS:
        return "few_tokens"
    return "long_line" if len(text) > MAX_CHARACTERS else ""


def _candidate(
    text: str,
    facts: FileFacts,
    loads: list[InternalLoad],
    earlier_names: set[tuple[str, tuple[Span, ...]]],
    used: set[Span],
) -> LineCandidate:
    line = loads[0].line
    first = [load for load in loads if (load.name, load.statements) not in earlier_names]
    masked = sorted({span for load in first for span in load.statements if span[0] < line})
    return LineCandidate(
        path=facts.path,
        line=line,
        text=text.rstrip(),
        tokens=facts.tokens[line],
        column=loads[0].column,
        uses=tuple(dict.fromkeys(use for load in loads for use in load.near)),
        masked=tuple(masked),
        shared=any(span in used for span in masked),
    )
