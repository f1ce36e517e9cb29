"""Specs: a printable, parseable notation for everything configurable, ``name(key=value, …)``.

Values are Python literals, bare words or specs. A name may have a short spelling (`Shorthand`). Braces denote several
specs (`expand`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctxbench.bench.concurrency import TREE_LOCK
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.secrets import redacted

Value = None | bool | int | float | str | tuple["Value", ...]

_NAME = re.compile(r"[\w.+\-/@:~\\]+")
_BARE = re.compile(r"[\w.+\-/@:~\\]*[A-Za-z/][\w.+\-/@:~\\]*")
POSITIONAL = ""
"""Key under which a spec stores a first argument that has no key."""
_ARGUMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=")
_CURE = "write it as name(key=value, …), for example lc.repocoder(iterations=2)"


@dataclass(frozen=True, slots=True)
class Spec:
    """A name with arguments; the first may lack a key. `str` returns the canonical spelling, with sorted keys."""

    name: str
    arguments: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the canonical spelling, which `parse` turns into an equal `Spec`."""
        if not self.arguments:
            return self.name
        inner = ", ".join(f"{key}{'=' if key else ''}{spelled(value)}" for key, value in sorted(self.arguments.items()))
        return f"{self.name}({inner})"

    def __hash__(self) -> int:
        """Hash by the canonical spelling."""
        return hash(str(self))


@dataclass(frozen=True, slots=True)
class Shorthand:
    """A short spelling of specs: ``NAME:TEXT`` means ``NAME(key=value)``, e.g. ``Shorthand("M", r"(?P<model>.+)")``."""

    form: str
    """Format of the text after the colon, for messages: ``MODEL@URL``."""
    pattern: str
    """Regular expression for the text. Named groups are parameters; groups that match nothing are omitted."""

    @property
    def parameters(self) -> set[str]:
        """Names of the parameters that the text may set."""
        return set(re.compile(self.pattern).groupindex)

    def read(self, text: str, where: str) -> dict[str, Value]:
        """Return the arguments in `text`, the part of a spec after the colon. Messages show `where` before the colon.

        Raises:
            InputFault: if the text does not match.
        """
        match = re.fullmatch(self.pattern, text)
        if not match:
            raise InputFault(f"{redacted(f'{where}:{text}')!r} is not a spec", cure=f"write it as {where}:{self.form}")
        return {key: value for key, value in match.groupdict().items() if value}


def parse(text: str) -> Spec:
    """Parse ``name``, ``name(key=value, …)`` or ``name(value, key=value, …)``.

    Raises:
        InputFault: if the text is not a single spec, or sets a key twice.
    """
    text = text.strip()
    match = _NAME.match(text)
    if not match:
        raise InputFault(f"{redacted(text)!r} is not a spec", cure=_CURE)
    name, remainder = match.group(), text[match.end() :].strip()
    if not remainder:
        return Spec(name)
    if _variants(text) != (text,):
        raise InputFault(f"the braces in {redacted(text)!r} stand for several specs", cure="write a single spec here")
    arguments: dict[str, Value] = {}
    if not (remainder.startswith("(") and remainder.endswith(")")):
        raise InputFault(f"{redacted(text)!r} is not a spec", cure=_CURE)
    for number, part in enumerate(_split(remainder[1:-1], text)):
        named = _ARGUMENT.match(part)
        key = named.group(1) if named else POSITIONAL
        value = part[named.end() if named else 0 :].strip()
        if not value or (number and not named):
            raise InputFault(f"{redacted(part.strip())!r} in {redacted(text)!r} is not key=value", cure=_CURE)
        if key in arguments:
            raise InputFault(f"{redacted(text)!r} sets {key!r} twice", cure="keep one of them")
        arguments[key] = _read(value, text)
    return Spec(name, arguments)


def check_no_file(name: str, declared: Callable[[bytes, str], Sequence[str]], *, noun: str) -> None:
    """Reject the path of a Python file where ``FILE@NAME`` is required. The cure lists the names in the file.

    Args:
        name: name, path or ``FILE@NAME``.
        declared: takes a file's content and name, and returns the names in it.
        noun: what to call the names in the message.

    Raises:
        InputFault: if the name is the path of an existing Python file.
    """
    path = Path(name).expanduser()
    if path.suffix != ".py" or not path.is_file():
        return
    with explained(name):
        names = declared(path.read_bytes(), name)
    cure = f"write {' or '.join(f'{name}@{inside}' for inside in names or ('NAME',))}"
    raise InputFault(f"the name of the {noun} is missing after the file's path", where=name, cure=cure)


def nested_specs(text: str) -> Iterator[str]:
    """Yield the canonical spelling of a spec, and of each argument that is a spec, at any depth; nothing if invalid."""
    try:
        spec = parse(text)
    except InputFault:
        return
    yield str(spec)
    for value in spec.arguments.values():
        if isinstance(value, str):
            yield from nested_specs(value)


def expand(text: str) -> tuple[str, ...]:
    """Return the specs that braces denote: ``x(a={1,2}, b={3,4})`` becomes four specs. Braces in quotes stay.

    Raises:
        InputFault: if the braces do not match.
    """
    variants = _variants(text)
    if any(piece in ("{", "}") for variant in variants for piece in _PIECE.findall(variant)):
        raise InputFault(f"the braces in {redacted(text)!r} do not match", cure="write them as {first,second}")
    return variants


def _variants(text: str) -> tuple[str, ...]:
    pieces: list[str] = _PIECE.findall(text)
    if "{" not in pieces:
        return (text,)
    start = pieces.index("{")
    depth, alternatives = 0, [""]
    for end, piece in enumerate(pieces[start:], start):
        depth += {"{": 1, "}": -1, **_DEPTH}.get(piece, 0)
        if depth == 0 and piece == "}":
            break
        if piece == "," and depth == 1:
            alternatives.append("")
        elif end > start:
            alternatives[-1] += piece
    else:
        return (text,)
    before, after = "".join(pieces[:start]), "".join(pieces[end + 1 :])
    return tuple(variant for alternative in alternatives for variant in _variants(f"{before}{alternative}{after}"))


_PIECE = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|.""", re.S)
_DEPTH = {"(": 1, "[": 1, ")": -1, "]": -1}


def _split(inner: str, text: str) -> list[str]:
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


def _literal(value: str) -> object:
    with TREE_LOCK:
        return ast.literal_eval(value)


def _read(value: str, text: str) -> Value:
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return words[value.lower()]
    try:
        return _freeze(_literal(value))
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


def spelled(value: Value) -> str:
    """Return a value in the notation of specs."""
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
    if not value or value != value.strip():
        return False
    try:
        _literal(value)
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
