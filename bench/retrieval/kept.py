"""`Kept`: things that are dear to make, each made once however many threads ask; the latest used are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A bounded table. Making one thing keeps waiting those who want the same, and nobody else."""

    def __init__(self, most: int) -> None:
        """Keep `most` things."""
        self._most, self._lock = most, threading.Lock()
        self._things: OrderedDict[Hashable, tuple[threading.Lock, list[T]]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the thing of that key; if `make` raises, the next one who asks tries again."""
        with self._lock:
            lock, made = self._things.setdefault(key, (threading.Lock(), []))
            self._things.move_to_end(key)
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        with lock:
            if not made:
                made.append(make())
            return made[0]
