"""How whoever reads a board gets to see or to do more, in the words of where it is read. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """What to do: each goes on a sentence of `notes` or `published_notes`."""

    rows: str
    """To see all rows of the papers: after "... are shown"."""
    profile: str
    """To rank by the metric profile of the papers: after a colon."""
    marked: str
    """To count marked samples: in brackets."""
    again: str
    """To do what is unscored: after "Cure:"."""


COMMAND = Ways(
    rows="by --published all, and by --format json and csv",
    profile="see --profile infercom",
    marked="--marked include",
    again="run the same command again",
)
PAGE = Ways(
    rows="where Published rows says all",
    profile="choose infercom as Metric profile, below More choices",
    marked="Marked samples, below More choices",
    again="run it again; the page Runs has the command",
)
