"""Search for the lines of samples in other places, with code independent of the builder.

Lines and files are reduced to letters, digits and operators. A reduced line is then searched as plain text in units:
the lines of a file, its comments and strings, and for longer lines the whole file.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_MARKS = re.compile(r"^\s*(#+|//+|/\*+|\*+/?|>>>|\.\.\.)?\s*")
_LOST = re.compile(r"[\s'\"\\]+")
_COMMA = re.compile(r",\n*(?=[)\]}])")
_LONG = 24
"""Minimum length of squeezed lines that are also searched inside other lines."""


def squeezed(line: str) -> str:
    """Return a line without marks, blanks, quotes and commas before closing brackets."""
    return _COMMA.sub("", _LOST.sub("", _MARKS.sub("", line)))


def stands_in(line: str, text: str, skipped: int | None = None) -> bool:
    """Return whether a text contains a line. The text's line `skipped` is ignored."""
    wanted = squeezed(line)
    kept = [other for number, other in enumerate(text.split("\n")) if number != skipped]
    # A string literal may contain an escaped line end.
    rest = [squeezed(part) for other in kept for part in other.split("\\n")]
    if wanted in rest:
        return True
    pattern = r"(?<!\w)" + r"\n*".join(map(re.escape, wanted))
    return len(wanted) >= _LONG and re.search(pattern, _COMMA.sub("", "\n".join(rest))) is not None


def found(samples: Iterable[Any], references: Iterable[Any], texts: Mapping[str, str]) -> list[str]:
    """Return the ids of the samples whose line is in another place of the repository, too."""
    targets = {reference.id: reference.target for reference in references}
    shown = []
    for sample in samples:
        line = sample.prefix.rpartition("\n")[2] + targets[sample.id]
        code = re.sub(r"\s+(#|//).*", "", line)
        if any(
            stands_in(code, text, sample.cursor.line if path == sample.path else None) for path, text in texts.items()
        ):
            shown.append(sample.id)
    return shown
