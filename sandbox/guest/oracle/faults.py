"""Exceptions across the line: the nearest builtin class by name, and plain arguments.

A candidate must not end a loop of the check from inside: `all(map(candidate, inputs))` would stop, content,
at a StopIteration. Such exceptions arrive as a RuntimeError, which is what a generator makes of them.
"""

from __future__ import annotations

import builtins
from typing import Any

from . import values

_TEXT = 1000
_STOPS = (StopIteration, StopAsyncIteration, GeneratorExit, BaseExceptionGroup)
_BUILTINS: dict[str, type[BaseException]] = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, _STOPS)
}


def sent(error: BaseException) -> tuple[str, tuple[Any, ...]]:
    """Return an exception as it is sent: the name of a builtin class, and arguments."""
    kind = type(error)
    if _BUILTINS.get(kind.__name__) is kind:
        try:
            values.encode((kind.__name__, (error.args,)))  # as deep as it will be
        except Exception:  # noqa: BLE001 - whatever the arguments are, the text remains
            return kind.__name__, (in_one_line(error),)
        return kind.__name__, error.args
    for base in kind.__mro__[1:]:
        if _BUILTINS.get(base.__name__) is base and base not in (Exception, BaseException):
            return base.__name__, (_text(error),)
    if isinstance(error, _STOPS):
        return "RuntimeError", (f"the candidate raised {kind.__name__}",)
    return ("Exception" if isinstance(error, Exception) else "BaseException"), (_text(error),)


def received(name: object, arguments: object) -> BaseException:
    """Return the exception that a candidate says it raised.

    Raises:
        values.Malformed: if the name is not that of an exception that may be raised here.
    """
    kind = _BUILTINS.get(name) if type(name) is str else None
    if kind is None or type(arguments) is not tuple:
        raise values.MalformedValue(f"no exception is named {str(name)[:80]!r}")
    try:
        return kind(*arguments)
    except Exception:  # noqa: BLE001 - some classes want arguments of their own; the class is what counts
        error = kind.__new__(kind)
        error.args = arguments
        return error


def in_one_line(error: BaseException) -> str:
    """Return an exception as one line of bounded length, printable whatever it holds."""
    text = _text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text(error: BaseException) -> str:
    try:
        text = str(error)[:_TEXT]
    except Exception:  # noqa: BLE001 - such as an integer too long to print
        return "(no text)"
    line = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in line)
