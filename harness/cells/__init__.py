"""Cells: processes in which strategies run, apart from samples, references and one another.

A cell is a process that holds one query and a channel. The repository's view and the model stay on the trusted side
and are asked over the channel, so that a cell holds no answers. A cell lives for one sample: what a strategy stores,
even on disk, goes with it. Where the kernel has Landlock, the home folder cannot be opened, nothing outside a private
temporary folder can be written, and no network is reached; elsewhere `describe` says ``isolation: process``.

Not covered: a strategy that already carries the answers in its own file.
"""

from ctxbench.harness.cells.contract import Cells, InlineCells, StrategyBounds, StrategyCard, StrategyFault
from ctxbench.harness.cells.paths import copies
from ctxbench.harness.cells.pool import Registrations, checked, open_cells, open_registrations

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
