"""Cells: isolated processes for strategies, which cannot read sample and reference files; see docs/isolation.md."""

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
"""Name -> its module, which is imported on first use, because every cell inherits the fork server's memory."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
