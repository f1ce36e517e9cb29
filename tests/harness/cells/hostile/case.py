"""A hostile strategy as data: what it leaves in one cell and looks for in another, or what it does to others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A way to tell another cell something: Python in which ``note`` is four letters; see `inside` for the rest."""

    name: str
    tries: str
    leave: str
    """Run in the first cell."""
    look: str
    """Run in a cell before and in one after that; assigns ``seen``, which must be the same both times."""
    at_once: str = ""
    """``leave`` or ``look``: that one lives while the other one runs; where it says ``wait()``, it does."""
    open_in: tuple[str, ...] = ()
    """Settings in which this is open; docs/isolation.md says so."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something done to others: Python that assigns ``said``; see `inside`."""

    name: str
    tries: str
    code: str
    says: str
    """A regular expression for the whole of ``said``."""
    without: str = ""
    """The same where cells have no namespaces, if it is another one there."""
