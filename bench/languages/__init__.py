"""Languages: what the rest of the platform asks of a programming language, and those that are registered.

`base` says what a language brings; each has a folder, here or in another package, and comes in through the entry-point
group ``ctxbench.languages``. Nothing outside these folders needs to know which languages there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxbench.bench.languages.base import Language, every, get, names, register

if TYPE_CHECKING:
    from ctxbench.bench.languages.syntax import Import

__all__ = ["Import", "Language", "every", "get", "names", "register"]


def __getattr__(name: str) -> object:
    """Return `Import`, which needs the parser, when it is first asked for."""
    if name == "Import":
        from ctxbench.bench.languages.syntax import Import  # noqa: PLC0415 - see above

        return Import
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
