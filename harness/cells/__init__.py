"""Cells: processes in which strategies run, apart from samples, references and one another.

A cell is a process that holds one query and a channel. The repository's view and the model stay on
the trusted side and are asked over the channel, so that there is nothing in a cell to dig out. A
cell lives for one sample: what a strategy keeps, even on disk, is gone with it. Where the kernel
has Landlock, the home folder cannot be opened, nothing outside a private temporary folder can be
written, and no network is reached; elsewhere `describe` says ``isolation: process``.

Not covered: a strategy that already carries the answers in its own file.
"""

from ctxbench.harness.cells.base import Card, Cells, InlineCells, StrategyFault
from ctxbench.harness.cells.bounds import Bounds
from ctxbench.harness.cells.copies import copies
from ctxbench.harness.cells.pool import checked, open_cells, open_registrations
from ctxbench.harness.cells.registrations import Registrations

__all__ = [
    "Bounds",
    "Card",
    "Cells",
    "InlineCells",
    "Registrations",
    "StrategyFault",
    "checked",
    "copies",
    "open_cells",
    "open_registrations",
]
