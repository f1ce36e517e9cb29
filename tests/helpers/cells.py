"""Cells without processes, for tests of other parts: real cells take a fifth of a second to start."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ctxbench.harness.cells import Cells, InlineCells, StrategyBounds


@contextlib.contextmanager
def open_inline(
    hidden: Sequence[Path], workers: int, *, limits: StrategyBounds | None = None, common: object = None
) -> Iterator[Cells]:
    yield InlineCells()


@pytest.fixture
def inline_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make commands run strategies in this process."""
    monkeypatch.setattr("ctxbench.harness.run.resources.open_cells", open_inline)
