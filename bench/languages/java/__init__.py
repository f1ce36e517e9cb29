"""Java: imports of the repository's own types and static members, and the lines that use them.

Names of the same package need no import, so lines that use only these are no candidates: the paper's
lines use "symbols imported from the same project".
"""

from __future__ import annotations

from ctxbench.bench.languages.java.uses import analyse, resolve

__all__ = ["analyse", "resolve"]
