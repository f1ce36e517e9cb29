"""Spread work over many threads that wait most of the time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T], R], items: Sequence[T], width: int) -> list[R]:
    """Do the work on every item, at most `width` at once; return the results in order.

    The threads are no pool of the library's: those are waited for when the process ends, and one that waits for a
    server would hold up an interrupted run.

    Raises:
        BaseException: the first that the work raised; what is not begun by then never is.
    """
    if len(items) < 2 or width < 2:
        return [work(item) for item in items]
    results: dict[int, R] = {}
    errors: list[BaseException] = []
    waiting = iter(enumerate(items))
    lock = threading.Lock()

    def worker() -> None:
        while not errors:
            with lock:
                number, item = next(waiting, (-1, items[0]))
            if number < 0:
                return
            try:
                results[number] = work(item)
            except BaseException as error:  # noqa: BLE001 - raised again by who waits for it
                errors.append(error)

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(min(width, len(items)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]
