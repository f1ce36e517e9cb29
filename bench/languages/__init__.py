"""Languages: what the rest of the platform asks of a programming language, and those that are registered.

`base` says what a language brings; each has a folder, here or in another package, and comes in through the entry-point
group ``ctxbench.languages``. Nothing outside these folders needs to know which languages there are, but for what is
fitted to those of the papers: the published scorers, the copy model's tokens, the papers' prompts.
"""

from __future__ import annotations

from ctxbench.bench.languages.base import Import, Language, every, get, names, register

__all__ = ["Import", "Language", "every", "get", "names", "register"]
