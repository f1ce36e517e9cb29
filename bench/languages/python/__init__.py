"""Python: imports of the repository's own modules, resolved statically, and the lines that use them."""

from __future__ import annotations

from ctxbench.bench.languages.python.uses import analyse, resolve

__all__ = ["analyse", "resolve"]
