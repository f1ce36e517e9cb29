"""Strip tags and Markdown fences around the code of an answer."""

from __future__ import annotations

import re

_OPEN = re.compile(r"\[code\]", re.I)
_CLOSE = re.compile(r"\[/code\]", re.I)
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n`]*$", re.M)
_WORD = re.compile(r"\A\s*(?:python3?|java)[ \t]*\n", re.I)


def tagged(answer: str) -> str | None:
    """Return what stands after the last ``[CODE]``, up to its ``[/CODE]`` or the end; None without a tag.

    A plan may mention the tags earlier. A fence in it is taken off.
    """
    tags = list(_OPEN.finditer(answer))
    if not tags:
        return None
    inner = answer[tags[-1].end() :]
    inner = _CLOSE.split(inner, maxsplit=1)[0]
    blocks = fenced(inner)
    return _WORD.sub("", blocks[-1] if blocks else inner)


def fenced(answer: str) -> list[str]:
    """Return the code in markdown fences, in order; a fence that is not closed goes on to the end."""
    blocks: list[str] = []
    at = 0
    while opening := _FENCE.search(answer, at):
        fence = opening["fence"]
        closing = re.compile(rf"^[ \t]*{re.escape(fence)}[ \t]*$", re.M).search(answer, opening.end())
        end = closing.start() if closing else len(answer)
        blocks.append(_WORD.sub("", answer[opening.end() + 1 : end]))
        at = closing.end() if closing else len(answer)
    return blocks
