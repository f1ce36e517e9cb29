"""Source files as text: in the encoding that they declare, UTF-8 where they declare none.

Python declares it in the file (PEP 263), Java in a Maven project's ``pom.xml``. Java files are tried as UTF-8 first: a
pom says what the compiler takes them for, and of text that is valid UTF-8 beyond ASCII nearly none is anything else.
"""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ctxbench.bench.files import explained
from ctxbench.bench.types import Language

UTF8 = "utf-8"
_PROPERTIES = re.compile(r"<(project\.build\.sourceEncoding|encoding)>\s*([^<\s]+)\s*</\1>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LARGEST_POM = 1 << 20


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


def of_python(raw: bytes) -> str | None:
    """Return the encoding that a Python file declares (PEP 263), None if Python knows none of that name."""
    try:
        return tokenize.detect_encoding(io.BytesIO(raw).readline)[0]
    except SyntaxError:
        return None


def read(raw: bytes, path: Path, root: Path, language: Language, *, pom: Callable[[Path, Path], str]) -> Decoded:
    """Return a source file as text.

    Args:
        raw: its bytes.
        path: where it lies.
        root: the repository's folder.
        language: which declaration counts.
        pom: `of_pom`, or what remembers its answers.
    """
    if language is Language.PYTHON:
        return decoded(raw, of_python(raw))
    as_utf8 = decoded(raw, UTF8)
    declared = "" if as_utf8.whole else pom(path.parent, root)
    return decoded(raw, declared) if declared else as_utf8


def of_pom(folder: Path, root: Path) -> str:
    """Return the encoding that the nearest ``pom.xml`` with one declares, in a folder or above it; empty if none does.

    Read is what stands there as it is, as ``project.build.sourceEncoding`` or a plugin's ``encoding``: values with
    ``${…}`` and the poms of other projects are not followed.
    """
    for place in (folder, *folder.parents):
        pom = place / "pom.xml"
        if pom.is_file() and not pom.is_symlink():
            with explained(pom), pom.open("rb") as file:
                text = file.read(_LARGEST_POM).decode(UTF8, "replace")
            names = dict(reversed(_PROPERTIES.findall(_COMMENT.sub("", text))))
            encoding = names.get("project.build.sourceEncoding") or names.get("encoding") or ""
            if encoding and "$" not in encoding:
                return str(encoding)
        if place == root:
            break
    return ""
