"""One printable, parseable spelling for everything configured: ``name(key=value, …)``.

The first argument may come without its key (``aim(lc.infile)``); what that key is only the thing named knows.
``openai:MODEL@URL`` is short for ``openai(model=MODEL, url=URL)``, ``hf:MODEL`` for ``hf(model=MODEL)`` and
``vllm:MODEL`` for ``vllm(model=MODEL)``; all may have arguments behind them.
Values are Python literals (numbers, strings, booleans, None, tuples and lists of these); a bare
word such as ``auto`` is a string, and a value that is itself a spec (``aim(inner=lc.infile)``,
``aim(inner=lc.repocoder(iterations=1))``) stays its text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxbench.bench.errors import InputFault
from ctxbench.bench.secrets import redacted

Value = None | bool | int | float | str | tuple["Value", ...]

_NAME = re.compile(r"[\w.+\-/@:~\\]+")
_BARE = re.compile(r"[\w.+\-/@:~\\]*[A-Za-z/][\w.+\-/@:~\\]*")
POSITIONAL = ""
"""The key of a first argument that came without one."""
_ARGUMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=")
_CURE = "write it as name(key=value, …), for example lc.repocoder(iterations=2)"
_SHORT = {
    # A model, and where it is served; a model's own name may hold an @.
    "openai": ("openai:MODEL@URL", re.compile(r"(?P<model>[^@]+|[^@]+@(?!https?://).+?)(?:@(?P<url>https?://.+))?")),
    # A name on the hub, or a path.
    "hf": ("hf:MODEL", re.compile(r"(?P<model>.+)")),
    "vllm": ("vllm:MODEL", re.compile(r"(?P<model>.+)")),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """A name with keyword arguments; `str` gives the canonical spelling, keys sorted."""

    name: str
    arguments: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the canonical spelling; `parse` reads it back to an equal `Spec`."""
        if not self.arguments:
            return self.name
        inner = ", ".join(f"{key}{'=' if key else ''}{_show(value)}" for key, value in sorted(self.arguments.items()))
        return f"{self.name}({inner})"

    def __hash__(self) -> int:
        """Hash by the canonical spelling."""
        return hash(str(self))


def parse(text: str) -> Spec:
    """Read ``name``, ``name(key=value, …)`` or ``name(value, key=value, …)``.

    Raises:
        InputFault: if the text is not of that form, or a key is given twice.
    """
    text = text.strip()
    match = _NAME.match(text)
    if not match:
        raise InputFault(f"{redacted(text)!r} is not a spec", cure=_CURE)
    name, remainder = match.group(), text[match.end() :].strip()
    arguments: dict[str, Value] = {}
    before, colon, behind = name.partition(":")
    if colon and before in _SHORT:
        form, shape = _SHORT[before]
        short = shape.fullmatch(behind)
        if not short:
            raise InputFault(f"{redacted(text)!r} is not a spec", cure=f"write it as {form}")
        name, arguments = before, {key: value for key, value in short.groupdict().items() if value}
    if not remainder:
        return Spec(name, arguments)
    if not (remainder.startswith("(") and remainder.endswith(")")):
        raise InputFault(f"{redacted(text)!r} is not a spec", cure=_CURE)
    for number, part in enumerate(_split(remainder[1:-1], text)):
        named = _ARGUMENT.match(part)
        key = named.group(1) if named else POSITIONAL
        value = part[named.end() if named else 0 :].strip()
        if not value or (number and not named):
            raise InputFault(f"{redacted(part.strip())!r} in {redacted(text)!r} is not key=value", cure=_CURE)
        if key in arguments:
            raise InputFault(f"{key!r} is given twice in {redacted(text)!r}", cure="keep one of them")
        arguments[key] = _read(value, text)
    return Spec(name, arguments)


_PIECE = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|.""", re.S)
_DEPTH = {"(": 1, "[": 1, ")": -1, "]": -1}


def _split(inner: str, text: str) -> list[str]:
    """Split at commas that stand outside quotes and brackets."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(inner):
        depth += _DEPTH.get(piece, 0)
        if depth < 0 or piece in ("'", '"'):
            break
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    else:
        if depth == 0:
            return parts if parts[-1].strip() else parts[:-1]
    raise InputFault(f"brackets or quotes do not match in {redacted(text)!r}", cure=_CURE)


def _read(value: str, text: str) -> Value:
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return words[value.lower()]
    try:
        return _freeze(ast.literal_eval(value))
    except (ValueError, SyntaxError, TypeError):
        pass
    if _BARE.fullmatch(value):
        return value
    try:
        return str(parse(value))
    except InputFault:
        raise InputFault(
            f"cannot read the value {redacted(value)!r} in {redacted(text)!r}", cure="quote text with ' or \""
        ) from None


def _freeze(value: object) -> Value:
    if isinstance(value, list | tuple):
        return tuple(_freeze(item) for item in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(value)


def _show(value: Value) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str):
        if value.lower() in ("true", "false", "none") or not _reads_back(value):
            return repr(value)
        return value
    if isinstance(value, tuple):
        return "[" + ", ".join(_show_item(item) for item in value) + "]"
    return repr(value)


def _show_item(value: Value) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_show_item(item) for item in value) + "]"
    return repr(value)


def _reads_back(value: str) -> bool:
    """Say whether the bare text is read back as this very string."""
    if not value or value != value.strip():
        return False
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError):
        pass
    else:
        return False
    if _BARE.fullmatch(value):
        return True
    if not value.endswith(")"):
        return False
    try:
        return str(parse(value)) == value
    except InputFault:
        return False
