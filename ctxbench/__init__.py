"""Everything that is installed, and the names that a strategy's author needs: ``from ctxbench import strategy``.

The five folders beside this one are links to the folders of the same names at the top of the repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxbench.strategies import (
        AtLeast,
        Block,
        BlockKind,
        BoundStrategy,
        Context,
        Dropped,
        Execute,
        Execution,
        Generate,
        Hit,
        Inner,
        Kind,
        Language,
        Place,
        Prompt,
        Query,
        Repository,
        Snippet,
        WindowHit,
        resolve,
        strategy,
    )

__all__ = [
    "AtLeast",
    "Block",
    "BlockKind",
    "BoundStrategy",
    "Context",
    "Dropped",
    "Execute",
    "Execution",
    "Generate",
    "Hit",
    "Inner",
    "Kind",
    "Language",
    "Place",
    "Prompt",
    "Query",
    "Repository",
    "Snippet",
    "WindowHit",
    "resolve",
    "strategy",
]


def __getattr__(name: str) -> object:
    """Return a name of `ctxbench.strategies`, imported when it is first asked for: the rest stays light."""
    if name in __all__:
        from ctxbench import strategies  # noqa: PLC0415 - see above

        return getattr(strategies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
