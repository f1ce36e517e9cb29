"""Load strategies from a file that needs no installation, once for each content of the file."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench import old_names
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, sha256

if TYPE_CHECKING:
    from ctxbench.strategies.registry import Strategy

_FILE: ContextVar[tuple[str, dict[str, Strategy]]] = ContextVar("_FILE", default=("", {}))
"""Module name and strategies of the file being loaded: names in a file clash with nothing outside it."""
_LOADED: dict[Path, tuple[str, dict[str, Strategy]]] = {}


def being_loaded() -> tuple[str, dict[str, Strategy]]:
    """Return the name of the module that is being imported from a file, and where its strategies go."""
    return _FILE.get()


def load(path: Path, display_name: str) -> dict[str, Strategy]:
    """Return the strategies of a file by name.

    Args:
        path: the file.
        display_name: how messages call it.

    Raises:
        InputFault: if it cannot be read or imported.
    """
    with explained(display_name):
        content = path.read_bytes()
    digest = sha256(content)
    loaded = _LOADED.get(path)
    if loaded is not None and loaded[0] == digest:
        return loaded[1]
    module_name = f"_strategy_file_{sha256(str(path))[:12]}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    if module_spec is None:
        raise InputFault("is not a Python file", where=display_name, cure="give a file that ends in .py")
    old_names.accept()
    module = importlib.util.module_from_spec(module_spec)
    with _collecting(module_name) as strategies, _beside(path.parent):
        sys.modules[module_name] = module
        try:
            # Not by the loader: its bytecode cache takes an edit within the same second for no edit.
            exec(compile(content, str(path), "exec"), module.__dict__)  # noqa: S102 - what importing it would do
        except Exception as error:
            raise InputFault(
                f"cannot be imported ({type(error).__name__}: {error})", where=display_name, cure="mend the file"
            ) from error
    _LOADED[path] = (digest, strategies)
    return strategies


@contextlib.contextmanager
def _collecting(module: str) -> Iterator[dict[str, Strategy]]:
    strategies: dict[str, Strategy] = {}
    token = _FILE.set((module, strategies))
    try:
        yield strategies
    finally:
        _FILE.reset(token)


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Any]:
    """Let a strategy file import its neighbours, after everything that is installed."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
