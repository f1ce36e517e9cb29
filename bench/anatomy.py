"""Measurements of the samples of a set: lengths, levels, what is hidden. Numbers only, no text is kept.

A set may be larger than memory: its files are read line by line, and a dozen numbers a sample are kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any

from ctxbench.bench import samples as sets
from ctxbench.bench.code_tokens import count
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, read_jsonl
from ctxbench.bench.home import Home

_CURE = "build the set again with --force, or keep your own version under another name"
_STRETCH = re.compile(r"(?:[^\n]*\n){1,16}\n*|[^\n]+")
"""Lines with all newlines that follow them: no token goes on behind such a stretch, none looks behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One sample in numbers. Tokens are those of `bench.code_tokens`."""

    repo: str
    language: str
    kind: str
    level: str
    """Subkind: ``single-line``, ``next-line``, or the CoderEval level."""
    prefix_tokens: int
    prefix_lines: int
    """Lines of the file before the cursor's own."""
    suffix_lines: int | None
    """Lines of the file after the target; None where nobody says."""
    target_tokens: int
    target_lines: int
    uses: int
    """Internal names that the target needs."""
    masked: bool
    """Whether its line is the first use of a name, so that the import is blanked."""
    hidden: int
    """Files and folders that no strategy sees for it."""
    tests: int
    """Tests that judge it."""


def measure(home: Home, name: str) -> tuple[Measured, ...]:
    """Read a set and measure its samples, in the set's order.

    Raises:
        UnknownName: if there is none of that name.
        InputFault: if a file is malformed, or not the one that the set was built with.
    """
    files, place = sets.manifest_of(home, name)["files"], sets.folder(home, name)
    answers = dict(_read(place / sets.REFERENCES, files, _answer))
    return tuple(_read(place / sets.SAMPLES, files, lambda record: _measured(record, *answers[record["id"]])))


def _read(path: Path, files: dict[str, str], of_record: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    """Yield `of_record` of each record of a file; its digest must be the one in the manifest."""
    with explained(path), path.open("rb") as handle:
        if hashlib.file_digest(handle, "sha256").hexdigest() != files[path.name]:
            what = "was changed after it was built: its sha256 is not the manifest's"
            raise InputFault(what, where=str(path), cure=_CURE)
    for number, record in read_jsonl(path):
        try:
            yield of_record(record)
        except (KeyError, TypeError, AttributeError) as error:
            what = f"is no record of a sample set ({error})"
            raise InputFault(what, where=f"{path}:{number}", cure=_CURE) from None


@lru_cache(maxsize=16_384)
def _count_stretch(stretch: str) -> int:
    return count(stretch)


def _count(text: str) -> int:
    """Return `count` of a text: samples of one file share most of their lines, which are counted once."""
    return sum(map(_count_stretch, _STRETCH.findall(text)))


def _answer(record: dict[str, Any]) -> tuple[str, tuple[int, int, int]]:
    target = record["target"]
    return record["id"], (count(target), target.count("\n") + 1, len(record["tests"]))


def _measured(record: dict[str, Any], tokens: int, lines: int, tests: int) -> Measured:
    prefix, suffix = record["prefix"], record["suffix"]
    return Measured(
        # Equal names are one object however many samples bear them.
        repo=intern(record["repo"]),
        language=intern(record["language"]),
        kind=intern(record["kind"]),
        level=intern(record["subkind"]),
        prefix_tokens=_count(prefix),
        prefix_lines=prefix.count("\n"),
        suffix_lines=None if suffix is None else suffix.count("\n") + bool(suffix),
        target_tokens=tokens,
        target_lines=lines,
        uses=len(record["uses"]),
        masked=bool(record["masked"]),
        hidden=len(record.get("hidden", ())),
        tests=tests,
    )
