"""Programming languages: the interface `Language`, and a registry (entry-point group ``ctxbench.languages``)."""

from __future__ import annotations

from ctxbench.bench.languages.base import Import, Language, every, get, names, register

__all__ = ["Import", "Language", "every", "get", "names", "register"]
