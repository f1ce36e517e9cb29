"""Contents of the pages: rows of cells and chart specifications. This module contains what several pages use."""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.harness.leaderboard import scales, selection
from ctxbench.harness.results import RunTable

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#7A5195", "#5F6B6D")
"""Colours of series, readable on light and dark: Okabe and Ito's palette for colour blindness, darkened for white."""


class Figure(float):
    """A cell that sorts as a number and displays a text, such as ``21.0`` or ``<0.001``.

    A plain number would lose the final zero, which shows the precision. A plain text would sort ``10`` before ``9``.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str, number: float | None = None) -> Figure:
        """Create a cell.

        Raises:
            ValueError: if the text is not a number and `number` is None.
        """
        figure = super().__new__(cls, text if number is None else number)
        figure.text = text
        return figure


def estimated(mean: float | None, low: float | None, high: float | None, *, sign: bool = False) -> Figure | None:
    """Return a cell that shows a mean with its interval and sorts by the mean; None without a mean."""
    return None if mean is None else Figure(scales.interval(mean, low, high, sign=sign), mean)


def metrics(tables: Sequence[RunTable]) -> list[str]:
    """Return the metrics that have a value in at least one run: the default ranking metric first, then by name."""
    names = {
        name for table in tables for name, column in table.metrics.items() if any(value is not None for value in column)
    }
    ranking = selection.default_metric(sorted(names), tables[0].run) if names else ""
    return sorted(names, key=lambda name: (name != ranking, name))
