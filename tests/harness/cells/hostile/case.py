"""Hostile strategies, as data: what they leave in one cell and look for in another, or what they do to others."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NO = (
    "(EPERM|EACCES|ENOSYS|ENOENT|ESRCH|EROFS|EINVAL|ENOTTY|ENODEV|ENXIO|EAFNOSUPPORT|EOPNOTSUPP|ENOTDIR|EBADF|EXDEV"
    "|ELOOP)"
)
_WORDS = {"<all-no>": rf"\[('{_NO}'(, )?)*\]", "<no>": _NO}
"""What `says` and `without` may name in angle brackets."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A way to tell another cell something: Python in which ``note`` is four letters; see `inside` for the rest."""

    name: str
    tries: str
    leave: str
    """Run in the first cell."""
    look: str
    """Run in a cell before and in one after that; assigns ``seen``, which must be the same both times."""
    at_once: str = ""
    """``leave`` or ``look``: that one lives while the other one runs; where it says ``wait()``, it does."""
    open_in: tuple[str, ...] = ()
    """Settings in which this is open; docs/isolation.md says so."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something done to others: Python that assigns ``said``; see `inside`."""

    name: str
    tries: str
    code: str
    says: str
    """A regular expression for the whole of ``said``."""
    without: str = ""
    """The same where cells have no namespaces, if it is another one there."""


def _read(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name(f"{name}s.toml").read_text())[name]
    return entries


def _act(entry: dict[str, Any]) -> Act:
    for key in entry.keys() & {"says", "without"}:
        for word, pattern in _WORDS.items():
            entry[key] = entry[key].replace(word, pattern)
    return Act(**entry)


CHANNELS = tuple(Channel(**{**entry, "open_in": tuple(entry.get("open_in", ()))}) for entry in _read("channel"))
ACTS = tuple(_act(entry) for entry in _read("act"))
