"""The contents of the pages: rows of cells and chart specifications from boards and stored rows. Pure.

Here is what their tables share: a cell that keeps the digits of its number, and the order of the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ctxbench.harness.leaderboard import numbers

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#7A5195", "#5F6B6D")
"""Colours of series in charts, readable on light and dark: Okabe and Ito's palette, which stays apart for most kinds of
colour blindness, darkened where it is read on white."""
R = TypeVar("R", bound=Mapping[str, object])


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


@dataclass(frozen=True, slots=True)
class Order:
    """By one column, or as the rows come."""

    column: str = ""
    """Nothing: as they come."""
    falling: bool = False
    """The highest, or Z, first."""
    number: bool = False
    """Whether the column holds numbers."""

    @property
    def written(self) -> str:
        """How an address says it: the column, with a minus before it where the highest comes first."""
        return f"{'-' if self.falling else ''}{self.column}"

    def spelled(self, usual: str) -> str:
        """Return what a reader chooses; `usual` is what the rows come ordered by."""
        if not self.column:
            return usual
        ends = ("lowest", "highest") if self.number else ("A", "Z")
        return f"{self.column}, {ends[self.falling]} first"


def orders(rows: Sequence[Mapping[str, object]], leave: Collection[str] = ()) -> list[Order]:
    """Return the orders that these rows can have: as they come, then each column but those to `leave`, both ways.

    Numbers are offered from the highest down first, texts from A on.
    """
    options = [Order()]
    for column in rows[0] if rows else ():
        cells = [row.get(column) for row in rows]
        filled = [cell for cell in cells if cell is not None]
        if column in leave or not filled:
            continue
        number = all(isinstance(cell, int | float) for cell in filled)
        options += [Order(column, falling, number) for falling in (number, not number)]
    return options


def arranged(rows: Sequence[R], order: Order) -> list[R]:
    """Return the rows in that order; equal ones as they came, those without a cell last whichever way."""
    if not order.column:
        return list(rows)
    with_cell = [row for row in rows if row.get(order.column) is not None]
    without = [row for row in rows if row.get(order.column) is None]
    return sorted(with_cell, key=lambda row: _key(row[order.column]), reverse=order.falling) + without


def _key(cell: object) -> tuple[float, str]:
    return (float(cell), "") if isinstance(cell, int | float) else (0.0, str(cell).casefold())
