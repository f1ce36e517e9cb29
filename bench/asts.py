"""Syntax trees of Python text, safe to ask for from many threads."""

from __future__ import annotations

import ast
import threading
import warnings

# CPython 3.11 counts the depth of a tree that it builds in one place for all threads, and ends in a SystemError if
# another builds one meanwhile (gh-106905). Filters of warnings belong to the whole process, too.
LOCK = threading.Lock()
"""Held while a tree is built; to be held by whoever imports, beside other threads, a library that builds some."""


def parse(text: str | bytes) -> ast.Module | None:
    """Return the syntax tree of a text, None if this Python cannot read it."""
    with LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like are the text's own
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
