"""Everything that is installed, and the names that a strategy's author needs: ``from ctxbench import strategy``.

The five folders beside this one are links to the folders of the same names at the top of the repository.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxbench.strategies import *  # noqa: F403 - what it exports is what authors need

_ROOMS = frozenset(("bench", "harness", "sandbox", "strategies", "dashboard"))


def __getattr__(name: str) -> object:
    """Return a name of `ctxbench.strategies`, imported when it is first asked for: the rest stays light."""
    if name not in _ROOMS and (not name.startswith("_") or name == "__all__"):
        from ctxbench import strategies  # noqa: PLC0415 - see above

        if name in ("__all__", *strategies.__all__):
            return getattr(strategies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
