"""Programming languages: their interface, `Language`, and a registry.

Each language has a folder, here or in another package, and registers in the entry-point group ``ctxbench.languages``.
"""

from __future__ import annotations

from ctxbench.bench.languages.base import Import, Language, every, get, names, register

__all__ = ["Import", "Language", "every", "get", "names", "register"]
