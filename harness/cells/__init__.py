"""Cells: processes in which strategies run, separated from samples, references and one another.

A cell is a process with one query and a channel. The repository's view and the model stay on the trusted side. The cell
asks them over the channel, so it contains no answers. A cell lives for one sample. Whatever the strategy stores, even
on disk, is deleted with it. With Landlock, a cell cannot open the home folder, writes only to a private temporary
folder, and reaches no network. Without Landlock, `describe` returns ``isolation: process``.

A cell does not protect against a strategy that contains the answers in its own file.
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
"""Name -> its module. The fork server imports this package too, and every cell inherits the server's memory."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
