"""Hostile strategies as data: they pass notes between cells, or try to change other processes and files."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NO = (
    "(EPERM|EACCES|ENOSYS|ENOENT|ESRCH|EROFS|EINVAL|ENOTTY|ENODEV|ENXIO|EAFNOSUPPORT|EOPNOTSUPP|ENOTDIR|EBADF|EXDEV"
    "|ELOOP)"
)
_WORDS = {"<all-no>": rf"\[('{_NO}'(, )?)*\]", "<no>": _NO}
"""Placeholders in angle brackets for `says` and `without`."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A way to pass a note to another cell: Python code in which ``note`` is four letters. `inside` has its helpers."""

    name: str
    tries: str
    leave: str
    """Code that the first cell runs."""
    look: str
    """Code that runs in a cell before the note is left, and in one after. Both must assign the same ``seen``."""
    at_once: str = ""
    """``leave`` or ``look``: the part whose cell lives on, at its ``wait()``, while the other part runs."""
    open_in: tuple[str, ...] = ()
    """Settings in which this channel is open, as docs/isolation.md says."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """An attempt to change something outside the cell: Python code that assigns ``said``. `inside` has its helpers."""

    name: str
    tries: str
    code: str
    says: str
    """A regular expression for the whole of ``said``."""
    without: str = ""
    """The regular expression for cells without namespaces, if it differs there."""


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
