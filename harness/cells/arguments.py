"""The arguments of a cell's questions: names and types, for both sides of the channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXT = {"text": str, "ranker": str}
ARGUMENTS: Mapping[str, Mapping[str, type]] = {
    "files": {},
    "read": {"path": str},
    "similar_windows": {"text": str, "top": int, "size": int, "stride": int},
    "search": {**_TEXT, "unit": str, "top": int},
    "similarity": {**_TEXT, "candidates": list},
    "execute": {"program": str, "seconds": float},
}
"""Question -> the names and types of its arguments; a list holds texts."""


def fitting(call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a question.

    Raises:
        TypeError: if one has the wrong type.
    """
    if wrong := misfit(call, arguments):
        raise TypeError(wrong)
    return arguments


def misfit(call: str, arguments: Mapping[str, Any]) -> str:
    """Return a message on the first argument of a question with a wrong type; empty if there is none."""
    for name, kind in ARGUMENTS[call].items():
        value: Any = arguments[name]
        if type(value) is not kind:
            return f"{call}: {name} is {value!r:.60}, and should be of type {kind.__name__}"
        texts: Any = value if kind is list else ()
        for at, text in enumerate(texts):
            if type(text) is not str:
                return f"{call}: {name}[{at}] is {text!r:.60}, and should be of type str"
    return ""
