"""Progress bars that interrupt what they show, as a user does."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager


class Interrupting:
    """Interrupts once so many steps are done, and knows how many were."""

    def __init__(self, after: int = 1) -> None:
        self.after, self.done = after, 0

    def __call__(self, *_: object) -> AbstractContextManager[Callable[..., None]]:
        return self._shown()

    @contextlib.contextmanager
    def _shown(self) -> Iterator[Callable[..., None]]:
        yield self._tick

    def _tick(self, step: int, *_: int) -> None:
        self.done += step
        if self.done >= self.after:
            raise KeyboardInterrupt
