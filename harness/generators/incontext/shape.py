"""`BodyShape`: the Python lines that can follow each other, since a body that does not parse is worth nothing.

Only what can be told from a line's first and last tokens and from its indentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_OPENERS = frozenset(
    ["if", "elif", "else", "for", "while", "with", "try", "except", "finally", "def", "class", "async", "match", "case"]
)
"""Words that begin a line which may end with a colon."""
_BOUND = _OPENERS - {"match", "case"}
"""Words that begin a line which must have a colon; the others are names too."""
_LOOP = re.compile(r"(?=[^\n]*?[\w\]])([^\s][^\n]{1,15}?)\1{3}\Z")
_LONGEST = 4
"""Lines of a stretch that may not be repeated at once."""


@dataclass(frozen=True, slots=True)
class BodyShape:
    """The open blocks and line at a place of a body."""

    widths: tuple[int, ...] = ()
    """Indentations of the blocks that are open, outermost first; without the function's own."""
    opens: bool = False
    """Whether the last line ended with a colon, so that a block must follow."""
    first: str = ""
    """The first token of the current line."""
    last: str = ""
    colon: bool = False
    """Whether the current line has a colon outside of brackets."""

    def indents(self, width: int, base: int) -> bool:
        """Return whether a line may begin at a width; one no deeper than `base` ends the body."""
        if self.opens:
            return width > self.widths[-1]
        return not self.widths or width <= base or width in self.widths

    def ends_line(self) -> bool:
        """Return whether the current line may end here, outside of brackets."""
        if self.last == ":" and self.first not in _OPENERS:
            return False
        return self.colon or self.first not in _BOUND

    def indented(self, width: int) -> BodyShape:
        """Return it after a line's indentation."""
        return replace(self, widths=(*(outer for outer in self.widths if outer < width), width), opens=False)

    def grown(self, text: str, *, bracketed: bool) -> BodyShape:
        """Return it after one more token of the line."""
        colon = self.colon or (text == ":" and not bracketed)
        return replace(self, first=self.first or text, last=text, colon=colon)

    def ended(self) -> BodyShape:
        """Return it after the line's end, outside of brackets."""
        return replace(self, opens=self.last == ":", first="", last="", colon=False)


def circles(text: str) -> bool:
    """Return whether a text has begun to repeat itself: its last lines, or the end of its last line."""
    if text.endswith("\n"):
        lines = text[:-1].split("\n")
        return any(lines[-size:] == lines[-2 * size : -size] for size in range(1, _LONGEST + 1))
    return _LOOP.search(text[-80:]) is not None
