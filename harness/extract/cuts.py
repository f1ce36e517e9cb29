"""Places at which a Python function may end in a text that goes on after it."""

from __future__ import annotations

from collections.abc import Iterator

from ctxbench.harness.extract.head import FunctionHead

_MOST = 50
"""The most lines at which an answer is tried to be cut."""


def cuts(function_head: FunctionHead, text: str) -> Iterator[str]:
    """Give the text up to each line that may be the first after the function, the nearest first, then all of it.

    A line that is no deeper than the function ends it, unless it is inside a bracket or a string: a text cut there
    does not parse.
    """
    lines = text.split("\n")
    head = function_head.head.count("\n")
    tried = 0
    for at in range(head + 1, len(lines)):
        if leaves(lines[at], function_head.indent):
            yield _tail_off(lines[:at], function_head.indent)
            tried += 1
            if tried == _MOST:
                return
    yield _tail_off(lines, function_head.indent)


def leaves(line: str, indent: str) -> bool:
    """Return whether a line stands no deeper than the function; comments and blank lines tell nothing."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#") and len(line) - len(line.lstrip()) <= len(indent)


def _tail_off(lines: list[str], indent: str) -> str:
    """Join lines without the blank lines, and comments of what comes next, at their end."""
    end = len(lines)
    while end > 1 and (not (line := lines[end - 1]).strip() or _is_outer_comment(line, indent)):
        end -= 1
    return "\n".join(lines[:end]).rstrip()


def _is_outer_comment(line: str, indent: str) -> bool:
    stripped = line.lstrip()
    return stripped.startswith("#") and len(line) - len(stripped) <= len(indent)
