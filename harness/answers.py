"""A reader of single samples and their answers from a set on disk, without loading the others.

A set's two files are read once: their digests are checked, and the place where each record begins is remembered for as
long as the files stay unchanged. After that a record is one seek.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxbench.bench import samples
from ctxbench.bench.errors import CtxbenchError, InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.home import Home

_ID = re.compile(rb'\{"id": ("(?:[^"\\]|\\.)*")')
"""The beginning of every record of a built set."""
_MOST_FILES = 8
"""Files whose records are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTask:
    """The task that a sample sets, and its answer."""

    prefix: str
    """The target file up to the cursor, as strategies see it."""
    signature: str
    docstring: str
    target: str
    """The answer, as of `bench.types.Reference`."""
    tests: tuple[str, ...]
    original_import: str
    """The lines that were masked, if any."""
    has_answer: bool
    """Whether there is an answer: some benchmarks' tasks come with their tests alone."""


@dataclass(frozen=True, slots=True)
class _Index:
    state: tuple[int, int]
    """Size and time of the last change, in nanoseconds."""
    digest: str
    starts: Mapping[str, int] = field(repr=False)


class Answers:
    """The sample sets of a home folder, looked into a record at a time. Safe to use from many threads."""

    def __init__(self, home: Home) -> None:
        """Read nothing yet."""
        self._home = home
        self._files: dict[Path, _Index] = {}
        self._lock = threading.Lock()

    def find(self, name: str, digest: str, sample: str) -> AnsweredTask | None:
        """Return a sample with its answer; None if no set of that digest holds it here.

        Args:
            name: the set's, which is looked for first.
            digest: of the set; a set of that name with another digest is another set.
            sample: the sample's id.

        Raises:
            InputFault: if the set is here but was changed after it was built, or cannot be read.
        """
        manifest = self._manifest(name, digest)
        if manifest is None:
            return None
        place, files = manifest
        task, answer = (
            self._record(place / file, files[file], sample) for file in (samples.SAMPLES, samples.REFERENCES)
        )
        return None if task is None or answer is None else _task(task, answer)

    def _manifest(self, name: str, digest: str) -> tuple[Path, Mapping[str, str]] | None:
        names = samples.names(self._home)
        for set_name in sorted(names, key=lambda other: (other != name, other)):
            place = samples.folder(self._home, set_name)
            try:
                files = samples.manifest_of(self._home, set_name)["files"]
            except CtxbenchError:
                # A folder that is no readable set holds no answer; `ctxbench samples show` says what is wrong with it.
                continue
            if samples.digest_of(files) == digest:
                return place, files
        return None

    def _record(self, file: Path, digest: str, sample: str) -> dict[str, Any] | None:
        index = self._index(file)
        if index.digest != digest:
            raise InputFault(
                "was changed after it was built: its sha256 is not the manifest's",
                where=str(file),
                cure="build the set again with --force, or keep your own version under another name",
            )
        start = index.starts.get(sample)
        if start is None:
            return None
        with explained(file), file.open("rb") as handle:
            handle.seek(start)
            record: dict[str, Any] = json.loads(handle.readline())
        return record

    def _index(self, file: Path) -> _Index:
        with self._lock, explained(file):
            status = file.stat()
            state = status.st_size, status.st_mtime_ns
            index = self._files.pop(file, None)
            # The file used last stands last.
            self._files[file] = index if index is not None and index.state == state else _read(file, state)
            while len(self._files) > _MOST_FILES:
                del self._files[next(iter(self._files))]
            return self._files[file]


def _read(file: Path, state: tuple[int, int]) -> _Index:
    digest, starts, at = hashlib.sha256(), dict[str, int](), 0
    with file.open("rb") as handle:
        for line in handle:
            digest.update(line)
            if line.strip():
                starts.setdefault(_id_of(line, file), at)
            at += len(line)
    return _Index(state, digest.hexdigest(), starts)


def _id_of(line: bytes, file: Path) -> str:
    match = _ID.match(line)
    try:
        return str(json.loads(match[1]) if match else json.loads(line)["id"])
    except (ValueError, LookupError, TypeError):
        raise InputFault(
            "holds a line that is no record", where=str(file), cure="build the set again with --force"
        ) from None


def _task(sample: Mapping[str, Any], reference: Mapping[str, Any]) -> AnsweredTask:
    return AnsweredTask(
        prefix=sample["prefix"],
        signature=sample.get("signature") or "",
        docstring=sample.get("docstring") or "",
        target=reference["target"],
        tests=tuple(reference.get("tests") or ()),
        original_import=reference.get("original_import") or "",
        has_answer=not (reference.get("fields") or {}).get("no_reference"),
    )
