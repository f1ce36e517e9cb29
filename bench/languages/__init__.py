"""Languages: what the rest of the platform asks of a programming language, and those that are registered.

`base` says what a language brings; each has a folder, here or in another package, and comes in through the entry-point
group ``ctxbench.languages``. Nothing outside these folders needs to know which languages there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ctxbench.bench.languages.base import Language
from ctxbench.bench.registry import Registry

if TYPE_CHECKING:
    from ctxbench.bench.languages.imports import Import

__all__ = ["Import", "Language", "every", "get", "names", "register"]
L = TypeVar("L", bound=Language)
_LANGUAGES: Registry[Language] = Registry("language", group="ctxbench.languages")


def register(language: L) -> L:
    """Register a language under its name and return it; called by the package that its entry point names.

    Raises:
        InputFault: if another language has that name.
    """
    _LANGUAGES.add(str(language), language, origin=type(language).__module__)
    return language


def get(name: str) -> Language:
    """Return the language called `name`; its grammar is loaded only when it is needed.

    Raises:
        UnknownName: if none is called so.
        InputFault: if its package cannot be imported.
    """
    return _LANGUAGES.get(name)


def names() -> tuple[str, ...]:
    """Return the names of all languages, sorted; none is imported for it."""
    return _LANGUAGES.names()


def every() -> tuple[Language, ...]:
    """Return all languages, sorted by name."""
    return tuple(get(name) for name in names())


def __getattr__(name: str) -> object:
    """Return `Import`, which needs the parser, when it is first asked for."""
    if name == "Import":
        from ctxbench.bench.languages.imports import Import  # noqa: PLC0415 - see above

        return Import
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
