"""Keeps certificates in the home folder's cache, so that an interrupted or larger build does none twice."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.errors import InputFault
from bench.files import dump_line, explained, read_text, sha256
from bench.types import Reference, Sample


class Certificates:
    """The certificates of one environment on one back end: a file of JSON lines that only grows."""

    def __init__(self, path: Path) -> None:
        """Read what is kept; a line that a crash cut off is left out.

        Args:
            path: named after the environment and the back end.
        """
        self._path, self._lock = path, threading.Lock()
        self._known: set[str] = set()
        self._left_out: dict[str, tuple[str, ...]] = {}
        with contextlib.suppress(InputFault):
            for line in read_text(path).split("\n"):
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._learn(json.loads(line))

    def has(self, sample: Sample, reference: Reference) -> bool:
        """Say whether a sample was certified before, with the same lines, answer and tests."""
        return _key(sample, reference) in self._known

    def left_out(self, sample: Sample, reference: Reference) -> tuple[str, ...] | None:
        """Return which of a reference's tests failed on a busy machine, None if they were not tried on one."""
        return self._left_out.get(_key(sample, reference))

    def add(self, sample: Sample, reference: Reference) -> None:
        """Keep a certificate; safe to call from many threads."""
        by_clocks_only = bool(reference.clocks) and set(reference.tests) <= set(reference.clocks)
        more = {"judged_by_clocks_only": True} if by_clocks_only else {}
        self._add({"certified": _key(sample, reference), "id": sample.id, **more})

    def add_left_out(self, sample: Sample, reference: Reference, tests: tuple[str, ...]) -> None:
        """Keep which of a reference's tests failed on a busy machine."""
        self._add({"loaded": _key(sample, reference), "id": sample.id, "left_out": list(tests)})

    def _learn(self, record: Mapping[str, Any]) -> None:
        if "loaded" in record:
            self._left_out[record["loaded"]] = tuple(record["left_out"])
        else:
            self._known.add(record["certified"])

    def _add(self, record: Mapping[str, Any]) -> None:
        line = dump_line(record)
        with self._lock, explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as out:
                # A line of its own also behind one that was cut off.
                out.write(("\n" if out.tell() else "").encode() + line.encode())
            self._learn(record)


def _key(sample: Sample, reference: Reference) -> str:
    parts = [sample.path, sample.span, [sample.cursor.line, sample.cursor.column], reference.target, reference.tests]
    return sha256(json.dumps(parts))
