"""Source files as text: in the encoding that their language says they declare, UTF-8 where they declare none."""

from __future__ import annotations

import codecs
from typing import NamedTuple

UTF8 = "utf-8"


class Decoded(NamedTuple):
    """The text of a file."""

    text: str
    encoding: str
    """What it was read in, by Python's name for it: ``utf-8``, ``iso8859-1``."""
    whole: bool
    """Whether every byte is text in that encoding; else U+FFFD stands for what is none."""


def decoded(raw: bytes, declared: str | None) -> Decoded:
    """Return bytes as text, without a mark of byte order, in an encoding or, if that does not fit, in UTF-8.

    Args:
        raw: the file.
        declared: the name of its encoding; None if what it declares cannot be read.
    """
    try:
        if declared is not None:
            name = codecs.lookup(declared).name.removesuffix("-sig")
            return Decoded(raw.decode("utf-8-sig" if name == UTF8 else declared), name, True)
    except (LookupError, UnicodeError):
        pass
    return Decoded(raw.decode("utf-8-sig", "replace"), UTF8, False)
