"""Output that strategies print: apart from data and terminal, bounded, and shown without control codes."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator

from ctxbench.bench.visible import visible

MOST_OF_CELL = 1 << 16
"""Bytes shown of what one strategy prints for one sample."""
MOST = 1 << 22
"""Bytes shown in all."""


class Remarks:
    """Shows what strategies print, up to a limit. Safe to use from many threads at once."""

    def __init__(self) -> None:
        """Begin with the whole space free."""
        self._left, self._lock = MOST, threading.Lock()

    @contextlib.contextmanager
    def of_cell(self) -> Iterator[int]:
        """Yield a descriptor for a cell to print to; show the output on stderr at the end.

        It is a file in memory and no pipe, so that nobody has to read while the strategy works.
        """
        handle = _file()
        try:
            yield handle
        finally:
            raw = os.pread(handle, MOST_OF_CELL + 1, 0)
            os.close(handle)
            if raw:
                self._show(raw)

    def _show(self, raw: bytes) -> None:
        with self._lock:
            if self._left <= 0:
                return
            self._left -= len(raw)
            ended = self._left <= 0
        text = visible(raw[:MOST_OF_CELL].decode("utf-8", "replace"))
        if not text.endswith("\n"):
            text += "\n"
        if len(raw) > MOST_OF_CELL:
            text += f"(the rest of what it printed, after {MOST_OF_CELL} bytes, is left out)\n"
        if ended:
            text += "(what strategies print is left out from here on: it is too much)\n"
        sys.stderr.write(text)
        sys.stderr.flush()


def _file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("remarks", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
