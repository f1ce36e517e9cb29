"""Measures the samples of a set: lengths, levels, hidden files."""

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
"""A line and the newlines after it, or up to 16 such lines. No token crosses the end of a match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One sample's measurements. Tokens are those of `bench.code_tokens`."""

    repo: str
    language: str
    kind: str
    level: str
    """``single-line``, ``next-line``, or the CoderEval level."""
    prefix_tokens: int
    prefix_lines: int
    """Lines of the file before the cursor line."""
    suffix_lines: int | None
    """Lines of the file after the target; None if unknown."""
    target_tokens: int
    target_lines: int
    uses: int
    masked: bool
    """Whether the sample hides an import whose name the target line is the first to use."""
    hidden: int
    """Number of files and folders hidden from strategies."""
    tests: int


def measure(home: Home, name: str) -> tuple[Measured, ...]:
    """Measure the samples of a set, in order.

    Raises:
        UnknownName: if no set has this name.
        InputFault: if a file is malformed or was changed after the set was built.
    """
    files, place = sets.manifest_of(home, name)["files"], sets.folder(home, name)
    answers = dict(_read(place / sets.REFERENCES, files, _answer))
    return tuple(_read(place / sets.SAMPLES, files, lambda record: _measured(record, *answers[record["id"]])))


def _read(path: Path, files: dict[str, str], of_record: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    with explained(path), path.open("rb") as handle:
        if hashlib.file_digest(handle, "sha256").hexdigest() != files[path.name]:
            what = "the file was changed after it was built: its sha256 differs from the manifest's"
            raise InputFault(what, where=str(path), cure=_CURE)
    for number, record in read_jsonl(path):
        try:
            yield of_record(record)
        except (KeyError, TypeError, AttributeError) as error:
            what = f"the line is not a record of a sample set ({error})"
            raise InputFault(what, where=f"{path}:{number}", cure=_CURE) from None


@lru_cache(maxsize=16_384)
def _count_stretch(stretch: str) -> int:
    return count(stretch)


def _count(text: str) -> int:
    return sum(map(_count_stretch, _STRETCH.findall(text)))


def _answer(record: dict[str, Any]) -> tuple[str, tuple[int, int, int]]:
    target = record["target"]
    return record["id"], (count(target), target.count("\n") + 1, len(record["tests"]))


def _measured(record: dict[str, Any], tokens: int, lines: int, tests: int) -> Measured:
    prefix, suffix = record["prefix"], record["suffix"]
    return Measured(
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
