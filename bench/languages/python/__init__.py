"""Python: imports of the repository's own modules, resolved statically, and the lines that use them."""

from __future__ import annotations

from ctxbench.bench.languages.python.facts import analyse
from ctxbench.bench.languages.python.uses import resolve

__all__ = ["analyse", "resolve"]
