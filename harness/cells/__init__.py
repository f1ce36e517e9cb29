"""Cells: processes in which strategies run, apart from samples, references and one another.

A cell is a process that holds one query and a channel. The repository's view and the model stay on the trusted side
and are asked over the channel, so that a cell holds no answers. A cell lives for one sample: what a strategy stores,
even on disk, goes with it. Where the kernel has Landlock, the home folder cannot be opened, nothing outside a private
temporary folder can be written, and no network is reached; elsewhere `describe` says ``isolation: process``.

Not covered: a strategy that already carries the answers in its own file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxbench.harness.cells.pool import Registrations, checked, open_cells, open_registrations
    from ctxbench.harness.cells.process import copies
    from ctxbench.harness.cells.protocol import Cells, InlineCells, StrategyBounds, StrategyCard, StrategyFault

__all__ = [
    "Cells",
    "InlineCells",
    "Registrations",
    "StrategyBounds",
    "StrategyCard",
    "StrategyFault",
    "checked",
    "copies",
    "open_cells",
    "open_registrations",
]

_MODULES = {
    **dict.fromkeys(("Cells", "InlineCells", "StrategyBounds", "StrategyCard", "StrategyFault"), "protocol"),
    **dict.fromkeys(("Registrations", "checked", "open_cells", "open_registrations"), "pool"),
    "copies": "process",
}
"""Name -> its module. The server of cells imports this package too, and every cell pays for what its server holds."""


def __getattr__(name: str) -> object:
    """Return what the package gives, of a module that is imported when the first of it is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
