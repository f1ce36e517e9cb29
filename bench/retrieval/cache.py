"""`SharedCache`: results that are dear to make, made once for all threads; the latest used are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedCache(Generic[T]):
    """A bounded table; while an entry is made, only those who want the same one wait."""

    def __init__(self, most: int) -> None:
        """Keep at most `most` entries."""
        self._most, self._lock = most, threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[threading.Lock, list[T]]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the entry of that key; if `make` raises, the next caller tries again."""
        with self._lock:
            lock, cached = self._entries.setdefault(key, (threading.Lock(), []))
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with lock:
            if not cached:
                cached.append(make())
            return cached[0]
