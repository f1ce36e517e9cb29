"""Writes of many threads in one transaction: who comes while another writes is written with all that came meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Share:
    """What one thread wants written."""

    content: Sequence[object]
    done: bool = False
    fault: BaseException | None = None


class Together(Generic[T]):
    """Gathers what many threads append. A disk is waited for once a group, and nobody polls for a lock."""

    def __init__(self, write: Callable[[Sequence[T]], None]) -> None:
        """Append by this function, which is called by one thread at a time."""
        self._write = write
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[_Share] = []

    def append(self, content: Sequence[T]) -> None:
        """Return when the content is written, by this thread or by another.

        Raises:
            BaseException: what writing the group has raised; every thread of the group gets it.
        """
        mine = _Share(content)
        with self._lock:
            self._waiting.append(mine)
        with self._turn:
            if not mine.done:
                self._write_all()
        if mine.fault is not None:
            raise mine.fault

    def _write_all(self) -> None:
        """Write what waits. Called by the thread whose turn it is."""
        with self._lock:
            shares, self._waiting = self._waiting, []
        fault: BaseException | None = None
        try:
            self._write([one for share in shares for one in share.content])  # type: ignore[misc]
        except BaseException as error:  # noqa: BLE001 - each thread of the group raises it
            fault = error
        for share in shares:
            share.fault, share.done = fault, True
