"""A file of JSON lines in the home folder's cache that only grows, for what is not to be done twice."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import dump_line, explained, read_text


class GrowingFile:
    """One file; a crash may cut off its last line, which then counts as none."""

    def __init__(self, path: Path) -> None:
        """Take a path; nothing need be there yet."""
        self._path, self._lock = path, threading.Lock()

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the records that are kept, oldest first."""
        with contextlib.suppress(InputFault):
            for line in read_text(self._path).split("\n"):
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield record

    def add(self, record: Mapping[str, Any]) -> None:
        """Keep a record; safe to call from many threads.

        Raises:
            MachineFault: if it cannot be written.
        """
        with self._lock, explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as out:
                # A line of its own also behind one that was cut off.
                out.write(("\n" if out.tell() else "").encode() + dump_line(record).encode())
