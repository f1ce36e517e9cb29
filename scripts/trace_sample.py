"""Print the source files of ctxbench that process one sample, from `run` to its stored score, in order of use.

A file counts if one of its functions is called before the score is stored. The end of the run and its summary do not
count. The strategy runs in this process instead of a cell, and the result goes to a temporary database.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar
from unittest import mock

import click

import ctxbench
from ctxbench.bench import samples
from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.home import Home
from ctxbench.harness.cells import Cells, InlineCells
from ctxbench.harness.cli.options import home_option
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store

T = TypeVar("T")
_ROOMS = tuple(Path(folder) for folder in ctxbench.__path__)


class Trace:
    """Records ctxbench's source files in the order of the first call of one of their functions."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._ended = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Record a call. The arguments are those of `sys.setprofile`."""
        code = frame.f_code
        # Skip bodies of modules and classes.
        if self._ended or event != "call" or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        path = Path(code.co_filename)
        for folder in _ROOMS:
            if path.is_relative_to(folder):
                self.files.setdefault(path.relative_to(folder).as_posix(), code.co_qualname)

    def ending(self, function: Callable[..., T]) -> Callable[..., T]:
        """Return a function that calls `function` and then ends the recording."""

        def last(*arguments: Any) -> T:
            result = function(*arguments)
            self._ended = True
            return result

        return last

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Record the calls of this thread and of the threads that it starts."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


@contextlib.contextmanager
def _inline(_: Sequence[Path], __: int) -> Iterator[Cells]:
    yield InlineCells()


@click.command(help=__doc__)
@click.argument("name", metavar="SET")
@home_option
@click.option("--strategy", default="lc.infile", show_default=True)
@click.option("--generator", default="incontext", show_default=True)
def main(name: str, home: Home, strategy: str, generator: str) -> None:
    """Run one sample and print the files whose functions it calls."""
    try:
        files = passed(home, name, strategy, generator)
    except CtxbenchError as fault:
        raise click.ClickException(str(fault)) from None
    for number, (path, function) in enumerate(files.items(), 1):
        click.echo(f"{number:4} {path}  {function}")


def passed(home: Home, name: str, strategy: str, generator: str) -> dict[str, str]:
    """Run the first sample of a set; return the first function called in each file, by path, in order of the calls.

    Raises:
        CtxbenchError: if the set, the strategy or the generator does not exist or fails.
    """
    trace, sample_set = Trace(), samples.load(home, name)
    with tempfile.TemporaryDirectory() as scratch:
        store = open_store(f"sqlite:///{scratch}/results.db")
        choices = RunOptions(limit=1, workers=1)
        with trace.running(), mock.patch.object(store, "add_all_finished", trace.ending(store.add_all_finished)):
            run(home, store, sample_set, strategies=[strategy], generator=generator, choices=choices, cells=_inline)
        store.close()
    return trace.files


if __name__ == "__main__":
    main()
