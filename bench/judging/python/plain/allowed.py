"""The allow-lists in `allowed.toml`, and the attributes of built-in and other plain values."""

from __future__ import annotations

import builtins
import sys
import tomllib
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from io import BytesIO, StringIO
from logging import Logger
from pathlib import Path
from re import Match, Pattern
from typing import Final
from urllib.parse import ParseResult
from uuid import UUID

_LISTS = tomllib.loads(Path(__file__).with_name("allowed.toml").read_text(encoding="utf-8"))


def _words(key: str) -> frozenset[str]:
    return frozenset(_LISTS[key].split())


def _public(kind: type) -> frozenset[str]:
    return frozenset(name for name in dir(kind) if not name.startswith("_"))


ENDINGS: Final = _words("endings")
EXCEPTIONS: Final = (
    frozenset(
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException) and not name.startswith("_")
    )
    - ENDINGS
)
BUILTINS: Final = _words("builtins") | EXCEPTIONS
METHODS: Final = _words("methods")
DESCRIPTIONS: Final = _words("descriptions")
CLASS_NAMES: Final = _words("class_names")
BASES: Final = _words("bases") | EXCEPTIONS
DECORATORS: Final = _words("decorators")
REACHING: Final = _words("reaching")
CHANGING: Final = _words("changing")
CHANGING_FUNCTIONS: Final = _words("changing_functions")
SHARING: Final = _words("sharing")
KEYWORDS: Final = _words("keywords")
MAKING: Final = _words("making")
STANDARD: Final = frozenset(sys.stdlib_module_names)
VALUES: Final = frozenset[str]().union(
    *map(_public, (str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, range, slice))
)
ATTRIBUTES: Final = VALUES.union(
    *map(_public, (Counter, OrderedDict, defaultdict, deque, date, datetime, time, timedelta, Decimal, Fraction)),
    *map(_public, (BytesIO, StringIO, Logger, Match, Pattern, ParseResult, Path, UUID, StopIteration, OSError)),
)
"""Public attributes of built-in types, and of those types of the standard library that completions may use."""
_MODULES: Final = {name: frozenset(names.split()) for name, names in _LISTS["modules"].items()}


def is_module(name: str) -> bool:
    """Return whether completions may use a standard-library module, at least in part."""
    return name in _MODULES


def is_allowed(module: str, name: str) -> bool:
    """Return whether completions may use a name of a standard-library module."""
    names = _MODULES.get(module, frozenset())
    if "*" in names:
        return (not name.startswith("_") and name not in STANDARD | REACHING) or name == module
    return name in names
