"""Look for the lines of samples in other places, by code that shares nothing with the builder.

Both sides lose everything but letters, digits and operators; what is left of a line is then looked for as plain text,
in units: the lines of a file, its comments and strings, and all of a file in one piece for longer lines.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_MARKS = re.compile(r"^\s*(#+|//+|/\*+|\*+/?|>>>|\.\.\.)?\s*")
_LOST = re.compile(r"[\s'\"\\]+")
_COMMA = re.compile(r",\n*(?=[)\]}])")
_LONG = 24
"""Letters of a squeezed line from which it is looked for inside other lines, too."""


def squeezed(line: str) -> str:
    """Return a line without marks, blanks, quotes and commas before closing brackets."""
    return _COMMA.sub("", _LOST.sub("", _MARKS.sub("", line)))


def stands_in(line: str, text: str, skipped: int | None = None) -> bool:
    """Say whether a line stands in a text, one line of which is left out."""
    wanted = squeezed(line)
    kept = [other for number, other in enumerate(text.split("\n")) if number != skipped]
    # A string spells the end of a line.
    rest = [squeezed(part) for other in kept for part in other.split("\\n")]
    if wanted in rest:
        return True
    pattern = r"(?<!\w)" + r"\n*".join(map(re.escape, wanted))
    return len(wanted) >= _LONG and re.search(pattern, _COMMA.sub("", "\n".join(rest))) is not None


def found(samples: Iterable[Any], references: Iterable[Any], texts: Mapping[str, str]) -> list[str]:
    """Return the ids of the samples whose line stands in a second place of a repository."""
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
