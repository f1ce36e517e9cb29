"""A number that keeps the digits it was written with. Pure."""

from __future__ import annotations


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
        made = super().__new__(cls, text if number is None else number)
        made.text = text
        return made
