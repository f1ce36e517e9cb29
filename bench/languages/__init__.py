"""Languages: the interface to a programming language, and the registered languages.

`base` defines the interface. Each language has a folder, here or in another package, and is registered by the
entry-point group ``ctxbench.languages``. Code outside these folders is independent of the languages, except for parts
fitted to those of the papers: the published scorers, the copy model's tokens, the papers' prompts.
"""

from __future__ import annotations

from ctxbench.bench.languages.base import Import, Language, every, get, names, register

__all__ = ["Import", "Language", "every", "get", "names", "register"]
