"""Progress bars that interrupt their run, as a user would."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager


class Interrupting:
    """Interrupts when `after` steps are done. `done` counts the steps."""

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
