"""The contents of the pages: rows of cells and chart specifications from boards and stored rows. Pure.

Here is what their tables and charts share: a cell that keeps the digits of its number, and the colours of series.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.harness.leaderboard import choices, numbers
from ctxbench.harness.results import RunTable

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#7A5195", "#5F6B6D")
"""Colours of series in charts, readable on light and dark: Okabe and Ito's palette, which stays apart for most kinds of
colour blindness, darkened where it is read on white."""


class Figure(float):
    """A cell that sorts as a number and is shown as its text: ``21.0`` stays ``21.0``, and ``<0.001`` is the lowest p.

    A column of plain numbers would lose the last zero, which says how exact a number is; a column of texts would put
    ``10`` before ``9``.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str, number: float | None = None) -> Figure:
        """Return it.

        Args:
            text: what is shown; ours, or a number's text.
            number: what it sorts as; None: as the text says.

        Raises:
            ValueError: if the text is no number, and none is given.
        """
        figure = super().__new__(cls, text if number is None else number)
        figure.text = text
        return figure


def estimated(mean: float | None, low: float | None, high: float | None, *, sign: bool = False) -> Figure | None:
    """Return the cell of a mean with its interval, which sorts by the mean; None without a mean."""
    return None if mean is None else Figure(numbers.interval(mean, low, high, sign=sign), mean)


def metrics(tables: Sequence[RunTable]) -> list[str]:
    """Return the metrics that some run has a value of, the one that ranks first, then by name."""
    names = {
        name for table in tables for name, column in table.metrics.items() if any(value is not None for value in column)
    }
    ranking = choices.default_metric(sorted(names), tables[0].run) if names else ""
    return sorted(names, key=lambda name: (name != ranking, name))
