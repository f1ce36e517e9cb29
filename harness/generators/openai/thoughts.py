"""Thoughts that a server left in a model's text: where they end, and the answer behind them. Pure."""

from __future__ import annotations

import re

from ctxbench.harness.generators import lines

_BEGIN, _END = "<think>", "</think>"
"""Marks around the thoughts of open models; a server that knows a model's marks takes them out itself."""
_CODE = re.compile(
    rf"""
    ^[ \t]*(`{{3,}}|~{{3,}})(?!~)[^`\n]*\n(?:(?![ \t]*\1[ \t]*\w).*\n)*?[ \t]*\1[ \t]*$   # between fences
    | {lines.OPEN}(?:(?!{lines.OPEN})[\s\S])*?(?:{"|".join(lines.CLOSE)})                 # between a line's marks
    | \[(?i:code)\](?:(?!\[(?i:code)\])[\s\S])*?\[/(?i:code)\]                            # between a function's
    | (?<![^\Wfrb])(?<!\\)(["'`])(?:\\.|(?!\2|{lines.OPEN})[^\\\n])*\2                    # a string, no apostrophe
    """,
    re.M | re.X,
)
"""Code among words, where a mark of thoughts is a text like any other. What thoughts leave open is none."""


def answer_behind(text: str) -> str | None:
    """Return what a model wrote behind its thoughts, empty if they have no end; None if the text has no thoughts.

    Some chat templates begin the thoughts, and the model only ends them, with or without a line end. That mark may also
    be code, of an answer or of a thought about one.
    """
    begun = text.lstrip().startswith(_BEGIN)
    if _END not in text:
        return "" if begun else None
    words = _CODE.sub(lambda code: " " * len(code[0]), text)
    before, end, _ = words.partition(_END)
    if begun and not end:
        before, _, _ = text.partition(_END)
    elif not begun and (not end or _BEGIN in before):
        return None
    return text[len(before) + len(_END) :]
